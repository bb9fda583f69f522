"""SQS messages of notices -> each posted on its channel.

Each message is one notice:

    {"schema": 1, "notice_id": "<pk>|<version>|slack", "channel": "slack", "payload": {...}}

One that has to wait becomes visible again later. One that cannot be posted goes to the dead letters
with its reason: malformed, its channel broken or gone, or its outcome unknown twice. One of an hour
(`"held_hour": "2026-05-20T14"`) stands for the messages held in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.clients import QUICK, client, new_session
from sageaudit.adapters.aws.sqs import QUEUE_CONFIG, SqsQueue
from sageaudit.adapters.channels.channel import Connections, Transport
from sageaudit.adapters.channels.services import checks, connected, https_post, writers
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.send_ledger import DynamoSendLedger
from sageaudit.adapters.lambda_runtime.batch import (
    Batch,
    ComesBack,
    Handler,
    QueueRetries,
    entry_point,
)
from sageaudit.adapters.lambda_runtime.records import SqsMessage
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.adapters.lambda_runtime.settings import DeliverSettings
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import AwsError, Malformed, RejectedEvent
from sageaudit.output.text.card import Check, Notice, read_body
from sageaudit.output.text.links import HistoryPlace
from sageaudit.ports import Queue
from sageaudit.workflows.deliver import (
    AlreadySent,
    DeliverDependencies,
    GivenUp,
    Posted,
    TryLater,
    deliver,
    record_given_up,
)

_STOP_BEFORE_MS = 50_000
"""Below this remaining time, no further record is started: a delivery may take this long."""


class Deliverer(Struct, frozen=True):
    """What is done with one message. `queue_names` and `checks` are by channel."""

    deps: DeliverDependencies
    retries: QueueRetries
    queue_names: Mapping[str, str]
    checks: Mapping[str, Check]
    report: Report

    def message(self, message: SqsMessage) -> None:
        """Delivers one notice, or moves it to the dead letters.

        Raises ComesBack when it has to wait, RejectedEvent when it is none, or AwsError.
        """
        notice = self._read(message)
        try:
            self._deliver(message, notice)
        except (AwsError, ComesBack):
            if self.retries.gives_up(message):
                self.report.count("NotifyFailed", channel=notice.channel)
            raise

    def _read(self, message: SqsMessage) -> Notice:
        try:
            notice = read_body(message.body, self.checks)
        except Malformed as error:
            raise RejectedEvent("malformed_notice", str(error)) from error
        # of a channel that has left the policy, `deliver` says so: its queue is not known here
        if self.queue_names.get(notice.channel, message.queue_name) != message.queue_name:
            why = f"a notice for {notice.channel} came from the queue {message.queue_name}"
            raise RejectedEvent("malformed_notice", why)
        return notice

    def _deliver(self, message: SqsMessage, notice: Notice) -> None:
        channel, report = notice.channel, self.report
        report.about(notice=notice.notice_id, channel=channel)
        match deliver(notice, self.deps, received=message.received):
            case Posted(repeat, unmarked):
                report.count("NoticesSent", channel=channel)
                report.info("posted", repeat=repeat)
                if unmarked is not None:
                    report.warning("posted, not marked", reason=str(unmarked))
            case AlreadySent():
                report.count("DuplicateNotices", channel=channel)
            case GivenUp() as given_up:
                report.count(
                    "NotifyUnknown" if given_up.unknown else "NotifyFailed", channel=channel
                )
                report.error("notice given up", error=given_up.code, reason=given_up.why)
                self._set_aside(message, notice, given_up)
            case TryLater(wait_s, refusal):
                why = "it has to wait for its channel, or for another try"
                if refusal is not None:
                    why = str(refusal)
                    report.count("DeliveryFailed")
                    report.warning("not posted", error=type(refusal).__name__, reason=why)
                raise ComesBack(why, wait_s)

    def _set_aside(self, message: SqsMessage, notice: Notice, given_up: GivenUp) -> None:
        """First the dead letter, then the mark: a process that dies between them loses nothing.

        Raises AwsError where there is no dead letter. A notice that was certainly not posted is
        marked so all the same; one that may have been keeps its claim, so that it is not posted
        again.
        """
        try:
            self.retries.reject(message, given_up.code, given_up.why)
        except AwsError:
            if not given_up.maybe_posted:
                record_given_up(notice, given_up, self.deps)
            raise
        try:
            record_given_up(notice, given_up, self.deps)
        except AwsError as error:  # its lease ends: when it is sent again, it is marked as a repeat
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
    dynamodb = client(session, "dynamodb", config=QUICK)
    ledger = DynamoSendLedger(dynamodb, settings.table_name)
    channels = (policy or stored_policy.load()).channels
    posting = connected(channels, settings.topic_arn, Connections(session, transport))
    place = HistoryPlace.of_table(settings.table_name, settings.region)
    return wired(
        DeliverDependencies(ledger, posting, clock, writers(channels), place),
        queues={
            channel: SqsQueue(sqs, url) for channel, url in settings.notices_queue_urls.items()
        },
        dead_letters=SqsQueue(sqs, settings.notices_dlq_url),
        checks=checks(channels),
        report=Report(environ),
    )


def wired(
    deps: DeliverDependencies,
    *,
    queues: Mapping[str, SqsQueue],
    dead_letters: Queue,
    checks: Mapping[str, Check],
    report: Report,
) -> Handler:
    """The Lambda function with these dependencies; `queues` and `checks` are by channel."""
    retries = QueueRetries(list(queues.values()), dead_letters, deps.clock)
    names = {channel: queue.name for channel, queue in queues.items()}
    return Batch(
        SqsMessage,
        Deliverer(deps, retries, names, checks, report).message,
        failed="DeliveryFailed",
        stop_before_ms=_STOP_BEFORE_MS,
        retries=retries,
        report=report,
    )


handler = entry_point(build)
