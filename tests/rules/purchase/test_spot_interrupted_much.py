from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Hints, Job, Phase, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, phases, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "spot-interrupted-much"
TWICE = phases(
    ("Downloading", 60),
    ("Training", 3000),
    ("Interrupted", -600),
    ("Downloading", 60),
    ("Training", 3000),
    ("Interrupted", -600),
    ("Downloading", 100),
    ("Training", 3500),
)
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


def on_demand(*seconds: int) -> list[AuditSummary]:
    """The family's completed runs on demand."""
    return [earlier_run(n, elapsed_s=Decimal(s)) for n, s in enumerate(seconds, start=1)]


verdict = partial(answer, RULE)


def test_3600_billed_seconds_are_as_many_as_on_demand_and_clear_and_one_more_is_found() -> None:
    """The last attempt took 3,600 s, so spot saved nothing and cost nothing."""
    assert verdict(spot(billable_s=3600)) == CLEAR
    assert verdict(spot(billable_s=3601)) == FOUND


def test_two_interruptions_that_leave_3200_of_3600_seconds_billed_are_clear() -> None:
    assert verdict(spot(billable_s=3200)) == CLEAR


def test_3_runs_on_demand_of_the_family_are_enough_and_2_are_too_few() -> None:
    # With checkpoints the last attempt did only the rest: then it is not known.
    result = verdict(spot(checkpointed=True), earlier=on_demand(3000, 3300))
    assert result == cannot_judge("on_demand_unknown")
    result = verdict(spot(hints=Hints(own_checkpoints=True)), earlier=on_demand(3000, 3300))
    assert result == cannot_judge("on_demand_unknown")
    assert verdict(spot(checkpointed=True), earlier=on_demand(3000, 3300, 3600)) == FOUND


def test_runs_that_are_not_alike_do_not_count() -> None:
    # Another purchase, type or count; no time; not completed.
    result = verdict(
        spot(checkpointed=True), earlier=[earlier_run(n, purchase=Purchase.SPOT) for n in (1, 2, 3)]
    )
    assert result == cannot_judge("on_demand_unknown")
    result = verdict(
        spot(checkpointed=True),
        earlier=[earlier_run(n, instance_type="ml.m5.large") for n in (1, 2, 3)],
    )
    assert result == cannot_judge("on_demand_unknown")
    result = verdict(
        spot(checkpointed=True), earlier=[earlier_run(n, instance_count=2) for n in (1, 2, 3)]
    )
    assert result == cannot_judge("on_demand_unknown")
    result = verdict(
        spot(checkpointed=True), earlier=[earlier_run(n, elapsed_s=None) for n in (1, 2, 3)]
    )
    assert result == cannot_judge("on_demand_unknown")
    result = verdict(
        spot(checkpointed=True), earlier=[earlier_run(n, status="Failed") for n in (1, 2, 3)]
    )
    assert result == cannot_judge("on_demand_unknown")


def test_an_undisturbed_run_is_clear() -> None:
    """Whatever it was billed."""
    assert verdict(spot(phases=phases(("Training", 3600)))) == CLEAR


def test_a_wait_that_was_too_long_has_no_second_figure() -> None:
    # limit-hit counts a run that left nothing; what a run left can be used.
    result = verdict(
        spot(has_artifact=False, status="Stopped", secondary_status="MaxWaitTimeExceeded")
    )
    assert result == finds(
        "Waiting and work together took longer than MaxWaitTimeInSeconds, after 2 interruptions; "
        "1 h 30 min was billed.",
        usd=None,
        bucket="none",
        caution="…limit-hit…",
    )
    result = verdict(
        spot(checkpointed=True, status="Stopped", secondary_status="MaxWaitTimeExceeded")
    )
    assert result == finds(
        caution="…left results…",
        paths=["EnableManagedSpotTraining", "StoppingCondition.MaxWaitTimeInSeconds"],
    )
    result = verdict(
        spot(billable_s=None, phases=(), status="Stopped", secondary_status="MaxWaitTimeExceeded")
    )
    assert result == finds("…after no interruptions; an unknown time was billed…")


def test_what_is_not_known_is_unknown() -> None:
    """The billable seconds, or the last attempt's."""
    assert verdict(spot(billable_s=None)) == cannot_judge("billable_missing")
    result = verdict(spot(phases=(*TWICE[:-1], Phase("Training", START, None, billed=True))))
    assert result == cannot_judge("on_demand_unknown")
    assert verdict(spot(phases=TWICE[:3])) == cannot_judge("on_demand_unknown")


def test_where_spot_cost_nothing_of_the_kind_it_says_nothing() -> None:
    assert verdict(spot(purchase=Purchase.ON_DEMAND)) == does_not_apply("…managed spot…")
    assert verdict(spot(status="Failed")) == does_not_apply("…did not complete…")
    result = verdict(
        spot(status="Stopped", phases=(), started_at=None, training_s=None, billable_s=None)
    )
    assert result == does_not_apply("…never started…")
    assert verdict(spot(kind=JobKind.PROCESSING)) == does_not_apply("…processing…")


def test_the_advised_run_is_not_sent_back_to_spot() -> None:
    # spot-not-used does not apply after a spot run of the family on this type had this finding.
    result = answer("spot-not-used", ran(100_000, "ml.m5.xlarge", checkpointed=True), earlier=[])
    assert result == FOUND
    result = answer(
        "spot-not-used",
        ran(100_000, "ml.m5.xlarge", checkpointed=True),
        earlier=[earlier_run(purchase=Purchase.SPOT, rules_with_findings=(RULE,))],
    )
    assert result == does_not_apply("…interrupted too much…")
    result = answer(
        "spot-not-used",
        ran(100_000, "ml.m5.xlarge", checkpointed=True),
        earlier=[
            earlier_run(
                purchase=Purchase.SPOT, rules_with_findings=(RULE,), instance_type="ml.m5.large"
            )
        ],
    )
    assert result == FOUND


def test_a_long_run_without_checkpoints_gets_them_first() -> None:
    # One figure, and it is spot-without-checkpoint's: on demand is no fix for lost work.
    result = verdict(spot(training_s=Decimal(7200), ended_at=START + timedelta(hours=2)))
    assert result == does_not_apply("it has no checkpoints…")
    result = answer(
        "spot-without-checkpoint",
        spot(training_s=Decimal(7200), ended_at=START + timedelta(hours=2)),
    )
    assert result == FOUND
    result = verdict(
        spot(training_s=Decimal(7200), hints=Hints(own_checkpoints=True)),
        earlier=on_demand(3000, 3300, 3600),
    )
    assert result == FOUND


def test_a_policy_of_no_runs_leaves_the_last_attempt() -> None:
    """There is no median of nothing."""
    assert verdict(spot(), limits={"min_runs": 0}) == finds(evidence={"on_demand_s": 3600})


def test_more_billed_than_on_demand_is_found() -> None:
    # 5400 s were billed; the last attempt did it all in 3600: half an hour of $0.23 too much.
    assert verdict(spot()) == finds(
        "After 2 interruptions, managed spot was billed for 1 h 30 min; on demand the run "
        "takes 1 h.",
        usd="0.115000",
        builder="derived",
        fix=[
            ("EnableManagedSpotTraining", True, False),
            ("StoppingCondition.MaxWaitTimeInSeconds", 86_400, None),
        ],
        ways=[
            [("ResourceConfig.InstanceType", "<another type>")],
            [("CheckpointConfig.S3Uri", "s3://<bucket>/<prefix>")],
        ],
    )


def test_the_familys_own_runs_say_what_on_demand_takes() -> None:
    # The median of 3000, 3300 and 9000 s: 5400 - 3300 = 2100 s of $0.23 an hour.
    result = verdict(spot(checkpointed=True), earlier=on_demand(3000, 9000, 3300))
    assert result == finds(
        usd="0.134167",
        evidence={"on_demand_s": 3300},
        ways=[[("ResourceConfig.InstanceType", "<another type>")]],
    )


def test_a_wait_in_vain_names_checkpoints_before_the_purchase() -> None:
    # Where interruptions ended attempts of a long run that kept none.
    result = verdict(
        spot(
            status="Stopped",
            secondary_status="MaxWaitTimeExceeded",
            has_artifact=False,
            training_s=Decimal(7200),
        )
    )
    assert result == finds(
        paths=["CheckpointConfig.S3Uri"],
        ways=[
            [
                ("EnableManagedSpotTraining", False),
                ("StoppingCondition.MaxWaitTimeInSeconds", None),
            ],
            ["<another type>"],
        ],
    )
