"""Sweeps in virtual time: what is found, what is counted, and where each one goes on."""

from datetime import timedelta
from itertools import count
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.lambda_runtime.batch import LONGEST_WAIT_S
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import OVERLAP, Listed
from sageaudit.errors import GIVE_UP_AFTER, Throttled, Unavailable
from sageaudit.structs import replace
from sageaudit.workflows.sweep.run import DUE_AGAIN_AFTER, DueSent, Swept, sweep
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.sweeps import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    TRAINING,
    Office,
    an_office,
    head_of,
    key_of,
    row,
    together,
)

OTHERS = ("444455556666", "777788889999")
QUARTER = 15 * MINUTE


def test_a_lost_event_is_found_within_the_hour_and_sent_once() -> None:
    """The event is as EventBridge's, and names the run by its creation time."""
    job = row("lost", NOON + 7 * MINUTE)
    office = an_office(job)
    counts = office.sweeps_until(NOON + 7 * MINUTE + HOUR)
    assert (counts.ended, counts.missing, counts.found) == (1, 1, 1)
    [event] = office.queue.bodies
    assert event == {
        "source": "sageaudit.sweep",
        "detail-type": "SageMaker Training Job State Change",
        "account": ACCOUNT,
        "region": REGION,
        "time": job.last_at.isoformat(),
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
    office = an_office(job)
    if noted:
        office.notes.note_came(key_of(job), NOON + 5 * MINUTE)
    counts = office.sweeps_until(NOON + DAY, audits=False)
    assert (counts.ended, counts.found) == (1, found)
    assert OVERLAP / QUARTER <= counts.missing <= (OVERLAP + HOUR) / QUARTER
    assert office.queue.names == ["waits"] * found


def test_a_run_whose_event_came_is_sent_when_it_is_due() -> None:
    """The note is of its end, and not of the second look."""
    office = an_office()
    [pool] = due(office, "pool")
    office.notes.note_came(key_of(pool), NOON - HOUR)
    office.sweep()
    office.sweep()
    assert office.queue.names == ["pool"]


def test_a_list_that_is_behind_is_caught_by_the_overlap() -> None:
    """It still showed the job as running an hour after the watermark had passed its end."""
    job = row("late", NOON + 10 * MINUTE)
    office = an_office()
    office.pages.rows.append(replace(job, status="InProgress", ended_at=None))
    office.sweeps_until(NOON + 2 * HOUR)
    office.pages.rows[:] = [job]
    assert office.sweeps_until(NOON + 3 * HOUR).found == 1
    assert OVERLAP >= 2 * HOUR


def test_a_job_that_ends_while_its_list_is_read_is_not_missed() -> None:
    """The watermark is of the list's start."""
    office = an_office()
    office.sweep()
    listed_at = office.pages.asked[0][0]
    assert office.notes.states[TRAINING].watermark <= listed_at - 30 * MINUTE
    office.pages.rows.append(row("ended-meanwhile", listed_at + timedelta(seconds=2)))
    assert office.sweeps_until(NOON + 2 * HOUR).found == 1


def test_an_account_that_was_added_looks_back_a_day_and_is_told_apart() -> None:
    """No event of its jobs could come before."""
    office = an_office(row("earlier", NOON - 3 * HOUR, account=OTHERS[0]))
    office.accounts = (ACCOUNT, OTHERS[0])
    counts = together(office.sweep())
    assert (counts.found, counts.looked_back, counts.ended) == (0, 1, 0)


def test_every_region_of_the_policy_is_swept() -> None:
    """A job of another one is found as soon as the policy has that region."""
    office = an_office(row("far", NOON - HOUR, region="eu-west-1"))
    assert together(office.sweep()).found == 0
    office.regions = (REGION, "eu-west-1")
    parts = office.sweep()
    assert {part.of.region for part in parts if isinstance(part, Swept)} == {REGION, "eu-west-1"}
    assert together(parts).looked_back == 1
    [body] = office.queue.bodies
    assert (body["region"], body["detail"]["TrainingJobName"]) == ("eu-west-1", "far")


def test_a_table_that_does_not_answer_moves_no_watermark() -> None:
    """Whether a job is audited is not known."""
    office = an_office(row("lost", NOON - HOUR))
    before = dict(office.notes.states)
    office.history.fails = Throttled("The table is busy")
    parts = office.sweep()
    assert [type(part) for part in parts if part.error] == [DueSent, Swept]
    assert office.notes.states[TRAINING].watermark == before[TRAINING].watermark
    office.history.fails = None
    assert together(office.sweep()).found == 1


def test_a_queue_that_does_not_answer_loses_no_job() -> None:
    """It is sent by the next sweep."""
    office = an_office(row("lost", NOON - HOUR))
    office.queue.fails = Unavailable("sqs did not answer")
    assert together(office.sweep()).found == 0
    office.queue.fails = None
    assert together(office.sweep()).found == 1


def test_known_runs_cost_a_read_of_the_table_and_no_more() -> None:
    """An audited job is looked at while the overlap lasts."""
    job = row("known", NOON)
    office = an_office(job)
    office.history.audited(job)
    office.sweeps_until(NOON + 2 * DAY)
    assert 1 <= office.history.asked[key_of(job)] <= (OVERLAP + HOUR) / QUARTER
    assert not office.queue.bodies


def test_a_quiet_account_costs_a_request_a_list() -> None:
    """Though thousands of jobs ended this month."""
    office = Office(NOON)
    office.pages.rows += [row(f"job-{n}", NOON - n * DAY / 100) for n in range(1, 3000)]
    office.sweep()
    office.audit_sent()
    first = len(office.pages.asked)
    office.now += 15 * MINUTE
    office.sweep()
    office.now += 15 * MINUTE
    office.pages.asked.clear()
    office.sweep()
    assert first == 30 + len(JobKind) - 1  # pages of training jobs, and one of each other kind
    assert len(office.pages.asked) == len(JobKind)


def test_two_runs_of_one_name_are_two() -> None:
    """The one that is there now has its own creation time."""
    old, new = row("again", NOON - 5 * HOUR), row("again", NOON - HOUR)
    office = an_office(new)
    office.history.audited(old)
    office.sweep()
    [event] = office.queue.bodies
    assert event["detail"]["CreationTime"] == int(new.created_at.timestamp() * 1000)


@pytest.mark.parametrize("status", ["Deleting", "DeleteFailing"])
def test_a_job_that_is_being_deleted_holds_nothing_up(status: str) -> None:
    """It is neither sent nor waited for."""
    gone = replace(row("gone", NOON - HOUR), status=status)
    office = an_office(gone)
    office.sweep()
    assert not office.queue.bodies
    assert office.notes.states[TRAINING].listed_from > NOON - OVERLAP - MINUTE


def due(office: Office, *names: str, at: object = None) -> list[Listed]:
    """Runs of earlier days whose audits are due."""
    rows = [row(name, NOON - DAY) for name in names]
    office.history.audited(*rows, due_at=at or NOON - HOUR)  # type: ignore[arg-type]
    return rows


def test_what_is_due_is_sent_again_when_its_message_is_no_longer_tried() -> None:
    """Before, one that fails would become a dead letter for each time it was sent."""
    office = an_office()
    due(office, "pool")
    office.sweeps_until(NOON + 4 * DAY - HOUR, audits=False)
    assert office.queue.names == ["pool"]
    office.sweeps_until(NOON + 4 * DAY + HOUR, audits=False)
    assert office.queue.names == ["pool"] * 2
    assert GIVE_UP_AFTER + 2 * timedelta(seconds=LONGEST_WAIT_S) <= DUE_AGAIN_AFTER


def test_a_due_audit_that_cannot_be_read_stops_no_other() -> None:
    """Before and after it, on its page and on later ones."""
    office = an_office()
    rows = due(office, *(f"pool-{n:03}" for n in range(150)))
    office.history.unreadable = {key_of(rows[0]), key_of(rows[70]), key_of(rows[120])}
    [sent] = [part for part in office.sweep() if isinstance(part, DueSent)]
    assert (sent.sent, len(sent.unreadable), sent.error) == (147, 3, None)
    assert rows[70].ref.arn in sent.unreadable[1]


def test_an_audit_that_cannot_be_read_stops_no_other_job_of_its_list() -> None:
    """It is looked at while the overlap lasts; the watermark moves on, and nothing is missing."""
    lost, bad = row("lost", NOON - 45 * MINUTE), row("bad", NOON - 40 * MINUTE)
    office = an_office(lost, bad)
    office.history.unreadable = {key_of(bad)}
    first = together(office.sweep())
    assert (first.ended, first.missing, first.found, first.whole) == (2, 1, 1, True)
    assert [bad.ref.arn in why for why in first.unreadable] == [True]
    state = office.notes.states[TRAINING]
    assert state.watermark > bad.last_at
    assert state.listed_from < bad.created_at
    office.audit_sent()
    later = office.sweeps_until(NOON + DAY)
    assert (later.ended, later.found) == (0, 0)
    assert OVERLAP / QUARTER <= len(later.unreadable) + 1 <= (OVERLAP + HOUR) / QUARTER
    assert office.queue.names == ["lost"]
    assert office.notes.states[TRAINING].listed_from > NOON + HOUR


def test_a_run_that_is_due_anew_is_sent_anew() -> None:
    """It was looked at, and a figure may still change."""
    office = an_office()
    due(office, "pool")
    office.sweep()
    due(office, "pool", at=NOON - MINUTE)
    office.sweep()
    assert office.queue.names == ["pool"] * 2


def test_what_is_not_due_yet_or_not_ours_is_left() -> None:
    """A recording's account, an account that left the policy, and a time that has not come."""
    office = an_office()
    due(office, "later", at=NOON + HOUR)
    stranger = row("stranger", NOON - DAY, account=OTHERS[0])
    office.history.audited(stranger, due_at=NOON - HOUR)
    recorded = head_of(row("recorded", NOON - DAY), due_at=NOON - HOUR)
    recorded = replace(recorded, key=replace(recorded.key, arn="recorded"))
    office.history.heads[recorded.key] = recorded
    office.sweep()
    assert not office.queue.bodies


def test_a_job_that_ran_at_its_audit_keeps_its_status_in_the_event() -> None:
    """A sweep claims no end that it did not see."""
    office = an_office()
    running = replace(row("running", NOON - DAY), status="InProgress")
    office.history.audited(running, due_at=NOON - HOUR)
    office.sweep()
    assert office.queue.bodies[0]["detail"]["TrainingJobStatus"] == "InProgress"


def test_a_sweep_that_is_killed_anywhere_loses_nothing() -> None:
    """Each step in turn: the next sweep does the rest, and sends a run twice at most."""
    for number in count():
        office = an_office(*(row(f"job-{n}", NOON - HOUR + n * MINUTE) for n in range(3)))
        due(office, "pool")
        killed = office.is_killed_at(number)
        office.now += QUARTER
        office.sweep()
        sent = office.queue.names
        assert set(sent) == {"job-0", "job-1", "job-2", "pool"}
        assert len(sent) <= 5
        if not killed:
            assert number > 40
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
    office = Office(NOON - DAY)
    office.pages.size = 3
    office.pages.rows += [
        row(f"job-{n}", NOON + end * MINUTE, lasts=last * MINUTE)
        for n, (end, last) in enumerate(zip(ends, lasts, strict=False))
    ]
    office.sweep()
    office.now = NOON
    parts = []
    for pause, most in zip(pauses, pages, strict=False):
        office.pages_a_sweep = most
        parts += office.sweep()
        office.now += pause * MINUTE
    office.pages_a_sweep = None
    office.now = max(office.now, NOON + 12 * HOUR)
    parts += office.sweep() + office.sweep()
    counts = together(parts)
    assert counts.found == counts.ended == len(ends)
    assert len(set(office.queue.names)) == len(office.queue.names) == len(ends)


def test_a_list_that_takes_all_the_time_holds_up_no_other() -> None:
    """Each sweep begins with the list that was not tried for the longest time."""
    office = an_office(row("lost", NOON - HOUR, kind=JobKind.TUNING))
    office.pages_a_sweep = 1
    tried = []
    for _ in range(2 * len(JobKind)):
        before = len(office.pages.asked)
        office.sweep()
        tried.append(office.pages.asked[before][1].kind)
        office.now += QUARTER
    assert set(tried[: len(JobKind)]) == set(tried[len(JobKind) :]) == set(JobKind)


def test_all_lists_are_read_before_a_running_job_is_looked_at() -> None:
    """Many of them take no time from the lists."""
    office = an_office(
        *(row(kind.value, None, created_at=NOON - HOUR, kind=kind) for kind in JobKind)
    )
    read: list[int] = []

    def watched(*_: object) -> int:
        read.append(len(office.pages.asked))
        return 0

    deps = replace(office.dependencies(lambda: False), watch=mock.Mock())
    with mock.patch("sageaudit.workflows.sweep.run.watch", watched):
        list(sweep(deps))
    assert read
    assert set(read) == {len(office.pages.asked)}
