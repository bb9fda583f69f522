"""The event source mapping of the table's stream, which works like Lambda's poller."""

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

FIRST_PAUSE_S = 1
"""The pause after a first failure; it doubles each time. Lambda does not document its pauses."""
LONGEST_PAUSE_S = 60
"""The longest pause between two tries: our choice."""


class StreamSource:
    """Delivers records of the table's stream that match the filter, in order and in batches.

    A batch that fails is halved until only the failing record is left. The stream waits while this
    record is retried. When the record is too old for the mapping, it goes to the mapping's
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
        self._reports_partial_failures = PARTIAL_FAILURES in mapping.get(
            "FunctionResponseTypes", ()
        )
        self._halves_failed_batches = bool(mapping.get("BisectBatchOnFunctionError"))
        if int(mapping["MaximumRetryAttempts"]) != -1:
            raise NotImplementedError(
                "a limit of retries: the local AWS supports only a limit of the record's age"
            )
        self._abandoned_after = timedelta(seconds=int(mapping["MaximumRecordAgeInSeconds"]))
        self._destination: str = mapping["DestinationConfig"]["OnFailure"]["Destination"]
        filters = mapping.get("FilterCriteria", {}).get("Filters", ())
        self._patterns = [EventPattern.load(item["Pattern"]) for item in filters]
        self.function = function
        self._clock = clock
        self._read_count = 0
        self._records: list[dict[str, Any]] = []
        self._pause_s = FIRST_PAUSE_S
        self._retry_at: datetime | None = None
        """When the failed record is retried; None while no record has failed."""

    def poll(self) -> bool:
        """Sends new records, or a record that may be retried, to the function.

        Returns False if there is nothing to send now.
        """
        next_at = self.next_at()
        if next_at is None or next_at > self._clock():
            return False
        while batch := self._records[: self._batch_size]:
            done_count = self._count_done(batch)
            del self._records[:done_count]
            if done_count == len(batch):
                self._pause_s, self._retry_at = FIRST_PAUSE_S, None
            elif self._is_old(self._records[0]):
                self._abandon(self._records.pop(0))
            else:
                self._retry_at = self._clock() + timedelta(seconds=self._pause_s)
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
                break
        return True

    def receive(self) -> list[dict[str, Any]]:
        """Takes new records that match the filter.

        Reads them from moto's table itself: after a failed transaction moto has a new table object,
        and an older shard iterator sees no new records.
        """
        table = dynamodb_backends[ACCOUNT][REGION].tables.get(self._arn.split("/")[1])
        items = table.stream_shard.items if table and table.stream_shard else []
        new_items, self._read_count = items[self._read_count :], len(items)
        records = [self._record(item.to_json()) for item in new_items]
        return [record for record in records if self._matches_filter(record)]

    def feed(self, batch: Sequence[dict[str, Any]]) -> None:
        """Invokes the function with a batch once, and ignores its answer."""
        self._failed_at(batch)

    def next_at(self) -> datetime | None:
        """Returns now for a new record, or the time of the next retry; None if nothing waits."""
        self._records += self.receive()
        return (self._retry_at or self._clock()) if self._records else None

    def _count_done(self, batch: Sequence[dict[str, Any]]) -> int:
        """Returns how many records at the start of the batch are done."""
        failed_at = self._failed_at(batch)
        if failed_at is None:
            return len(batch)
        if failed_at == 0 and self._halves_failed_batches and len(batch) > 1:
            half = len(batch) // 2
            done_count = self._count_done(batch[:half])
            return done_count if done_count < half else half + self._count_done(batch[half:])
        return failed_at

    def _failed_at(self, batch: Sequence[dict[str, Any]]) -> int | None:
        """Returns the index at which to start again; None if all records are done.

        The first failed record in the answer has this index; it is 0 if the function failed.
        """
        try:
            answer = self.function.invoke({"Records": list(batch)})
        except FunctionError:
            return 0
        if not self._reports_partial_failures or not answer:
            return None
        failures = {item["itemIdentifier"] for item in answer.get("batchItemFailures", ())}
        numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
        return next((at for at, number in enumerate(numbers) if number in failures), None)

    def _is_old(self, record: Mapping[str, Any]) -> bool:
        written_at_s: int = record["dynamodb"]["ApproximateCreationDateTime"]
        return self._clock().timestamp() - written_at_s > self._abandoned_after.total_seconds()

    def _abandon(self, record: Mapping[str, Any]) -> None:
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

    def _matches_filter(self, record: Any) -> bool:
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
