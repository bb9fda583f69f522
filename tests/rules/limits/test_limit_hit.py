from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.job.job import (
    Hints,
    InstanceGroup,
    Job,
    Parent,
    Phase,
    Purchase,
)
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import START, market, phases, ran
from tests.fakes.judging import answer, savings_of
from tests.fakes.rule_cases import (
    CLEAR,
    Measured,
    cannot_judge,
    does_not_apply,
    finds,
    one_host,
)

RULE = "limit-hit"
MONTH_S, NINE_DAYS_S = 2_419_200, 777_600
CHECKPOINTS = "s3://<bucket>/<prefix>"


def cut(**changes: Any) -> Job:
    """An hour on ml.m5.xlarge that its limit of one hour ended, with nothing left."""
    plain: dict[str, Any] = {
        "status": "Stopped",
        "secondary_status": "MaxRuntimeExceeded",
        "has_artifact": False,
        "max_runtime_s": 3600,
    }
    return ran(3600, **plain | changes)


def cut_processing(**changes: Any) -> Job:
    """A processing job that its limit ended: its failure text says so."""
    plain: dict[str, Any] = {
        "kind": JobKind.PROCESSING,
        "status": "Failed",
        "secondary_status": None,
        "failure": "MaxRuntimeExceeded",
        "has_artifact": None,
    }
    return cut(**plain | changes)


def idle_after(minutes: int, period_s: int = 60) -> Measured:
    """Two of four cores busy up to a minute of the hour, then almost none."""
    points = 3600 // period_s
    cores = [2.0 if point * period_s < minutes * 60 else 0.04 for point in range(points)]
    return one_host(cores=cores, period_s=period_s)


def cut_after(seconds: int) -> Job:
    """A run on ml.m5.xlarge that this limit ended, with nothing left."""
    return ran(
        seconds,
        status="Stopped",
        secondary_status="MaxRuntimeExceeded",
        has_artifact=False,
        max_runtime_s=seconds,
    )


def idle_at_end(seconds: int, idle_s: int) -> Measured:
    """Two of four cores busy, but for the last seconds."""
    busy, idle = (seconds - idle_s) // 60, idle_s // 60
    return one_host(cores=[2.0] * busy + [0.04] * idle)


verdict = partial(answer, RULE)


def test_a_run_that_was_idle_for_31_of_60_minutes_says_so_and_gets_no_longer_limit() -> None:
    # 30 are not most of the hour. Lost is the same: $0.23 + 30 GB x 1 h / 744 h x $0.14.
    assert verdict(cut(), idle_after(minutes=29)) == finds(
        "The run was idle from minute 29 on, for 31 min. MaxRuntimeInSeconds ended the run "
        "after 1 h on 1 x ml.m5.xlarge; it left neither an artifact nor checkpoints.",
        builder="lost",
        usd="0.235645",
        fix=[CHECKPOINTS],
        first_step="Read its log after 29 min to see what it "
        "waited for, and set a timeout there; a longer limit…",
        evidence={"idle_s": 1860, "idle_from_s": 1740},
        caution="This money is spent. Another run that waits…",
    )
    assert verdict(cut(), idle_after(minutes=30)) == finds(
        "MaxRuntimeInSeconds ended…",
        usd="0.235645",
        fix=[CHECKPOINTS, 7200],
        first_step="",
        lacks="idle_s",
    )


def test_a_run_that_was_idle_for_its_last_60_minutes_waited_and_for_59_it_did_not() -> None:
    """Whatever came before."""
    assert verdict(cut_after(seconds=9000), idle_at_end(seconds=9000, idle_s=3600)) == finds(
        "The run was idle from minute 90 on, for 1 h…",
        fix=[CHECKPOINTS],
        first_step="Read its log…a longer limit…",
    )
    assert verdict(cut_after(seconds=9000), idle_at_end(seconds=9000, idle_s=3540)) == finds(
        "MaxRuntimeInSeconds ended…", lacks="idle_s"
    )


def test_an_idle_processing_job_has_no_parameter_to_change() -> None:
    """Nor is its limit raised."""
    result = verdict(
        cut_processing(phases=phases(("Processing", 3600))),
        idle_after(minutes=10),
    )
    assert result == finds("The run was idle from minute 10 on…", fix=[])


def test_idleness_that_is_not_known_is_not_said() -> None:
    """Points of an hour; one of two hosts without points."""
    assert verdict(cut(), idle_after(minutes=0, period_s=3600)) == finds(
        "MaxRuntimeInSeconds ended…", fix=[CHECKPOINTS, 7200]
    )
    result = verdict(cut(groups=(InstanceGroup("ml.m5.xlarge", 2),)), idle_after(minutes=10))
    assert result == finds("MaxRuntimeInSeconds ended…", fix=[CHECKPOINTS, 7200])


def test_what_may_be_resumed_after_a_long_wait_still_gets_no_longer_limit() -> None:
    result = verdict(cut(hints=Hints(own_checkpoints=True)), idle_after(minutes=10))
    assert result == finds(
        "The run was idle from minute 10 on…", fix=[], bucket="lost", usd="0.000000"
    )


def test_a_limit_that_left_nothing_lost_the_whole_run() -> None:
    # Compute and volume: $0.23 + 30 GB x 1 h / 744 h x $0.14.
    assert verdict(cut()) == finds(
        "MaxRuntimeInSeconds ended the run after 1 h on 1 x ml.m5.xlarge; "
        "it left neither an artifact nor checkpoints.",
        builder="lost",
        usd="0.235645",
    )


def test_a_wait_that_was_too_long_is_named() -> None:
    # MaxWaitTimeExceeded of a spot run; its limit is the one to raise.
    result = verdict(
        cut(secondary_status="MaxWaitTimeExceeded", purchase=Purchase.SPOT, max_wait_s=3700)
    )
    assert result == finds(
        "MaxWaitTimeInSeconds ended the run after 1 h 2 min of waiting and work on…",
        fix=[CHECKPOINTS, ("StoppingCondition.MaxWaitTimeInSeconds", 7400)],
        evidence={"limit_s": 3700, "counted_s": 3720, "elapsed_s": 3600},
    )


def test_a_limit_counts_every_attempt() -> None:
    # Of 13.7 hours the last attempt took one; four hours of work in two attempts, of which AWS's
    # training seconds count the last.
    result = verdict(
        cut(
            secondary_status="MaxWaitTimeExceeded",
            purchase=Purchase.SPOT,
            max_wait_s=49320,
            created_at=START - timedelta(hours=12, minutes=42),
        )
    )
    assert result == finds(
        "MaxWaitTimeInSeconds ended the run after 13 h 42 min of waiting and work on…"
    )
    result = verdict(
        cut(secondary_status="MaxWaitTimeExceeded", purchase=Purchase.SPOT, created_at=None)
    )
    assert result == finds("MaxWaitTimeInSeconds ended the run on…", evidence={"counted_s": None})
    result = verdict(
        cut(
            purchase=Purchase.SPOT,
            phases=(
                *phases(("Training", 10800)),
                Phase("Interrupted", START, Decimal(7200), billed=False),
                *phases(("Training", 3600)),
            ),
        )
    )
    assert result == finds("MaxRuntimeInSeconds ended the run after 4 h on…")


def test_no_limit_is_raised_above_what_sagemaker_takes() -> None:
    # 28 days, of processing jobs 9; at the maximum only checkpoints are left.
    assert verdict(cut(max_runtime_s=MONTH_S - 1)) == finds(fix=[CHECKPOINTS, MONTH_S])
    assert verdict(cut(max_runtime_s=MONTH_S)) == finds(fix=[CHECKPOINTS])
    assert verdict(cut(max_runtime_s=None)) == finds(fix=[CHECKPOINTS])
    assert verdict(cut(max_runtime_s=0)) == finds(fix=[CHECKPOINTS])


def test_a_processing_job_can_only_get_more_time() -> None:
    # It has no CheckpointConfig; its failure text says what ended it.
    result = verdict(cut_processing(max_runtime_s=500_000))
    assert result == finds(fix=[("StoppingCondition.MaxRuntimeInSeconds", NINE_DAYS_S)])


def test_a_stopped_processing_job_may_have_left_outputs() -> None:
    # Whether its uploads took place is not recorded.
    result = verdict(cut(kind=JobKind.PROCESSING, secondary_status=None, has_artifact=None))
    assert result == cannot_judge("artifact_unknown")


def test_without_a_limit_or_a_bill_it_is_clear() -> None:
    # Completed, stopped by somebody, failed by itself, or ended while it waited.
    assert verdict(cut(status="Completed", secondary_status="Completed")) == CLEAR
    assert verdict(cut(secondary_status="Stopped")) == CLEAR
    result = verdict(cut(status="Failed", secondary_status="Failed", failure="AlgorithmError"))
    assert result == CLEAR
    result = verdict(
        cut(started_at=None, training_s=None, billable_s=None, phases=phases(("Starting", -600)))
    )
    assert result == CLEAR


def test_trials_and_free_jobs_are_not_judged() -> None:
    # A trial reported its metric; a built-in Debugger rule costs nothing.
    result = verdict(cut(parent=Parent(JobKind.TUNING.spec.rollup, "arn:t")))
    assert result == does_not_apply("…trial…")
    result = verdict(cut(kind=JobKind.PROCESSING, free="built-in Debugger rule"))
    assert result == does_not_apply("…Debugger…")


def test_without_times_or_price_it_is_still_said() -> None:
    # An end before the start, an unknown region: no sentence and no dollars are invented.
    result = verdict(
        cut(training_s=None, billable_s=None, ended_at=ran(0).started_at, region="xx-west-9")
    )
    assert result == finds(usd=None)
    assert verdict(cut(training_s=None, ended_at=None)) == finds(
        "MaxRuntimeInSeconds ended the run on 1 x…"
    )


@pytest.mark.parametrize(
    ("left", "says"),
    [
        ({"has_artifact": True}, "…it left an artifact."),
        ({"checkpointed": True}, "…it left checkpoints."),
    ],
)
def test_a_limit_that_left_something_is_a_time_box_without_dollars(
    left: dict[str, bool], says: str
) -> None:
    assert verdict(cut(**left)) == finds(
        says,
        bucket="none",
        severity="info",
        usd=None,
        fix=[],
        ways=[],
        caution="…may be intended…",
    )


def test_the_next_run_gets_checkpoints_as_well_as_twice_the_time() -> None:
    """Either alone may not be enough."""
    assert verdict(cut()) == finds(
        fix=[
            ("CheckpointConfig.S3Uri", None, CHECKPOINTS),
            ("StoppingCondition.MaxRuntimeInSeconds", 3600, 7200),
        ],
        ways=[],
    )


def test_on_spot_the_wait_grows_with_the_run_one_that_is_long_enough_stays() -> None:
    result = verdict(cut(max_wait_s=5400, purchase=Purchase.SPOT))
    assert result == finds(
        fix=[CHECKPOINTS, 7200, ("StoppingCondition.MaxWaitTimeInSeconds", 5400, 9000)]
    )
    assert verdict(cut(max_wait_s=7200, purchase=Purchase.SPOT)) == finds(fix=[CHECKPOINTS, 7200])


def test_the_loss_is_counted_once() -> None:
    """failed-spend is about the same dollars: it is marked, and gets none."""
    job = cut()
    savings = savings_of(("failed-spend", RULE), job)
    by_name = {finding.rule.name: finding for finding in savings.findings}
    assert by_name["failed-spend"].subsumed_by == RULE
    assert by_name["failed-spend"].saving_usd == 0
    assert savings.lost_usd == by_name[RULE].saving_usd == bill(job, market()).total_usd
