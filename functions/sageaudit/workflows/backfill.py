"""The past: jobs that ended before the installation are sent to the queue, at a pace.

Nothing is kept of a backfill. A run's HEAD says that it is audited, and its note that an event of
it came, whose audit waits or fails. So it may stop at any point and be started again. Only runs are
sent of which `notify` tells nobody. The lines below say what it finds deployed, and would do.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from botocore.config import Config
from msgspec import Struct

from sageaudit.adapters.aws.clients import CONFIG, client
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepNotes
from sageaudit.domain.advice.totals import OWN_AUDIT_USD, OWN_WRITE_USD
from sageaudit.domain.alert.rule import why_too_old
from sageaudit.domain.audit.record import Entry, RunQuery, Verdict
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.job import FINISHED, duration
from sageaudit.domain.sweep import Listed, Period, event_of, still_swept
from sageaudit.errors import BadHistory, BadUsage, Throttled, Unavailable
from sageaudit.output.text.links import HistoryPlace
from sageaudit.output.text.money import Figure
from sageaudit.output.text.words import counted
from sageaudit.ports import History, PacedQueue, SweepNotes, Workers
from sageaudit.structs import replace
from sageaudit.workflows.audit.reaudit import recheck_dependents
from sageaudit.workflows.audit.stored import earlier_heads
from sageaudit.workflows.redrive import WORK, LetterKind, outputs_of
from sageaudit.workflows.scan.accounts import THREADS
from sageaudit.workflows.sweep.run import AT_ONCE_S

_CONFIG = CONFIG.merge(Config(max_pool_connections=THREADS))
_KEPT = {63: "an hour", 15: "5 minutes"}
"""After so many days CloudWatch has only values of these periods."""
BROUGHT_A_SECOND = 5
"""Audits of a file: one takes about eight requests to DynamoDB after each other. Our estimate."""
BATCH = 10
_LOOK_AGAIN_S = 15.0
_TRIES = 10
"""Minutes without an answer of the queue after which it ends."""
_ASKED_AHEAD = 500
_CLOCKS = timedelta(hours=1)
"""How much this computer's clock may be ahead of those that decide about messages: our choice."""


class Standing(enum.StrEnum):
    """What is to be done about a job of the past."""

    MISSING = "missing"
    AUDITED = "audited"
    CAME = "came"
    """Its event came, and its audit waits or fails."""
    RECENT = "recent"
    """It ended after the installation, and lately: the sweep sends it, and it may be told of."""
    RUNNING = "running"
    """It has not ended, or of a history: its audit is of a job that had not, or says nothing."""
    UNREADABLE = "unreadable"
    ELSEWHERE = "elsewhere"
    """The deployment does not audit its account or region: its event would be a dead letter."""


class Deployed(Struct, frozen=True):
    """What a deployment has and audits. `places` are accounts and regions."""

    history: History
    notes: SweepNotes
    places: Collection[tuple[str, str]]
    installed_at: datetime

    def standing(self, job: Listed, now: datetime) -> Standing:
        """Of one listed job. Raises AwsError."""
        if not job.finished:
            return Standing.RUNNING
        if (job.ref.account, job.ref.region) not in self.places:
            return Standing.ELSEWHERE
        return self.of(JobKey(job.ref.arn, job.created_at), job.last_at, now)

    def of(self, key: JobKey, ended_at: datetime, now: datetime) -> Standing:
        """Of a run that ended. Raises AwsError."""
        if why_too_old(ended_at, self.installed_at, now - _CLOCKS) is None:
            return Standing.RECENT
        try:
            audited = self.history.head(key) is not None
        except BadHistory:  # there is one: the sweep says that it cannot be read
            audited = True
        if audited:
            return Standing.AUDITED
        return Standing.MISSING if self.notes.sent(key) is None else Standing.CAME


def standings(
    jobs: Sequence[Listed], deployed: Deployed, workers: Workers, now: datetime
) -> Iterator[tuple[Listed, Standing]]:
    """Each job with its standing, in this order; some are asked at the same time."""
    for start in range(0, len(jobs), _ASKED_AHEAD):
        part = jobs[start : start + _ASKED_AHEAD]
        asked = [workers.submit(partial(deployed.standing, job, now)) for job in part]
        yield from zip(part, (one.result() for one in asked), strict=True)


class Sent(Struct, frozen=True):
    """How far it is. `refused` by SQS, for these reasons; `waiting` messages before its own."""

    sent: int = 0
    refused: tuple[str, ...] = ()
    waiting: int = 0


def send(
    jobs: Sequence[Listed],
    queue: PacedQueue,
    *,
    per_minute: int,
    sleep: Callable[[float], None],
) -> Iterator[Sent]:
    """Sends the jobs' events, ten together; yields after each batch, and while it waits.

    It waits while more messages are visible in the queue than it sends in a minute: so an event of
    today waits behind a minute of the past at most, and a burst of today's jobs goes first. Raises
    AwsError; what was sent is audited.
    """
    done = Sent()
    for start in range(0, len(jobs), BATCH):
        batch = jobs[start : start + BATCH]
        if start:
            sleep(60 * BATCH / per_minute)
        while (waiting := queue.depth().visible) > per_minute:
            yield replace(done, waiting=waiting)
            sleep(_LOOK_AGAIN_S)
        bodies = [event_of(job.ref, job.status, job.created_at, job.last_at) for job in batch]
        refused = _sent(bodies, queue, sleep)
        done = Sent(done.sent + len(batch) - len(refused), (*done.refused, *refused.values()))
        yield done


def _sent(
    bodies: Sequence[str], queue: PacedQueue, sleep: Callable[[float], None]
) -> dict[int, str]:
    """Sends a batch; a second time where nobody knows whether it was: that is audited once."""
    for _ in range(_TRIES - 1):
        try:
            return queue.send_all(bodies, delay_s=AT_ONCE_S)
        except (Throttled, Unavailable):
            sleep(60)
    return queue.send_all(bodies, delay_s=AT_ONCE_S)


def oldest_first(history: History, period: Period) -> Iterator[AuditSummary]:
    """The runs that ended in the period, day by day."""
    days = (period.until - period.since).days + 1
    for day in (period.since + timedelta(days=number) for number in range(days)):
        yield from reversed([*history.runs(RunQuery.of_day(day))])


def bring(
    heads: Iterator[AuditSummary], source: History, deployed: Deployed, now: Callable[[], datetime]
) -> Iterator[tuple[AuditSummary, Standing]]:
    """Records the newest audits of another history that are MISSING, the oldest end first.

    Each is judged as it was there. Yields each head with what was done; one whose audit cannot be
    read is UNREADABLE. Raises AwsError.
    """
    for head in heads:
        if (head.account, head.region) not in deployed.places:
            yield head, Standing.ELSEWHERE
            continue
        if head.status not in FINISHED or head.unauditable:
            yield head, Standing.RUNNING
            continue
        standing = deployed.of(head.key, head.ended_at, now())
        if standing in {Standing.MISSING, Standing.CAME}:
            try:
                standing = _bring(head, source, deployed.history, now())
            except BadHistory:
                standing = Standing.UNREADABLE
        yield head, standing


def _bring(head: AuditSummary, source: History, table: History, now: datetime) -> Standing:
    document = source.audit(head.key)
    if document is None:
        raise BadHistory(f"the history has a row of {head.job}, and no audit of it")
    entry = Entry(
        key=head.key,
        last_modified_at=head.last_modified_at,
        document=document,
        family_version=head.family_version,
        detail=source.detail(head.key),
        run=head,
        compared=None if head.rollup else earlier_heads(head, source),
    )
    recorded = table.record(entry)
    if recorded.head is None or recorded.verdict is not Verdict.RECORDED:
        return Standing.AUDITED
    if not head.rollup:
        recheck_dependents(recorded.head, table, now=now)
    return Standing.MISSING


_WORDS = {
    Standing.MISSING: "to send",
    Standing.AUDITED: "audited",
    Standing.CAME: "waiting or failing: their events came",
    Standing.RECENT: "not of the past: ended after the installation, within the last 30 days",
    Standing.RUNNING: "not ended",
    Standing.UNREADABLE: "that cannot be read",
    Standing.ELSEWHERE: "of accounts or regions that the stack does not audit",
}


class Stack(Struct, frozen=True):
    """A deployed stack, as a backfill needs it."""

    deployed: Deployed
    queue: SqsQueue
    table: str
    place: HistoryPlace
    """The table, for commands that ask it."""

    @property
    def regions(self) -> list[str]:
        """Those that it audits."""
        return sorted({region for _, region in self.deployed.places})


def find_stack(session: Any, name: str) -> Stack:
    """The stack in the session's region. Raises BadUsage where it has not swept yet, or AwsError.

    Before its first sweep nobody knows when it was installed, and so which jobs are of the past.
    """
    outputs = outputs_of(session, name, "TableName", WORK[LetterKind.FINISHED])
    table, region = outputs["TableName"], session.region_name
    dynamodb = client(session, "dynamodb", region, _CONFIG)
    notes = DynamoSweepNotes(dynamodb, table)
    installed_at = notes.installed_at()
    places = {(one.account, one.region) for one in still_swept(notes.lists())}
    if installed_at is None or not places:
        raise BadUsage(
            f"the stack {name} has not swept yet, so that messages about jobs of the past could be"
            " sent: wait 15 minutes, or see `sageaudit doctor --stack`"
        )
    queue = SqsQueue(client(session, "sqs", region), outputs[WORK[LetterKind.FINISHED]])
    deployed = Deployed(DynamoHistory(dynamodb, table), notes, places, installed_at)
    return Stack(deployed, queue, table, HistoryPlace.of_table(table, region))


def metrics_line(period: Period, now: datetime) -> str | None:
    """What CloudWatch does not have any more of so old jobs; None where it has all."""
    for days, kept in _KEPT.items():
        first = (now - timedelta(days=days)).date()
        if period.since < first:
            return (
                f"jobs that began before {first} have metrics of {kept} at best: CloudWatch keeps"
                " finer ones no longer, so less of short jobs can be judged"
            )
    return None


def counts_line(standings: Counter[Standing], done: str = "") -> str:
    """`12 jobs: 10 to send, 2 audited`; `done` is said of those that were to send."""
    words = {**_WORDS, Standing.MISSING: done} if done else _WORDS
    parts = [f"{standings[one]:,} {word}" for one, word in words.items() if standings[one]]
    return ": ".join([counted(standings.total(), "job"), *filter(None, [", ".join(parts)])])


def cost_line(jobs: int, per_minute: int) -> str:
    """What sending so many jobs costs, and how long it takes."""
    return (
        f"this backfill costs {_usd(OWN_AUDIT_USD * jobs)}, by list prices of 2025 for jobs of four"
        " hosts (docs/before-you-deploy.md), with a year of storage; it takes"
        f" {_time(60 * jobs / per_minute)}, at {per_minute:,} jobs a minute"
    )


def bringing_line(jobs: int) -> str:
    """The same for audits of a file, which are only written."""
    return (
        f"this costs {_usd(OWN_WRITE_USD * jobs)}, by list prices of 2025 for DynamoDB, with a year"
        f" of storage; it takes about {_time(jobs / BROUGHT_A_SECOND)}"
    )


def _usd(amount: Decimal) -> str:
    return str(Figure(amount, estimated=True))


def _time(seconds: float) -> str:
    return duration(Decimal(max(round(seconds), 1)))
