"""What a job's message or the weekly digest would be: decided as on Lambda, and never written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

from msgspec import Struct

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.opened import BesideTable, HistorySource
from sageaudit.domain.advice.totals import Digest
from sageaudit.domain.alert.alert import Alert, ChannelHour, PastAlerts
from sageaudit.domain.alert.rule import LOOK_BACK
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route
from sageaudit.errors import BadRecording, BadUsage, JobNotFound
from sageaudit.output.text.card import MessageCard, Payload
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace
from sageaudit.output.text.words import time_of
from sageaudit.ports import History
from sageaudit.queries.names import Wanted, find
from sageaudit.workflows import digest as weekly
from sageaudit.workflows.audit.stored import whole_audit
from sageaudit.workflows.notify import Notification, NotifyDependencies, notify
from sageaudit.workflows.recordings.run import audit_recordings


def preview_message(
    source: HistorySource,
    policy: Policy,
    now: datetime,
    *,
    recording: Path | None,
    job: str | None,
) -> Notification:
    """What `notify` would do about a job of the history, or a recorded one beside it.

    Raises JobNotFound, AmbiguousName, or BadRecording.
    """
    history = BesideTable(source.history)
    if recording is not None:
        head = _recorded(recording, policy, history, source)
    else:
        head = find(source.history, Wanted(job or ""))
    return _notification(head, history, source, policy, now)


def _recorded(path: Path, policy: Policy, history: History, source: HistorySource) -> AuditSummary:
    """The head of a recorded run, which is audited beside the history."""
    [audited] = audit_recordings([path], policy, history, lasts=bool(source.name))
    if isinstance(audited, BadRecording):
        raise audited
    job = audited["job"]
    created_at = time_of(job["created_at"] or job["started_at"])
    head = history.head(JobKey(job["arn"], created_at)) if job["arn"] and created_at else None
    if head is None:
        raise BadUsage(f"{path}: a message needs the job's ARN and its time of creation")
    return head


def _notification(
    head: AuditSummary, history: History, source: HistorySource, policy: Policy, now: datetime
) -> Notification:
    """What `notify` would do about the run, which is not written."""
    document = whole_audit(history, head.key, head.version)
    if document is None:
        raise JobNotFound(f"the stored audit of {head.job} cannot be read: audit it again")
    deps = NotifyDependencies(
        history=history,
        ledger=_Previewed(source),
        decisions=source.decisions,
        policy=policy,
        writers=dict.fromkeys(policy.channels, _write_nothing),
        place=place_of(source),
    )
    now = head.ended_at if head.ended_at <= now - LOOK_BACK else now
    return notify(head.key, head.version, document, deps, now=now)


def _write_nothing(card: MessageCard, mentions: Mapping[str, str]) -> Payload:
    """No payload: the card is written for the one channel that is shown."""
    del card, mentions
    return {}


class DigestPreview(Struct, frozen=True):
    """The digests of the newest week that is over, by the number of their route; 0 is all jobs.

    `to`: the channels of each. `left_out`: why a route gets none.
    """

    last_day: date
    is_written: bool
    digests: Mapping[int, Digest]
    routes: Mapping[int, Route | None]
    to: Mapping[int, Sequence[str]]
    left_out: Sequence[str]


def preview_digests(source: HistorySource, policy: Policy, now: datetime) -> DigestPreview | str:
    """The week's digests, or why the policy has none."""
    if never := weekly.why_no_digest(policy):
        return never
    ledger = _Previewed(source)
    deps = weekly.DigestDependencies(source.history, ledger, source.decisions, policy, {})
    week = weekly.week_of(policy, now)
    found = weekly.read_digests(deps, week, source.decisions.decisions(), now)
    routes, left_out = weekly.digest_routes(policy)
    to = {number: route.to if route else policy.routes.default for number, route in routes.items()}
    return DigestPreview(week[1], ledger.has_digest(week[1]), found, routes, to, left_out)


def place_of(source: HistorySource) -> HistoryPlace:
    """The history for the commands of a message, wherever they are pasted."""
    if source.session is not None:
        return HistoryPlace.of_table(source.name, source.session.region_name)
    default = not source.name or source.name == str(histories.default_path())
    return OWN_HISTORY if default else HistoryPlace(("--history", source.name))


class _Previewed(Struct, frozen=True):
    """An alert ledger that reads what was sent, and keeps nothing."""

    source: HistorySource

    def past(self, key: JobKey, group: str) -> PastAlerts:
        """What a table has; a file has no alerts."""
        table = self._table()
        return table.past(key, group) if table else PastAlerts(keys.job_pk(key), group)

    def alerts(self, group: str) -> Sequence[Alert]:
        """Those of the group alone."""
        table = self._table()
        return table.alerts(group) if table else ()

    def has_digest(self, last_day: date) -> bool:
        """Whether the table has it."""
        table = self._table()
        return bool(table and table.has_digest(last_day))

    def _table(self) -> DynamoAlertLedger | None:
        if self.source.session is None:
            return None
        return DynamoAlertLedger(client(self.source.session, "dynamodb"), self.source.name)

    def has_line(self, key: JobKey) -> bool:
        """False: the line is shown again."""
        del key
        return False

    def hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """As if it were the first message of the hour."""
        return ChannelHour(channel, began_at)

    def write(self, *_: object, **__: object) -> bool:
        """Keeps nothing."""
        return True

    write_digest = write

    def notice(self, pk: str, sk: str) -> tuple[str, str] | None:
        """None: there are no notices."""
        del pk, sk
        return None
