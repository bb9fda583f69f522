from datetime import timedelta
from decimal import Decimal
from typing import Any

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
from sageaudit.domain.usage.measurements import Metric
from tests.fakes.jobs import START, market, phases, ran, series
from tests.fakes.judging import together
from tests.fakes.rule_cases import CLEAR, cases, finds, lines, row

RULE = "limit-hit"
MONTH_S, NINE_DAYS_S = 2_419_200, 777_600
CHECKPOINTS = "s3://<bucket>/<prefix>"


def cut(**changes: Any) -> Job:
    """An hour on ml.m5.xlarge that its limit of one hour ended, with nothing left."""
    plain: dict[str, Any] = {
        "status": "Stopped",
        "secondary_status": "MaxRuntimeExceeded",
        "left_artifact": False,
        "max_runtime_s": 3600,
    }
    return ran(3600, **plain | changes)


def idle_after(minutes: int, period_s: int = 60) -> Any:
    """Two of four cores busy up to a minute of the hour, then none."""
    points = [200.0 if at * period_s < minutes * 60 else 4.0 for at in range(3600 // period_s)]
    return lines(series(Metric.CPU, points, period_s=period_s))


def cut_after(seconds: int) -> Job:
    """A run on ml.m5.xlarge that this limit ended, with nothing left."""
    return ran(
        seconds,
        status="Stopped",
        secondary_status="MaxRuntimeExceeded",
        left_artifact=False,
        max_runtime_s=seconds,
    )


def idle_at_end(seconds: int, idle_s: int) -> Any:
    """Two of four cores busy, but for the last seconds."""
    points = [200.0 if at * 60 < seconds - idle_s else 4.0 for at in range(seconds // 60)]
    return lines(series(Metric.CPU, points))


test_cases = cases(
    RULE,
    "A run that was idle for most of its time says so first and gets no longer limit.",
    # Half of the hour is not most of it. The same dollars are lost either way.
    row(finds("The run was idle from minute 29 on, for 31 min. MaxRuntimeInSeconds ended the run "
        "after 1 h on 1 x ml.m5.xlarge; it left neither artifact nor checkpoints.", builder="lost",
        usd="0.235645", fix=[CHECKPOINTS], first_step="Read its log after 29 min for what it "
        "waited for, and set a timeout there; a longer limit…", evidence={"idle_s": 1860,
        "idle_from_s": 1740}, caution="This money is spent: a run that waits…"), cut(),
        idle_after(29)),
    row(finds("MaxRuntimeInSeconds ended…", usd="0.235645", fix=[CHECKPOINTS, 7200],
        first_step="", lacks="idle_s"), cut(), idle_after(30)),
    "A run that was idle for its last hour waited when its limit ended it, whatever came before.",
    row(finds("The run was idle from minute 90 on, for 1 h…", fix=[CHECKPOINTS],
        first_step="Read its log…a longer limit…"), cut_after(9000), idle_at_end(9000, 3600)),
    row(finds("MaxRuntimeInSeconds ended…", lacks="idle_s"), cut_after(9000),
        idle_at_end(9000, 3540)),
    "An idle processing job has no parameter to change. Nor is its limit raised.",
    row(finds("The run was idle from minute 10 on…", fix=[]), cut(kind=JobKind.PROCESSING,
        status="Failed", secondary_status=None, failure="MaxRuntimeExceeded", left_artifact=None,
        phases=phases(("Processing", 3600))), idle_after(10)),
    "Idleness that is not known is not said. Points of an hour; one of two hosts without points.",
    row(finds("MaxRuntimeInSeconds ended…", fix=[CHECKPOINTS, 7200]), cut(),
        idle_after(0, period_s=3600)),
    row(finds("MaxRuntimeInSeconds ended…", fix=[CHECKPOINTS, 7200]),
        cut(groups=(InstanceGroup("ml.m5.xlarge", 2),)), idle_after(10)),
    "What may be resumed after a long wait still gets no longer limit.",
    row(finds("The run was idle from minute 10 on…", fix=[], bucket="lost", usd="0.000000"),
        cut(hints=Hints(own_checkpoints=True)), idle_after(10)),
    "A limit that left nothing lost the whole run.",
    # Compute and volume: $0.23 + 30 GB x 1 h / 744 h x $0.14.
    row(finds("MaxRuntimeInSeconds ended the run after 1 h on 1 x ml.m5.xlarge; "
        "it left neither artifact nor checkpoints.", builder="lost", usd="0.235645"), cut()),
    "A wait that was too long is named.",
    # MaxWaitTimeExceeded of a spot run; its limit is the one to raise.
    row(finds("MaxWaitTimeInSeconds ended the run after 1 h 2 min of waiting and work on…",
        fix=[CHECKPOINTS, ("StoppingCondition.MaxWaitTimeInSeconds", 7400)],
        evidence={"limit_s": 3700, "counted_s": 3720, "elapsed_s": 3600}),
        cut(secondary_status="MaxWaitTimeExceeded", purchase=Purchase.SPOT, max_wait_s=3700)),
    "A limit counts every attempt.",
    # Of 13.7 hours the last attempt took one; four hours of work in two attempts, of which AWS's
    # training seconds count the last.
    row(finds("MaxWaitTimeInSeconds ended the run after 13 h 42 min of waiting and work on…"),
        cut(secondary_status="MaxWaitTimeExceeded", purchase=Purchase.SPOT, max_wait_s=49320,
        created_at=START - timedelta(hours=12, minutes=42))),
    row(finds("MaxWaitTimeInSeconds ended the run on…", evidence={"counted_s": None}),
        cut(secondary_status="MaxWaitTimeExceeded", purchase=Purchase.SPOT, created_at=None)),
    row(finds("MaxRuntimeInSeconds ended the run after 4 h on…"), cut(purchase=Purchase.SPOT,
        phases=(*phases(("Training", 10800)), Phase("Interrupted", START, Decimal(7200),
        billed=False), *phases(("Training", 3600))))),
    "No limit is raised above what SageMaker takes.",
    # 28 days, of processing jobs 9; at the maximum only checkpoints are left.
    row(finds(fix=[CHECKPOINTS, MONTH_S]), cut(max_runtime_s=MONTH_S - 1)),
    row(finds(fix=[CHECKPOINTS]), cut(max_runtime_s=MONTH_S)),
    row(finds(fix=[CHECKPOINTS]), cut(max_runtime_s=None)),
    row(finds(fix=[CHECKPOINTS]), cut(max_runtime_s=0)),
    "A processing job can only get more time.",
    # It has no CheckpointConfig; its failure text says what ended it.
    row(finds(fix=[("StoppingCondition.MaxRuntimeInSeconds", NINE_DAYS_S)]),
        cut(kind=JobKind.PROCESSING, status="Failed", secondary_status=None,
        failure="MaxRuntimeExceeded", left_artifact=None, max_runtime_s=500_000)),
    "A stopped processing job may have left outputs.",
    # Whether its uploads took place is not recorded.
    row("unknown: artifact_unknown", cut(kind=JobKind.PROCESSING, secondary_status=None,
        left_artifact=None)),
    "Without a limit or a bill it is clear.",
    # Completed, stopped by somebody, failed by itself, or ended while it waited.
    row(CLEAR, cut(status="Completed", secondary_status="Completed")),
    row(CLEAR, cut(secondary_status="Stopped")),
    row(CLEAR, cut(status="Failed", secondary_status="Failed", failure="AlgorithmError")),
    row(CLEAR, cut(started_at=None, training_s=None, billable_s=None, phases=phases(("Starting",
        -600)))),
    "Trials and free jobs are not its concern.",
    # A trial reported its metric; a built-in Debugger rule costs nothing.
    row("not applicable: …trial…", cut(parent=Parent(JobKind.TUNING.row.rollup, "arn:t"))),
    row("not applicable: …Debugger…", cut(kind=JobKind.PROCESSING, free="built-in Debugger rule")),
    "Without times or price it is still said.",
    # An end before the start, an unknown region: no sentence and no dollars are invented.
    row(finds(usd=None), cut(training_s=None, billable_s=None, ended_at=ran(0).started_at,
        region="xx-west-9")),
    row(finds("MaxRuntimeInSeconds ended the run on 1 x…"), cut(training_s=None, ended_at=None)),
    "A limit that left something is a time box. Info without dollars, and nothing to change.",
    row(finds("…it left an artifact.", bucket="none", severity="info", usd=None, fix=[], ways=[],
        caution="…may be planned…"), cut(left_artifact=True)),
    row(finds("…it left checkpoints.", bucket="none", severity="info", usd=None, fix=[], ways=[],
        caution="…may be planned…"), cut(checkpointed=True)),
    "The next run gets checkpoints as well as twice the time. Either alone may not be enough.",
    row(finds(fix=[("CheckpointConfig.S3Uri", None, CHECKPOINTS),
        ("StoppingCondition.MaxRuntimeInSeconds", 3600, 7200)], ways=[]), cut()),
    "On spot the wait grows with the run; one that is long enough stays.",
    row(finds(fix=[CHECKPOINTS, 7200, ("StoppingCondition.MaxWaitTimeInSeconds", 5400, 9000)]),
        cut(max_wait_s=5400, purchase=Purchase.SPOT)),
    row(finds(fix=[CHECKPOINTS, 7200]), cut(max_wait_s=7200, purchase=Purchase.SPOT)),
)  # fmt: skip


def test_the_loss_is_counted_once() -> None:
    """failed-spend is about the same dollars: it is marked, and gets none."""
    job = cut()
    savings = together(("failed-spend", RULE), job)
    by_name = {one.rule.name: one for one in savings.findings}
    assert by_name["failed-spend"].subsumed_by == RULE
    assert by_name["failed-spend"].saving_usd == 0
    assert savings.lost_usd == by_name[RULE].saving_usd == bill(job, market()).total_usd
