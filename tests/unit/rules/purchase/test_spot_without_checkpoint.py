from __future__ import annotations

from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import phases, ran
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "spot-without-checkpoint"


def spot(seconds: int = 14_400, **changes: Any) -> Job:
    """Four hours on managed spot, a third of them billed."""
    plain: dict[str, Any] = {"purchase": Purchase.SPOT, "billable_s": seconds // 3}
    return ran(seconds, "ml.g5.2xlarge", **plain | changes)


def test_a_long_spot_run_without_checkpoints_is_told() -> None:
    """The fix names where they go; there are no dollars."""
    finding = priced(RULE, spot())
    assert finding.found.summary == (
        "4 h on managed spot without checkpoints: each interruption starts the run again "
        "(none so far)."
    )
    [fix] = finding.found.fix
    assert (fix.path, fix.old, fix.new) == (
        "CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>",
    )  # fmt: skip
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)
    assert finding.found.confidence is Confidence.HEURISTIC
    assert (finding.found.caution or "").startswith("How often ")


def test_an_hour_is_no_long_run_and_a_second_more_is() -> None:
    """3,600 s is the longest wait without checkpoints."""
    assert outcome(RULE, spot(3600)) == Clear()
    assert isinstance(outcome(RULE, spot(3601)), Found)


@pytest.mark.parametrize(
    "changes", [{"checkpointed": True}, {"hints": Hints(own_checkpoints=True)}]
)
def test_checkpoints_of_either_kind_clear_it(changes: dict[str, Any]) -> None:
    """CheckpointConfig, or a sign of the code's own."""
    assert outcome(RULE, spot(**changes)) == Clear()


def test_interruptions_that_happened_are_counted() -> None:
    """They are in the sentence and in the evidence."""
    parts = (("Training", 3600), ("Interrupted", -60), ("Training", 3600), ("Interrupted", -60),
             ("Training", 7200))  # fmt: skip
    what = found(RULE, spot(phases=phases(*parts)))
    assert "(2 so far)" in what.summary
    assert what.evidence["interruptions"] == 2


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"purchase": Purchase.ON_DEMAND}, "managed spot"),
        ({"purchase": Purchase.TRAINING_PLAN}, "managed spot"),
        (
            {
                "status": "Failed", "phases": (), "started_at": None, "training_s": None,
                "billable_s": None,
            },
            "never started",
        ),
        ({"kind": JobKind.PROCESSING}, "processing"),
    ],
)  # fmt: skip
def test_where_nothing_can_be_interrupted_it_says_nothing(
    changes: dict[str, Any], why: str
) -> None:
    """And why."""
    assert why in not_applicable(RULE, spot(**changes))


def test_without_times_it_does_not_know() -> None:
    """A run without start and seconds."""
    assert unknown(RULE, spot(started_at=None, ended_at=None, training_s=None)) == "times_missing"
