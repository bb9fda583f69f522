"""How the machines were bought and kept: spot, many hosts on demand, warm pools."""

from .form import (
    CKPT,
    GPU_OK,
    HUGGING,
    LOSS_OK,
    MOVE_OK,
    Job,
    Json,
    Phase,
    Scenario,
    Seg,
    day,
    healthy,
    make,
    same,
    verdict,
)
from .machines import cents, usd

NOT = (*GPU_OK, *MOVE_OK, "failed-spend", "limit-hit", "gpu-too-big")
SPOT: Json = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 86_400, "MaxWaitTimeInSeconds": 129_600},
}


def attempt(minutes: int, wait: int, more: bool) -> tuple[Phase, ...]:
    """One attempt of a spot job; `more`: it was interrupted."""
    cut = (Phase("Interrupted", 60, "Spot capacity was reclaimed"),) if more else ()
    return (
        Phase("Starting", wait, "Launching spot instances"),
        Phase("Downloading", 180, "Downloading the training image"),
        Phase("Training", minutes * 60, "Training in progress."),
        *cut,
    )


def pool(state: str, seconds: int, keep: int, by: str = "") -> Json:
    """Members of the answer about a warm pool, and the wish for it."""
    status: Json = {"Status": state, "ResourceRetainedBillableTimeInSeconds": seconds}
    return {
        "retained": seconds,
        "resources": {"KeepAlivePeriodInSeconds": keep},
        "describe": {"WarmPoolStatus": {**status, "ReusedByJob": by} if by else status},
    }


def busy(minutes: int) -> Seg:
    """A well-used stretch of a g5.2xlarge."""
    return Seg(minutes, 87, 480, 57, 78)


_GAP = Seg(14, 0, 0, 0, 0, gone=True)  # 1 interrupted, 10 waiting, 3 downloading
_RAW = Job(
    "lesion-net-2026-05-04-05-10-42-384",
    "ml.g5.2xlarge",
    day(4, 5),
    (
        *attempt(100, 240, more=True),
        *attempt(140, 600, more=True),
        *attempt(260, 600, more=False),
        Phase("Uploading", 60, "Uploading generated training model"),
    ),
    same(1, busy(100), _GAP, busy(140), _GAP, busy(260)),
    billable=13_200,  # 500 minutes at some 44 %
    describe=SPOT,
)
_LUCKY = make(
    "click-model-2026-05-06-09-40-23-015",
    "ml.g4dn.2xlarge",
    day(6, 9),
    Seg(2, 0, 150, 25, 3),
    Seg(298, 85, 500, 60, 80),
    billable=6_400,
    describe=SPOT,
)
_P4D = make(
    "code-lm-7b-2026-05-07-21-00-09-570",
    "ml.p4d.24xlarge",
    day(7, 21),
    Seg(5, 0, 300, 5, 8),
    Seg(895, 762, 2300, 27, 720),
    hosts=4,
    image=HUGGING,
    describe=CKPT,
)
_P5 = make(
    "mix-experts-2026-05-16-00-15-35-668",
    "ml.p5.48xlarge",
    day(16, 0),
    Seg(6, 0, 420, 4, 8),
    Seg(1194, 770, 3200, 23, 700),
    hosts=8,
    down=320,
    image=HUGGING,
    describe=CKPT,
    script="pretrain.py",
)
_SINGLE = make(
    "species-id-2026-05-17-08-25-50-126",
    "ml.g5.xlarge",
    day(17, 8),
    Seg(2, 0, 120, 30, 3),
    Seg(598, 91, 270, 66, 84),
    describe=CKPT,
)
_WAITED = make(
    "tune-prompts-2026-05-18-13-00-16-902",
    "ml.g5.12xlarge",
    day(18, 13),
    Seg(1, 0, 240, 12, 6),
    Seg(17, 346, 1900, 38, 310),
    down=70,
    up=30,
    **pool("Reused", 12_600, 14_400, "tune-prompts-2026-05-18-16-52-37-411"),
)
_QUICK = make(
    "tune-heads-2026-05-18-17-20-44-238",
    "ml.g5.2xlarge",
    day(18, 17),
    Seg(2, 0, 150, 22, 3),
    Seg(43, 83, 470, 56, 71),
    down=70,
    up=30,
    **pool("Reused", 42, 900, "tune-heads-2026-05-18-18-10-30-877"),
)
_NEVER = make(
    "map-match-2026-05-19-10-35-28-590",
    "ml.p3.8xlarge",
    day(19, 10),
    Seg(2, 0, 200, 9, 6),
    Seg(68, 352, 1800, 35, 310),
    volume_gb=200,
    **pool("Terminated", 3600, 3600),
)

_WAIT_USD = usd("ml.g5.12xlarge", 3.5)
_NEVER_USD = usd("ml.p3.8xlarge", 1)

BOUGHT: tuple[Scenario, ...] = (
    _RAW.scenario(
        "spot-cut-twice-without-checkpoints-g5-2xlarge",
        "Spot was taken away twice; without checkpoints 240 of 500 minutes were done for nothing.",
        verdict(
            _RAW,
            # low: which attempt the billed seconds belong to is not told
            _RAW.share(0, 0.52),
            (frozenset({"spot-without-checkpoint", "spot-interrupted-much"}),),
            (*NOT, "spot-not-used", "warm-pool-idle"),
            "Checkpoints first; spot itself still pays. Nearly half was repeated.",
            lost=_RAW.share(0, 0.52),
            together=_RAW.share(0, 0.55),
        ),
    ),
    _LUCKY.scenario(
        "spot-uncut-without-checkpoints-g4dn-2xlarge",
        "Five hours on spot without checkpoints, and by luck nothing was interrupted.",
        verdict(
            _LUCKY,
            _LUCKY.share(0, 0.04),
            ("spot-without-checkpoint",),
            (*NOT, "spot-interrupted-much", "spot-not-used", "warm-pool-idle", "cheaper-type"),
            "Nothing lost this time; set checkpoints before the luck ends.",
        ),
    ),
    healthy(
        _P4D,
        "four-p4d-on-demand",
        "Four busy p4d on demand with checkpoints, fifteen hours.",
        "Whoever promises spot for four p4d at once invents the figure; nothing to say.",
        but=("gpu-too-big", "cheaper-type"),
    ),
    healthy(
        _P5,
        "eight-p5-on-demand",
        "Eight busy p5 on demand with checkpoints, twenty hours, ten thousand dollars.",
        "Used to the brim; spot for eight p5 is no offer, a training plan is a talk, no finding.",
        but=("gpu-too-big", "cheaper-type", "old-generation"),
    ),
    _SINGLE.scenario(
        "one-g5-on-demand-with-checkpoints",
        "Ten busy hours on one g5.xlarge on demand, with checkpoints already set.",
        verdict(
            _SINGLE,
            # high: g5 on spot was 60 % cheaper on average; never certain
            _SINGLE.share(0, 0.68),
            ("spot-not-used",),
            (*NOT, *LOSS_OK, "memory-oversized", "trainium-candidate"),
            "Checkpoints are there: managed spot would take more than half off, if it is had.",
        ),
    ),
    _WAITED.scenario(
        "pool-reused-after-ten-times-the-work-g5-12xlarge",
        "Eighteen minutes of work, then 210 minutes of paid waiting until the next run came.",
        verdict(
            _WAITED,
            # low: the start that it saved, bad luck with capacity included, is worth twenty minutes
            cents(float(_WAIT_USD) - 20 / 60 * 7.09, float(_WAIT_USD) * 1.02 + 0.2),
            ("warm-pool-idle",),
            (*GPU_OK, *MOVE_OK, "failed-spend", "gpu-too-big", "spot-not-used"),
            "$25 of waiting to save one start: keep alive for ten minutes.",
        ),
    ),
    healthy(
        _QUICK,
        "pool-reused-at-once-g5-2xlarge",
        "The next run took the pool over after 42 seconds.",
        "As it is meant; nothing to say.",
        high=0.1,
        but=("gpu-too-big", "spot-not-used", "short-experiment"),
    ),
    _NEVER.scenario(
        "pool-never-reused-p3-8xlarge",
        "A pool of an hour after a 70-minute run; nobody came.",
        verdict(
            _NEVER,
            # high: the run itself on newer GPUs, too, would be half
            cents(float(_NEVER_USD) * 0.97, float(_NEVER_USD) * 1.6),
            ("warm-pool-idle",),
            (*GPU_OK, *MOVE_OK, "failed-spend", "gpu-too-big"),
            "An hour of four V100 for nothing: no keep-alive on single runs.",
        ),
    ),
)
