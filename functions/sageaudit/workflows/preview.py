"""Previews a job's message or the weekly digest. It decides like Lambda, but writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Self

from msgspec import Struct

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.adapters.history.opened import HistorySource, TableOverlay
from sageaudit.domain.advice.totals import Digest
from sageaudit.domain.alert.alert import Alert, ChannelHour, PastAlerts
from sageaudit.domain.alert.rule import MAX_RUN_AGE
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route
from sageaudit.errors import BadUsage, JobNotFound, UnreadableItem
from sageaudit.output.text.card import MessageCard, Payload
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation
from sageaudit.output.text.words import parse_time
from sageaudit.ports import History
from sageaudit.queries.names import JobQuery, find_job
from sageaudit.workflows import digest as weekly
from sageaudit.workflows.audit.stored import read_audit
from sageaudit.workflows.notify import Notification, NotifyDependencies, notify
from sageaudit.workflows.recordings.run import audit_recording


def preview_message(
    source: HistorySource,
    policy: Policy,
    now: datetime,
    *,
    recording: Path | None,
    job: str | None,
) -> Notification:
    """Returns what `notify` would send about a job of the history, or about a recorded job.

    Raises JobNotFound, AmbiguousName, or BadRecording.
    """
    history = TableOverlay(source.history)
    if recording is not None:
        summary = _audit_recording(recording, policy, history, source)
    else:
        summary = find_job(source.history, JobQuery(job or ""))
    return _notification(summary, history, source, policy, now)


def _audit_recording(
    path: Path, policy: Policy, history: History, source: HistorySource
) -> AuditSummary:
    document = audit_recording(path, policy, history, is_history_persistent=bool(source.name))
    job = document["job"]
    created_at = parse_time(job["created_at"] or job["started_at"])
    summary = history.summary(JobKey(job["arn"], created_at)) if job["arn"] and created_at else None
    if summary is None:
        raise BadUsage(f"{path}: a message needs the job's ARN and its creation time")
    return summary


def _notification(
    summary: AuditSummary, history: History, source: HistorySource, policy: Policy, now: datetime
) -> Notification:
    document = read_audit(history, summary.key, summary.version)
    if document is None:
        raise JobNotFound(f"the stored audit of {summary.job} cannot be read: audit it again")
    deps = NotifyDependencies(
        history=history,
        ledger=_ReadOnlyLedger.for_source(source),
        decisions=source.decisions,
        policy=policy,
        writers=dict.fromkeys(policy.channels, _write_nothing),
        history_location=history_location(source),
    )
    now = summary.ended_at if summary.ended_at <= now - MAX_RUN_AGE else now
    return notify(summary.key, summary.version, document, deps, now=now)


def _write_nothing(card: MessageCard, mentions: Mapping[str, str]) -> Payload:
    # The caller writes the card for the channel that is shown.
    del card, mentions
    return {}


class DigestPreview(Struct, frozen=True):
    """The digests of the newest full week, by the number of their route; 0 means all jobs.

    `routes_without_digest`: for each route without a digest, a sentence with the reason.
    """

    last_day: date
    is_written: bool
    digests: Mapping[int, Digest]
    routes: Mapping[int, Route | None]
    channels: Mapping[int, Sequence[str]]
    routes_without_digest: Sequence[str]


def preview_digests(source: HistorySource, policy: Policy, now: datetime) -> DigestPreview | str:
    """Returns the digests of the newest full week, or why the policy has none."""
    if no_digest_reason := weekly.no_digest_reason(policy):
        return no_digest_reason
    ledger = _ReadOnlyLedger.for_source(source)
    registry = None
    if source.is_table:
        registry = DynamoMemberRegistry(client(source.session, "dynamodb"), source.name)
    deps = weekly.DigestDependencies(
        source.history,
        ledger,
        source.decisions,
        policy,
        {},
        registry=registry,
        installed_at=source.installed_at,
        is_deployment=source.is_table,
    )
    week = weekly.last_finished_week(policy, now)
    digests = weekly.read_digests(deps, week, source.decisions.decisions(), now)
    routes, routes_without_digest = weekly.routes_with_digest(policy)
    channels = {
        number: route.channels if route else policy.routes.default
        for number, route in routes.items()
    }
    return DigestPreview(
        week[1], ledger.has_digest(week[1]), digests, routes, channels, routes_without_digest
    )


def history_location(source: HistorySource) -> HistoryLocation:
    """Returns the history's location for commands that work in any folder."""
    if source.is_table:
        return HistoryLocation.for_table(source.name, source.session.region_name)
    is_default = not source.name or source.name == str(histories.default_path())
    return DEFAULT_HISTORY if is_default else HistoryLocation(("--history", source.name))


class _ReadOnlyLedger(Struct, frozen=True):
    """Reads sent alerts from a table, and writes nothing. A file has none: `table` is None."""

    table: DynamoAlertLedger | None

    @classmethod
    def for_source(cls, source: HistorySource) -> Self:
        """Returns the ledger in the source's table."""
        if not source.is_table:
            return cls(None)
        return cls(DynamoAlertLedger(client(source.session, "dynamodb"), source.name))

    def past_alerts(self, key: JobKey, subject: str) -> PastAlerts:
        if self.table is None:
            return PastAlerts(keys.job_pk(key), subject)
        return self.table.past_alerts(key, subject)

    def alerts(self, subject: str) -> Sequence[Alert]:
        return self.table.alerts(subject) if self.table else ()

    def unreadable_items(self) -> tuple[UnreadableItem, ...]:
        return self.table.unreadable_items() if self.table else ()

    def has_digest(self, last_day: date) -> bool:
        return bool(self.table and self.table.has_digest(last_day))

    def has_job_line(self, key: JobKey) -> bool:
        """Returns False, so that the preview always shows the line about the job."""
        del key
        return False

    def channel_hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """Returns an hour without messages, so that the preview holds no message."""
        return ChannelHour(channel, began_at)

    def write_alert(self, *_: object, **__: object) -> bool:
        return True

    write_digest = write_alert

    def notice(self, pk: str, sk: str) -> tuple[str, str] | None:
        del pk, sk
        return None
