from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.job.job import Hints, Job, Phase, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, phases, ran
from tests.fakes.judging import found, not_applicable, outcome, priced, usd

RULE = "spot-interrupted-much"
TWICE = phases(
    ("Downloading", 60), ("Training", 3000), ("Interrupted", -600), ("Downloading", 60),
    ("Training", 3000), ("Interrupted", -600), ("Downloading", 100), ("Training", 3500),
)  # fmt: skip
"""Two attempts were lost; the third took an hour."""


def spot(billable_s: int | None = 5400, **changes: Any) -> Job:
    """Completed on managed spot after two interruptions, on a type of $0.23 an hour."""
    plain: dict[str, Any] = {
        "purchase": Purchase.SPOT,
        "billable_s": None if billable_s is None else Decimal(billable_s),
        "phases": TWICE,
        "max_wait_s": 86_400,
        "volume_gb": 0,
    }
    return ran(3600, "ml.m5.xlarge", **plain | changes)


def on_demand(*seconds: int) -> list[EarlierRun]:
    """The family's completed runs on demand."""
    return [earlier_run(n, elapsed_s=Decimal(s)) for n, s in enumerate(seconds, start=1)]


def test_more_billed_than_on_demand_is_found() -> None:
    """5400 s were billed; the last attempt did it all in 3600: half an hour of $0.23 too much."""
    finding = priced(RULE, spot())
    assert finding.found.summary == (
        "After 2 interruptions managed spot was billed for 1 h 30 min; on demand the run takes 1 h."
    )
    assert usd(finding.saving_usd) == "0.115000"
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.DERIVED,
        Bucket.AVOIDABLE,
    )
    assert [(fix.path, fix.old, fix.new) for fix in finding.found.fix] == [
        ("EnableManagedSpotTraining", True, False),
        ("StoppingCondition.MaxWaitTimeInSeconds", 86_400, None),
    ]
    assert [way[0].path for way in finding.found.alternatives] == [
        "ResourceConfig.InstanceType",
        "CheckpointConfig.S3Uri",
    ]


def test_exactly_as_much_as_on_demand_is_clear() -> None:
    """Spot saved nothing, and cost nothing."""
    assert outcome(RULE, spot(3600)) == Clear()
    assert isinstance(outcome(RULE, spot(3601)), Found)


def test_spot_that_still_saved_is_clear() -> None:
    """Two interruptions of a run at a third of its seconds."""
    assert outcome(RULE, spot(3200)) == Clear()


def test_the_familys_own_runs_say_what_on_demand_takes() -> None:
    """The median of 3000, 3300 and 9000 s: 5400 - 3300 = 2100 s of $0.23 an hour."""
    run = spot(checkpointed=True)
    finding = priced(RULE, run, earlier=on_demand(3000, 9000, 3300))
    assert usd(finding.saving_usd) == "0.134167"
    assert finding.found.evidence["on_demand_s"] == 3300
    assert [way[0].path for way in finding.found.alternatives] == ["ResourceConfig.InstanceType"]


def test_two_runs_are_too_few_to_say_it() -> None:
    """With checkpoints the last attempt did only the rest: then it is not known."""
    for changes in ({"checkpointed": True}, {"hints": Hints(own_checkpoints=True)}):
        answer = outcome(RULE, spot(**changes), earlier=on_demand(3000, 3300))
        assert isinstance(answer, Unknown)
        assert answer.code == "on_demand_unknown"
    three = outcome(RULE, spot(checkpointed=True), earlier=on_demand(3000, 3300, 3600))
    assert isinstance(three, Found)


@pytest.mark.parametrize(
    "changes",
    [
        {"purchase": Purchase.SPOT},
        {"instance_type": "ml.m5.large"},
        {"instance_count": 2},
        {"elapsed_s": None},
        {"status": "Failed"},
    ],
)
def test_runs_that_are_not_alike_do_not_count(changes: dict[str, Any]) -> None:
    """Another purchase, type or count; no time; not completed."""
    runs = [earlier_run(n, **changes) for n in (1, 2, 3)]
    answer = outcome(RULE, spot(checkpointed=True), earlier=runs)
    assert isinstance(answer, Unknown)
    assert answer.code == "on_demand_unknown"


def test_an_undisturbed_run_is_clear() -> None:
    """Whatever it was billed."""
    assert outcome(RULE, spot(phases=phases(("Training", 3600)))) == Clear()


def test_a_wait_that_was_too_long_has_no_second_figure() -> None:
    """limit-hit counts a run that left nothing; what a run left can be used."""
    waited: dict[str, Any] = {"status": "Stopped", "secondary_status": "MaxWaitTimeExceeded"}
    nothing = priced(RULE, spot(left_artifact=False, **waited))
    assert nothing.found.summary == (
        "The wait for spot capacity passed MaxWaitTimeInSeconds after 2 interruptions; "
        "1 h 30 min was billed."
    )
    assert (nothing.saving_usd, nothing.found.bucket) == (None, Bucket.NONE)
    assert "limit-hit" in (nothing.found.caution or "")
    kept = found(RULE, spot(checkpointed=True, **waited))
    assert "can be used" in (kept.caution or "")
    assert kept.fix[0].path == "EnableManagedSpotTraining"
    unsaid = found(RULE, spot(None, phases=(), **waited))
    assert "after no interruptions; an unknown time was billed" in unsaid.summary


def test_what_is_not_known_is_unknown() -> None:
    """The billable seconds, or the last attempt's."""
    missing = outcome(RULE, spot(None))
    assert isinstance(missing, Unknown)
    assert missing.code == "billable_missing"
    open_end = (*TWICE[:-1], Phase("Training", START, None, billed=True))
    for parts in (open_end, TWICE[:3]):
        answer = outcome(RULE, spot(phases=parts))
        assert isinstance(answer, Unknown)
        assert answer.code == "on_demand_unknown"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"purchase": Purchase.ON_DEMAND}, "managed spot"),
        ({"status": "Failed"}, "did not complete"),
        (
            {
                "status": "Stopped", "phases": (), "started_at": None, "training_s": None,
                "billable_s": None,
            },
            "never started",
        ),
        ({"kind": JobKind.PROCESSING}, "processing"),
    ],
)  # fmt: skip
def test_where_spot_cost_nothing_of_the_kind_it_says_nothing(
    changes: dict[str, Any], why: str
) -> None:
    """And why."""
    assert why in not_applicable(RULE, spot(**changes))


def test_the_advised_run_is_not_sent_back_to_spot() -> None:
    """spot-not-used does not apply after a spot run of the family on this type had this finding."""
    next_run = ran(100_000, "ml.m5.xlarge", checkpointed=True)
    bad = earlier_run(purchase=Purchase.SPOT, found=(RULE,))
    assert isinstance(outcome("spot-not-used", next_run, earlier=[]), Found)
    answer = outcome("spot-not-used", next_run, earlier=[bad])
    assert "interrupted too much" in getattr(answer, "reason", "")
    other_type = earlier_run(purchase=Purchase.SPOT, found=(RULE,), instance_type="ml.m5.large")
    assert isinstance(outcome("spot-not-used", next_run, earlier=[other_type]), Found)


def test_a_long_run_without_checkpoints_gets_them_first() -> None:
    """One figure, and it is spot-without-checkpoint's: on demand is no fix for lost work."""
    long = spot(training_s=Decimal(7200), ended_at=START + timedelta(hours=2))
    assert "checkpoints come first" in not_applicable(RULE, long)
    assert isinstance(outcome("spot-without-checkpoint", long), Found)
    kept = spot(training_s=Decimal(7200), hints=Hints(own_checkpoints=True))
    assert isinstance(outcome(RULE, kept, earlier=on_demand(3000, 3300, 3600)), Found)


def test_a_wait_in_vain_names_checkpoints_before_the_purchase() -> None:
    """Where interruptions ended attempts of a long run that kept none."""
    waited: dict[str, Any] = {
        "status": "Stopped",
        "secondary_status": "MaxWaitTimeExceeded",
        "left_artifact": False,
        "training_s": Decimal(7200),
    }
    what = found(RULE, spot(**waited))
    assert what.fix[0].path == "CheckpointConfig.S3Uri"
    assert what.alternatives[0][0].path == "EnableManagedSpotTraining"


def test_a_policy_of_no_runs_leaves_the_last_attempt() -> None:
    """There is no median of nothing."""
    what = found(RULE, spot(), limits={"runs_from": 0})
    assert what.evidence["on_demand_s"] == 3600
