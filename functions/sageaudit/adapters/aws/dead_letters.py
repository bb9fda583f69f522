"""A queue of dead letters, as a person reads it: received, held, shown again or deleted.

A received message is hidden from others for a time. It keeps its MessageId, and each receive gives
it a new receipt handle: only the newest one deletes it for sure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sageaudit.adapters.aws.sqs import BATCH, queue_errors

CLI_PERMISSIONS = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
)
LONG_POLL_S = 3
"""How long SQS looks for a message. A short poll (0 s) asks only some of SQS's servers."""


@dataclass(frozen=True, slots=True)
class Received:
    """One message. `attributes` are those that its sender gave, `system` those of SQS.

    `as_sent` has the sender's attributes as SQS answers them, with types and bytes.
    """

    message_id: str
    receipt_handle: str
    body: str
    attributes: Mapping[str, str]
    system: Mapping[str, str]
    as_sent: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Of the body."""
        return len(self.body.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Depth:
    """About how many messages a queue has, and how long it keeps them."""

    visible: int
    hidden: int
    retention_s: int


class DeadLetterQueue:
    """`client` is boto3's SQS client of the queue's region."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self.url = url

    @property
    def name(self) -> str:
        """The last part of its URL."""
        return self.url.rpartition("/")[2]

    def depth(self) -> Depth:
        """Raises AwsError."""
        with queue_errors(self.name):
            found = self._client.get_queue_attributes(
                QueueUrl=self.url,
                AttributeNames=[
                    "ApproximateNumberOfMessages",
                    "ApproximateNumberOfMessagesNotVisible",
                    "MessageRetentionPeriod",
                ],
            ).get("Attributes", {})
        return Depth(
            int(found.get("ApproximateNumberOfMessages", 0)),
            int(found.get("ApproximateNumberOfMessagesNotVisible", 0)),
            int(found["MessageRetentionPeriod"]),
        )

    def receive(self, *, hidden_s: int) -> list[Received]:
        """Up to ten messages, hidden from now on; none if SQS finds none. Raises AwsError."""
        with queue_errors(self.name):
            answer = self._client.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=BATCH,
                WaitTimeSeconds=LONG_POLL_S,
                VisibilityTimeout=hidden_s,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        return [_received(message) for message in answer.get("Messages", [])]

    def hide(self, handles: Sequence[str], seconds: int) -> set[int]:
        """Hides messages from now on, or shows them again (0 s); the places of those refused.

        Raises AwsError.
        """
        refused: set[int] = set()
        for start, part in _parts(handles):
            entries = [
                {"Id": str(place), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
                for place, handle in enumerate(part)
            ]
            with queue_errors(self.name):
                answer = self._client.change_message_visibility_batch(
                    QueueUrl=self.url, Entries=entries
                )
            refused |= {start + int(failed["Id"]) for failed in answer.get("Failed", [])}
        return refused

    def delete(self, handles: Sequence[str]) -> set[int]:
        """Deletes messages; the places of those refused. Raises AwsError."""
        refused: set[int] = set()
        for start, part in _parts(handles):
            entries = [
                {"Id": str(place), "ReceiptHandle": handle} for place, handle in enumerate(part)
            ]
            with queue_errors(self.name):
                answer = self._client.delete_message_batch(QueueUrl=self.url, Entries=entries)
            refused |= {start + int(failed["Id"]) for failed in answer.get("Failed", [])}
        return refused


def _parts(handles: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    for start in range(0, len(handles), BATCH):
        yield start, handles[start : start + BATCH]


def _received(message: Mapping[str, Any]) -> Received:
    given = message.get("MessageAttributes", {})
    return Received(
        message["MessageId"],
        message["ReceiptHandle"],
        message["Body"],
        {name: _text(value) for name, value in given.items()},
        message.get("Attributes", {}),
        given,
    )


def _text(attribute: Mapping[str, Any]) -> str:
    """An attribute's value; binary data is only described."""
    if "StringValue" in attribute:
        return str(attribute["StringValue"])
    return f"({len(attribute.get('BinaryValue', b''))} bytes of binary data)"
