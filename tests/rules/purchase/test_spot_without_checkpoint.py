from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import phases, ran
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

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


TWICE = phases(("Training", 3600), ("Interrupted", -60), ("Training", 3600), ("Interrupted", -60),
               ("Training", 7200))  # fmt: skip
"""Two attempts of an hour were lost; the third took two."""


def test_training_that_was_done_again_has_a_range() -> None:
    """Half of all training; 4,800 s were billed, fewer than the last attempt's: nothing is certain.

    At best half of the $2.02 of 4,800 s on a type of $1.515 an hour.
    """
    finding = priced(RULE, spot(phases=TWICE))
    assert finding.found.summary == (
        "Interrupted 2 times on managed spot without checkpoints: 2 h of 4 h of training were done "
        "again."
    )
    assert (finding.found.bucket, finding.found.confidence) == (
        Bucket.AVOIDABLE,
        Confidence.DERIVED,
    )
    assert usd(finding.saving_usd) == "0.000000"
    assert finding.range_usd is not None
    assert [usd(end) for end in finding.range_usd] == ["0.000000", "1.010000"]
    assert finding.found.fix[0].path == "CheckpointConfig.S3Uri"


def test_what_was_billed_above_the_last_attempt_is_certain() -> None:
    """9,000 s were billed and the last attempt took 7,200: 1,800 s of $1.515 an hour."""
    finding = priced(RULE, spot(phases=TWICE, billable_s=Decimal(9000)))
    assert usd(finding.saving_usd) == "0.757500"
    assert finding.range_usd is not None
    assert usd(finding.range_usd[1]) == "1.893750"


def test_a_run_that_did_not_complete_has_no_figure() -> None:
    """What it lost, failed-spend or limit-hit counts."""
    what = found(RULE, spot(phases=TWICE, status="Failed"))
    assert "(2 so far)" in what.summary
    assert what.change is None


def test_without_billable_seconds_there_is_no_figure() -> None:
    """The bill is an upper bound then."""
    assert found(RULE, spot(phases=TWICE, billable_s=None)).change is None


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
