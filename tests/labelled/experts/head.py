"""Slow heads and starved GPUs: money spent before, or between, the steps that learn."""

from tests.labelled.expert import HUGGING, cents, expert, job, usd
from tests.labelled.machine import Shown

NOT = ("gpu-idle", "some-gpus-unused", "failed-spend", "uneven-hosts", "idle-tail")
_WEAK = (frozenset({"cpu-bottleneck", "gpu-starved", "gpu-underused", "serial-code"}),)

SCENARIOS = (
    expert(
        "download-95-minutes-p4d",
        "Four p4d each copied 2 TB in File mode for 95 minutes before five hours of training.",
        job("video-mae-2026-05-11-11-00-16-227", "ml.p4d.24xlarge", Shown(3, 0, 500, 8, 8),
            Shown(297, 752, 3300, 33, 690), down=95 * 60, hosts=4, mode="File"),
        # low: half of it, since streaming the first epoch may cost some; high: all of it
        wasted=cents(usd("ml.p4d.24xlarge", 95 / 120, 4), usd("ml.p4d.24xlarge", 95 / 60, 4)),
        must=(frozenset({"download-dominates", "replicated-input"}),),
        must_not=(*NOT, "gpu-underused", "gpu-too-big", "cpu-bottleneck"),
        says="A quarter of the bill copied files: FastFile, FSx, or a shard to each host.",
    ),
    expert(
        "cpu-preprocessing-head-g5",
        "Two hours of audio resampling on 172 of 192 cores before the first GPU step.",
        job(
            # two hours of resampling on all cores, then training
            "audio-tagger-2026-05-12-16-00-37-356", "ml.g5.48xlarge",
            Shown(120, 0, 17200, 22, 0),
            Shown(270, 748, 3600, 30, 696),
        ),
        # low: the cores did work, and no other host is sure to do it at the same pace (two
        # m5.24xlarge would cost 22 of these 41 dollars); high: the head is run once, elsewhere
        wasted=cents(0, usd("ml.g5.48xlarge", 2.1)),
        must=("idle-start",),
        must_not=(*NOT, "gpu-too-big", "download-dominates"),
        says="Resample once in a processing job: CPU hosts cost half, and later runs nothing.",
    ),
    expert(
        "cpu-loader-bound-g5-12x",
        "Image augmentation keeps 47 of 48 cores busy; the four A10G reach 30 % each.",
        job("augment-heavy-2026-05-14-08-00-55-702", "ml.g5.12xlarge", Shown(3, 0, 2100, 14, 8),
            Shown(597, 120, 4660, 58, 304, wobble=0.10)),
        # low: every smaller host has fewer cores, a larger one no certain gain
        share=(0, 1 - 0.30 / 0.95), must=(frozenset({"cpu-bottleneck", "gpu-starved"}),),
        must_not=(*NOT, "cpu-underused", "gpu-too-big"),
        says="The cores are the limit: augment on the GPU or beforehand; no smaller host fits.",
    ),
    expert(
        "one-core-feeds-eight-h100",
        "One Python thread tokenises for eight H100, which reach 12 %, memory 83 % full.",
        job(
            # one Python thread tokenises for eight GPUs
            "tokenise-on-the-fly-2026-05-19-08-00-20-585", "ml.p5.48xlarge",
            Shown(3, 0, 101, 3, 8),
            Shown(477, 96, 104, 6, 664, wobble=0.12),
            image=HUGGING,
        ),
        # low: p4de holds the memory and one core; 12 % use, at most 1.16 times the time, but
        # the single-thread speed of another CPU is unknown, so no dollars are certain
        share=(0, 0.87), must=_WEAK, must_not=NOT,
        says="Tokenise beforehand: one core holds back a $63 machine at an eighth of its pace.",
    ),
)  # fmt: skip
