"""Event source mappings, processed as Lambda's pollers do."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from moto.events.models import EventPattern

from local.functions import FunctionError, LocalFunction

_SHARD_PAGE = 1000
_PARTIAL = "ReportBatchItemFailures"
_CAMEL_CASE = {
    "StringValue": "stringValue",
    "BinaryValue": "binaryValue",
    "DataType": "dataType",
}


class Source(Protocol):
    """One event source mapping of a function."""

    function: LocalFunction

    def poll(self) -> bool:
        """Sends what is there to the function; False when there is nothing."""

    def receive(self) -> list[dict[str, Any]]:
        """Takes what is there."""

    def feed(self, batch: Sequence[dict[str, Any]]) -> None:
        """Invokes the function with a batch."""


class QueueSource:
    """Messages of a queue, in batches. Failed ones stay, and are visible again after a time."""

    def __init__(self, sqs: Any, mapping: Mapping[str, Any], function: LocalFunction) -> None:
        self._sqs = sqs
        self._arn: str = mapping["EventSourceArn"]
        self.url: str = sqs.get_queue_url(QueueName=self._arn.rpartition(":")[2])["QueueUrl"]
        self._batch_size = min(int(mapping["BatchSize"]), 10)
        self._partial = _PARTIAL in mapping.get("FunctionResponseTypes", ())
        self.function = function

    def poll(self) -> bool:
        """Sends one batch to the function."""
        messages = self.receive()
        if messages:
            self.feed(messages)
        return bool(messages)

    def receive(self) -> list[dict[str, Any]]:
        """The next batch, invisible in the queue from now on."""
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
            answer = self.function.invoke({"Records": [self._record(one) for one in batch]})
        except FunctionError:
            return
        failed = self._failed(answer)
        for message in batch:
            if message["MessageId"] not in failed:
                self._sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])

    def waiting(self) -> int:
        """The number of messages that are not done, visible or not."""
        names = ["", "NotVisible", "Delayed"]
        attributes = self._sqs.get_queue_attributes(
            QueueUrl=self.url,
            AttributeNames=[f"ApproximateNumberOfMessages{name}" for name in names],
        )["Attributes"]
        return sum(int(count) for count in attributes.values())

    def _failed(self, answer: Any) -> set[str]:
        if not self._partial or not answer:
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


class StreamSource:
    """Records of the table's stream that match the filter, in order and in batches.

    A batch that fails is halved until only the record that fails is left. This record is retried as
    often as the mapping says and then goes to the mapping's destination, and the stream continues.
    """

    def __init__(
        self, streams: Any, sqs: Any, mapping: Mapping[str, Any], function: LocalFunction
    ) -> None:
        self._streams = streams
        self._sqs = sqs
        self._arn: str = mapping["EventSourceArn"]
        self._batch_size = int(mapping["BatchSize"])
        self._partial = _PARTIAL in mapping.get("FunctionResponseTypes", ())
        self._bisect = bool(mapping.get("BisectBatchOnFunctionError"))
        self._tries = 1 + int(mapping["MaximumRetryAttempts"])
        self._destination: str = mapping["DestinationConfig"]["OnFailure"]["Destination"]
        filters = mapping.get("FilterCriteria", {}).get("Filters", ())
        self._patterns = [EventPattern.load(item["Pattern"]) for item in filters]
        self.function = function
        self._iterator = self._from_the_start()

    def poll(self) -> bool:
        """Sends new records to the function."""
        records = self.receive()
        for position in range(0, len(records), self._batch_size):
            self.feed(records[position : position + self._batch_size])
        return bool(records)

    def receive(self) -> list[dict[str, Any]]:
        """New records that match the filter."""
        page = self._streams.get_records(ShardIterator=self._iterator, Limit=_SHARD_PAGE)
        self._iterator = page["NextShardIterator"]
        records = [self._record(one) for one in page["Records"]]
        return [record for record in records if self._passes(record)]

    def feed(self, batch: Sequence[dict[str, Any]]) -> None:
        """Invokes the function until each record of a batch is done or has used all its retries."""
        tries = 0
        while batch and tries < self._tries:
            failed_at = self._failed_at(batch)
            if failed_at is None:
                return
            if failed_at == 0 and self._bisect and len(batch) > 1:
                half = len(batch) // 2
                self.feed(batch[:half])
                batch, tries = batch[half:], 0
                continue
            tries = 1 if failed_at else tries + 1
            batch = batch[failed_at:]
        self._give_up(batch)

    def _failed_at(self, batch: Sequence[dict[str, Any]]) -> int | None:
        """Where to start again: the first record that the answer names, or the batch's start."""
        try:
            answer = self.function.invoke({"Records": list(batch)})
        except FunctionError:
            return 0
        if not self._partial or not answer:
            return None
        failures = {item["itemIdentifier"] for item in answer.get("batchItemFailures", ())}
        numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
        return next((at for at, number in enumerate(numbers) if number in failures), None)

    def _give_up(self, batch: Sequence[dict[str, Any]]) -> None:
        numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
        url = self._sqs.get_queue_url(QueueName=self._destination.rpartition(":")[2])["QueueUrl"]
        info = {
            "streamArn": self._arn,
            "startSequenceNumber": numbers[0],
            "endSequenceNumber": numbers[-1],
            "batchSize": len(batch),
        }
        body = {"version": "1.0", "DDBStreamBatchInfo": info}
        self._sqs.send_message(QueueUrl=url, MessageBody=json.dumps(body))

    def _passes(self, record: Any) -> bool:
        return not self._patterns or any(one.matches_event(record) for one in self._patterns)

    def _record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        change = dict(record["dynamodb"])
        written_at = change["ApproximateCreationDateTime"]
        change["ApproximateCreationDateTime"] = int(written_at.timestamp())
        return {
            "eventID": record["eventID"],
            "eventName": record["eventName"],
            "eventVersion": record["eventVersion"],
            "eventSource": record["eventSource"],
            "eventSourceARN": self._arn,
            "awsRegion": self._arn.split(":")[3],
            "dynamodb": _as_json(change),
        }

    def _from_the_start(self) -> str:
        [shard] = self._streams.describe_stream(StreamArn=self._arn)["StreamDescription"]["Shards"]
        iterator: str = self._streams.get_shard_iterator(
            StreamArn=self._arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        return iterator


def _as_json(value: Any) -> Any:
    """Events of Lambda are JSON, with bytes as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    return [_as_json(item) for item in value] if isinstance(value, list) else value
