"""Sends jobs that ended before the installation to the queue, at a limited rate.

A backfill stores no state. A run's HEAD item shows that it was audited. Its stored event shows that
an audit is waiting or failing. So a backfill can stop at any point and be started again. It sends
only runs that `notify` sends no message about.
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
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.domain.advice.totals import SAGEAUDIT_AUDIT_USD, SAGEAUDIT_WRITE_USD
from sageaudit.domain.alert.rule import age_suppression_reason
from sageaudit.domain.audit.record import AuditEntry, RecordOutcome, RunQuery
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.job import FINISHED, duration_text
from sageaudit.domain.sweep import ListedJob, Period, drop_abandoned_lists, make_event
from sageaudit.errors import BadHistory, BadUsage, Throttled, Unavailable
from sageaudit.output.text.links import HistoryLocation
from sageaudit.output.text.money import Figure
from sageaudit.output.text.words import count_text
from sageaudit.ports import History, PacedQueue, SweepStore, Workers
from sageaudit.structs import replace
from sageaudit.workflows.audit.reaudit import recheck_dependents
from sageaudit.workflows.audit.stored import read_earlier_runs
from sageaudit.workflows.redrive import WORK_QUEUE_OUTPUTS, LetterKind, read_queue_outputs
from sageaudit.workflows.scan.accounts import THREADS
from sageaudit.workflows.sweep.run import QUEUE_DELAY_S

_CONFIG = CONFIG.merge(Config(max_pool_connections=THREADS))
_METRIC_RETENTION = {63: "an hour", 15: "5 minutes"}
"""The finest period that CloudWatch still has after this many days."""
COPIES_PER_SECOND = 5
"""Audits copied from a file: one takes about eight DynamoDB requests in a row. Our estimate."""
BATCH_SIZE = 10
_POLL_INTERVAL_S = 15.0
_TRIES = 10
"""Minutes without an answer of the queue after which the backfill ends."""
_LOOKAHEAD = 500
_CLOCKS = timedelta(hours=1)
"""How far this computer's clock may be ahead of the clock of `notify`: our choice."""


class BackfillStatus(enum.StrEnum):
    """What a backfill finds about a past job."""

    MISSING = "missing"
    AUDITED = "audited"
    CAME = "came"
    """Its event arrived, and its audit is waiting or failing."""
    RECENT = "recent"
    """It ended recently, after the installation: the sweep sends it, and it may get a message."""
    RUNNING = "running"
    """It has not ended, or its audit in a history is of an unfinished or unauditable job."""
    UNREADABLE = "unreadable"
    ELSEWHERE = "elsewhere"
    """The deployment does not audit its account or region: its event would be a dead letter."""


class Deployment(Struct, frozen=True):
    """A deployment: its history, its sweep's store, and the accounts and regions it audits."""

    history: History
    sweep_store: SweepStore
    account_regions: Collection[tuple[str, str]]
    installed_at: datetime

    def status(self, job: ListedJob, now: datetime) -> BackfillStatus:
        """Returns the status of a listed job. Raises AwsError."""
        if not job.is_finished:
            return BackfillStatus.RUNNING
        if (job.ref.account, job.ref.region) not in self.account_regions:
            return BackfillStatus.ELSEWHERE
        return self.status_of_run(JobKey(job.ref.arn, job.created_at), job.last_changed_at, now)

    def status_of_run(self, key: JobKey, ended_at: datetime, now: datetime) -> BackfillStatus:
        """Returns the status of a run that ended. Raises AwsError."""
        if age_suppression_reason(ended_at, self.installed_at, now - _CLOCKS) is None:
            return BackfillStatus.RECENT
        try:
            audited = self.history.summary(key) is not None
        except BadHistory:  # an audit exists: the sweep reports that it cannot be read
            audited = True
        if audited:
            return BackfillStatus.AUDITED
        return (
            BackfillStatus.MISSING
            if self.sweep_store.event_record(key) is None
            else BackfillStatus.CAME
        )


def job_statuses(
    jobs: Sequence[ListedJob], deployed: Deployment, workers: Workers, now: datetime
) -> Iterator[tuple[ListedJob, BackfillStatus]]:
    """Yields each job with its status, in this order; reads several at a time."""
    for start in range(0, len(jobs), _LOOKAHEAD):
        part = jobs[start : start + _LOOKAHEAD]
        calls = [workers.submit(partial(deployed.status, job, now)) for job in part]
        yield from zip(part, (call.result() for call in calls), strict=True)


class SendProgress(Struct, frozen=True):
    """Events sent, SQS's reasons for refusals, and messages in the queue before its own."""

    sent: int = 0
    refusals: tuple[str, ...] = ()
    queued_before: int = 0


def send_events(
    jobs: Sequence[ListedJob],
    queue: PacedQueue,
    *,
    per_minute: int,
    sleep: Callable[[float], None],
) -> Iterator[SendProgress]:
    """Sends the jobs' events, ten together; yields after each batch, and while it waits.

    It waits while the queue has more visible messages than it sends in a minute. So an event of
    today waits behind at most a minute of past ones, and a burst of today's jobs goes first. Raises
    AwsError; jobs whose events were sent are audited.
    """
    done = SendProgress()
    for start in range(0, len(jobs), BATCH_SIZE):
        batch = jobs[start : start + BATCH_SIZE]
        if start:
            sleep(60 * BATCH_SIZE / per_minute)
        while (waiting := queue.depth().visible) > per_minute:
            yield replace(done, queued_before=waiting)
            sleep(_POLL_INTERVAL_S)
        bodies = [
            make_event(job.ref, job.status, job.created_at, job.last_changed_at) for job in batch
        ]
        refused = _send_batch(bodies, queue, sleep)
        done = SendProgress(
            done.sent + len(batch) - len(refused), (*done.refusals, *refused.values())
        )
        yield done


def _send_batch(
    bodies: Sequence[str], queue: PacedQueue, sleep: Callable[[float], None]
) -> dict[int, str]:
    """Sends a batch, again if it may not have been sent: duplicates are audited once."""
    for _ in range(_TRIES - 1):
        try:
            return queue.send_batch(bodies, delay_s=QUEUE_DELAY_S)
        except (Throttled, Unavailable):
            sleep(60)
    return queue.send_batch(bodies, delay_s=QUEUE_DELAY_S)


def iterate_oldest_first(history: History, period: Period) -> Iterator[AuditSummary]:
    """The runs that ended in the period, day by day."""
    days = (period.until - period.since).days + 1
    for day in (period.since + timedelta(days=number) for number in range(days)):
        yield from reversed([*history.runs(RunQuery.for_day(day))])


def copy_audits(
    heads: Iterator[AuditSummary],
    source: History,
    deployed: Deployment,
    now: Callable[[], datetime],
) -> Iterator[tuple[AuditSummary, BackfillStatus]]:
    """Records the audits of another history that are MISSING or CAME, in the order of `heads`.

    Their figures stay as they are. Yields each head with its status; UNREADABLE if its audit cannot
    be read. Raises AwsError.
    """
    for head in heads:
        if (head.account, head.region) not in deployed.account_regions:
            yield head, BackfillStatus.ELSEWHERE
            continue
        if head.status not in FINISHED or head.unauditable:
            yield head, BackfillStatus.RUNNING
            continue
        status = deployed.status_of_run(head.key, head.ended_at, now())
        if status in {BackfillStatus.MISSING, BackfillStatus.CAME}:
            try:
                status = _copy_audit(head, source, deployed.history, now())
            except BadHistory:
                status = BackfillStatus.UNREADABLE
        yield head, status


def _copy_audit(
    head: AuditSummary, source: History, table: History, now: datetime
) -> BackfillStatus:
    document = source.audit(head.key)
    if document is None:
        raise BadHistory(f"the history has a row of {head.job}, and no audit of it")
    entry = AuditEntry(
        key=head.key,
        last_modified_at=head.last_modified_at,
        document=document,
        family_version=head.family_version,
        detail=source.detail(head.key),
        run_summary=head,
        earlier_runs=None if head.rollup else read_earlier_runs(head, source),
    )
    recorded = table.record(entry)
    if recorded.summary is None or recorded.outcome is not RecordOutcome.RECORDED:
        return BackfillStatus.AUDITED
    if not head.rollup:
        recheck_dependents(recorded.summary, table, now=now)
    return BackfillStatus.MISSING


_STATUS_LABELS = {
    BackfillStatus.MISSING: "to send",
    BackfillStatus.AUDITED: "audited",
    BackfillStatus.CAME: "waiting or failing: their events came",
    BackfillStatus.RECENT: "not of the past: ended after the installation, within the last 30 days",
    BackfillStatus.RUNNING: "not ended",
    BackfillStatus.UNREADABLE: "that cannot be read",
    BackfillStatus.ELSEWHERE: "of accounts or regions that the stack does not audit",
}


class BackfillStack(Struct, frozen=True):
    """The parts of a deployed stack that a backfill needs."""

    deployed: Deployment
    queue: SqsQueue
    table: str
    history_location: HistoryLocation
    """The table, for commands that read it."""

    @property
    def regions(self) -> list[str]:
        """The regions that it audits."""
        return sorted({region for _, region in self.deployed.account_regions})


def find_stack(session: Any, name: str) -> BackfillStack:
    """Finds the stack in the session's region. Raises AwsError, or BadUsage before its first sweep.

    The first sweep stores when it was installed, which decides which jobs are of the past.
    """
    outputs = read_queue_outputs(
        session, name, "TableName", WORK_QUEUE_OUTPUTS[LetterKind.FINISHED]
    )
    table, region = outputs["TableName"], session.region_name
    dynamodb = client(session, "dynamodb", region, _CONFIG)
    notes = DynamoSweepStore(dynamodb, table)
    installed_at = notes.installed_at()
    places = {(row.account, row.region) for row in drop_abandoned_lists(notes.all_list_states())}
    if installed_at is None or not places:
        raise BadUsage(
            f"the stack {name} has not swept yet, so that messages about jobs of the past could be"
            " sent: wait 15 minutes, or see `sageaudit doctor --stack`"
        )
    queue = SqsQueue(
        client(session, "sqs", region), outputs[WORK_QUEUE_OUTPUTS[LetterKind.FINISHED]]
    )
    deployed = Deployment(DynamoHistory(dynamodb, table), notes, places, installed_at)
    return BackfillStack(deployed, queue, table, HistoryLocation.for_table(table, region))


def metrics_warning(period: Period, now: datetime) -> str | None:
    """A warning about metrics that CloudWatch no longer has; None if it has all."""
    for days, finest in _METRIC_RETENTION.items():
        first = (now - timedelta(days=days)).date()
        if period.since < first:
            return (
                f"jobs that began before {first} have metrics of {finest} at best: CloudWatch keeps"
                " finer ones no longer, so less of short jobs can be judged"
            )
    return None


def counts_line(standings: Counter[BackfillStatus], done_label: str = "") -> str:
    """`12 jobs: 10 to send, 2 audited`; `done_label` replaces "to send"."""
    words = {**_STATUS_LABELS, BackfillStatus.MISSING: done_label} if done_label else _STATUS_LABELS
    parts = [f"{standings[status]:,} {word}" for status, word in words.items() if standings[status]]
    return ": ".join([count_text(standings.total(), "job"), *filter(None, [", ".join(parts)])])


def cost_estimate_line(jobs: int, per_minute: int) -> str:
    """A sentence on what sending this many jobs costs, and how long it takes."""
    return (
        f"this backfill costs {_usd(SAGEAUDIT_AUDIT_USD * jobs)}, by list prices of 2025 for jobs"
        " of four"
        " hosts (docs/before-you-deploy.md), with a year of storage; it takes"
        f" {_time(60 * jobs / per_minute)}, at {per_minute:,} jobs a minute"
    )


def copy_estimate_line(jobs: int) -> str:
    """The same sentence for audits copied from a file, which are only written."""
    return (
        f"this costs {_usd(SAGEAUDIT_WRITE_USD * jobs)}, by list prices of 2025 for DynamoDB,"
        " with a year"
        f" of storage; it takes about {_time(jobs / COPIES_PER_SECOND)}"
    )


def _usd(amount: Decimal) -> str:
    return str(Figure(amount, estimated=True))


def _time(seconds: float) -> str:
    return duration_text(Decimal(max(round(seconds), 1)))
