"""SQS messages with notices -> posts on their channels.

Each message is one notice:

    {"schema": 1, "notice_id": "<pk>|<version>|slack", "channel": "slack", "payload": {...}}

A notice that has to wait becomes visible again later. A notice that cannot be posted goes to the
dead letters with its reason: it is malformed, its channel is broken or missing, or the outcome of
two tries is not known. A notice with an hour (`"held_hour": "2026-05-20T14"`) stands for all
messages held in that hour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.clients import QUICK_CONFIG, client, new_session
from sageaudit.adapters.aws.sqs import QUEUE_CONFIG, SqsQueue
from sageaudit.adapters.channels.channel import ChannelConnections, Transport
from sageaudit.adapters.channels.services import (
    channel_writers,
    connect_channels,
    https_post,
    payload_checks,
)
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.send_ledger import DynamoSendLedger
from sageaudit.adapters.lambda_runtime.batch import (
    Batch,
    Handler,
    QueueRetries,
    RetryRecord,
    entry_point,
)
from sageaudit.adapters.lambda_runtime.records import SqsMessage
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.adapters.lambda_runtime.settings import DeliverSettings
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import AwsError, MalformedData, RejectedEvent
from sageaudit.output.text.card import Check, Notice, parse_notice
from sageaudit.output.text.links import HistoryLocation
from sageaudit.ports import Queue
from sageaudit.workflows.deliver import (
    AlreadySent,
    DeliverDependencies,
    NoticeAbandoned,
    NoticePosted,
    RetryLater,
    deliver,
    record_abandoned,
)

_STOP_BEFORE_MS = 50_000
"""If less time is left, no further record is started. One delivery may take this long."""


class Deliverer(Struct, frozen=True):
    """Handles one message. The keys of `queue_names` and `payload_checks` are channels."""

    deps: DeliverDependencies
    retries: QueueRetries
    queue_names: Mapping[str, str]
    payload_checks: Mapping[str, Check]
    report: RecordReport

    def handle_message(self, message: SqsMessage) -> None:
        """Delivers one notice, or moves it to the dead letters.

        Raises RetryRecord if the notice must wait, RejectedEvent if the message is not a notice, or
        AwsError.
        """
        notice = self._read(message)
        try:
            self._deliver(message, notice)
        except (AwsError, RetryRecord):
            if self.retries.is_too_old(message):
                self.report.count("NotifyFailed", channel=notice.channel)
            raise

    def _read(self, message: SqsMessage) -> Notice:
        try:
            notice = parse_notice(message.body, self.payload_checks)
        except MalformedData as error:
            raise RejectedEvent("malformed_notice", str(error)) from error
        # a channel that the policy no longer has has no queue here: `deliver` reports it
        if self.queue_names.get(notice.channel, message.queue_name) != message.queue_name:
            reason = f"a notice for {notice.channel} came from the queue {message.queue_name}"
            raise RejectedEvent("malformed_notice", reason)
        return notice

    def _deliver(self, message: SqsMessage, notice: Notice) -> None:
        channel, report = notice.channel, self.report
        report.set_labels(notice=notice.notice_id, channel=channel)
        match deliver(notice, self.deps, receive_count=message.receive_count):
            case NoticePosted(may_be_duplicate, mark_error):
                report.count("NoticesSent", channel=channel)
                report.info("posted", repeat=may_be_duplicate)
                if mark_error is not None:
                    report.warning("posted, not marked", reason=str(mark_error))
            case AlreadySent():
                report.count("DuplicateNotices", channel=channel)
            case NoticeAbandoned() as abandoned:
                report.count(
                    "NotifyUnknown" if abandoned.is_outcome_unknown else "NotifyFailed",
                    channel=channel,
                )
                report.error("notice abandoned", error=abandoned.code, reason=abandoned.explanation)
                self._set_aside(message, notice, abandoned)
            case RetryLater(wait_s, refusal):
                reason = "it must wait for its channel or for another try"
                if refusal is not None:
                    reason = str(refusal)
                    report.count("DeliveryFailed")
                    report.warning("not posted", error=type(refusal).__name__, reason=reason)
                raise RetryRecord(reason, wait_s)

    def _set_aside(self, message: SqsMessage, notice: Notice, abandoned: NoticeAbandoned) -> None:
        """Moves the notice to the dead letters, then records it as abandoned.

        If the dead letter cannot be written, raises AwsError. A notice that was certainly not
        posted is recorded anyway; otherwise its claim stays, so that it is not posted again.
        """
        try:
            self.retries.reject(message, abandoned.code, abandoned.explanation)
        except AwsError:
            if not abandoned.maybe_posted:
                record_abandoned(notice, abandoned, self.deps)
            raise
        try:
            record_abandoned(notice, abandoned, self.deps)
        except (
            AwsError
        ) as error:  # its lease ends by itself; if it is sent again, it is marked as a repeat
            self.report.warning("not marked", reason=str(error))


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    transport: Transport = https_post,
    policy: Policy | None = None,
) -> Handler:
    """Builds the Lambda function. Raises BadSettings or BadPolicy."""
    settings, session = DeliverSettings.from_env(environ), session or new_session()
    sqs = client(session, "sqs", config=QUEUE_CONFIG)
    dynamodb = client(session, "dynamodb", config=QUICK_CONFIG)
    ledger = DynamoSendLedger(dynamodb, settings.table_name)
    channels = (policy or stored_policy.load()).channels
    connected_channels = connect_channels(
        channels, settings.topic_arn, ChannelConnections(session, transport)
    )
    history_location = HistoryLocation.for_table(settings.table_name, settings.region)
    return assemble(
        DeliverDependencies(
            ledger, connected_channels, clock, channel_writers(channels), history_location
        ),
        queues={
            channel: SqsQueue(sqs, url) for channel, url in settings.notices_queue_urls.items()
        },
        dead_letters=SqsQueue(sqs, settings.notices_dlq_url),
        checks=payload_checks(channels),
        report=RecordReport(environ),
    )


def assemble(
    deps: DeliverDependencies,
    *,
    queues: Mapping[str, SqsQueue],
    dead_letters: Queue,
    checks: Mapping[str, Check],
    report: RecordReport,
) -> Handler:
    """Returns the Lambda function with these dependencies. `queues` and `checks` have the channel's
    name as key.
    """
    retries = QueueRetries(list(queues.values()), dead_letters, deps.clock)
    names = {channel: queue.name for channel, queue in queues.items()}
    return Batch(
        SqsMessage,
        Deliverer(deps, retries, names, checks, report).handle_message,
        failure_metric="DeliveryFailed",
        stop_before_ms=_STOP_BEFORE_MS,
        retries=retries,
        report=report,
    )


handler = entry_point(build)
