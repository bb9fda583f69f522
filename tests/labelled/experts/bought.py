"""How the machines were bought and kept: spot, many hosts on demand, warm pools."""

from tests.labelled.expert import (
    CKPT,
    GPU_OK,
    HUGGING,
    LOSS_OK,
    MOVE_OK,
    between,
    cents,
    expert,
    healthy,
    job,
    usd,
)
from tests.labelled.experts.purchase import cut, pool, runs, spot
from tests.labelled.machine import Shown

NOT = (*GPU_OK, *MOVE_OK, "failed-spend", "limit-hit", "gpu-too-big")


SCENARIOS = (
    expert(
        "spot-cut-twice-without-checkpoints-g5-2xlarge",
        "Spot was taken away twice; without checkpoints 240 of 500 minutes were done for nothing.",
        job(
            "lesion-net-2026-05-04-05-10-42-384", "ml.g5.2xlarge",
            # 1 minute interrupted, 10 waiting, 3 downloading
            *runs(14, Shown(0, 87, 480, 57, 78), 100, 140, 260),
            phases=cut(100, 140, 260, up=60, wait=600, down=180), billable=13_200,
            describe=spot(24),
        ),
        # low: which attempt the billed seconds belong to is not told
        share=(0, 0.52), lost=(0, 0.52), together=(0, 0.55),
        must=(frozenset({"spot-without-checkpoint", "spot-interrupted-much"}),),
        must_not=(*NOT, "spot-not-used", "warm-pool-idle"),
        says="Checkpoints first; spot itself still pays. Nearly half was repeated.",
    ),
    expert(
        "spot-uncut-without-checkpoints-g4dn-2xlarge",
        "Five hours on spot without checkpoints, and by luck nothing was interrupted.",
        job("click-model-2026-05-06-09-40-23-015", "ml.g4dn.2xlarge", Shown(2, 0, 150, 25, 3),
            Shown(298, 85, 500, 60, 80), billable=6_400, describe=spot(24)),
        share=(0, 0.04), must=("spot-without-checkpoint",),
        must_not=(*NOT, "spot-interrupted-much", "spot-not-used", "warm-pool-idle", "cheaper-type"),
        says="Nothing lost this time; set checkpoints before the luck ends.",
    ),
    healthy(
        "four-p4d-on-demand", "Four busy p4d on demand with checkpoints, fifteen hours.",
        job("code-lm-7b-2026-05-07-21-00-09-570", "ml.p4d.24xlarge", Shown(5, 0, 300, 5, 8),
            Shown(895, 762, 2300, 27, 720), hosts=4, image=HUGGING, describe=CKPT),
        but=("gpu-too-big", "cheaper-type"),
        says="Whoever promises spot for four p4d at once invents the figure; nothing to say.",
    ),
    healthy(
        "eight-p5-on-demand",
        "Eight busy p5 on demand with checkpoints, twenty hours, ten thousand dollars.",
        job("mix-experts-2026-05-16-00-15-35-668", "ml.p5.48xlarge", Shown(6, 0, 420, 4, 8),
            Shown(1194, 770, 3200, 23, 700), hosts=8, down=320, image=HUGGING, describe=CKPT,
            script="pretrain.py"),
        but=("gpu-too-big", "cheaper-type", "old-generation"),
        says="Used to the brim; spot for eight p5 is no offer, a plan is a talk, no finding.",
    ),
    expert(
        "one-g5-on-demand-with-checkpoints",
        "Ten busy hours on one g5.xlarge on demand, with checkpoints already set.",
        job("species-id-2026-05-17-08-25-50-126", "ml.g5.xlarge", Shown(2, 0, 120, 30, 3),
            Shown(598, 91, 270, 66, 84), describe=CKPT),
        # high: g5 on spot was 60 % cheaper on average; never certain
        share=(0, 0.68), must=("spot-not-used",),
        must_not=(*NOT, *LOSS_OK, "memory-oversized", "trainium-candidate"),
        says="Checkpoints are there: managed spot would take more than half off, if it is had.",
    ),
    expert(
        "pool-reused-after-ten-times-the-work-g5-12xlarge",
        "Eighteen minutes of work, then 210 minutes of paid waiting until the next run came.",
        job("tune-prompts-2026-05-18-13-00-16-902", "ml.g5.12xlarge", Shown(1, 0, 240, 12, 6),
            Shown(17, 346, 1900, 38, 310), down=70, up=30,
            **pool("Reused", 12_600, 14_400, "tune-prompts-2026-05-18-16-52-37-411")),
        # low: the start that it saved, bad luck with capacity included, is worth twenty minutes
        wasted=cents(3.5 * 7.09 - 20 / 60 * 7.09, 3.5 * 7.09 * 1.02 + 0.2),
        must=("warm-pool-idle",),
        must_not=(*GPU_OK, *MOVE_OK, "failed-spend", "gpu-too-big", "spot-not-used"),
        says="$25 of waiting to save one start: keep alive for ten minutes.",
    ),
    healthy(
        "pool-reused-at-once-g5-2xlarge", "The next run took the pool over after 42 seconds.",
        job("tune-heads-2026-05-18-17-20-44-238", "ml.g5.2xlarge", Shown(2, 0, 150, 22, 3),
            Shown(43, 83, 470, 56, 71), down=70, up=30,
            **pool("Reused", 42, 900, "tune-heads-2026-05-18-18-10-30-877")),
        high=0.1, but=("gpu-too-big", "spot-not-used"),
        says="As it is meant; nothing to say.",
    ),
    expert(
        "pool-never-reused-p3-8xlarge", "A pool of an hour after a 70-minute run; nobody came.",
        job("map-match-2026-05-19-10-35-28-590", "ml.p3.8xlarge", Shown(2, 0, 200, 9, 6),
            Shown(68, 352, 1800, 35, 310), volume_gb=200, **pool("Terminated", 3600, 3600)),
        # high: the run itself on newer GPUs, too, would be half
        wasted=between(usd("ml.p3.8xlarge", 1), 0.97, 1.6), must=("warm-pool-idle",),
        must_not=(*GPU_OK, *MOVE_OK, "failed-spend", "gpu-too-big"),
        says="An hour of four V100 for nothing: no keep-alive on single runs.",
    ),
)  # fmt: skip
