"""Queues of notices with SQS's times and a clock of their own, read by the real function.

A message is visible from a moment on, is counted when it is received, is deleted when the function
answers for it, and is moved to the dead letters by SQS after 120 receives.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from deliver.handler import wired
from infra.names import MAX_RECEIVES
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.errors import Unavailable
from sageaudit.ports import Channel, SendLedger
from sageaudit.workflows.deliver.run import DeliverDependencies
from tests.fakes.delivering import PAYLOADS, PK, Clock, Killed, batch, failures, notice_body
from tests.fakes.memory_ledger import MemorySendLedger

VISIBILITY_S = 720
"""What a message waits after a function that ended without an answer."""
RECEIVE_S = 0.5


@dataclass
class Message:
    """One message: `sent_ms` is its age, `attributes` are those of the message."""

    body: str
    name: str
    sent_ms: int
    attributes: dict[str, str] = field(default_factory=dict)
    received: int = 0


@dataclass
class Waiting:
    """Implements what deliver needs of SqsQueue, for one channel."""

    name: str
    clock: Clock
    heap: list[tuple[float, int, Message]] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    waits_s: list[int] = field(default_factory=list)
    _numbers: int = 0
    _hidden: dict[str, int] = field(default_factory=dict)

    def put(self, body: str, *, age_s: float = 0) -> None:
        """A message that was sent so long ago."""
        self._numbers += 1
        name = f"{self.name}-{self._numbers}"
        sent_ms = int((self.clock().timestamp() - age_s) * 1_000)
        self._push(Message(body, name, sent_ms), 0)

    def change_visibility(self, receipt_handle: str, seconds: int) -> None:
        self.waits_s.append(seconds)
        if self.faults:
            raise self.faults.pop(0)
        self._hidden[receipt_handle] = seconds

    def next_at(self) -> float | None:
        """When the next message can be received."""
        return self.heap[0][0] if self.heap else None

    def take(self) -> Message:
        """The next message."""
        message = heapq.heappop(self.heap)[2]
        message.received += 1
        return message

    def back(self, message: Message) -> None:
        """It was not deleted."""
        self._push(message, self._hidden.pop(message.name, VISIBILITY_S))

    def _push(self, message: Message, hidden_s: float) -> None:
        at = self.clock().timestamp() + hidden_s
        heapq.heappush(self.heap, (at, int(message.name.rpartition("-")[2]), message))


@dataclass
class DeadLetters:
    """Keeps what was sent; `faults` are raised first, `after` says whether it had been sent."""

    letters: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    lost_answers: int = 0
    tried: int = 0

    def send(
        self, body: str, *, delay_s: int = 0, attributes: dict[str, str] | None = None
    ) -> None:
        self.tried += 1
        if self.faults:
            raise self.faults.pop(0)
        self.letters.append((body, attributes or {}))
        if self.lost_answers:
            self.lost_answers -= 1
            raise Unavailable("the answer was lost")


@dataclass
class Delivery:
    """A deployed deliver over fakes, hour by hour."""

    channels: Mapping[str, Any]
    ledger: Any = field(default_factory=MemorySendLedger)
    clock: Clock = field(default_factory=Clock)
    dead: DeadLetters = field(default_factory=DeadLetters)
    counts: dict[tuple[str, str | None], int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    queues: dict[str, Waiting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.queues = {name: Waiting(name, self.clock) for name in ("sns", "slack")}
        report = Counting(self.counts, self.texts)
        deps = DeliverDependencies(
            cast("SendLedger", self.ledger),
            cast("Mapping[str, Channel]", self.channels),
            self.clock,
        )
        self.handle = wired(
            deps,
            queues=cast("dict[str, SqsQueue]", self.queues),
            dead_letters=self.dead,
            report=cast("Report", report),
        )

    def notify(self, channel: str = "slack", *, count: int = 1, first: int = 1) -> None:
        """New notices, each with a number as its version."""
        for number in range(first, first + count):
            self.queues[channel].put(numbered_body(channel, number))

    def run(self, *, until_s: float = 15 * 86_400) -> None:
        """Delivers what is due until no message waits, or until so many seconds from now."""
        end = self.clock().timestamp() + until_s
        while True:
            waiting = [
                (at, name)
                for name, queue in self.queues.items()
                if (at := queue.next_at()) is not None
            ]
            if not waiting or min(waiting)[0] > end:
                return
            at, name = min(waiting)
            self.clock.move(max(at - self.clock().timestamp(), 0) + RECEIVE_S)
            self.deliver_next(self.queues[name])

    def deliver_next(self, queue: Waiting) -> None:
        """One invocation with one message."""
        message = queue.take()
        if message.received > MAX_RECEIVES:
            self.dead.letters.append((message.body, {}))
            return
        try:
            answer = self.handle(batch(_record(message, queue.name)), None)
        except Killed:
            queue.back(message)
            return
        if failures(answer):
            queue.back(message)

    def redrive(self) -> int:
        """Sends every dead letter again, as `sageaudit redrive notices` does; how many."""
        letters = list(self.dead.letters)
        self.dead.letters.clear()
        for body, _ in letters:
            self.queues[json.loads(body)["channel"]].put(body)
        return len(letters)

    def reasons(self) -> list[str]:
        """Of the dead letters."""
        return [attributes.get("reason", "") for _, attributes in self.dead.letters]

    def waiting(self, channel: str = "slack") -> int:
        """How many messages are in the queue of a channel."""
        return len(self.queues[channel].heap)

    def state(self, number: int = 1, channel: str = "slack") -> str | None:
        """What the ledger says of a notice."""
        state: str | None = self.ledger.state(f"{PK}|{number}|{channel}")
        return state


class Counting:
    """A Report that only adds up, and keeps every text."""

    def __init__(self, counts: dict[tuple[str, str | None], int], texts: list[str]) -> None:
        self._counts = counts
        self._texts = texts

    def count(self, name: str, *, channel: str | None = None) -> None:
        self._counts[name, channel] = self._counts.get((name, channel), 0) + 1

    def defect(self, message: str, error: Exception, **named: Any) -> None:
        self._texts.append(f"{message} {error!r} {named}")

    def __getattr__(self, name: str) -> Any:
        def note(*words: Any, **named: Any) -> None:
            self._texts.append(f"{name} {words} {named}")

        return note


def numbered_body(channel: str, number: int) -> str:
    """A notice whose payload says its number."""
    message = json.loads(notice_body(channel, version=number))
    key = "text" if channel == "slack" else "message"
    message["payload"] = {**PAYLOADS[channel], key: f"notice {number}"}
    return json.dumps(message)


def _record(message: Message, queue: str) -> dict[str, Any]:
    attributes = {
        "ApproximateReceiveCount": str(message.received),
        "SentTimestamp": str(message.sent_ms),
    }
    return {
        "messageId": message.name,
        "receiptHandle": message.name,
        "body": message.body,
        "attributes": attributes,
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:111122223333:{queue}",
    }


def hours(number: float) -> float:
    """In seconds."""
    return timedelta(hours=number).total_seconds()
