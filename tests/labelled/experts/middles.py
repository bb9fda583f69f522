"""Runs whose GPU stood at nothing in the middle and then went on.

No more than a core at work meanwhile: avoidable, low leaves a fifth to a quarter for noticing.
More cores at work: the GPU-hours are idle, the dollars may be honest, so low is nothing.
"""

from tests.labelled.expert import CKPT, HUGGING, LOSS_OK, between, cents, expert, healthy, job, usd
from tests.labelled.machine import Shown

NOT = ("idle-start", "idle-tail", "gpu-too-big", "some-gpus-unused")
MID = frozenset({"idle-middle", "gpu-idle", "gpu-starved"})

SCENARIOS = (
    expert(
        "middle-collective-hung-p4d",
        "Two p4d lost a collective for 95 minutes, each polling on one core, then timed out.",
        job("retrieval-dual-2026-05-09-06-15-22-481", "ml.p4d.24xlarge", Shown(4, 0, 300, 6, 8),
            Shown(296, 750, 2300, 28, 690), Shown(95, 0, 100.7, 28, 690, wobble=0.0),
            Shown(240, 750, 2300, 28, 690), hosts=2, image=HUGGING, describe=CKPT),
        wasted=between(usd("ml.p4d.24xlarge", 95 / 60, 2), 0.75, 1.04), must=("idle-middle",),
        must_not=(*NOT, *LOSS_OK, "serial-code", "cpu-bottleneck", "cheaper-type", "uneven-hosts"),
        says="Sixteen A100 at nothing for an hour and a half: shorten the collective's time-out.",
    ),
    expert(
        "middle-features-rebuilt-on-all-cores-g5-12xlarge",
        "Between two rounds of training 48 cores rebuilt features for 75 minutes.",
        job("basket-seq-2026-05-10-03-30-48-620", "ml.g5.12xlarge", Shown(3, 0, 300, 12, 8),
            Shown(237, 348, 2100, 40, 310), Shown(75, 0, 4580, 63, 310),
            Shown(240, 348, 2100, 40, 310)),
        # low: somebody must build them; high: a CPU machine does it before for next to nothing
        wasted=cents(0, float(usd("ml.g5.12xlarge", 75 / 60)) * 1.05 + 0.5), must=(MID,),
        must_not=(*NOT, *LOSS_OK, "cpu-underused", "cheaper-type", "failed-spend"),
        says="Honest CPU work on a GPU machine: five idle A10G-hours, better a processing step.",
    ),
    expert(
        "middle-validation-on-cpu-g6e-4xlarge",
        "Forty minutes of validation on eleven cores in the middle of a twelve-hour run.",
        job("aerial-detect-2026-05-11-18-05-33-215", "ml.g6e.4xlarge", Shown(3, 0, 220, 10, 3),
            Shown(357, 88, 980, 44, 81), Shown(40, 0, 1130, 47, 81), Shown(320, 88, 980, 44, 81)),
        wasted=cents(0, float(usd("ml.g6e.4xlarge", 40 / 60)) * 1.1 + 0.6), must=(MID,),
        must_not=(*NOT, *LOSS_OK, "cpu-bottleneck", "gpu-underused", "cheaper-type"),
        says="The GPU waited forty minutes for a validation that it could run itself.",
    ),
    expert(
        "middle-two-stretches-g5-24xlarge",
        "Twice, for 45 and 50 minutes, a stuck mount left one core spinning; then it went on.",
        job("route-policy-2026-05-12-01-50-14-777", "ml.g5.24xlarge", Shown(3, 0, 260, 7, 6),
            Shown(147, 356, 3900, 36, 320), Shown(45, 0, 101.2, 35, 320, wobble=0.0),
            Shown(130, 356, 3900, 36, 320), Shown(50, 0, 100.8, 35, 320, wobble=0.0),
            Shown(115, 356, 3900, 36, 320), describe=CKPT),
        # 39 cores are four fifths of the 48 of a g5.12xlarge, which has the same four GPUs
        wasted=cents(usd("ml.g5.24xlarge", 95 / 60 * 0.75), usd("ml.g5.24xlarge", 95 / 60 + 2.2)),
        must=("idle-middle",), must_not=(*NOT, *LOSS_OK, "serial-code", "cpu-bottleneck"),
        says="Both stretches count: 95 minutes of four A10G at nothing; half the host would do.",
    ),
    healthy(
        "middle-25-minutes-only-g6-2xlarge",
        "Tokenising the second half of the data took 25 minutes in the middle of seven hours.",
        job("text-pairs-2026-05-12-09-35-02-350", "ml.g6.2xlarge", Shown(2, 0, 140, 25, 3),
            Shown(180, 87, 510, 57, 78), Shown(25, 0, 420, 58, 78), Shown(200, 87, 510, 57, 78)),
        high=0.1, but=("gpu-too-big", "trainium-candidate"),
        says="Too short to speak of; nothing to say.",
    ),
)  # fmt: skip
