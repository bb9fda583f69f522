"""Sends jobs that ended before the installation to the queue, at a limited rate.

A backfill can stop at any point and be started again, since it stores no state. A run's stored
summary shows that it was audited. Its event record shows that its audit is waiting or failing.
`notify` sends no message about these runs.
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
from sageaudit.domain.sweep import (
    ListedJob,
    Period,
    drop_abandoned_lists,
    list_states,
    make_event,
)
from sageaudit.errors import BadUsage, Throttled, Unavailable, UnreadableItem
from sageaudit.output.text.links import HistoryLocation
from sageaudit.output.text.money import Figure
from sageaudit.output.text.words import count_text
from sageaudit.ports import History, PacedQueue, SweepStore, Workers
from sageaudit.structs import replace
from sageaudit.workflows.audit.reaudit import recheck_dependents
from sageaudit.workflows.audit.stored import read_earlier_runs
from sageaudit.workflows.redrive import WORK_QUEUE_OUTPUTS, LetterKind, read_queue_outputs
from sageaudit.workflows.scan.accounts import THREADS
from sageaudit.workflows.sweep.lists import QUEUE_DELAY_S

_CONFIG = CONFIG.merge(Config(max_pool_connections=THREADS))
_METRIC_RETENTION = {63: "an hour", 15: "5 minutes"}
"""The shortest period of metrics that CloudWatch has after this many days."""
COPIES_PER_SECOND = 5
"""Audits that are copied from a file per second (our estimate).

Each makes about eight consecutive DynamoDB requests.
"""
BATCH_SIZE = 10
_POLL_INTERVAL_S = 15.0
_TRIES = 10
"""How often a batch is sent if the queue does not answer, with pauses of a minute."""
_LOOKAHEAD = 500
_CLOCK_TOLERANCE = timedelta(hours=1)
"""How far this computer's clock may be ahead of the clock of `notify` (our choice)."""


class BackfillStatus(enum.StrEnum):
    """A past job's status in a backfill."""

    MISSING = "missing"
    AUDITED = "audited"
    EVENT_ARRIVED = "event_arrived"
    """The job's event arrived, and its audit is waiting or failing."""
    RECENT = "recent"
    """The job ended recently, after the installation. The sweep sends its event, and a message may
    follow.
    """
    RUNNING = "running"
    """The job has not ended, or the source history's audit is unfinished or unauditable."""
    UNREADABLE = "unreadable"
    ELSEWHERE = "elsewhere"
    """The deployment does not audit the job's account or region. Its event would be a
    dead letter.
    """


class Deployment(Struct, frozen=True):
    """A deployment: its history, its sweep's store, and which accounts and regions it audits."""

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
        if age_suppression_reason(ended_at, self.installed_at, now - _CLOCK_TOLERANCE) is None:
            return BackfillStatus.RECENT
        try:
            is_audited = self.history.summary(key) is not None
        except UnreadableItem:  # an audit exists: the sweep reports that it cannot be read
            is_audited = True
        if is_audited:
            return BackfillStatus.AUDITED
        return (
            BackfillStatus.MISSING
            if self.sweep_store.event_record(key) is None
            else BackfillStatus.EVENT_ARRIVED
        )


def job_statuses(
    jobs: Sequence[ListedJob], deployment: Deployment, workers: Workers, now: datetime
) -> Iterator[tuple[ListedJob, BackfillStatus]]:
    """Yields each job with its status, in the order of `jobs`. Reads several jobs at a time."""
    for start in range(0, len(jobs), _LOOKAHEAD):
        batch = jobs[start : start + _LOOKAHEAD]
        calls = [workers.submit(partial(deployment.status, job, now)) for job in batch]
        yield from zip(batch, (call.result() for call in calls), strict=True)


class SendProgress(Struct, frozen=True):
    """The progress of a backfill.

    `refusals` are the queue's reasons for refused events. `queued_before` is the number of messages
    in the queue while the next batch waits; 0 if it does not wait.
    """

    sent_count: int = 0
    refusals: tuple[str, ...] = ()
    queued_before: int = 0


def send_events(
    jobs: Sequence[ListedJob],
    queue: PacedQueue,
    *,
    per_minute: int,
    sleep: Callable[[float], None],
) -> Iterator[SendProgress]:
    """Sends the jobs' events in batches of ten. Yields the progress after each batch and while
    waiting.

    A batch waits while the queue has more than `per_minute` visible messages. So new events are
    delayed by at most a minute. Raises AwsError; events already sent are audited.
    """
    progress = SendProgress()
    for start in range(0, len(jobs), BATCH_SIZE):
        batch = jobs[start : start + BATCH_SIZE]
        if start:
            sleep(60 * BATCH_SIZE / per_minute)
        while (queued_count := queue.depth().visible) > per_minute:
            yield replace(progress, queued_before=queued_count)
            sleep(_POLL_INTERVAL_S)
        bodies = [
            make_event(job.ref, job.status, job.created_at, job.last_changed_at) for job in batch
        ]
        refusals = _send_batch(bodies, queue, sleep)
        progress = SendProgress(
            progress.sent_count + len(batch) - len(refusals),
            (*progress.refusals, *refusals.values()),
        )
        yield progress


def _send_batch(
    bodies: Sequence[str], queue: PacedQueue, sleep: Callable[[float], None]
) -> dict[int, str]:
    """Repeats a batch that SQS may not have received, since duplicates are audited once.

    Returns the refusals by index.
    """
    for _ in range(_TRIES - 1):
        try:
            return queue.send_batch(bodies, delay_s=QUEUE_DELAY_S)
        except (Throttled, Unavailable):
            sleep(60)
    return queue.send_batch(bodies, delay_s=QUEUE_DELAY_S)


def iterate_oldest_first(history: History, period: Period) -> Iterator[AuditSummary]:
    """Yields the runs that ended in the period, oldest first."""
    days = (period.until - period.since).days + 1
    for day in (period.since + timedelta(days=number) for number in range(days)):
        yield from reversed([*history.runs(RunQuery.for_day(day))])


def copy_audits(
    summaries: Iterator[AuditSummary],
    source: History,
    deployment: Deployment,
    now: Callable[[], datetime],
) -> Iterator[tuple[AuditSummary, BackfillStatus]]:
    """Copies the audits of `summaries` that are MISSING or EVENT_ARRIVED, with unchanged figures.

    `source` is the history with these audits. Yields each summary with its status. The status is
    UNREADABLE if the audit cannot be read. Raises AwsError.
    """
    for summary in summaries:
        if (summary.account, summary.region) not in deployment.account_regions:
            yield summary, BackfillStatus.ELSEWHERE
            continue
        if summary.status not in FINISHED or summary.unauditable:
            yield summary, BackfillStatus.RUNNING
            continue
        status = deployment.status_of_run(summary.key, summary.ended_at, now())
        if status in {BackfillStatus.MISSING, BackfillStatus.EVENT_ARRIVED}:
            try:
                status = _copy_audit(summary, source, deployment.history, now())
            except UnreadableItem:
                status = BackfillStatus.UNREADABLE
        yield summary, status


def _copy_audit(
    summary: AuditSummary, source: History, history: History, now: datetime
) -> BackfillStatus:
    document = source.audit(summary.key)
    if document is None:
        raise UnreadableItem(summary.key.arn, "is in a list of the history, but has no audit")
    entry = AuditEntry(
        key=summary.key,
        last_modified_at=summary.last_modified_at,
        document=document,
        family_version=summary.family_version,
        detail=source.detail(summary.key),
        run_summary=summary,
        earlier_runs=None if summary.rollup else read_earlier_runs(summary, source),
    )
    recorded = history.record(entry)
    if recorded.summary is None or recorded.outcome is not RecordOutcome.RECORDED:
        return BackfillStatus.AUDITED
    if not summary.rollup:
        recheck_dependents(recorded.summary, history, now=now)
    return BackfillStatus.MISSING


_STATUS_LABELS = {
    BackfillStatus.MISSING: "to send",
    BackfillStatus.AUDITED: "audited",
    BackfillStatus.EVENT_ARRIVED: "waiting or failing: their events arrived",
    BackfillStatus.RECENT: "too recent: ended after the installation, within the last 30 days",
    BackfillStatus.RUNNING: "not ended",
    BackfillStatus.UNREADABLE: "that cannot be read",
    BackfillStatus.ELSEWHERE: "of accounts or regions that the stack does not audit",
}


class BackfillStack(Struct, frozen=True):
    """The parts of a deployed stack that a backfill needs."""

    deployment: Deployment
    queue: SqsQueue
    table: str
    history_location: HistoryLocation
    """The table's name and region, for commands that read the table."""

    @property
    def regions(self) -> list[str]:
        """The regions that the stack audits."""
        return sorted({region for _, region in self.deployment.account_regions})


def find_stack(session: Any, name: str) -> BackfillStack:
    """Returns the parts of the stack `name` in the session's region.

    Raises AwsError. Raises BadUsage before the stack's first sweep, which stores the time of the
    installation.
    """
    outputs = read_queue_outputs(
        session, name, "TableName", WORK_QUEUE_OUTPUTS[LetterKind.FINISHED]
    )
    table, region = outputs["TableName"], session.region_name
    dynamodb = client(session, "dynamodb", region, _CONFIG)
    sweep_store = DynamoSweepStore(dynamodb, table)
    installed_at = sweep_store.installed_at()
    account_regions = {
        (job_list.account, job_list.region)
        for job_list in drop_abandoned_lists(list_states(sweep_store.swept_regions()))
    }
    if installed_at is None or not account_regions:
        raise BadUsage(
            f"the stack {name} has not swept yet, so messages about past jobs could be"
            " sent: wait 15 minutes, or see `sageaudit doctor --stack`"
        )
    queue = SqsQueue(
        client(session, "sqs", region), outputs[WORK_QUEUE_OUTPUTS[LetterKind.FINISHED]]
    )
    deployment = Deployment(
        DynamoHistory(dynamodb, table), sweep_store, account_regions, installed_at
    )
    return BackfillStack(deployment, queue, table, HistoryLocation.for_table(table, region))


def metrics_warning(period: Period, now: datetime) -> str | None:
    """Returns a warning about metrics that CloudWatch has deleted; None if it still has all."""
    for days, shortest_period in _METRIC_RETENTION.items():
        first_day = (now - timedelta(days=days)).date()
        if period.since < first_day:
            return (
                f"jobs that began before {first_day} have metrics with a period of"
                f" {shortest_period} at best: CloudWatch has deleted finer ones, so fewer"
                " short jobs can be judged"
            )
    return None


def counts_line(status_counts: Counter[BackfillStatus], done_label: str = "") -> str:
    """Returns a line such as `12 jobs: 10 to send, 2 audited`. `done_label` replaces "to send"."""
    labels = (
        {**_STATUS_LABELS, BackfillStatus.MISSING: done_label} if done_label else _STATUS_LABELS
    )
    parts = [
        f"{status_counts[status]:,} {label}"
        for status, label in labels.items()
        if status_counts[status]
    ]
    return ": ".join([count_text(status_counts.total(), "job"), *filter(None, [", ".join(parts)])])


def cost_estimate_line(jobs: int, per_minute: int) -> str:
    """Returns a sentence on the cost and duration of sending this many jobs."""
    return (
        f"this backfill costs {_usd_text(SAGEAUDIT_AUDIT_USD * jobs)}, by list prices of 2025"
        " for jobs of four hosts (docs/before-you-deploy.md), with a year of storage; it takes"
        f" {_duration_text(60 * jobs / per_minute)}, at {per_minute:,} jobs a minute"
    )


def copy_estimate_line(jobs: int) -> str:
    """Returns a sentence on the cost and duration of copying this many audits from a file."""
    return (
        f"this costs {_usd_text(SAGEAUDIT_WRITE_USD * jobs)}, by list prices of 2025 for DynamoDB,"
        " with a year"
        f" of storage; it takes about {_duration_text(jobs / COPIES_PER_SECOND)}"
    )


def _usd_text(amount: Decimal) -> str:
    return str(Figure(amount, estimated=True))


def _duration_text(seconds: float) -> str:
    return duration_text(Decimal(max(round(seconds), 1)))
