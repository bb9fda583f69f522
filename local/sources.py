"""The event source mappings of queues, which work like Lambda's pollers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from moto.sqs.models import sqs_backends

from local import ACCOUNT, REGION
from local.functions import FunctionError, LocalFunction

PARTIAL_FAILURES = "ReportBatchItemFailures"
_CAMEL_CASE = {
    "StringValue": "stringValue",
    "BinaryValue": "binaryValue",
    "DataType": "dataType",
}


class Source(Protocol):
    """One event source mapping of a function."""

    function: LocalFunction

    def poll(self) -> bool:
        """Sends waiting records to the function; returns False if there are none."""

    def receive(self) -> list[dict[str, Any]]:
        """Takes the waiting records."""

    def feed(self, batch: Sequence[dict[str, Any]]) -> None:
        """Invokes the function with a batch."""

    def next_at(self) -> datetime | None:
        """Returns when there is something to send; None if nothing waits."""


class QueueSource:
    """Delivers messages of a queue, in batches.

    Failed messages stay, and become visible again later.
    """

    def __init__(self, sqs: Any, mapping: Mapping[str, Any], function: LocalFunction) -> None:
        self._sqs = sqs
        self._arn: str = mapping["EventSourceArn"]
        self.url: str = sqs.get_queue_url(QueueName=self._arn.rpartition(":")[2])["QueueUrl"]
        self._batch_size = min(int(mapping["BatchSize"]), 10)
        self._reports_partial_failures = PARTIAL_FAILURES in mapping.get(
            "FunctionResponseTypes", ()
        )
        self.function = function

    def poll(self) -> bool:
        """Sends one batch to the function; returns False if there are no messages."""
        messages = self.receive()
        if messages:
            self.feed(messages)
        return bool(messages)

    def receive(self) -> list[dict[str, Any]]:
        """Takes the next batch, which is hidden in the queue from now on."""
        messages: list[dict[str, Any]] = self._sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=self._batch_size,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        return messages

    def feed(self, batch: Sequence[dict[str, Any]]) -> None:
        """Invokes the function with a batch, and deletes the messages that did not fail."""
        try:
            answer = self.function.invoke({"Records": [self._record(message) for message in batch]})
        except FunctionError:
            return
        failed_ids = self._failed_ids(answer)
        for message in batch:
            if message["MessageId"] not in failed_ids:
                self._sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])

    def next_at(self) -> datetime | None:
        """Returns when the next message can be received; None if there is none."""
        messages = sqs_backends[ACCOUNT][REGION].queues[self.url.rpartition("/")[2]]._messages  # noqa: SLF001
        times = [max(message.visible_at + 1, message.delayed_until) for message in messages]
        if not times:
            return None
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=min(times))

    def _failed_ids(self, answer: Any) -> set[str]:
        if not self._reports_partial_failures or not answer:
            return set()
        return {item["itemIdentifier"] for item in answer.get("batchItemFailures", ())}

    def _record(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
            "messageAttributes": {
                name: {_CAMEL_CASE[key]: value for key, value in attribute.items()}
                for name, attribute in message.get("MessageAttributes", {}).items()
            },
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": self._arn,
            "awsRegion": self._arn.split(":")[3],
        }
