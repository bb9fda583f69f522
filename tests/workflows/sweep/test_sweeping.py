"""Sweeps in virtual time: what is found, what is counted, and where each one goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.lambda_runtime.batch import LONGEST_WAIT_S
from sageaudit.domain.alert.backoff import GIVE_UP_AFTER
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.listed import Listed
from sageaudit.domain.sweep import OVERLAP, ListOfJobs
from sageaudit.errors import AccessDenied, Throttled, Unavailable
from sageaudit.workflows.sweep.run import DUE_AGAIN_AFTER, DueSent, Swept
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.sweeps import DAY, HOUR, MINUTE, NOON, Office, head_of, key_of, row, together

TRAINING = ListOfJobs(ACCOUNT, REGION, JobKind.TRAINING)
OTHERS = ("444455556666", "777788889999")
QUARTER = 15 * MINUTE


def an_office(*rows: Listed, **more: object) -> Office:
    """One where sweeps have run since a day."""
    office = Office(NOON - DAY, **more)  # type: ignore[arg-type]
    for hours in (24, 12, 6, 3, 1, 0.25):
        office.now = NOON - hours * HOUR
        office.sweep()
    office.now = NOON
    office.pages.rows += rows
    office.pages.asked.clear()
    return office


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


def test_a_job_whose_event_is_on_its_way_is_not_found() -> None:
    """The queue's delay and the wait for metrics are no loss."""
    job = row("waits", NOON + 2 * MINUTE)
    office = an_office(job)
    first = office.sweeps_until(NOON + 30 * MINUTE)
    office.history.audited(job)
    later = office.sweeps_until(NOON + DAY)
    assert (first.ended, first.found) == (0, 0)
    assert (later.ended, later.missing, later.found) == (1, 0, 0)
    assert not office.queue.bodies


def test_a_job_that_stays_without_an_audit_is_sent_once_and_missing_for_hours() -> None:
    """However many sweeps there are: its message waits, or stands in the dead letters."""
    office = an_office(row("denied", NOON))
    counts = office.sweeps_until(NOON + DAY, audits=False)
    assert (counts.ended, counts.found) == (1, 1)
    assert OVERLAP / QUARTER <= counts.missing <= (OVERLAP + HOUR) / QUARTER
    assert office.queue.names == ["denied"]


def test_a_job_whose_event_came_and_waits_is_missing_and_not_found() -> None:
    """Its message is in the queue: it is not sent a second time."""
    job = row("waits", NOON)
    office = an_office(job)
    office.notes.note_came(key_of(job), NOON + 5 * MINUTE)
    counts = office.sweeps_until(NOON + DAY, audits=False)
    assert (counts.ended, counts.found) == (1, 0)
    assert OVERLAP / QUARTER <= counts.missing <= (OVERLAP + HOUR) / QUARTER
    assert not office.queue.bodies


def test_a_run_whose_event_came_is_sent_when_it_is_due() -> None:
    """The note is of its end, and not of the second look."""
    office = an_office()
    [pool] = due(office, "pool")
    office.notes.note_came(key_of(pool), NOON - HOUR)
    office.sweep()
    office.sweep()
    assert office.queue.names == ["pool"]


def test_an_audit_function_that_is_broken_shows_in_the_counts() -> None:
    """Forty jobs ended, none is audited: each sweep says so."""
    office = an_office(*(row(f"job-{n}", NOON + n * MINUTE / 2) for n in range(40)))
    office.now = NOON + HOUR
    sweeps = []
    for _ in range(4):
        counts = together(office.sweep())
        sweeps.append((counts.ended, counts.missing))
        office.now += QUARTER
    assert sweeps == [(40, 40), (0, 40), (0, 40), (0, 40)]


def test_a_weekend_without_jobs_is_no_silence() -> None:
    """Nothing ended, and nothing is missing: both are counted as 0."""
    counts = an_office().sweeps_until(NOON + 2 * DAY)
    assert (counts.ended, counts.missing, counts.found, counts.error) == (0, 0, 0, None)


def test_the_first_sweep_looks_back_a_day_and_counts_nothing_of_it() -> None:
    """Fifty jobs a day for a month: those of the last day are audited."""
    office = Office(NOON)
    office.pages.rows += [row(f"job-{n}", NOON - n * DAY / 50) for n in range(2, 1500)]
    counts = office.sweeps_until(NOON + HOUR)
    assert (counts.ended, counts.missing, counts.found) == (0, 0, 0)
    assert 47 <= counts.looked_back <= 50
    assert office.notes.installed


def test_a_job_that_ran_while_it_was_installed_is_found() -> None:
    """Its event should have come."""
    office = Office(NOON)
    office.pages.rows.append(row("across", NOON + HOUR, lasts=5 * HOUR))
    counts = office.sweeps_until(NOON + 3 * HOUR)
    assert (counts.found, counts.looked_back) == (1, 0)


@pytest.mark.parametrize("away", [3 * HOUR, 3 * DAY, 40 * DAY])
def test_after_a_pause_it_goes_on_from_the_watermark(away: timedelta) -> None:
    """Not from a day or a quarter of an hour ago."""
    office = an_office(*(row(f"lost-{n}", NOON + n * HOUR / 2) for n in range(1, 6)))
    office.now = NOON + away
    counts = office.sweeps_until(office.now + HOUR)
    assert counts.found == counts.missing == counts.ended == 5


def test_a_job_of_weeks_is_found_by_its_change_not_by_its_creation() -> None:
    """It was created 20 days ago. While it runs, lists begin there; afterwards they do not."""
    long = row("long", NOON + 2 * HOUR, lasts=20 * DAY)
    office = Office(NOON - 2 * DAY)
    office.pages.rows.append(long)
    counts = office.sweeps_until(NOON + 4 * HOUR)
    assert (counts.ended, counts.found) == (1, 1)
    state = office.notes.states[TRAINING]
    assert state.listed_from > NOON


@pytest.mark.parametrize("skew", [-5 * MINUTE, 5 * MINUTE])
def test_a_clock_that_is_wrong_by_minutes_misses_nothing(skew: timedelta) -> None:
    """The watermark is half an hour and more behind each sweep."""
    office = an_office(*(row(f"job-{n}", NOON + n * 7 * MINUTE + skew) for n in range(20)))
    counts = office.sweeps_until(NOON + 6 * HOUR)
    assert counts.found == counts.ended == 20


@pytest.mark.parametrize("ahead", [10 * MINUTE, 365 * DAY])
def test_a_watermark_in_the_future_skips_nothing(ahead: timedelta) -> None:
    """A clock that was wrong wrote it: the last day is looked at once more."""
    lost = row("lost", NOON - 2 * HOUR)
    office = an_office(lost)
    state = office.notes.states[TRAINING]
    office.notes.states[TRAINING] = replace(
        state, watermark=NOON + ahead, listed_from=NOON + ahead - HOUR
    )
    assert together(office.sweep()).found == 1
    assert office.notes.states[TRAINING].watermark < NOON


def test_a_list_that_is_behind_is_caught_by_the_overlap() -> None:
    """It still showed the job as running an hour after the watermark had passed its end."""
    job = row("late", NOON + 10 * MINUTE)
    office = an_office()
    office.pages.rows.append(replace(job, status="InProgress", ended_at=None))
    office.sweeps_until(NOON + 2 * HOUR)
    office.pages.rows[:] = [job]
    assert office.sweeps_until(NOON + 3 * HOUR).found == 1
    assert OVERLAP >= 2 * HOUR


def test_a_page_that_fails_keeps_what_was_read_and_the_watermark() -> None:
    """Jobs of the pages before are sent; the next sweep reads the rest and counts none twice."""
    jobs = [row(f"job-{n:02}", NOON - 49 * MINUTE + n * MINUTE / 2) for n in range(20)]
    office = an_office(*jobs)
    office.pages.size = 4
    before = office.notes.states[TRAINING].watermark

    def third_page(of: ListOfJobs, number: int, page: list[Listed]) -> list[Listed]:
        if number == 3 and of == TRAINING:
            raise Throttled("sagemaker:ListTrainingJobs is throttled")
        return page

    office.pages.spoils = third_page
    parts = [part for part in office.sweep() if isinstance(part, Swept)]
    failed = [part for part in parts if part.error]
    assert [part.of for part in failed] == [TRAINING]
    assert len(parts) == 4
    assert (failed[0].found, failed[0].whole) == (8, False)
    assert office.notes.states[TRAINING].watermark == before
    office.pages.spoils = lambda _of, _number, page: page
    office.pages.asked.clear()
    rest = together(office.sweep())
    assert failed[0].found + rest.found == 20
    assert failed[0].ended + rest.ended == 20
    assert sorted(office.queue.names) == sorted(job.ref.name for job in jobs)
    assert len([of for _, of in office.pages.asked if of == TRAINING]) <= 4


def test_a_backlog_that_takes_many_sweeps_is_worked_off_and_fails_none() -> None:
    """Five thousand jobs, ten pages a sweep over all lists: none starts over, none is left."""
    jobs = [row(f"job-{n}", NOON + n * timedelta(seconds=1)) for n in range(5000)]
    office = an_office(*jobs)
    office.pages_a_sweep, office.now = 10, NOON + 3 * HOUR
    counts = office.sweeps_until(NOON + 6 * HOUR)
    assert (counts.found, counts.missing, counts.error) == (5000, 5000, None)
    assert len(set(office.queue.names)) == len(office.queue.names) == 5000


def test_a_list_that_never_ends_stops_no_other() -> None:
    """Its watermark stays."""
    lost = row("lost", NOON - HOUR, kind=JobKind.TRANSFORM)
    office = an_office(lost)
    before = office.notes.states[TRAINING].watermark

    def endless(of: ListOfJobs, _number: int, page: list[Listed]) -> list[Listed]:
        if of == TRAINING:
            raise Unavailable("sagemaker:ListTrainingJobs returned no last page.")
        return page

    office.pages.spoils = endless
    counts = together(office.sweep())
    assert counts.found == 1
    assert office.notes.states[TRAINING].watermark == before


def test_an_empty_page_is_not_the_end() -> None:
    """The rows after it are looked at."""
    office = an_office(row("lost", NOON - HOUR))
    office.pages.size = 1
    pages = [[], office.pages.rows[:]]
    office.pages.rows.append(row("older", NOON - 90 * MINUTE))
    office.pages.spoils = lambda of, number, page: pages[number - 1] if of == TRAINING else page
    office.sweep()
    assert office.queue.names == ["lost"]


def test_a_job_that_ends_while_its_list_is_read_is_not_missed() -> None:
    """The watermark is of the list's start."""
    office = an_office()
    office.sweep()
    listed_at = office.pages.asked[0][0]
    assert office.notes.states[TRAINING].watermark <= listed_at - 30 * MINUTE
    office.pages.rows.append(row("ended-meanwhile", listed_at + timedelta(seconds=2)))
    assert office.sweeps_until(NOON + 2 * HOUR).found == 1


def test_one_account_that_refuses_leaves_the_others() -> None:
    """Of it nothing is known, and nothing is counted."""
    accounts = (ACCOUNT, *OTHERS)
    office = an_office(
        *(row("lost", NOON - HOUR, account=account) for account in accounts), accounts=accounts
    )

    def refused(of: ListOfJobs, _number: int, page: list[Listed]) -> list[Listed]:
        if of.account == OTHERS[0]:
            raise AccessDenied("sagemaker:ListTrainingJobs", "denied")
        return page

    office.pages.spoils = refused
    parts = [part for part in office.sweep() if isinstance(part, Swept)]
    assert {part.of.account for part in parts if part.error} == {OTHERS[0]}
    refusing = [part for part in parts if part.of.account == OTHERS[0]]
    assert [part.ended for part in refusing] == [0] * 4
    assert [body["account"] for body in office.queue.bodies] == [ACCOUNT, OTHERS[1]]


def test_an_account_that_was_added_looks_back_a_day_and_is_told_apart() -> None:
    """No event of its jobs could come before."""
    office = an_office(row("earlier", NOON - 3 * HOUR, account=OTHERS[0]))
    office.accounts = (ACCOUNT, OTHERS[0])
    counts = together(office.sweep())
    assert (counts.found, counts.looked_back, counts.ended) == (0, 1, 0)


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
    assert first == 33
    assert len(office.pages.asked) == 4


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


def test_fifteen_hundred_that_are_due_are_all_sent() -> None:
    """Page by page; a sweep whose time is over leaves the rest to the next."""
    office = an_office()
    due(office, *(f"pool-{n}" for n in range(1500)))
    office.sweep()
    assert len(set(office.queue.names)) == len(office.queue.names) == 1500


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


class Stop(BaseException):
    """The process ends."""


@pytest.mark.parametrize("at", range(24))
def test_a_sweep_that_is_killed_anywhere_loses_nothing(at: int) -> None:
    """Each step in turn: the next sweep does the rest, and sends a run twice at most."""
    jobs = [row(f"job-{n}", NOON - HOUR + n * MINUTE) for n in range(3)]
    office = an_office(*jobs)
    due(office, "pool")
    steps = iter(range(10_000))

    def step() -> None:
        if next(steps) == at:
            raise Stop

    _stepping(office, step)
    with suppress(Stop):
        office.sweep()
    _stepping(office, lambda: None)
    office.now += QUARTER
    office.sweep()
    sent = office.queue.names
    assert set(sent) == {"job-0", "job-1", "job-2", "pool"}
    assert len(sent) <= 5


def _stepping(office: Office, step: Callable[[], None]) -> None:
    """Before and after each send, note and state."""
    for owner, name in (
        (office.queue, "send"),
        (office.notes, "note_sent"),
        (office.notes, "keep"),
    ):
        setattr(owner, name, _Stepping(partial(getattr(type(owner), name), owner), step))


@dataclass
class _Stepping:
    plain: Callable[..., None]
    step: Callable[[], None]

    def __call__(self, *args: object, **more: object) -> None:
        self.step()
        self.plain(*args, **more)
        self.step()


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
    for _ in range(8):
        before = len(office.pages.asked)
        office.sweep()
        tried.append(office.pages.asked[before][1].kind)
        office.now += QUARTER
    assert set(tried[:4]) == set(tried[4:]) == set(JobKind)
