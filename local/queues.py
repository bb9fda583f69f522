"""Corrects differences between moto's queues and SQS's that matter here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from moto.core.utils import unix_time_millis
from moto.sqs.models import SQSBackend


@contextmanager
def count_visibility_from_receive() -> Iterator[None]:
    """Counts SQS's limit of twelve hours from a message's receive; moto counts it from its send.

    Otherwise a message that is retried for days could no longer be hidden.
    """

    def received_messages(self: SQSBackend, queue_name: str, receipt_handle: str) -> list[Any]:
        messages = self.get_queue(queue_name)._messages  # noqa: SLF001 - also hidden messages
        return [candidate for candidate in messages if candidate.had_receipt_handle(receipt_handle)]

    change = SQSBackend.change_message_visibility

    def change_from_now(
        self: SQSBackend, queue_name: str, receipt_handle: str, visibility_timeout: int
    ) -> None:
        matches = received_messages(self, queue_name, receipt_handle)
        sent_timestamps = [message.sent_timestamp for message in matches]
        try:
            for message in matches:
                message.sent_timestamp = int(unix_time_millis())
            change(self, queue_name, receipt_handle, visibility_timeout)
        finally:
            for message, timestamp in zip(matches, sent_timestamps, strict=True):
                message.sent_timestamp = timestamp

    with mock.patch.object(SQSBackend, "change_message_visibility", change_from_now):
        yield
