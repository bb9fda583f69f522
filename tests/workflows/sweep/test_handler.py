"""The sweep's function: what it counts and logs, and what it answers."""

from itertools import repeat
from unittest.mock import patch

import pytest

from local.workers import InlineWorkers
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import AwsError, Throttled, Unavailable, UnreadableItem
from sweep import handler
from tests.fakes.lambda_events import Lambda, parse_counts
from tests.fakes.sweeps import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    TRAINING,
    SweepFlow,
    flow_with,
    key_of,
    read_list,
    refuse_list,
    row,
)

ENVIRON = {"POWERTOOLS_SERVICE_NAME": "sweep", "POWERTOOLS_METRICS_NAMESPACE": "sageaudit"}


def context(request_id: str = "one", *, left_ms: int = 600_000) -> Lambda:
    """One invocation, in which no time passes."""
    return Lambda(repeat(left_ms), request_id)


def sweeper(flow: SweepFlow) -> handler.Sweeper:
    """The function over these jobs."""
    return handler.Sweeper(
        lambda _, is_out_of_time: flow.dependencies(is_out_of_time),
        flow.notes,
        lambda: flow.now,
        RecordReport(ENVIRON),
        open_workers=InlineWorkers,
    )


def counts(capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """The metrics that were printed."""
    return {name: number for (name, _), number in parse_counts(capsys.readouterr().out).items()}


def test_a_sweep_without_jobs_counts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A metric is charged where it has values."""
    assert sweeper(flow_with())({}, context()) == {"failed": 0}
    assert counts(capsys) == {}


def test_what_is_found_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Two jobs without an audit."""
    ended = NOON - 40 * MINUTE
    flow = flow_with(row("a", ended), row("b", ended, kind=JobKind.PROCESSING))
    sweeper(flow)({}, context())
    assert counts(capsys) == {"JobsEnded": 2, "JobsMissing": 2, "LostEventsFound": 2}


def test_a_list_that_fails_is_counted_and_named(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The others are swept."""
    flow = flow_with(row("b", NOON - HOUR, kind=JobKind.PROCESSING))

    flow.pages.alter_page = refuse_list(
        TRAINING, Throttled("sagemaker:ListTrainingJobs is throttled")
    )
    assert sweeper(flow)({}, context()) == {"failed": 1}
    found = counts(capsys)
    assert (found["SweepFailed"], found["LostEventsFound"]) == (1, 1)
    assert "list failed" in caplog.text


def test_what_is_missing_is_counted_although_the_list_then_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It was seen, on the page before."""
    flow = flow_with(row("a", NOON - HOUR), row("b", NOON - HOUR))
    flow.pages.size = 1

    flow.pages.alter_page = refuse_list(TRAINING, Throttled("throttled"), from_page=2)
    sweeper(flow)({}, context())
    found = counts(capsys)
    assert (found["SweepFailed"], found["JobsMissing"]) == (1, 1)


def test_audits_that_cannot_be_read_are_failures_and_no_defects(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Each is counted, and the log says which it is."""
    old, new = row("old", NOON - DAY), row("new", NOON - HOUR)
    flow = flow_with(new, row("lost", NOON - HOUR))
    flow.history.add_audits(old, due_at=NOON - HOUR)
    flow.history.unreadable = {key_of(old), key_of(new)}
    assert sweeper(flow)({}, context()) == {"failed": 2}
    found = counts(capsys)
    assert (found["SweepFailed"], found.get("Defects"), found["LostEventsFound"]) == (2, None, 1)
    reasons = [vars(record).get("reason") for record in caplog.records]
    assert [f"{head.ref.arn} cannot be read" in reasons for head in (old, new)] == [True, True]


@pytest.mark.parametrize("error", [Throttled("busy"), Unavailable("no answer")])
def test_a_table_that_does_not_answer_is_a_failure_without_an_error(
    capsys: pytest.CaptureFixture[str], error: AwsError
) -> None:
    """The next sweep is in a quarter of an hour; the alarm is about failures in a row."""
    flow = flow_with()

    with patch.object(flow.notes, "acquire_lease", side_effect=error):
        assert sweeper(flow)({}, context()) == {"failed": 1}
    assert counts(capsys) == {"SweepFailed": 1}


def test_a_bug_with_one_list_costs_only_that_list(capsys: pytest.CaptureFixture[str]) -> None:
    """It is a failure and a defect; the other lists are read, and the lease is free."""
    flow = flow_with(row("b", NOON - HOUR, kind=JobKind.PROCESSING))

    flow.pages.alter_page = refuse_list(TRAINING, ZeroDivisionError())
    assert sweeper(flow)({}, context()) == {"failed": 1}
    found = counts(capsys)
    assert (found["SweepFailed"], found["Defects"], found["LostEventsFound"]) == (1, 1, 1)
    assert flow.notes.acquire_lease("another", NOON, 1)


def test_a_bug_outside_of_the_lists_is_counted_and_raised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Lambda keeps the invocation among the schedule's dead letters; the lease is free."""
    flow = flow_with()

    with (
        patch.object(flow.registry, "members", side_effect=ZeroDivisionError()),
        pytest.raises(ZeroDivisionError),
    ):
        sweeper(flow)({}, context())
    found = counts(capsys)
    assert (found["SweepFailed"], found["Defects"]) == (1, 1)
    assert flow.notes.acquire_lease("another", NOON, 1)


def test_a_stored_member_that_cannot_be_read_is_counted_and_named(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Its account would otherwise be missing without a sign."""
    flow, item = flow_with(), UnreadableItem("MEMBERS 222233334444#eu-west-1", "cannot be read")
    with patch.object(flow.registry, "take_unreadable", return_value=(item,)):
        assert sweeper(flow)({}, context()) == {"failed": 0}
    assert counts(capsys) == {"UnreadableItems": 1}
    assert [vars(record).get("item") for record in caplog.records][-1] == item.key


def test_a_second_sweep_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The first one still has its turn."""
    flow = flow_with(row("a", NOON - HOUR))
    flow.notes.acquire_lease("first", flow.now, handler.LEASE_S)
    request_count = len(flow.pages.requests)
    assert sweeper(flow)({}, context("second")) == {"failed": 0}
    assert len(flow.pages.requests) == request_count
    assert not counts(capsys)


def test_a_sweep_without_time_leaves_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    """It reads no list, and says nothing of any."""
    flow = flow_with(row("a", NOON - HOUR))
    request_count = len(flow.pages.requests)
    assert sweeper(flow)({}, context(left_ms=1_000)) == {"failed": 0}
    assert len(flow.pages.requests) == request_count
    assert not counts(capsys)
    assert read_list(flow.notes, TRAINING) is not None
