"""Runs whose GPU stood at nothing in the middle and then went on.

No more than a core at work meanwhile: avoidable, low leaves a fifth to a quarter for noticing.
More cores at work: the GPU-hours are idle, the dollars may be honest, so low is nothing.
"""

from .form import CKPT, HUGGING, LOSS_OK, Scenario, Seg, day, healthy, make, verdict
from .machines import cents, usd

NOT = ("idle-start", "idle-tail", "gpu-too-big", "some-gpus-unused", "gpu-memory-growth")
MID = frozenset({"idle-middle", "gpu-idle", "gpu-starved"})

_NCCL = make(
    "retrieval-dual-2026-05-09-06-15-22-481",
    "ml.p4d.24xlarge",
    day(9, 6),
    Seg(4, 0, 300, 6, 8),
    Seg(296, 750, 2300, 28, 690),
    Seg(95, 0, 100.7, 28, 690, wobble=0.0),
    Seg(240, 750, 2300, 28, 690),
    hosts=2,
    image=HUGGING,
    describe=CKPT,
)
_REBUILD = make(
    "basket-seq-2026-05-10-03-30-48-620",
    "ml.g5.12xlarge",
    day(10, 3),
    Seg(3, 0, 300, 12, 8),
    Seg(237, 348, 2100, 40, 310),
    Seg(75, 0, 4580, 63, 310),
    Seg(240, 348, 2100, 40, 310),
)
_NIGHTLY = make(
    "aerial-detect-2026-05-11-18-05-33-215",
    "ml.g6e.4xlarge",
    day(11, 18),
    Seg(3, 0, 220, 10, 3),
    Seg(357, 88, 980, 44, 81),
    Seg(40, 0, 1130, 47, 81),
    Seg(320, 88, 980, 44, 81),
)
_TWICE = make(
    "route-policy-2026-05-12-01-50-14-777",
    "ml.g5.24xlarge",
    day(12, 1),
    Seg(3, 0, 260, 7, 6),
    Seg(147, 356, 3900, 36, 320),
    Seg(45, 0, 101.2, 35, 320, wobble=0.0),
    Seg(130, 356, 3900, 36, 320),
    Seg(50, 0, 100.8, 35, 320, wobble=0.0),
    Seg(115, 356, 3900, 36, 320),
    describe=CKPT,
)
_BRIEF = make(
    "text-pairs-2026-05-12-09-35-02-350",
    "ml.g6.2xlarge",
    day(12, 9),
    Seg(2, 0, 140, 25, 3),
    Seg(180, 87, 510, 57, 78),
    Seg(25, 0, 420, 58, 78),
    Seg(200, 87, 510, 57, 78),
)

_NCCL_USD = usd("ml.p4d.24xlarge", 95 / 60, 2)
_REBUILD_USD = usd("ml.g5.12xlarge", 75 / 60)
_NIGHTLY_USD = usd("ml.g6e.4xlarge", 40 / 60)
_TWICE_USD = usd("ml.g5.24xlarge", 95 / 60)

MIDDLES: tuple[Scenario, ...] = (
    _NCCL.scenario(
        "middle-collective-hung-p4d",
        "Two p4d lost a collective for 95 minutes, each polling on one core, then timed out.",
        verdict(
            _NCCL,
            cents(float(_NCCL_USD) * 0.75, float(_NCCL_USD) * 1.04),
            ("idle-middle",),
            (*NOT, *LOSS_OK, "serial-code", "cpu-bottleneck", "cheaper-type", "uneven-hosts"),
            "Sixteen A100 at nothing for an hour and a half: shorten the collective's time-out.",
        ),
    ),
    _REBUILD.scenario(
        "middle-features-rebuilt-on-all-cores-g5-12xlarge",
        "Between two rounds of training 48 cores rebuilt features for 75 minutes.",
        verdict(
            _REBUILD,
            # low: somebody must build them; high: a CPU machine does it before for next to nothing
            cents(0, float(_REBUILD_USD) * 1.05 + 0.5),
            (MID,),
            (*NOT, *LOSS_OK, "cpu-underused", "cheaper-type", "failed-spend"),
            "Honest CPU work on a GPU machine: five idle A10G-hours, better a processing step.",
        ),
    ),
    _NIGHTLY.scenario(
        "middle-validation-on-cpu-g6e-4xlarge",
        "Forty minutes of validation on eleven cores in the middle of a twelve-hour run.",
        verdict(
            _NIGHTLY,
            cents(0, float(_NIGHTLY_USD) * 1.1 + 0.6),
            (MID,),
            (*NOT, *LOSS_OK, "cpu-bottleneck", "gpu-underused", "cheaper-type"),
            "The GPU waited forty minutes for a validation that it could run itself.",
        ),
    ),
    _TWICE.scenario(
        "middle-two-stretches-g5-24xlarge",
        "Twice, for 45 and 50 minutes, a stuck mount left one core spinning; then it went on.",
        verdict(
            _TWICE,
            cents(float(_TWICE_USD) * 0.75, float(_TWICE_USD) * 1.05),
            ("idle-middle",),
            (*NOT, *LOSS_OK, "serial-code", "cpu-bottleneck", "cheaper-type"),
            "Both stretches count: 95 minutes of four A10G at nothing.",
        ),
    ),
    healthy(
        _BRIEF,
        "middle-25-minutes-only-g6-2xlarge",
        "Tokenising the second half of the data took 25 minutes in the middle of seven hours.",
        "Too short to speak of; nothing to say.",
        high=0.1,
        but=("gpu-too-big", "mixed-precision-candidate", "trainium-candidate"),
    ),
)
