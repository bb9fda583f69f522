"""Slow heads and starved GPUs: money spent before, or between, the steps that learn."""

from .form import HUGGING, Expert, Job, Scenario, Topic, day, run_phases, same
from .load import Seg
from .machines import cents, usd

NOT = ("gpu-idle", "some-gpus-unused", "failed-spend", "uneven-hosts", "idle-tail")

_DOWN = Job(
    "video-mae-2026-05-11-11-00-16-227",
    "ml.p4d.24xlarge",
    day(11, 11),
    run_phases(300, down=95 * 60),
    same(4, Seg(3, 0, 500, 8, 8), Seg(297, 752, 3300, 33, 690)),
    mode="File",
)
_PREP = Job(
    "audio-tagger-2026-05-12-16-00-37-356",
    "ml.g5.48xlarge",
    day(12, 16),
    run_phases(390),
    # two hours of resampling on all cores, then training
    same(1, Seg(120, 0, 17200, 22, 0), Seg(270, 748, 3600, 30, 696)),
)
_LOADER = Job(
    "augment-heavy-2026-05-14-08-00-55-702",
    "ml.g5.12xlarge",
    day(14, 8),
    run_phases(600),
    same(1, Seg(3, 0, 2100, 14, 8), Seg(597, 120, 4660, 58, 304, wobble=0.10)),
)
_SERIAL = Job(
    "tokenise-on-the-fly-2026-05-19-08-00-20-585",
    "ml.p5.48xlarge",
    day(19, 8),
    run_phases(480),
    # one Python thread tokenises for eight GPUs
    same(1, Seg(3, 0, 101, 3, 8), Seg(477, 96, 104, 6, 664, wobble=0.12)),
    image=HUGGING,
)

_WEAK: tuple[Topic, ...] = (
    frozenset({"cpu-bottleneck", "gpu-starved", "gpu-underused", "serial-code"}),
)

HEAD: tuple[Scenario, ...] = (
    _DOWN.scenario(
        "download-95-minutes-p4d",
        "Four p4d each copied 2 TB in File mode for 95 minutes before five hours of training.",
        Expert(
            "yes",
            # low: half of it, since streaming the first epoch may cost some; high: all of it
            cents(usd("ml.p4d.24xlarge", 95 / 120, 4), usd("ml.p4d.24xlarge", 95 / 60, 4)),
            _DOWN.share(0, 0),
            _DOWN.idle(),
            (frozenset({"download-dominates", "slow-start", "replicated-input"}),),
            (*NOT, "gpu-underused", "gpu-too-big", "cpu-bottleneck"),
            "A quarter of the bill copied files: FastFile, FSx, or a shard to each host.",
        ),
    ),
    _PREP.scenario(
        "cpu-preprocessing-head-g5",
        "Two hours of audio resampling on 172 of 192 cores before the first GPU step.",
        Expert(
            "yes",
            # low: the cores did work, and no other host is sure to do it at the same pace (two
            # m5.24xlarge would cost 22 of these 41 dollars); high: the head is run once, elsewhere
            cents(0, usd("ml.g5.48xlarge", 2.1)),
            _PREP.share(0, 0),
            _PREP.idle(),
            (frozenset({"idle-start", "slow-start"}),),
            (*NOT, "gpu-too-big", "download-dominates"),
            "Resample once in a processing job: CPU hosts cost half, and later runs nothing.",
        ),
    ),
    _LOADER.scenario(
        "cpu-loader-bound-g5-12x",
        "Image augmentation keeps 47 of 48 cores busy; the four A10G reach 30 % each.",
        Expert(
            "yes",
            # low: every smaller host has fewer cores, a larger one no certain gain
            _LOADER.share(0, 1 - 0.30 / 0.95),
            _LOADER.share(0, 0),
            _LOADER.idle(),
            (frozenset({"cpu-bottleneck", "gpu-starved"}),),
            (*NOT, "cpu-underused", "gpu-too-big"),
            "The cores are the limit: augment on the GPU or beforehand; no smaller host fits.",
        ),
    ),
    _SERIAL.scenario(
        "one-core-feeds-eight-h100",
        "One Python thread tokenises for eight H100, which reach 12 %, memory 83 % full.",
        Expert(
            "yes",
            # low: p4de holds the memory and one core; 12 % use, at most 1.16 times the time, but
            # the single-thread speed of another CPU is unknown, so no dollars are certain
            _SERIAL.share(0, 0.87),
            _SERIAL.share(0, 0),
            _SERIAL.idle(),
            _WEAK,
            NOT,
            "Tokenise beforehand: one core holds back a $63 machine at an eighth of its pace.",
        ),
    ),
)
