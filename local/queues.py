"""Corrects moto's queues if they differ from SQS's in a way that matters here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from moto.core.utils import unix_time_millis
from moto.sqs.models import SQSBackend


@contextmanager
def count_visibility_from_receive() -> Iterator[None]:
    """Counts SQS's limit of twelve hours from a message's receive; moto counts from its send.

    Otherwise a message that comes back for days could not be hidden any more.
    """

    def received(self: SQSBackend, queue_name: str, receipt_handle: str) -> list[Any]:
        messages = self.get_queue(queue_name)._messages  # noqa: SLF001 - hidden ones too
        return [candidate for candidate in messages if candidate.had_receipt_handle(receipt_handle)]

    change = SQSBackend.change_message_visibility

    def from_now(
        self: SQSBackend, queue_name: str, receipt_handle: str, visibility_timeout: int
    ) -> None:
        matches = received(self, queue_name, receipt_handle)
        sent = [message.sent_timestamp for message in matches]
        try:
            for message in matches:
                message.sent_timestamp = int(unix_time_millis())
            change(self, queue_name, receipt_handle, visibility_timeout)
        finally:
            for message, timestamp in zip(matches, sent, strict=True):
                message.sent_timestamp = timestamp

    with mock.patch.object(SQSBackend, "change_message_visibility", from_now):
        yield
