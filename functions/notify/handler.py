"""DynamoDB stream batch of the history -> alerts in the table, and notices on their queues.

Each record of the stream is an insert of an audit's version or of a notice. This function decides
whether to send a message about a version, and puts a notice on the queue of its channel.

    {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "100", "NewImage": {
        "pk": {"S": "JOB#<arn>#<created ms>"}, "sk": {"S": "AUDIT#00001"},
        "document": {"B": "..."}}}}
    {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "101", "NewImage": {
        "pk": {"S": "ALERT#JOB#<arn>#<created ms>"}, "sk": {"S": "NOTICE#00001#slack"},
        "channel": {"S": "slack"}, "body": {"B": "..."}}}}

A record that fails does not block its shard. Its keys go to the queue of decisions, which this
function also reads:

    {"pk": "JOB#<arn>#<created ms>", "sk": "AUDIT#00001"}

Records that cannot be read or fail for days go to the queue of undecided audits, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import Struct

from sageaudit.adapters.aws.clients import (
    QUICK_CONFIG,
    RESERVE_S,
    TimeLimitedClients,
    client,
    new_session,
)
from sageaudit.adapters.aws.sqs import QUEUE_CONFIG, SqsQueue
from sageaudit.adapters.channels.services import channel_writers
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.keys import NOTICE_PREFIX
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.lambda_runtime.batch import (
    Batch,
    Handler,
    QueueRetries,
    StreamRetries,
    entry_point,
)
from sageaudit.adapters.lambda_runtime.records import (
    SqsMessage,
    TableChange,
    notice_labels,
    parse_change_keys,
    parse_version,
)
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.adapters.lambda_runtime.settings import NotifySettings
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import MalformedData, RejectedEvent, malformed_errors
from sageaudit.output.text.links import HistoryLocation
from sageaudit.ports import History, Queue
from sageaudit.workflows.notify import NotifyDependencies, notify

_STOP_BEFORE_MS = (RESERVE_S + 15) * 1000
"""If less time is left, no further record is started."""
T = TypeVar("T")
_QUEUE = "aws:sqs"
"""The event source of the decisions queue."""


class Notifier(Struct, frozen=True):
    """Handles stream records and queue messages. `queues` has the channel's name as key."""

    deps: NotifyDependencies
    queues: Mapping[str, Queue]
    report: RecordReport
    clock: Callable[[], datetime]

    def handle_change(self, change: TableChange) -> None:
        """Handles an item that was inserted into the table. Raises RejectedEvent or AwsError."""
        if not change.is_new:
            return
        with _reject_malformed():
            if change.sk.startswith(NOTICE_PREFIX):
                self.report.set_labels(**notice_labels(change.pk, change.sk))
                self.enqueue_notice(change.attribute_text("channel"), change.body())
            else:
                key, version = self._read_version(change.pk, change.sk)
                self.notify_about(key, version, change.document())

    def handle_message(self, message: SqsMessage) -> None:
        """Reads an item whose handling failed before, and handles it. Raises RejectedEvent or
        AwsError.
        """
        with _reject_malformed():
            pk, sk = parse_change_keys(message.body)
            if sk.startswith(NOTICE_PREFIX):
                self.report.set_labels(**notice_labels(pk, sk))
                self.enqueue_notice(*_require(self.deps.ledger.notice(pk, sk)))
            else:
                key, version = self._read_version(pk, sk)
                document = _require(_stored_document(self.deps.history, key, version))
                self.notify_about(key, version, document)

    def _read_version(self, pk: str, sk: str) -> tuple[JobKey, int]:
        """Returns an audit's key and version, and adds both as labels to the log.

        Raises MalformedData.
        """
        key, version = parse_version(pk, sk)
        self.report.set_labels(job=key.arn, version=version)
        return key, version

    def notify_about(self, key: JobKey, version: int, document: AuditDocument) -> None:
        """Decides whether to send a message about an audit. Raises MalformedData or AwsError."""
        notification = notify(key, version, document, self.deps, now=self.clock())
        decision = notification.alert_decision
        for channel in notification.held_channels:
            self.report.count("MessagesHeld", channel=channel)
        if notification.job_line:
            self.report.info("line", to=notification.job_line.destination.channels)
        if notification.alert is None:
            self.report.info("quiet", reason=decision.suppressed_because)
            return
        recommendation, destination = (
            decision.recommendation.id if decision.recommendation else None,
            notification.alert.destination,
        )
        labels = {"to": destination.channels, "routes": destination.route_numbers}
        self.report.info(
            "notified",
            kind=decision.kind,
            why=decision.news_text,
            recommendation=recommendation,
            **labels,
        )
        if self.deps.policy.routes.rows and not destination.route_numbers:
            self.report.count("MessagesUnrouted")

    def enqueue_notice(self, channel: str, body: str) -> None:
        """Puts a notice on its channel's queue.

        If a notice is queued twice, it is still posted once. Raises RejectedEvent or AwsError.
        """
        if not channel or not body:
            raise RejectedEvent("malformed_notice", "it lacks its channel or its body")
        if channel not in self.queues:
            reason = f"the deployed policy has no channel {channel}"
            raise RejectedEvent("no_channel", reason)
        self.queues[channel].send(body)
        self.report.info("queued", channel=channel)


@contextmanager
def _reject_malformed() -> Iterator[None]:
    try:
        yield
    except MalformedData as error:
        raise RejectedEvent("malformed_audit", str(error)) from error


def _stored_document(history: History, key: JobKey, version: int) -> AuditDocument | None:
    """Returns the document of an audit's version; None if there is none. Raises MalformedData or
    AwsError.
    """
    with malformed_errors("document"):
        document = history.audit(key, version)
    if document is not None and not isinstance(document, dict):
        raise MalformedData("document", "is not an object")
    return document


def _require(item: T | None) -> T:
    if item is None:
        raise RejectedEvent("not_found", "the table has no such audit or notice")
    return item


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    policy: Policy | None = None,
) -> Handler:
    """Builds the Lambda function. Raises BadSettings or BadPolicy."""
    settings, time_limit = (
        NotifySettings.from_env(environ),
        TimeLimitedClients(session or new_session(), clock),
    )
    policy = policy or stored_policy.load()
    dynamodb = client(time_limit, "dynamodb", config=QUICK_CONFIG)
    sqs = client(time_limit, "sqs", config=QUEUE_CONFIG)
    history = DynamoHistory(dynamodb, settings.table_name)
    deps = NotifyDependencies(
        history=history,
        ledger=DynamoAlertLedger(dynamodb, settings.table_name),
        decisions=history,
        policy=policy,
        writers=channel_writers(policy.channels),
        installed_at=DynamoSweepStore(dynamodb, settings.table_name, clock=clock).installed_at,
        history_location=HistoryLocation.for_table(settings.table_name, settings.region),
    )
    return assemble(
        deps,
        queues={name: SqsQueue(sqs, url) for name, url in settings.notices_queue_urls.items()},
        decisions=SqsQueue(sqs, settings.decisions_queue_url),
        undecided=SqsQueue(sqs, settings.undecided_queue_url),
        clock=clock,
        report=RecordReport(environ),
        on_record_start=time_limit.start,
    )


def assemble(
    deps: NotifyDependencies,
    *,
    queues: Mapping[str, Queue],
    decisions: SqsQueue,
    undecided: Queue,
    clock: Callable[[], datetime],
    report: RecordReport,
    on_record_start: Callable[[float | None], None] = lambda _: None,
) -> Handler:
    """Returns the Lambda function with these dependencies.

    `on_record_start` gets the remaining milliseconds of the invocation before each record.
    """
    notifier = Notifier(deps, queues, report, clock)

    def make_batch(record: Any, work: Callable[[Any], None], retries: Any) -> Handler:
        return Batch(
            record,
            work,
            failure_metric="NotDecided",
            stop_before_ms=_STOP_BEFORE_MS,
            retries=retries,
            report=report,
            begin=on_record_start,
            take_unreadable=deps.history.take_unreadable,
        )

    changes = make_batch(TableChange, notifier.handle_change, StreamRetries(decisions, undecided))
    retries = QueueRetries([decisions], undecided, clock)
    messages = make_batch(SqsMessage, notifier.handle_message, retries)

    def dispatch_by_source(event: dict[str, Any], context: Any) -> dict[str, Any]:
        from_queue = any(record.get("eventSource") == _QUEUE for record in event["Records"])
        return (messages if from_queue else changes)(event, context)

    return dispatch_by_source


handler = entry_point(build)
