"""Accesses one SQS queue.

SQS hides a received message from other receivers for a time. Each receive gives the message a new
receipt handle. Only the newest handle is certain to delete it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError
from msgspec import Struct

from sageaudit.adapters.aws.clients import (
    CONFIG,
    aws_errors,
    error_code,
    parse_errors,
    translate_error,
)
from sageaudit.errors import ResourceNotFound, Unavailable
from sageaudit.ports import QueueDepth

QUEUE_CONFIG = CONFIG.merge(
    Config(retries={"mode": "standard", "total_max_attempts": 2}, read_timeout=5)
)
"""Settings of the client, with few attempts. If a message is sent again, SQS stores it twice.

An unsent message is not lost, since its record is delivered again.
"""
PERMISSIONS = ("sqs:ChangeMessageVisibility", "sqs:SendMessage")
SEND_PERMISSIONS = ("sqs:SendMessage",)
WAIT_PERMISSIONS = ("sqs:ChangeMessageVisibility",)
DEPTH_PERMISSIONS = ("sqs:GetQueueAttributes",)

BATCH_SIZE = 10
"""The maximum number of messages in one request."""
MAX_BATCH_BYTES = 262_144
"""The maximum size of all bodies in one request; SQS accepts 1 MiB since 2025."""
MAX_DELAY_S = 900
"""The longest delay of a sent message, in seconds."""
MAX_VISIBILITY_S = 43_200
"""The longest time in seconds for which SQS hides a received message."""
_MAX_ATTRIBUTE_LENGTH = 1_000
"""The maximum length of an attribute. It keeps messages below SQS's size limit."""
_NO_QUEUE_CODES = re.compile(r"NonExistentQueue|QueueDoesNotExist")
_NUMBER = re.compile(r"[0-9]{1,38}")
_INVALID_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that SQS does not accept in a message.

The ranges of accepted characters, negated, would take 10 ms to compile at each start.
"""
CLI_PERMISSIONS = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
)
LONG_POLL_S = 3
"""Seconds that SQS waits for a message. A short poll (0 s) asks only some of its servers."""


class SqsQueue:
    """Implements Queue. `client` is boto3's SQS client."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self.url = url

    @property
    def name(self) -> str:
        """The queue's name: the last part of its URL and of its ARN."""
        return self.url.rpartition("/")[2]

    def send(
        self, body: str, *, delay_s: int = 0, attributes: dict[str, str] | None = None
    ) -> None:
        """Sends `body` unchanged. Attributes that have only digits become Numbers, others Strings.

        Raises AccessDenied, NoCredentials or Throttled if SQS has not accepted the message. Raises
        Unavailable if SQS may have accepted it, and ValueError for a delay over 15 minutes.
        """
        if not 0 <= delay_s <= MAX_DELAY_S:
            raise ValueError(f"SQS delays a message 0 to {MAX_DELAY_S} s, not {delay_s} s")
        message_attributes = {
            name: _attribute(value) for name, value in (attributes or {}).items() if value
        }
        with aws_errors("sqs"), _refusal_after_retry_errors():
            self._client.send_message(
                QueueUrl=self.url,
                MessageBody=body,
                # Omitted if it is 0, so that the queue's default delay applies.
                **({"DelaySeconds": delay_s} if delay_s else {}),
                **({"MessageAttributes": message_attributes} if message_attributes else {}),
            )

    def send_batch(self, bodies: Sequence[str], *, delay_s: int = 0) -> dict[int, str]:
        """Sends bodies unchanged. Returns the reason for each body that SQS refused, by index.

        A `delay_s` of 0 means the queue's default. If it raises ResourceNotFound or AwsError, some
        bodies may have been sent.
        """
        refusal_by_index: dict[int, str] = {}
        for indexes in _batches(bodies):
            delay_argument = {"DelaySeconds": delay_s} if delay_s else {}
            entries = [
                {"Id": str(index), "MessageBody": bodies[index], **delay_argument}
                for index in indexes
            ]
            with queue_errors(self.name):
                answer = self._client.send_message_batch(QueueUrl=self.url, Entries=entries)
            with parse_errors("sqs"):
                for failed_entry in answer.get("Failed", []):
                    refusal_by_index[int(failed_entry["Id"])] = str(
                        failed_entry.get("Code", "no reason given")
                    )
        return refusal_by_index

    def depth(self) -> QueueDepth:
        """Returns SQS's approximate message counts. Raises ResourceNotFound or AwsError."""
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        with queue_errors(self.name):
            attributes = self._client.get_queue_attributes(
                QueueUrl=self.url, AttributeNames=[*names, "MessageRetentionPeriod"]
            ).get("Attributes", {})
        visible_count, hidden_count = (int(attributes.get(name, 0)) for name in names)
        return QueueDepth(visible_count, hidden_count, int(attributes["MessageRetentionPeriod"]))

    def change_visibility(self, receipt_handle: str, seconds: int) -> None:
        """Makes a received message visible again after `seconds`.

        Raises ValueError for more than 12 hours, or AwsError.
        """
        if not 0 <= seconds <= MAX_VISIBILITY_S:
            raise ValueError(f"SQS hides a message 0 to {MAX_VISIBILITY_S} s, not {seconds} s")
        with aws_errors("sqs"):
            self._client.change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=receipt_handle, VisibilityTimeout=seconds
            )


@contextmanager
def queue_errors(name: str) -> Iterator[None]:
    """Raises ResourceNotFound if the queue is missing. Translates other errors as `aws_errors`
    does.
    """
    with aws_errors("sqs", name):
        try:
            yield
        except ClientError as error:
            if not _NO_QUEUE_CODES.search(error_code(error)):
                raise
            raise ResourceNotFound(
                f"There is no queue {name}: check its name, --region and --profile."
            ) from error


@contextmanager
def _refusal_after_retry_errors() -> Iterator[None]:
    """Raises Unavailable if SQS refused a retry, since it may have accepted the first attempt."""
    try:
        yield
    except ClientError as error:
        if not error.response.get("ResponseMetadata", {}).get("RetryAttempts"):
            raise
        refusal = translate_error(error, "sqs")
        raise Unavailable(f"{refusal} It may have accepted an earlier try.") from error


def _batches(bodies: Sequence[str]) -> Iterator[list[int]]:
    """Yields the indexes of the bodies that fit into one request together."""
    indexes: list[int] = []
    free_bytes = MAX_BATCH_BYTES
    for index, body in enumerate(bodies):
        size = len(body.encode("utf-8", "replace"))
        if indexes and (len(indexes) == BATCH_SIZE or size > free_bytes):
            yield indexes
            indexes, free_bytes = [], MAX_BATCH_BYTES
        indexes.append(index)
        free_bytes -= size
    if indexes:
        yield indexes


def _attribute(value: str) -> dict[str, str]:
    safe_value = _INVALID_CHARACTERS.sub("\ufffd", value[:_MAX_ATTRIBUTE_LENGTH])
    return {
        "DataType": "Number" if _NUMBER.fullmatch(safe_value) else "String",
        "StringValue": safe_value,
    }


class ReceivedMessage(Struct, frozen=True):
    """A received message. The sender set `attributes`; SQS set `system_attributes`."""

    message_id: str
    receipt_handle: str
    body: str
    attributes: Mapping[str, str]
    system_attributes: Mapping[str, str]


class DeadLetterQueue(SqsQueue):
    """A dead-letter queue. `client` is boto3's SQS client for the queue's region.

    All methods raise ResourceNotFound or AwsError.
    """

    def receive(self, *, visibility_timeout_s: int) -> list[ReceivedMessage]:
        """Receives up to ten messages, and hides them from other receivers for this time.

        Returns an empty list if SQS finds no message.
        """
        with queue_errors(self.name):
            answer = self._client.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=BATCH_SIZE,
                WaitTimeSeconds=LONG_POLL_S,
                VisibilityTimeout=visibility_timeout_s,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        return [_parse_message(message) for message in answer.get("Messages", [])]

    def make_visible(self, handles: Sequence[str]) -> None:
        """Makes the messages with these receipt handles visible to other receivers."""
        for start in range(0, len(handles), BATCH_SIZE):
            entries = [{**entry, "VisibilityTimeout": 0} for entry in _entries(handles[start:])]
            with queue_errors(self.name):
                self._client.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)

    def delete(self, handles: Sequence[str]) -> set[int]:
        """Deletes messages by up to ten receipt handles. Returns the indexes that SQS did not
        delete.
        """
        with queue_errors(self.name):
            answer = self._client.delete_message_batch(QueueUrl=self.url, Entries=_entries(handles))
        return {int(failed_entry["Id"]) for failed_entry in answer.get("Failed", [])}


def _entries(handles: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"Id": str(index), "ReceiptHandle": handle}
        for index, handle in enumerate(handles[:BATCH_SIZE])
    ]


def _parse_message(message: Mapping[str, Any]) -> ReceivedMessage:
    return ReceivedMessage(
        message["MessageId"],
        message["ReceiptHandle"],
        message["Body"],
        {name: _text(value) for name, value in message.get("MessageAttributes", {}).items()},
        message.get("Attributes", {}),
    )


def _text(attribute: Mapping[str, Any]) -> str:
    if "StringValue" in attribute:
        return str(attribute["StringValue"])
    return f"({len(attribute.get('BinaryValue', b''))} bytes of binary data)"
