"""SQS batch of notices -> each posted once on its channel.

Each message is one notice:

    {"schema": 1, "notice_id": "<pk>|<version>|slack", "channel": "slack", "payload": {...}}

One that is malformed, or whose channel is not set up, goes to the dead-letter queue with its
reason. One that has to wait becomes visible again later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import boto3

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.channels.catalogue import CHECKS, connected
from sageaudit.adapters.channels.channel import Connections
from sageaudit.adapters.channels.https_post import https_post
from sageaudit.adapters.channels.webhook import Transport
from sageaudit.adapters.dynamo.send_ledger import DynamoSendLedger
from sageaudit.adapters.lambda_runtime.batch import Batch, ComesBack, Handler, entry_point
from sageaudit.adapters.lambda_runtime.message import SqsMessage
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.adapters.lambda_runtime.retries import QueueRetries
from sageaudit.delivering import (
    AlreadyDone,
    DeliverDependencies,
    GivenUp,
    Posted,
    TryLater,
    deliver,
)
from sageaudit.errors import Malformed, RejectedEvent
from sageaudit.ports import Queue
from sageaudit.settings import DeliverSettings
from sageaudit.text.envelope import read_body

_STOP_BEFORE_MS = 15_000
"""Below this remaining time, no further record is started: one post may take this long."""


def deliver_message(message: SqsMessage, deps: DeliverDependencies, report: Report) -> None:
    """Delivers one notice. Raises ComesBack when the notice has to wait."""
    try:
        notice = read_body(message.body, CHECKS)
    except Malformed as error:
        raise RejectedEvent("malformed_notice", str(error)) from error
    named = {"notice": notice.notice_id, "channel": notice.channel}
    report.about(**named)
    match deliver(notice, deps, received=message.received):
        case Posted(repeat):
            report.count("NoticesSent", channel=notice.channel)
            report.info("posted", **named, repeat=repeat)
        case AlreadyDone():
            report.count("DuplicateNotices", channel=notice.channel)
        case GivenUp(reason):
            report.count("NotifyFailed", channel=notice.channel)
            report.error("channel broken", **named, reason=reason)
        case TryLater(wait_s, refusal):
            why = "it has to wait for its channel, or for another try"
            if refusal is not None:
                why = str(refusal)
                report.warning("not posted", **named, error=type(refusal).__name__, reason=why)
            raise ComesBack(why, wait_s)


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    transport: Transport = https_post,
) -> Handler:
    """Builds the Lambda function. Raises BadSettings."""
    settings, session = DeliverSettings.from_env(environ), session or boto3.Session()
    sqs = client(session, "sqs")
    ledger = DynamoSendLedger(client(session, "dynamodb"), settings.table_name)
    channels = connected(environ, Connections(session, transport))
    return wired(
        DeliverDependencies(ledger, channels, clock),
        queues=[SqsQueue(sqs, url) for url in settings.notices_queue_urls.values()],
        dead_letters=SqsQueue(sqs, settings.notices_dlq_url),
        report=Report(environ),
    )


def wired(
    deps: DeliverDependencies, *, queues: Sequence[SqsQueue], dead_letters: Queue, report: Report
) -> Handler:
    """The Lambda function with these dependencies."""
    return Batch(
        SqsMessage,
        lambda message: deliver_message(message, deps, report),
        failed="DeliveryFailed",
        stop_before_ms=_STOP_BEFORE_MS,
        retries=QueueRetries(queues, dead_letters, deps.clock),
        report=report,
    )


handler = entry_point(build)
