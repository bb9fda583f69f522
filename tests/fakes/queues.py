"""Queues with SQS's timing, which deliver to the real function.

A message is visible from a time on and counts its receives. It is deleted if the function handles
it. After 120 receives, SQS moves it to the dead letters.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from infra.names import MAX_RECEIVES
from local.functions import ProcessKilled
from sageaudit.errors import Unavailable
from tests.fakes.calls import Clock
from tests.fakes.lambda_events import QUEUE, batch, sqs_record

Handle = Callable[[dict[str, Any], Any], dict[str, Any]]


@dataclass
class Message:
    """One message in a queue."""

    id: str
    body: str
    attributes: dict[str, str]
    sent_at: datetime
    visible_at: datetime
    received: int = 0

    def record(self, queue: str) -> dict[str, Any]:
        """Returns the message as Lambda passes it to a function."""
        record = sqs_record(self.body, message_id=self.id, received=self.received, queue=queue)
        record["attributes"]["SentTimestamp"] = str(round(self.sent_at.timestamp() * 1000))
        record["messageAttributes"] = {
            name: {"stringValue": value} for name, value in self.attributes.items()
        }
        return record


@dataclass
class FakeQueue:
    """A queue that keeps its messages and delivers them.

    `errors` are raised by the next requests, one each. Unavailable means that only the answer was
    lost: the message was still sent.
    """

    name: str = QUEUE
    clock: Callable[[], datetime] = field(default_factory=Clock)
    delay_s: float = 0
    hidden_s: float = 720
    """How long a message stays invisible after the function ended without handling it."""
    errors: list[Exception] = field(default_factory=list)
    deletes_fail: int = 0
    """How many of the next handled messages are not deleted."""
    messages: dict[str, Message] = field(default_factory=dict)
    waits_s: list[int] = field(default_factory=list)
    _count: int = 0

    def put(self, body: str, attributes: dict[str, str] | None = None, *, age_s: float = 0) -> None:
        """Puts a message that another sender sent this long ago."""
        sent_at = self.clock() - timedelta(seconds=age_s)
        self._add(body, attributes or {}, sent_at, self.clock() + timedelta(seconds=self.delay_s))

    def send(
        self, body: str, *, delay_s: int = 0, attributes: dict[str, str] | None = None
    ) -> None:
        error = self.errors.pop(0) if self.errors else None
        if error is not None and not isinstance(error, Unavailable):
            raise error
        set_attributes = {name: value for name, value in (attributes or {}).items() if value}
        at = self.clock()
        self._add(body, set_attributes, at, at + timedelta(seconds=delay_s or self.delay_s))
        if error is not None:
            raise error

    def change_visibility(self, receipt_handle: str, seconds: int) -> None:
        self.waits_s.append(seconds)
        if self.errors:
            raise self.errors.pop(0)
        if receipt_handle in self.messages:
            self.messages[receipt_handle].visible_at = self.clock() + timedelta(seconds=seconds)

    def next(self) -> Message | None:
        """Returns the message that becomes visible next."""
        return min(self.messages.values(), key=lambda message: message.visible_at, default=None)

    def deliver(self, message: Message, handle: Handle, dead: "FakeQueue") -> None:
        """Invokes the function once with one message."""
        message.received += 1
        message.visible_at = self.clock() + timedelta(seconds=self.hidden_s)
        if message.received > MAX_RECEIVES:
            dead.messages[message.id] = self.messages.pop(message.id)
            return
        try:
            answer = handle(batch(message.record(self.name)), None)
        except ProcessKilled:
            return
        if self.deletes_fail:
            self.deletes_fail -= 1
        elif not answer["batchItemFailures"]:
            del self.messages[message.id]

    @property
    def sent(self) -> list[tuple[str, dict[str, str]]]:
        """Body and attributes of each message, in the order of sending."""
        return [(message.body, message.attributes) for message in self.messages.values()]

    def attributes(self) -> list[dict[str, str]]:
        """Returns the attributes of each message."""
        return [message.attributes for message in self.messages.values()]

    def _add(
        self, body: str, attributes: dict[str, str], sent_at: datetime, visible_at: datetime
    ) -> None:
        self._count += 1
        name = f"{self.name}-{self._count}"
        self.messages[name] = Message(name, body, attributes, sent_at, visible_at)
