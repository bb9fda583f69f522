"""SQS batch of notices -> each posted once on its channel.

Each message is one notice:

    {"schema": 1, "notice_id": "<pk>|<version>|slack", "channel": "slack", "payload": {...}}

Claim, post, mark: the ledger's lease stands between a notice and its second post. A process that
dies between post and mark leaves a lease that runs out, and then one repeat, marked as possible.
Nobody sleeps here: what has to wait comes back through its visibility.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import boto3
from aws_lambda_powertools import Logger

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.channels.catalogue import CHECKS, connected
from sageaudit.adapters.channels.channel import Connections, NoticeChannel
from sageaudit.adapters.channels.https_post import https_post
from sageaudit.adapters.channels.webhook import Transport
from sageaudit.adapters.dynamo.ledger import DynamoLedger
from sageaudit.adapters.lambda_runtime.batch import MESSAGES, Batch, Handler, Record
from sageaudit.adapters.lambda_runtime.counts import Counts
from sageaudit.domain.audit.record import Claim
from sageaudit.errors import (
    ChannelBroken,
    ChannelUnavailable,
    Malformed,
    MaybeSent,
    RateLimited,
)
from sageaudit.ports import Ledger
from sageaudit.settings import DeliverSettings
from sageaudit.text import untrusted
from sageaudit.text.envelope import Notice, read_body

LEASE_S = 90
"""Longer than the function may run: a lease that runs out has no living holder."""
TRY_AGAIN_S = 30
LONGEST_BACKOFF_S = 1_800
LONGEST_WAIT_S = 42_000
"""SQS counts its 12 hours from the receive, some minutes before."""
_STOP_BEFORE_MS = 15_000
"""What is left of the function's time when no further record is begun: one post may take that."""


class DeliverBatch:
    """One Lambda's wiring: delivers each record of a batch on its own."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        channels: Mapping[str, NoticeChannel],
        queue: SqsQueue,
        dead_letters: SqsQueue,
        clock: Callable[[], datetime],
        logger: Logger,
        counts: Counts,
    ) -> None:
        self._ledger = ledger
        self._channels = channels
        self._queue = queue
        self._dead_letters = dead_letters
        self._clock = clock
        self._logger = logger
        self._counts = counts
        self._closed_until: dict[str, datetime] = {}
        self._batch = Batch(
            MESSAGES,
            task="delivery",
            failed="DeliveryFailed",
            stop_before_ms=_STOP_BEFORE_MS,
            logger=logger,
            counts=counts,
        )

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answers which records come back; the others are done."""
        return self._batch.run(event, context, self._one)

    def _one(self, record: Record) -> bool:
        """Whatever this raises leaves the lease where it is: the notice may have been posted."""
        try:
            notice = read_body(record["body"], CHECKS)
        except Malformed as error:
            return self._reject(record, "malformed_notice", str(error))
        channel = self._channels.get(notice.channel)
        if channel is None:
            reason = f"{notice.channel} is not set up"
            return self._reject(record, "no_channel", reason)
        now = self._clock()
        open_at = self._closed_until.get(notice.channel, now)
        if open_at > now:
            rest_s = int((open_at - now).total_seconds()) + 1
            return self._come_back(record, max(rest_s, _backoff_s(record, TRY_AGAIN_S)))
        claim = self._ledger.claim_send(notice.notice_id, now, LEASE_S)
        if claim is Claim.DONE:
            self._counts.add("DuplicateNotices", channel=notice.channel)
            return True
        if claim is Claim.BUSY:
            return self._come_back(record, LEASE_S)
        return self._post(record, notice, channel, repeat=claim is Claim.REPEAT)

    def _post(
        self, record: Record, notice: Notice, channel: NoticeChannel, *, repeat: bool
    ) -> bool:
        """Posts what was claimed, and leaves the ledger saying what is known of it."""
        try:
            channel.post(channel.as_repeat(notice.payload) if repeat else notice.payload)
        except RateLimited as limited:
            wait_s = limited.retry_after_s
            self._closed_until[notice.channel] = self._clock() + timedelta(seconds=wait_s)
            self._note("asked to wait", notice, limited)
            self._ledger.release(notice.notice_id)
            return self._come_back(record, max(wait_s, _backoff_s(record, wait_s)))
        except MaybeSent as unknown:
            self._note("nobody knows whether it was posted", notice, unknown)
            return self._come_back(record, LEASE_S)
        except ChannelUnavailable as unavailable:
            self._note("not posted", notice, unavailable)
            self._ledger.release(notice.notice_id)
            return self._come_back(record, _backoff_s(record, TRY_AGAIN_S))
        except ChannelBroken as broken:
            return self._give_up(notice, broken)
        self._ledger.mark_sent(notice.notice_id, self._clock())
        self._counts.add("NoticesSent", channel=notice.channel)
        self._logger.info("posted", extra={**_named(notice), "repeat": repeat})
        return True

    def _give_up(self, notice: Notice, broken: ChannelBroken) -> bool:
        """A second try would find the same; the other channels have notices of their own."""
        reason = untrusted.log(str(broken))
        self._counts.add("NotifyFailed", channel=notice.channel)
        self._logger.error("channel broken", extra={**_named(notice), "reason": reason})
        self._ledger.mark_failed(notice.notice_id, self._clock(), reason)
        return True

    def _reject(self, record: Record, code: str, reason: str) -> bool:
        """Straight to the dead-letter queue."""
        self._dead_letters.send(record["body"], attributes={"reason": code, "why": reason})
        self._counts.add("RejectedEvents")
        self._batch.note("notice rejected", record, code, reason)
        return True

    def _come_back(self, record: Record, wait_s: int) -> bool:
        self._queue.change_visibility(record["receiptHandle"], min(wait_s, LONGEST_WAIT_S))
        return False

    def _note(self, message: str, notice: Notice, error: Exception) -> None:
        reason = untrusted.log(str(error))
        self._logger.warning(message, extra={**_named(notice), "reason": reason})


def _named(notice: Notice) -> dict[str, str]:
    return {"notice": untrusted.log(notice.notice_id), "channel": notice.channel}


def _backoff_s(record: Mapping[str, Any], base_s: int) -> int:
    """Doubles with each receive, so that a long outage does not use up the queue's receives."""
    received = record.get("attributes", {}).get("ApproximateReceiveCount", "1")
    doublings = min(max(int(received) - 1, 0), 10)
    return min(int(base_s * 2**doublings), LONGEST_BACKOFF_S)


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    transport: Transport = https_post,
) -> Handler:
    """Wires the Lambda. Raises BadSettings when it cannot work."""
    settings = DeliverSettings.from_env(environ)
    session = session or boto3.Session()
    sqs = client(session, "sqs")
    return DeliverBatch(
        ledger=DynamoLedger(client(session, "dynamodb"), settings.table_name),
        channels=connected(environ, Connections(session, transport)),
        queue=SqsQueue(sqs, settings.notices_queue_url),
        dead_letters=SqsQueue(sqs, settings.notices_dlq_url),
        clock=clock,
        logger=Logger(service=environ.get("POWERTOOLS_SERVICE_NAME", "deliver")),
        counts=Counts(environ),
    )


@cache
def _built() -> Handler:
    return build(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda's entry point: wired once for each execution environment."""
    return _built()(event, context)
