"""Queues with SQS's times, of which messages are delivered to the real function.

A message is visible from a moment on, is counted when it is received, is deleted when the function
answers for it, and is moved to the dead letters by SQS after 120 receives.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from infra.names import MAX_RECEIVES
from sageaudit.errors import Unavailable

Handle = Callable[[dict[str, Any], Any], dict[str, Any]]


class Killed(BaseException):
    """The process of the function ends here."""


@dataclass
class Message:
    """One message of a queue."""

    id: str
    body: str
    attributes: dict[str, str]
    sent_at: datetime
    visible_at: datetime
    received: int = 0

    def record(self, queue: str) -> dict[str, Any]:
        """As Lambda hands it over."""
        return {
            "messageId": self.id,
            "receiptHandle": self.id,
            "body": self.body,
            "attributes": {
                "ApproximateReceiveCount": str(self.received),
                "SentTimestamp": str(round(self.sent_at.timestamp() * 1000)),
            },
            "messageAttributes": {
                name: {"stringValue": value} for name, value in self.attributes.items()
            },
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:us-east-1:111122223333:{queue}",
        }


@dataclass
class FakeQueue:
    """Implements what handlers and their retries do with a queue."""

    name: str
    clock: Callable[[], datetime]
    delay_s: float = 0
    hidden_s: float = 720
    """How long a message waits after a function that ended without an answer."""
    messages: dict[str, Message] = field(default_factory=dict)
    waits_s: list[int] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    """Raised first, one a request."""
    answers_lost: int = 0
    """Of so many sends, which have their effect."""
    deletes_fail: int = 0
    tried: int = 0
    asked: Callable[[str], None] = lambda _: None
    done: Callable[[str], None] = lambda _: None
    _count: int = 0

    def put(self, body: str, attributes: dict[str, str] | None = None, *, age_s: float = 0) -> None:
        """A message of somebody else that was sent so long ago."""
        sent_at = self.clock() - timedelta(seconds=age_s)
        self._add(body, attributes or {}, sent_at, self.clock() + timedelta(seconds=self.delay_s))

    def send(
        self, body: str, *, delay_s: int = 0, attributes: dict[str, str] | None = None
    ) -> None:
        self.asked("SendMessage")
        self.tried += 1
        self._fail()
        kept = {name: value for name, value in (attributes or {}).items() if value}
        at = self.clock()
        self._add(body, kept, at, at + timedelta(seconds=delay_s or self.delay_s))
        if self.answers_lost:
            self.answers_lost -= 1
            raise Unavailable("the answer was lost")
        self.done("SendMessage")

    def change_visibility(self, receipt_handle: str, seconds: int) -> None:
        self.asked("ChangeMessageVisibility")
        self.waits_s.append(seconds)
        self._fail()
        self.messages[receipt_handle].visible_at = self.clock() + timedelta(seconds=seconds)

    def next(self) -> Message | None:
        """The message that is visible next."""
        return min(self.messages.values(), key=lambda one: one.visible_at, default=None)

    def deliver(self, one: Message, handle: Handle, dead: "FakeQueue") -> None:
        """One invocation of the function with one message."""
        one.received += 1
        one.visible_at = self.clock() + timedelta(seconds=self.hidden_s)
        if one.received > MAX_RECEIVES:
            dead.messages[one.id] = self.messages.pop(one.id)
            return
        try:
            answer = handle({"Records": [one.record(self.name)]}, None)
        except Killed:
            return
        if self.deletes_fail:
            self.deletes_fail -= 1
        elif not answer["batchItemFailures"]:
            del self.messages[one.id]

    def attributes(self) -> list[dict[str, str]]:
        """Of each message."""
        return [one.attributes for one in self.messages.values()]

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def _add(
        self, body: str, attributes: dict[str, str], sent_at: datetime, visible_at: datetime
    ) -> None:
        self._count += 1
        name = f"{self.name}-{self._count}"
        self.messages[name] = Message(name, body, attributes, sent_at, visible_at)
