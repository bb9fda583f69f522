"""The deliver function over a simulated clock, with channels, ledger and queues in memory.

`deliverer` builds the real handler from given parts, such as a `RecordingChannel`.
`DeliverFunction` uses the real channels over the services of `channel_services.py`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from deliver.handler import assemble
from sageaudit.adapters.aws.secrets import SecretReader
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.channels.services import (
    SlackChannel,
    SnsChannel,
    channel_writers,
    payload_checks,
)
from sageaudit.adapters.lambda_runtime.batch import Handler
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.domain.policy.routes import ChannelConfig
from sageaudit.output.text.card import Notice, Payload, to_json
from sageaudit.ports import Channel, Queue, SendLedger
from sageaudit.workflows.deliver import DeliverDependencies
from tests.fakes.calls import CallProxy, Clock, Faults
from tests.fakes.channel_services import WEBHOOK, Behaviour, Service, Store, works
from tests.fakes.lambda_events import PK, RecordedReport
from tests.fakes.memory_ledger import MemorySendLedger
from tests.fakes.queues import FakeQueue

SLACK = {
    "text": "HIGH  $2.04 was avoidable",
    "blocks": [
        {"type": "header", "block_id": "headline", "text": {"type": "plain_text", "text": "HIGH"}},
        {"type": "section", "block_id": "why", "text": {"type": "plain_text", "text": "GPU"}},
    ],
}
SNS = {
    "subject": "HIGH $2.04 was avoidable",
    "message": "HIGH  $2.04\n",
    "attributes": {"severity": {"type": "String", "value": "high"}},
}
CHANNELS: Mapping[str, ChannelConfig] = {
    "sns": ChannelConfig("sns"),
    "slack": ChannelConfig("slack", "webhook"),
}
PAYLOADS: Mapping[str, dict[str, Any]] = {"slack": SLACK, "sns": SNS}
RECEIVE_S = 0.5


def notice_body(channel: str = "slack", *, version: int = 1) -> str:
    """Returns a notice as `notify` queues it."""
    return to_json(Notice(f"{PK}|{version}|{channel}", channel, PAYLOADS[channel]))


def numbered_body(channel: str, number: int) -> str:
    """Returns a notice whose payload contains its number."""
    message = json.loads(notice_body(channel, version=number))
    key = "text" if channel == "slack" else "message"
    message["payload"] = {**PAYLOADS[channel], key: f"notice {number}"}
    return json.dumps(message)


@dataclass
class RecordingChannel:
    """A channel that records its posts; each post first raises the next of `answers`, if any."""

    answers: list[BaseException] = field(default_factory=list)
    posted: list[dict[str, Any]] = field(default_factory=list)

    def prepare(self) -> None:
        """Does nothing."""

    def mark_as_repeat(self, payload: Payload) -> Payload:
        channel = SlackChannel if "blocks" in payload else SnsChannel
        return channel.mark_as_repeat(payload)

    def post(self, payload: dict[str, Any]) -> None:
        if self.answers:
            raise self.answers.pop(0)
        self.posted.append(payload)


def deliverer(
    ledger: Any,
    channels: Mapping[str, Any],
    *,
    queues: Mapping[str, Any] | None = None,
    dead_letters: Any = None,
    clock: Callable[[], datetime] | None = None,
    report: RecordReport | None = None,
) -> Handler:
    """Returns the handler over fakes; `channels` and `queues` are by channel name."""
    return assemble(
        DeliverDependencies(
            cast("SendLedger", ledger),
            cast("Mapping[str, Channel]", channels),
            clock or Clock(),
            channel_writers(CHANNELS),
        ),
        queues=cast("Mapping[str, SqsQueue]", queues or {"slack": FakeQueue()}),
        checks=payload_checks(CHANNELS),
        dead_letters=cast("Queue", dead_letters or FakeQueue()),
        report=report or RecordedReport(),
    )


def slow_claims(ledger: MemorySendLedger, clock: Clock, seconds: float) -> CallProxy:
    """Returns a proxy of the ledger whose claims take this many seconds."""
    return CallProxy(ledger, after=lambda call: clock.move(seconds if call == "claim_send" else 0))


class DeliverFunction:
    """The deliver function with both channels and their queues, over simulated time.

    `faults` plans failing calls to the ledger and to `get_secret_value`.
    """

    def __init__(
        self, slack: Behaviour, sns: Behaviour, channels: Sequence[str] = ("slack", "sns")
    ) -> None:
        self.clock = Clock()
        self.services = {"slack": Service(self.clock, slack), "sns": Service(self.clock, sns)}
        self.store, self.ledger, self.faults = Store(), MemorySendLedger(), Faults(self.clock)
        self.report = RecordedReport()
        self.queues = {name: FakeQueue(name, self.clock) for name in self.services}
        self.dead = FakeQueue("dead", self.clock)
        store, ledger = (
            CallProxy(target, self.faults.before, self.faults.after)
            for target in (self.store, self.ledger)
        )
        secret = SecretReader(store, "slack-webhook", lambda: self.clock().timestamp())
        connected: dict[str, Any] = {
            "slack": SlackChannel("slack", secret, self.services["slack"].transport),
            "sns": SnsChannel(self.services["sns"], "arn:aws:sns:us-east-1:111122223333:notices"),
        }
        self.handle = deliverer(
            ledger,
            {name: connected[name] for name in channels},
            queues={name: self.queues[name] for name in channels},
            dead_letters=self.dead,
            clock=self.clock,
            report=self.report,
        )

    def notify(self, channel: str = "slack", *, count: int = 1, first: int = 1) -> None:
        """Queues new notices, each with a number as its version."""
        for number in range(first, first + count):
            self.queues[channel].put(numbered_body(channel, number))

    def run(self, *, until_s: float = 15 * 86_400) -> None:
        """Delivers due messages until none waits, or until this many seconds from now."""
        end = self.clock().timestamp() + until_s
        while waiting := [
            (message.visible_at, name)
            for name, queue in self.queues.items()
            if (message := queue.next()) is not None
        ]:
            at, name = min(waiting)
            if at.timestamp() > end:
                return
            self.clock.move(max((at - self.clock()).total_seconds(), 0) + RECEIVE_S)
            self.deliver_next(name)

    def deliver_next(self, channel: str) -> None:
        """Invokes the function with the channel's next message."""
        queue = self.queues[channel]
        message = queue.next()
        assert message is not None
        queue.deliver(message, self.handle, self.dead)

    def redrive(self) -> int:
        """Sends every dead letter again, as `sageaudit redrive notices` does; returns how many."""
        letters = list(self.dead.messages.values())
        self.dead.messages.clear()
        for letter in letters:
            self.queues[json.loads(letter.body)["channel"]].put(letter.body)
        return len(letters)

    def heal(self) -> None:
        """Lets all services work again, and removes all faults."""
        for service in self.services.values():
            service.behaviour = works
        self.store.value = WEBHOOK
        self.faults.heal()
        self.dead.errors.clear()

    def reset_counts(self) -> None:
        """Clears Slack's posts and all counts."""
        self.services["slack"].posts, self.services["slack"].shown[:] = 0, []
        self.report.counts.clear()

    def reasons(self) -> list[str]:
        """Returns the reasons of the dead letters."""
        return [attributes.get("reason", "") for attributes in self.dead.attributes()]
