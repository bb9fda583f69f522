"""A queue of dead letters, as a person reads it: received, shown again or deleted.

A received message is hidden from others for a time. It keeps its MessageId, and each receive gives
it a new receipt handle: only the newest one deletes it for sure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.sqs import BATCH, SqsQueue, queue_errors

CLI_PERMISSIONS = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
)
LONG_POLL_S = 3
"""How long SQS looks for a message. A short poll (0 s) asks only some of SQS's servers."""


class Received(Struct, frozen=True):
    """One message. `attributes` are those that its sender gave, `system` those of SQS."""

    message_id: str
    receipt_handle: str
    body: str
    attributes: Mapping[str, str]
    system: Mapping[str, str]


class DeadLetterQueue(SqsQueue):
    """`client` is boto3's SQS client of the queue's region. All methods raise AwsError."""

    def receive(self, *, hidden_s: int) -> list[Received]:
        """Up to ten messages, hidden from now on; none if SQS finds none."""
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

    def show_again(self, handles: Sequence[str]) -> None:
        """Others can receive these messages from now on."""
        for start in range(0, len(handles), BATCH):
            entries = [{**one, "VisibilityTimeout": 0} for one in _entries(handles[start:])]
            with queue_errors(self.name):
                self._client.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)

    def delete(self, handles: Sequence[str]) -> set[int]:
        """Deletes up to ten messages; the places of those that SQS did not delete."""
        with queue_errors(self.name):
            answer = self._client.delete_message_batch(QueueUrl=self.url, Entries=_entries(handles))
        return {int(failed["Id"]) for failed in answer.get("Failed", [])}


def _entries(handles: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"Id": str(place), "ReceiptHandle": handle} for place, handle in enumerate(handles[:BATCH])
    ]


def _received(message: Mapping[str, Any]) -> Received:
    return Received(
        message["MessageId"],
        message["ReceiptHandle"],
        message["Body"],
        {name: _text(value) for name, value in message.get("MessageAttributes", {}).items()},
        message.get("Attributes", {}),
    )


def _text(attribute: Mapping[str, Any]) -> str:
    """An attribute's value; binary data is only described."""
    if "StringValue" in attribute:
        return str(attribute["StringValue"])
    return f"({len(attribute.get('BinaryValue', b''))} bytes of binary data)"
