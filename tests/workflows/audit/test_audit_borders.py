"""Just inside and just outside of the times, runs and dollars on which an audit depends."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.errors import JobNotFound, Throttled
from sageaudit.workflows.audit.attempt import AuditDeferred, AuditRecorded, WaitReason
from sageaudit.workflows.audit.reaudit import has_same_figures
from tests.fakes.audit_flow import END, KEY, AuditFlow, FakeMetrics
from tests.fakes.documents import bill, document
from tests.fakes.jobs import training_answer
from tests.workflows.audit.test_reaudit import pool

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("after_end", "is_asked"), [(timedelta(days=15), True), (timedelta(days=15) + SECOND, False)]
)
def test_cloudwatch_is_asked_again_while_it_keeps_points_of_a_minute(
    after_end: timedelta, is_asked: bool
) -> None:
    """Of a run of which it had answered 20 of 48 minutes. Later it has only averages."""
    audit_flow = AuditFlow([training_answer()], FakeMetrics(minutes=20))
    audit_flow.deliver(END + 30 * MINUTE)
    audit_flow.reaudit_due(END + 30 * MINUTE)
    asked = audit_flow.metrics.read_count
    audit_flow.history.schedule_reaudit(KEY, END + after_end)
    audit_flow.deliver(END + after_end)
    assert (audit_flow.metrics.read_count > asked) is is_asked


@pytest.mark.parametrize(
    ("after_end", "outcome"), [(20 * MINUTE - SECOND, AuditDeferred), (20 * MINUTE, AuditRecorded)]
)
def test_metrics_are_waited_for_until_20_minutes_after_the_end(
    after_end: timedelta, outcome: type
) -> None:
    """An event that comes later is audited with what is there."""
    audit_flow = AuditFlow([training_answer()], FakeMetrics(minutes=10))
    assert isinstance(audit_flow.deliver(END + after_end), outcome)


def delays_min(audit_flow: AuditFlow, wait: WaitReason) -> list[float]:
    """For how long an event is sent away each time, until its audit waits no more."""
    delays: list[float] = []
    while isinstance(
        later := audit_flow.deliver(END + 5 * MINUTE, waited={wait: len(delays)}), AuditDeferred
    ):
        assert later.wait_reason is wait
        delays.append(later.delay_s / 60)
    return delays


def test_a_run_that_describe_does_not_find_is_waited_for_twice() -> None:
    """One minute, then five: an answer that comes at all comes within seconds."""
    audit_flow = AuditFlow([JobNotFound("there is no training job train-vision")])
    assert delays_min(audit_flow, WaitReason.NOT_FOUND) == [1, 5]


def test_a_run_that_describe_says_still_runs_is_waited_for_two_hours() -> None:
    """Twice as long each time, up to SQS's longest delay."""
    audit_flow = AuditFlow([training_answer(TrainingJobStatus="InProgress")])
    assert delays_min(audit_flow, WaitReason.DESCRIBE_STALE) == [1, 2, 4, 8, *[15] * 8]


def test_metrics_that_are_late_are_waited_for_once() -> None:
    """A quarter of an hour, and then they are looked for when the audit is made again."""
    audit_flow = AuditFlow([training_answer()], FakeMetrics(minutes=10))
    assert delays_min(audit_flow, WaitReason.LATE_METRICS) == [15]


def test_tags_that_are_throttled_are_waited_for_an_hour_and_a_half() -> None:
    """Twice as long each time, up to SQS's longest delay."""
    audit_flow = AuditFlow([training_answer()])
    audit_flow.jobs.tag_answer = Throttled("slow down")
    assert delays_min(audit_flow, WaitReason.TAGS) == [1, 2, 4, 8, *[15] * 5]


def short_run(number: int, end: datetime, minutes: int) -> dict[str, Any]:
    """A run that trained for these minutes until then."""
    begin, stop = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (end - minutes * MINUTE, end))
    return training_answer(
        TrainingJobName=f"train-{number}",
        CreationTime=begin,
        TrainingStartTime=begin,
        TrainingEndTime=stop,
        LastModifiedTime=stop,
        SecondaryStatusTransitions=[
            {"Status": "Training", "StartTime": begin, "EndTime": stop},
        ],
        TrainingTimeInSeconds=minutes * 60,
        BillableTimeInSeconds=minutes * 60,
    )


def runs_in_pool(ends: list[datetime], minutes: int) -> int:
    """With how many runs the last one of a family was judged, itself included."""
    runs = {f"train-{n}": short_run(n, end, minutes) for n, end in enumerate(ends)}
    audit_flow = AuditFlow(runs, FakeMetrics(minutes=minutes))
    audits = [
        audit_flow.deliver_and_record(end + 30 * MINUTE, name, CreationTime=None)
        for name, end in zip(runs, ends, strict=True)
    ]
    pooled = audits[-1].document["audit"]["pool"]
    return 1 if pooled is None else pooled["runs"]


@pytest.mark.parametrize(("apart_s", "runs"), [(30 * 86_400, 2), (30 * 86_400 + 1, 1)])
def test_a_short_run_is_judged_with_those_that_ended_up_to_30_days_before(
    apart_s: int, runs: int
) -> None:
    """Two runs of ten minutes, of which neither can be judged alone."""
    assert runs_in_pool([END - timedelta(seconds=apart_s), END], minutes=10) == runs


@pytest.mark.parametrize(("earlier", "runs"), [(8, 9), (9, 10), (10, 10)])
def test_a_short_run_is_judged_with_nine_earlier_ones_at_most(earlier: int, runs: int) -> None:
    """Runs of two minutes: more of them would be read for the same answer."""
    ends = [END + number * 60 * MINUTE for number in range(earlier + 1)]
    assert runs_in_pool(ends, minutes=2) == runs


def test_a_pool_that_should_have_ended_is_looked_at_every_half_hour() -> None:
    """It is kept for an hour, and SageMaker still says that it is available."""
    audit_flow = AuditFlow([pool("Available")])
    audit_flow.deliver(END + 5 * MINUTE)
    assert audit_flow.summary.due_at == END + 60 * MINUTE
    audit_flow.deliver(END + 65 * MINUTE)
    assert audit_flow.summary.due_at == END + 95 * MINUTE


@pytest.mark.parametrize(
    ("before_usd", "after_usd", "is_same"),
    [
        ("0.50", "0.51", True),  # a cent
        ("0.50", "0.511", False),
        ("100", "99", True),  # a hundredth of the larger one
        ("100", "98.99", False),
    ],
)
def test_dollars_that_differ_by_a_cent_or_a_hundredth_are_the_same(
    before_usd: str, after_usd: str, is_same: bool
) -> None:
    """Series are kept rounded, so an audit made again is no new version for so little."""
    first, second = (
        document(bill=bill(total_usd=Decimal(total))) for total in (before_usd, after_usd)
    )
    assert has_same_figures(first, second) is is_same
