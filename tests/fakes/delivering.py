"""Channels, queues and records for notices: they remember, fail and die as a test wants."""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from deliver.handler import wired
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.channels.services import SlackChannel, SnsChannel, checks, writers
from sageaudit.adapters.files.exact_json import gzip_text
from sageaudit.adapters.history.record_steps import stored_text
from sageaudit.adapters.lambda_runtime.batch import Handler
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.routes import ChannelChoice
from sageaudit.output.text.card import Notice, Payload, to_body
from sageaudit.ports import Channel, Queue, SendLedger
from sageaudit.workflows.deliver import DeliverDependencies
from tests.fakes.queues import Killed

NOON = datetime(2026, 5, 20, 13, 10, tzinfo=UTC)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/train-bert-0412"
PK = f"JOB#{ARN}#1779271080000"
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
CHANNELS: Mapping[str, ChannelChoice] = {
    "sns": ChannelChoice("sns"),
    "slack": ChannelChoice("slack", "webhook"),
}
PAYLOADS: Mapping[str, dict[str, Any]] = {"slack": SLACK, "sns": SNS}


QUEUE = "work"
"""The name of the queue that `sqs_record` comes from, and of a queue that remembers."""


@dataclass
class Clock:
    """Stands still unless moved."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class RecordingChannel:
    """Remembers what was posted; `answers` are raised first, one a post."""

    answers: list[Exception] = field(default_factory=list)
    posted: list[dict[str, Any]] = field(default_factory=list)

    def prepare(self) -> None:
        """Needs nothing."""

    def as_repeat(self, payload: Payload) -> Payload:
        channel = SlackChannel if "blocks" in payload else SnsChannel
        return channel.as_repeat(payload)

    def post(self, payload: dict[str, Any]) -> None:
        if self.answers:
            raise self.answers.pop(0)
        self.posted.append(payload)


@dataclass
class RecordingQueue:
    """Remembers what was sent and what was made to wait; `answers` are raised first."""

    sent: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    waits_s: list[int] = field(default_factory=list)
    answers: list[Exception] = field(default_factory=list)
    name: str = QUEUE

    def send(
        self, body: str, *, delay_s: int = 0, attributes: dict[str, str] | None = None
    ) -> None:
        if self.answers:
            raise self.answers.pop(0)
        self.sent.append((body, attributes or {}))

    def change_visibility(self, receipt_handle: str, seconds: int) -> None:
        self.waits_s.append(seconds)


@dataclass
class Stepped:
    """Does something before and after each call of what it stands for."""

    target: Any
    step: Callable[[], None]

    def __getattr__(self, name: str) -> Any:
        if not callable(getattr(self.target, name)):
            return getattr(self.target, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.step()
            answer = getattr(self.target, name)(*args, **kwargs)
            self.step()
            return answer

        return call


def dying(steps: int) -> Callable[[], None]:
    """Ends the process at the step with this number, once."""
    numbers = iter(range(1_000_000))

    def step() -> None:
        if next(numbers) == steps:
            raise Killed

    return step


@dataclass
class Lambda:
    """The context: how much time is left."""

    left_ms: Iterator[int]

    def get_remaining_time_in_millis(self) -> int:
        return next(self.left_ms)


def deliverer(
    ledger: Any,
    channels: Mapping[str, Any],
    *,
    queue: Any = None,
    dead_letters: Any = None,
    clock: Callable[[], datetime] | None = None,
    service: str = "deliver-tests",
) -> Handler:
    """Deliver over fakes."""
    return wired(
        DeliverDependencies(
            cast("SendLedger", ledger),
            cast("Mapping[str, Channel]", channels),
            clock or Clock(),
            writers(CHANNELS),
        ),
        queues=dict.fromkeys(CHANNELS, cast("SqsQueue", queue or RecordingQueue())),
        checks=checks(CHANNELS),
        dead_letters=cast("Queue", dead_letters or RecordingQueue()),
        report=Report({"POWERTOOLS_SERVICE_NAME": service}),
    )


def notice_body(channel: str = "slack", *, version: int = 1) -> str:
    """A notice as notify queues it."""
    return to_body(Notice(f"{PK}|{version}|{channel}", channel, PAYLOADS[channel]))


def sqs_record(
    body: str, *, message_id: str = "m1", received: int = 1, queue: str = QUEUE
) -> dict[str, Any]:
    """A message as Lambda hands it over."""
    return {
        "messageId": message_id,
        "receiptHandle": f"handle of {message_id}",
        "body": body,
        "attributes": {"ApproximateReceiveCount": str(received)},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:111122223333:{queue}",
    }


def batch(*records: dict[str, Any]) -> dict[str, Any]:
    """An event."""
    return {"Records": list(records)}


def failures(answer: dict[str, Any]) -> list[str]:
    """Which records come back."""
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def stream_record(
    document: AuditDocument | str, *, number: int = 1, version: int = 1, pk: str = PK
) -> dict[str, Any]:
    """The INSERT of an audit as Lambda hands it over."""
    text = document if isinstance(document, str) else stored_text(document, version)
    return {
        "eventID": f"e{number}",
        "eventName": "INSERT",
        "eventSource": "aws:dynamodb",
        "dynamodb": {
            "ApproximateCreationDateTime": NOON.timestamp(),
            "Keys": {"pk": {"S": pk}, "sk": {"S": f"AUDIT#{version:05d}"}},
            "NewImage": {
                "pk": {"S": pk},
                "sk": {"S": f"AUDIT#{version:05d}"},
                "version": {"N": str(version)},
                "document": {"B": base64.b64encode(gzip_text(text)).decode()},
            },
            "SequenceNumber": str(number),
        },
    }


def notice_record(pk: str, sk: str, channel: str, body: str, *, number: int = 1) -> dict[str, Any]:
    """The INSERT of a notice as Lambda hands it over."""
    image: dict[str, Any] = {
        name: {"S": text} for name, text in {"pk": pk, "sk": sk, "channel": channel}.items()
    }
    image["body"] = {"B": base64.b64encode(gzip_text(body)).decode()}
    return {
        "eventID": f"e{number}",
        "eventName": "INSERT",
        "eventSource": "aws:dynamodb",
        "dynamodb": {
            "ApproximateCreationDateTime": NOON.timestamp(),
            "NewImage": image,
            "SequenceNumber": str(number),
        },
    }


def counted(printed: str) -> dict[tuple[str, str | None], int]:
    """The counts among the lines of standard output, by name and channel."""
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith('{"_aws"')]
    counts: Counter[tuple[str, str | None]] = Counter()
    for line in lines:
        for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
            counts[metric["Name"], line.get("channel")] += int(sum(line[metric["Name"]]))
    return dict(counts)
