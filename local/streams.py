"""The event source mapping of the table's stream, processed as Lambda's poller does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.utilities import dynamo_json_dump
from moto.events.models import EventPattern

from local import ACCOUNT, REGION
from local.functions import FunctionError, LocalFunction
from local.sources import PARTIAL_FAILURES

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1, 60
"""Pauses between two tries double each time. Lambda does not document its own: our choice."""


class StreamSource:
    """Records of the table's stream that match the filter, in order and in batches.

    A failing batch is halved until only the failing record is left. The stream waits while this
    record is retried, until it is too old for the mapping: then it goes to the mapping's
    destination, and the stream continues.
    """

    def __init__(
        self,
        sqs: Any,
        mapping: Mapping[str, Any],
        function: LocalFunction,
        clock: Callable[[], datetime],
    ) -> None:
        self._sqs = sqs
        self._arn: str = mapping["EventSourceArn"]
        self._batch_size = int(mapping["BatchSize"])
        self._partial = PARTIAL_FAILURES in mapping.get("FunctionResponseTypes", ())
        self._bisect = bool(mapping.get("BisectBatchOnFunctionError"))
        if int(mapping["MaximumRetryAttempts"]) != -1:
            raise NotImplementedError("a number of retries: here only a record's age ends them")
        self._given_up_after = timedelta(seconds=int(mapping["MaximumRecordAgeInSeconds"]))
        self._destination: str = mapping["DestinationConfig"]["OnFailure"]["Destination"]
        filters = mapping.get("FilterCriteria", {}).get("Filters", ())
        self._patterns = [EventPattern.load(item["Pattern"]) for item in filters]
        self.function = function
        self._clock = clock
        self._read = 0
        self._records: list[dict[str, Any]] = []
        self._pause_s = FIRST_PAUSE_S
        self._tried_again_at: datetime | None = None
        """None while no record has failed."""

    def poll(self) -> bool:
        """Sends new records, or one that may be retried, to the function."""
        at = self.next_at()
        if at is None or at > self._clock():
            return False
        while batch := self._records[: self._batch_size]:
            done = self._done(batch)
            del self._records[:done]
            if done == len(batch):
                self._pause_s, self._tried_again_at = FIRST_PAUSE_S, None
            elif self._is_old(self._records[0]):
                self._give_up(self._records.pop(0))
            else:
                self._tried_again_at = self._clock() + timedelta(seconds=self._pause_s)
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
                break
        return True

    def receive(self) -> list[dict[str, Any]]:
        """Takes new records that match the filter.

        They are read from moto's table itself: after a failed transaction moto has another table,
        and an older shard iterator sees no new records.
        """
        table = dynamodb_backends[ACCOUNT][REGION].tables.get(self._arn.split("/")[1])
        items = table.stream_shard.items if table and table.stream_shard else []
        new, self._read = items[self._read :], len(items)
        records = [self._record(item.to_json()) for item in new]
        return [record for record in records if self._passes(record)]

    def feed(self, batch: Sequence[dict[str, Any]]) -> None:
        """Invokes the function with a batch once, whatever it answers."""
        self._failed_at(batch)

    def next_at(self) -> datetime | None:
        """Returns now for a new record, or the time of the next retry."""
        self._records += self.receive()
        return (self._tried_again_at or self._clock()) if self._records else None

    def _done(self, batch: Sequence[dict[str, Any]]) -> int:
        """Returns how many records are done, from the first one on."""
        failed_at = self._failed_at(batch)
        if failed_at is None:
            return len(batch)
        if failed_at == 0 and self._bisect and len(batch) > 1:
            half = len(batch) // 2
            done = self._done(batch[:half])
            return done if done < half else half + self._done(batch[half:])
        return failed_at

    def _failed_at(self, batch: Sequence[dict[str, Any]]) -> int | None:
        """Returns where to start again: the first record in the answer, or the batch's start."""
        try:
            answer = self.function.invoke({"Records": list(batch)})
        except FunctionError:
            return 0
        if not self._partial or not answer:
            return None
        failures = {item["itemIdentifier"] for item in answer.get("batchItemFailures", ())}
        numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
        return next((at for at, number in enumerate(numbers) if number in failures), None)

    def _is_old(self, record: Mapping[str, Any]) -> bool:
        written_at_s: int = record["dynamodb"]["ApproximateCreationDateTime"]
        return self._clock().timestamp() - written_at_s > self._given_up_after.total_seconds()

    def _give_up(self, record: Mapping[str, Any]) -> None:
        number = record["dynamodb"]["SequenceNumber"]
        url = self._sqs.get_queue_url(QueueName=self._destination.rpartition(":")[2])["QueueUrl"]
        info = {
            "streamArn": self._arn,
            "startSequenceNumber": number,
            "endSequenceNumber": number,
            "batchSize": 1,
        }
        body = {"version": "1.0", "DDBStreamBatchInfo": info}
        self._sqs.send_message(QueueUrl=url, MessageBody=json.dumps(body))

    def _passes(self, record: Any) -> bool:
        return not self._patterns or any(rule.matches_event(record) for rule in self._patterns)

    def _record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        change = json.loads(dynamo_json_dump(record["dynamodb"]))
        written_at_s = int(change["ApproximateCreationDateTime"])
        return {
            "eventID": record["eventID"],
            "eventName": record["eventName"],
            "eventVersion": record["eventVersion"],
            "eventSource": record["eventSource"],
            "eventSourceARN": self._arn,
            "awsRegion": self._arn.split(":")[3],
            "dynamodb": {**change, "ApproximateCreationDateTime": written_at_s},
        }
