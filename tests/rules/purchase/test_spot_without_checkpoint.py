from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.job.job import Hints, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import phases, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "spot-without-checkpoint"


def spot(seconds: int = 14_400, **changes: Any) -> Job:
    """Four hours on managed spot at $1.515 an hour, a third of them billed."""
    plain: dict[str, Any] = {"purchase": Purchase.SPOT, "billable_s": seconds // 3}
    return ran(seconds, "ml.g5.2xlarge", **plain | changes)


TWICE = phases(
    ("Training", 3600),
    ("Interrupted", -60),
    ("Training", 3600),
    ("Interrupted", -60),
    ("Training", 7200),
)
"""Two attempts of an hour were lost; the third took two."""
ONCE = phases(
    ("Downloading", 5000),
    ("Training", 3600),
    ("Interrupted", -60),
    ("Training", 5400),
    ("Uploading", 1000),
)
"""One attempt of an hour was lost, after a long download."""


verdict = partial(answer, RULE)


def test_a_long_spot_run_without_checkpoints_is_told() -> None:
    # The fix names where they go; there are no dollars.
    assert verdict(spot()) == finds(
        "4 h on managed spot without checkpoints: each interruption starts the run again "
        "(none so far).",
        usd=None,
        builder="advice",
        caution="How often …",
        fix=[("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>")],
    )


def test_a_run_of_3600_s_is_clear_and_of_3601_s_is_found() -> None:
    # 3,600 s is the longest MaxWait without checkpoints.
    assert verdict(spot(seconds=3600)) == CLEAR
    assert verdict(spot(seconds=3601)) == FOUND


def test_checkpoints_of_either_kind_clear_it() -> None:
    """CheckpointConfig, or a sign of the code's own."""
    assert verdict(spot(checkpointed=True)) == CLEAR
    assert verdict(spot(hints=Hints(own_checkpoints=True))) == CLEAR


def test_training_that_was_done_again_has_a_range() -> None:
    # Half of all training; 4,800 s were billed, fewer than the last attempt's: nothing is
    # certain. At best half of the $2.02 of 4,800 s on a type of $1.515 an hour.
    assert verdict(spot(phases=TWICE)) == finds(
        "Interrupted 2 times on managed spot without checkpoints: 2 h of 4 h of training were "
        "repeated.",
        builder="derived",
        usd="0.000000",
        span=("0.000000", "1.010000"),
        paths=["CheckpointConfig.S3Uri"],
    )


def test_a_run_that_did_not_complete_has_no_figure() -> None:
    """What it lost, failed-spend or limit-hit counts."""
    assert verdict(spot(phases=TWICE, status="Failed")) == finds("…(2 so far)…", change=None)


def test_without_billable_seconds_there_is_no_figure() -> None:
    """The bill is an upper bound then."""
    assert verdict(spot(phases=TWICE, billable_s=None)) == finds(change=None)


def test_where_nothing_can_be_interrupted_it_says_nothing() -> None:
    assert verdict(spot(purchase=Purchase.ON_DEMAND)) == does_not_apply("…managed spot…")
    assert verdict(spot(purchase=Purchase.TRAINING_PLAN)) == does_not_apply("…managed spot…")
    result = verdict(
        spot(status="Failed", phases=(), started_at=None, training_s=None, billable_s=None)
    )
    assert result == does_not_apply("…never started…")
    assert verdict(spot(kind=JobKind.PROCESSING)) == does_not_apply("…processing…")


def test_without_times_it_does_not_know() -> None:
    """A run without start and seconds."""
    result = verdict(spot(started_at=None, ended_at=None, training_s=None))
    assert result == cannot_judge("times_missing")


def test_what_was_billed_above_the_last_attempt_is_certain() -> None:
    # 9,000 s were billed and the last attempt took 7,200: 1,800 s of $1.515 an hour.
    result = verdict(spot(phases=TWICE, billable_s=Decimal(9000)))
    assert result == finds(usd="0.757500", span=("0.757500", "1.893750"))


def test_downloads_and_the_upload_are_no_part_of_what_is_repeated() -> None:
    # 9,000 s are billed of 15,000: one hour of the first attempt is 3,600/15,000 of $3.7875, also
    # where more than that was billed above the last attempt's 5,400 s.
    result = verdict(spot(phases=ONCE, billable_s=Decimal(9000)))
    assert result == finds(usd="0.909000", span=("0.909000", "0.909000"))
    result = verdict(spot(phases=ONCE, billable_s=Decimal(5000)))
    assert result == finds(usd="0.000000", span=("0.000000", "0.505000"))
