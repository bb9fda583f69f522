"""Sweeps in virtual time: what is found, what is counted, and where each one goes on."""

from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.lambda_runtime.batch import MAX_WAIT_S
from sageaudit.domain.alert.backoff import GIVE_UP_AFTER
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import OVERLAP, ListedJob
from sageaudit.errors import Throttled, Unavailable
from sageaudit.structs import replace
from sageaudit.workflows.sweep.lists import ListSweepResult
from sageaudit.workflows.sweep.run import RESEND_DUE_AFTER, DueAuditsSent
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.sweeps import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    TRAINING,
    SweepFlow,
    add_up,
    flow_with,
    key_of,
    row,
    summary_of,
)

OTHERS = ("444455556666", "777788889999")
QUARTER = 15 * MINUTE


def test_a_lost_event_is_found_within_the_hour_and_sent_once() -> None:
    """The event is as EventBridge's, and names the run by its creation time."""
    job = row("lost", NOON + 7 * MINUTE)
    flow = flow_with(job)
    counts = flow.total_until(NOON + 7 * MINUTE + HOUR)
    assert (counts.ended_count, counts.missing_count, counts.lost_events) == (1, 1, 1)
    [event] = flow.events
    assert event == {
        "source": "sageaudit.sweep",
        "detail-type": "SageMaker Training Job State Change",
        "account": ACCOUNT,
        "region": REGION,
        "time": job.last_changed_at.isoformat(),
        "detail": {
            "TrainingJobName": "lost",
            "TrainingJobArn": job.ref.arn,
            "TrainingJobStatus": "Completed",
            "CreationTime": int(job.created_at.timestamp() * 1000),
        },
    }


@pytest.mark.parametrize(("noted", "found"), [(True, 0), (False, 1)])
def test_a_job_that_stays_without_an_audit_is_missing_for_hours(found: int, *, noted: bool) -> None:
    """It is sent once, however many sweeps there are; not at all where its event came and waits."""
    job = row("waits", NOON)
    flow = flow_with(job)
    if noted:
        flow.notes.record_event_arrival(key_of(job), NOON + 5 * MINUTE)
    counts = flow.total_until(NOON + DAY, audits=False)
    assert (counts.ended_count, counts.lost_events) == (1, found)
    assert OVERLAP / QUARTER <= counts.missing_count <= (OVERLAP + HOUR) / QUARTER
    assert flow.names == ["waits"] * found


def test_a_run_whose_event_came_is_sent_when_it_is_due() -> None:
    """The note is of its end, and not of the second look."""
    flow = flow_with()
    [pool] = due(flow, "pool")
    flow.notes.record_event_arrival(key_of(pool), NOON - HOUR)
    flow.sweep()
    flow.sweep()
    assert flow.names == ["pool"]


def test_a_list_that_is_behind_is_caught_by_the_overlap() -> None:
    """It still showed the job as running an hour after the watermark had passed its end."""
    job = row("late", NOON + 10 * MINUTE)
    flow = flow_with()
    flow.pages.rows.append(replace(job, status="InProgress", ended_at=None))
    flow.total_until(NOON + 2 * HOUR)
    flow.pages.rows[:] = [job]
    assert flow.total_until(NOON + 3 * HOUR).lost_events == 1
    assert OVERLAP >= 2 * HOUR


def test_a_job_that_ends_while_its_list_is_read_is_not_missed() -> None:
    """The watermark is of the list's start."""
    flow = flow_with()
    flow.sweep()
    listed_at = flow.pages.requests[0][0]
    assert flow.state(TRAINING).watermark <= listed_at - 30 * MINUTE
    flow.pages.rows.append(row("ended-meanwhile", listed_at + timedelta(seconds=2)))
    assert flow.total_until(NOON + 2 * HOUR).lost_events == 1


def test_an_account_that_was_added_looks_back_a_day_and_is_told_apart() -> None:
    """No event of its jobs could come before."""
    flow = flow_with(row("earlier", NOON - 3 * HOUR, account=OTHERS[0]))
    flow.accounts = (ACCOUNT, OTHERS[0])
    counts = add_up(flow.sweep())
    assert (counts.lost_events, counts.sent_from_before, counts.ended_count) == (0, 1, 0)


def test_every_region_of_the_policy_is_swept() -> None:
    """A job of another one is found as soon as the policy has that region."""
    flow = flow_with(row("far", NOON - HOUR, region="eu-west-1"))
    assert add_up(flow.sweep()).lost_events == 0
    flow.regions = (REGION, "eu-west-1")
    parts = flow.sweep()
    assert {part.job_list.region for part in parts if isinstance(part, ListSweepResult)} == {
        REGION,
        "eu-west-1",
    }
    assert add_up(parts).sent_from_before == 1
    [body] = flow.events
    assert (body["region"], body["detail"]["TrainingJobName"]) == ("eu-west-1", "far")


def test_a_table_that_does_not_answer_moves_no_watermark() -> None:
    """Whether a job is audited is not known."""
    flow = flow_with(row("lost", NOON - HOUR))
    before = flow.state(TRAINING)
    flow.history.fails = Throttled("The table is busy")
    parts = flow.sweep()
    assert [type(part) for part in parts if getattr(part, "error", None)] == [
        DueAuditsSent,
        ListSweepResult,
    ]
    assert flow.state(TRAINING).watermark == before.watermark
    flow.history.fails = None
    assert add_up(flow.sweep()).lost_events == 1


def test_a_queue_that_does_not_answer_loses_no_job() -> None:
    """It is sent by the next sweep."""
    flow = flow_with(row("lost", NOON - HOUR))
    flow.queue.errors = [Unavailable("sqs did not answer")]
    assert add_up(flow.sweep()).lost_events == 0
    flow.queue.errors = []
    assert add_up(flow.sweep()).lost_events == 1


def test_known_runs_cost_a_read_of_the_table_and_no_more() -> None:
    """An audited job is looked at while the overlap lasts."""
    job = row("known", NOON)
    flow = flow_with(job)
    flow.history.add_audits(job)
    flow.total_until(NOON + 2 * DAY)
    assert 1 <= flow.history.summary_reads[key_of(job)] <= (OVERLAP + HOUR) / QUARTER
    assert not flow.events


def test_a_quiet_account_costs_a_request_a_list() -> None:
    """Though thousands of jobs ended this month."""
    flow = SweepFlow(NOON)
    flow.pages.rows += [row(f"job-{n}", NOON - n * DAY / 100) for n in range(1, 3000)]
    flow.sweep()
    flow.audit_sent()
    first = len(flow.pages.requests)
    flow.now += 15 * MINUTE
    flow.sweep()
    flow.now += 15 * MINUTE
    flow.pages.requests.clear()
    flow.sweep()
    assert first == 30 + len(JobKind) - 1  # pages of training jobs, and one of each other kind
    assert len(flow.pages.requests) == len(JobKind)


def test_two_runs_of_one_name_are_two() -> None:
    """The one that is there now has its own creation time."""
    old, new = row("again", NOON - 5 * HOUR), row("again", NOON - HOUR)
    flow = flow_with(new)
    flow.history.add_audits(old)
    flow.sweep()
    [event] = flow.events
    assert event["detail"]["CreationTime"] == int(new.created_at.timestamp() * 1000)


@pytest.mark.parametrize("status", ["Deleting", "DeleteFailing"])
def test_a_job_that_is_being_deleted_holds_nothing_up(status: str) -> None:
    """It is neither sent nor waited for."""
    gone = replace(row("gone", NOON - HOUR), status=status)
    flow = flow_with(gone)
    flow.sweep()
    assert not flow.events
    assert flow.state(TRAINING).next_created_after > NOON - OVERLAP - MINUTE


def due(flow: SweepFlow, *names: str, at: object = None) -> list[ListedJob]:
    """Runs of earlier days whose audits are due."""
    rows = [row(name, NOON - DAY) for name in names]
    flow.history.add_audits(*rows, due_at=at or NOON - HOUR)  # type: ignore[arg-type]
    return rows


def test_what_is_due_is_sent_again_when_its_message_is_no_longer_tried() -> None:
    """Before, one that fails would become a dead letter for each time it was sent."""
    flow = flow_with()
    due(flow, "pool")
    flow.total_until(NOON + 4 * DAY - HOUR, audits=False)
    assert flow.names == ["pool"]
    flow.total_until(NOON + 4 * DAY + HOUR, audits=False)
    assert flow.names == ["pool"] * 2
    assert GIVE_UP_AFTER + 2 * timedelta(seconds=MAX_WAIT_S) <= RESEND_DUE_AFTER


def test_a_due_audit_that_cannot_be_read_stops_no_other() -> None:
    """Before and after it, on its page and on later ones."""
    flow = flow_with()
    rows = due(flow, *(f"pool-{n:03}" for n in range(150)))
    flow.history.unreadable = {key_of(rows[0]), key_of(rows[70]), key_of(rows[120])}
    [sent] = [part for part in flow.sweep() if isinstance(part, DueAuditsSent)]
    assert (sent.sent_count, len(sent.unreadable), sent.error) == (147, 3, None)
    assert rows[70].ref.arn in sent.unreadable[1]


def test_an_audit_that_cannot_be_read_stops_no_other_job_of_its_list() -> None:
    """It is looked at while the overlap lasts; the watermark moves on, and nothing is missing."""
    lost, bad = row("lost", NOON - 45 * MINUTE), row("bad", NOON - 40 * MINUTE)
    flow = flow_with(lost, bad)
    flow.history.unreadable = {key_of(bad)}
    first = add_up(flow.sweep())
    assert (first.ended_count, first.missing_count, first.lost_events, first.is_complete) == (
        2,
        1,
        1,
        True,
    )
    assert [bad.ref.arn in why for why in first.unreadable] == [True]
    state = flow.state(TRAINING)
    assert state.watermark > bad.last_changed_at
    assert state.next_created_after < bad.created_at
    flow.audit_sent()
    later = flow.total_until(NOON + DAY)
    assert (later.ended_count, later.lost_events) == (0, 0)
    assert OVERLAP / QUARTER <= len(later.unreadable) + 1 <= (OVERLAP + HOUR) / QUARTER
    assert flow.names == ["lost"]
    assert flow.state(TRAINING).next_created_after > NOON + HOUR


def test_a_run_that_is_due_anew_is_sent_anew() -> None:
    """It was looked at, and a figure may still change."""
    flow = flow_with()
    due(flow, "pool")
    flow.sweep()
    due(flow, "pool", at=NOON - MINUTE)
    flow.sweep()
    assert flow.names == ["pool"] * 2


def test_what_is_not_due_yet_or_not_ours_is_left() -> None:
    """A recording's account, an account that left the policy, and a time that has not come."""
    flow = flow_with()
    due(flow, "later", at=NOON + HOUR)
    stranger = row("stranger", NOON - DAY, account=OTHERS[0])
    flow.history.add_audits(stranger, due_at=NOON - HOUR)
    recorded = summary_of(row("recorded", NOON - DAY), due_at=NOON - HOUR)
    recorded = replace(recorded, key=replace(recorded.key, arn="recorded"))
    flow.history.summaries[recorded.key] = recorded
    flow.sweep()
    assert not flow.events


def test_a_job_that_ran_at_its_audit_keeps_its_status_in_the_event() -> None:
    """A sweep claims no end that it did not see."""
    flow = flow_with()
    running = replace(row("running", NOON - DAY), status="InProgress")
    flow.history.add_audits(running, due_at=NOON - HOUR)
    flow.sweep()
    assert flow.events[0]["detail"]["TrainingJobStatus"] == "InProgress"


def test_a_sweep_that_is_killed_anywhere_loses_nothing() -> None:
    """Each step in turn: the next sweep does the rest, and sends a run twice at most."""
    for number in count():
        flow = flow_with(*(row(f"job-{n}", NOON - HOUR + n * MINUTE) for n in range(3)))
        due(flow, "pool")
        killed = flow.is_killed_at(number)
        flow.now += QUARTER
        flow.sweep()
        sent = flow.names
        assert set(sent) == {"job-0", "job-1", "job-2", "pool"}
        assert len(sent) <= 5
        if not killed:
            assert number > 30
            break


@given(
    ends=st.lists(st.integers(1, 600), max_size=25),
    lasts=st.lists(st.integers(1, 40_000), min_size=25, max_size=25),
    pauses=st.lists(st.integers(1, 300), min_size=1, max_size=12),
    pages=st.lists(st.integers(1, 12), min_size=12, max_size=12),
)
def test_every_job_is_counted_once_and_found_whenever_sweeps_run(
    ends: list[int], lasts: list[int], pauses: list[int], pages: list[int]
) -> None:
    """Whatever the pauses between sweeps, and however many pages each one may read."""
    flow = SweepFlow(NOON - DAY)
    flow.pages.size = 3
    flow.pages.rows += [
        row(f"job-{n}", NOON + end * MINUTE, lasts=last * MINUTE)
        for n, (end, last) in enumerate(zip(ends, lasts, strict=False))
    ]
    flow.sweep()
    flow.now = NOON
    parts = []
    for pause, most in zip(pauses, pages, strict=False):
        flow.max_pages = most
        parts += flow.sweep()
        flow.now += pause * MINUTE
    flow.max_pages = None
    flow.now = max(flow.now, NOON + 12 * HOUR)
    parts += flow.sweep() + flow.sweep()
    counts = add_up(parts)
    assert counts.lost_events == counts.ended_count == len(ends)
    assert len(set(flow.names)) == len(flow.names) == len(ends)


def test_a_list_that_takes_all_the_time_holds_up_no_other() -> None:
    """Each sweep begins with the list that was not tried for the longest time."""
    flow = flow_with(row("lost", NOON - HOUR, kind=JobKind.TUNING))
    flow.max_pages = 1
    tried = []
    for _ in range(2 * len(JobKind)):
        before = len(flow.pages.requests)
        flow.sweep()
        tried.append(flow.pages.requests[before][1].kind)
        flow.now += QUARTER
    assert set(tried[: len(JobKind)]) == set(tried[len(JobKind) :]) == set(JobKind)
