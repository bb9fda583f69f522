from decimal import Decimal
from typing import Any

from sageaudit.domain.job.job import Hints, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import phases, ran
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "spot-without-checkpoint"


def spot(seconds: int = 14_400, **changes: Any) -> Job:
    """Four hours on managed spot, a third of them billed."""
    plain: dict[str, Any] = {"purchase": Purchase.SPOT, "billable_s": seconds // 3}
    return ran(seconds, "ml.g5.2xlarge", **plain | changes)


TWICE = phases(("Training", 3600), ("Interrupted", -60), ("Training", 3600), ("Interrupted", -60),
               ("Training", 7200))  # fmt: skip
"""Two attempts of an hour were lost; the third took two."""
ONCE = phases(("Downloading", 5000), ("Training", 3600), ("Interrupted", -60),
              ("Training", 5400), ("Uploading", 1000))  # fmt: skip
"""One attempt of an hour was lost, after a long download."""


test_cases = cases(
    RULE,
    "A long spot run without checkpoints is told.",
    # The fix names where they go; there are no dollars.
    row(finds("4 h on managed spot without checkpoints: each interruption starts the run again "
        "(none so far).", usd=None, builder="advice", caution="How often …",
        fix=[("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>")]), spot()),
    "An hour is no long run and a second more is.",
    # 3,600 s is the longest wait without checkpoints.
    row(CLEAR, spot(3600)),
    row(FOUND, spot(3601)),
    "Checkpoints of either kind clear it. CheckpointConfig, or a sign of the code's own.",
    row(CLEAR, spot(checkpointed=True)),
    row(CLEAR, spot(hints=Hints(own_checkpoints=True))),
    "Training that was done again has a range.",
    # Half of all training; 4,800 s were billed, fewer than the last attempt's: nothing is
    # certain. At best half of the $2.02 of 4,800 s on a type of $1.515 an hour.
    row(finds("Interrupted 2 times on managed spot without checkpoints: 2 h of 4 h of training "
        "were done again.", builder="derived", usd="0.000000", span=("0.000000", "1.010000"),
        paths=["CheckpointConfig.S3Uri"]), spot(phases=TWICE)),
    "A run that did not complete has no figure. What it lost, failed-spend or limit-hit counts.",
    row(finds("…(2 so far)…", change=None), spot(phases=TWICE, status="Failed")),
    "Without billable seconds there is no figure. The bill is an upper bound then.",
    row(finds(change=None), spot(phases=TWICE, billable_s=None)),
    "Where nothing can be interrupted it says nothing.",
    row("not applicable: …managed spot…", spot(purchase=Purchase.ON_DEMAND)),
    row("not applicable: …managed spot…", spot(purchase=Purchase.TRAINING_PLAN)),
    row("not applicable: …never started…", spot(status="Failed", phases=(), started_at=None,
        training_s=None, billable_s=None)),
    row("not applicable: …processing…", spot(kind=JobKind.PROCESSING)),
    "Without times it does not know. A run without start and seconds.",
    row("unknown: times_missing", spot(started_at=None, ended_at=None, training_s=None)),
    "What was billed above the last attempt is certain.",
    # 9,000 s were billed and the last attempt took 7,200: 1,800 s of $1.515 an hour.
    row(finds(usd="0.757500", span=("0.757500", "1.893750")), spot(phases=TWICE,
        billable_s=Decimal(9000))),
    "Downloads and the upload are no part of what is repeated.",
    # 9,000 s are billed of 15,000: one hour of the first attempt is 3,600/15,000 of $3.7875, also
    # where more than that was billed above the last attempt's 5,400 s.
    row(finds(usd="0.909000", span=("0.909000", "0.909000")), spot(phases=ONCE,
        billable_s=Decimal(9000))),
    row(finds(usd="0.000000", span=("0.000000", "0.505000")), spot(phases=ONCE,
        billable_s=Decimal(5000))),
)  # fmt: skip
