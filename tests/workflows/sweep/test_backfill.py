"""What of the past is sent to the queue, and how fast."""

import random
from collections import deque
from datetime import timedelta
from typing import Any

import pytest

from infra.alarm_list import QUEUE_MAX_AGE_S
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import ListedJob, SentEvent, sort_for_audit
from sageaudit.errors import AwsError, NoCredentials, Throttled, Unavailable
from sageaudit.workflows.backfill import (
    BackfillStatus,
    Deployment,
    SendProgress,
    job_statuses,
    send_events,
)
from sageaudit.workflows.scan.accounts import list_jobs
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.memory_ledger import MemorySweepStore
from tests.fakes.paced_queue import PacedAuditQueue
from tests.fakes.quota_aws import NOW
from tests.fakes.quota_scan import PERIOD, QuotaScan, no_children
from tests.fakes.sweeps import DAY, HOUR, MINUTE, NOON, KnownRuns, key_of, row
from tests.fakes.virtual_time import VirtualTime

INSTALLED = NOON - 60 * DAY
OLD = INSTALLED - DAY


def deployed(**changes: Any) -> Deployment:
    """A stack of 60 days that audits one account and region."""
    fields: Any = {
        "history": KnownRuns(),
        "sweep_store": MemorySweepStore(),
        "account_regions": {(ACCOUNT, REGION)},
        "installed_at": INSTALLED,
    }
    return Deployment(**fields | changes)


@pytest.mark.parametrize(
    ("job", "standing"),
    [
        (row("a", OLD), BackfillStatus.MISSING),
        (row("a", INSTALLED - timedelta(seconds=1)), BackfillStatus.MISSING),
        (row("a", INSTALLED), BackfillStatus.MISSING),
        (row("a", NOON - 30 * DAY - HOUR), BackfillStatus.MISSING),
        (row("a", NOON - 30 * DAY - 59 * MINUTE), BackfillStatus.RECENT),
        (row("a", NOON - HOUR), BackfillStatus.RECENT),
        (row("a", None, created_at=OLD), BackfillStatus.RUNNING),
        (row("a", OLD, account="222233334444"), BackfillStatus.ELSEWHERE),
        (row("a", OLD, region="eu-west-1"), BackfillStatus.ELSEWHERE),
    ],
)
def test_only_what_nobody_is_told_of_is_sent(job: ListedJob, standing: BackfillStatus) -> None:
    """As `notify` decides it, with an hour for a clock that is ahead; no dead letter is made."""
    assert deployed().status(job, NOON) is standing


def test_what_is_audited_or_came_is_not_sent() -> None:
    """Also where its row cannot be read; `audit` leaves a note while it waits or fails."""
    job, stack = row("a", OLD), deployed()
    stack.sweep_store.record_event_sent(key_of(job), SentEvent(NOON, None))
    assert stack.status(job, NOON) is BackfillStatus.EVENT_ARRIVED
    stack.history.add_audits(job)  # type: ignore[attr-defined]
    assert stack.status(job, NOON) is BackfillStatus.AUDITED
    stack.history.unreadable.add(key_of(job))  # type: ignore[attr-defined]
    assert stack.status(job, NOON) is BackfillStatus.AUDITED


def past(count: int) -> list[ListedJob]:
    """Jobs of the past, in order."""
    return [row(f"job-{number:05}", OLD + number * MINUTE) for number in range(count)]


def sent(
    jobs: list[ListedJob], queue: PacedAuditQueue, time: VirtualTime, per_minute: int = 20
) -> SendProgress:
    """All of it; the last word."""
    *_, last = send_events(jobs, queue, per_minute=per_minute, sleep=time.sleep)
    return last


def test_it_keeps_its_pace_and_its_order() -> None:
    """Each job once, the oldest end first."""
    time, jobs = VirtualTime(), past(95)
    queue = PacedAuditQueue(time.clock, at_once=100)
    assert sent(jobs, queue, time, per_minute=30) == SendProgress(95)
    assert queue.names == [job.ref.name for job in jobs]
    assert time.now_s == 9 * 20


@pytest.mark.parametrize("error", [Throttled("busy"), Unavailable("away")])
def test_a_queue_that_does_not_answer_is_asked_again(error: AwsError) -> None:
    """For ten minutes; then it is an error."""
    time = VirtualTime()
    queue = PacedAuditQueue(time.clock, fails=[error] * 9)
    assert sent(past(3), queue, time) == SendProgress(3)
    queue.fails = [error] * 10
    with pytest.raises(type(error)):
        sent(past(3), queue, time)


def test_other_errors_and_refused_messages_are_said() -> None:
    """Expired credentials end it at once; what SQS does not take is not counted as sent."""
    time = VirtualTime()
    assert sent(
        past(12), PacedAuditQueue(time.clock, refuses=frozenset({1})), time
    ) == SendProgress(10, ("InternalError",) * 2)
    with pytest.raises(NoCredentials):
        sent(past(3), PacedAuditQueue(time.clock, fails=[NoCredentials("expired")]), time)


def test_stopped_anywhere_and_started_again_every_job_is_audited_and_none_twice() -> None:
    """Only HEADs say how far it came; what waits in the queue may be sent once more."""
    time, jobs, stack = VirtualTime(), past(60), deployed()
    rounds = 0
    while rounds < 60:
        rounds += 1
        queue = PacedAuditQueue(time.clock, fails=[])
        left = [
            job
            for job, what in job_statuses(jobs, stack, time, NOON)
            if what is BackfillStatus.MISSING
        ]
        if not left:
            break
        for done in send_events(left, queue, per_minute=600, sleep=time.sleep):
            if done.sent_count >= 10 * (1 + rounds % 3):
                break
        audited = {*queue.names[: -3 if rounds % 2 else None]}
        stack.history.add_audits(*(job for job in left if job.ref.name in audited))  # type: ignore[attr-defined]
    assert {key_of(job) for job in jobs} == set(stack.history.summaries)  # type: ignore[attr-defined]
    assert 3 < rounds < 10


def lives(seconds: float, per_minute: float, *, burst: int = 0) -> deque[float]:
    """When jobs of today end, by chance; `burst` of them in one minute after the second hour."""
    chance, at, moments = random.Random(7), 0.0, list[float]()
    while (at := at + chance.expovariate(per_minute / 60)) < seconds:
        moments.append(at)
    moments += [7_200 + 60 * chance.random() for _ in range(burst)]
    return deque(sorted(moments))


@pytest.mark.parametrize("burst", [0, 2_000])
def test_jobs_of_today_do_not_wait_for_the_past(burst: int) -> None:
    """10,000 jobs of the past beside six a minute, and a burst: the alarm of age stays quiet.

    Five audits at once take ten seconds each. A job of today waits a minute more than without.
    """
    time, alone = VirtualTime(), VirtualTime()
    ended = lives(40_000, 6, burst=burst)
    queue = PacedAuditQueue(time.clock, live=deque(ended))
    sent(past(10_000), queue, time)
    without = PacedAuditQueue(
        alone.clock, live=deque(ended_s for ended_s in ended if ended_s <= time.now_s)
    )
    alone.sleep(time.now_s)
    without.depth()
    pairs = zip(queue.waits_s["today"], without.waits_s["today"], strict=True)
    assert max(beside - by_itself for beside, by_itself in pairs) < 90
    assert max(queue.waits_s["today"] + queue.waits_s["past"]) < QUEUE_MAX_AGE_S["FinishedJobs"]
    assert 8.3 < time.now_s / 3_600 < (9.8 if burst else 8.4), "hours"


def test_ten_thousand_jobs_are_listed_and_looked_up_within_aws_rates() -> None:
    """Two lists a second, and two reads of the table a job, 32 at once of 20 ms each."""
    account = QuotaScan(10_000)

    class Slow(KnownRuns):
        def summary(self, key: JobKey) -> None:
            account.time.sleep(0.02)

    class SlowNotes(MemorySweepStore):
        def event_record(self, key: JobKey) -> None:
            account.time.sleep(0.02)

    listing = list_jobs(
        account.lists, no_children, (REGION,), [JobKind.TRAINING], PERIOD, account.time
    )
    listed_s = account.time.now_s
    stack = deployed(history=Slow(), sweep_store=SlowNotes(), installed_at=NOW + DAY)
    found = list(job_statuses(sort_for_audit(listing.jobs), stack, account.time, NOW))
    assert [what for _, what in found] == [BackfillStatus.MISSING] * 10_000
    assert not account.aws.throttled
    looked_up_s = account.time.now_s - listed_s
    assert (45 < listed_s < 55, 12 < looked_up_s < 15) == (True, True)
