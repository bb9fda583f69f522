"""Runs a Lambda function's records one by one, and decides which are delivered again.

SQS delivers each message again that the answer names. A stream starts again at the named record, so
later records are not started. docs/decisions/0010-what-powertools-does.md says why this is not
Powertools' `BatchProcessor`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from sageaudit.adapters.aws.sqs import MAX_VISIBILITY_S, SqsQueue
from sageaudit.adapters.lambda_runtime.records import FIRST_SENT_ATTRIBUTE, SqsMessage, TableChange
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.domain.alert.backoff import GIVE_UP_AFTER, doubled_s
from sageaudit.errors import AwsError, MalformedData, RejectedEvent, UnreadableItem
from sageaudit.ports import Queue

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
DEFECTS = "Defects"
"""The metric for records that failed with an unexpected error, in all functions."""
REJECTED = "RejectedEvents"
"""The metric for records that became dead letters without a retry."""
ABANDONED = "Abandoned"
"""The metric for messages that were abandoned at their age limit."""
REQUEUED = "Requeued"
"""The metric for table changes that were sent to a queue for another attempt."""
MIN_WAIT_S = 60
MAX_WAIT_S = 3_600
"""The longest wait of a message after a failure, in seconds (our choice).

The first failure hides a message for a minute, each further failure twice as long.
"""
_MIN_JITTER_FACTOR = 0.8
"""The smallest factor of a wait (our choice).

Waits vary, so that messages that failed together do not all return together.
"""
ON_LAMBDA = "AWS_LAMBDA_INITIALIZATION_TYPE" in os.environ
_RUN_TIME_RESERVE_S = 900
"""The longest time that a function may run, in seconds.

SQS limits invisibility to 12 hours from the receive, which includes this time.
"""


Record = SqsMessage | TableChange
R = TypeVar("R", bound=Record)
R_contra = TypeVar("R_contra", contravariant=True)


class RetryRecord(Exception):
    """Makes a record wait for `wait_s` seconds. `why` is the reason."""

    def __init__(self, reason: str, wait_s: int) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class RetryPolicy(Protocol[R_contra]):
    """Decides what happens to failed records."""

    def reject(self, record: R_contra, code: str, reason: str) -> None:
        """Sends a dead letter for a record that would fail again. Raises AwsError."""

    def retry_later(self, record: R_contra, reason: str, wait_s: int | None = None) -> str | None:
        """Has a record delivered again after `wait_s` seconds; None lets the policy choose.

        Returns None, or the metric to count if the record was sent to another queue. Raises
        AwsError.
        """


class Batch(Struct, Generic[R]):
    """A Lambda function. `work` processes one record, or raises an error.

    RejectedEvent makes the record a dead letter, because a retry would fail too. After any other
    error `retries` decides when the record is delivered again. Such errors are logged and counted
    as `failure_metric`. Unexpected errors also count as defects.

    No record is started with less than `stop_before_ms` left, since a timeout would deliver the
    whole batch again. `begin` is called before each record, with the milliseconds left. Counts are
    printed after each record, so that a later record cannot lose them.
    """

    record: type[R]
    work: Callable[[R], None]
    failure_metric: str
    stop_before_ms: int
    retries: RetryPolicy[R]
    report: RecordReport
    begin: Callable[[float | None], None] = lambda _: None
    take_unreadable: Callable[[], Iterable[UnreadableItem]] = tuple

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Processes the records, and returns those to deliver again."""
        self.report.start_invocation(context)
        unprocessed = (
            {"itemIdentifier": record.identifier}
            for record in map(self.record, event["Records"])
            if not self._is_processed_in_time(record, context)
        )
        failures = list(islice(unprocessed, 1) if self.record.IS_ORDERED else unprocessed)
        return {"batchItemFailures": failures}

    def _is_processed_in_time(self, record: R, context: Any) -> bool:
        left_ms = None if context is None else context.get_remaining_time_in_millis()
        if left_ms is not None and left_ms < self.stop_before_ms:
            return False
        self.begin(left_ms)
        labels = {self.record.LABEL: record.identifier}
        try:
            return self._is_processed(record, labels)
        except AwsError as error:  # the record could not be sent to another queue either
            self.report.error("record failed", **labels, **_error_labels(error))
            return False
        finally:
            self.report.unreadable(self.take_unreadable())
            self.report.flush()

    def _is_processed(self, record: R, labels: Mapping[str, str]) -> bool:
        try:
            self.work(record)
        except RejectedEvent as rejected:
            self.retries.reject(record, rejected.code, str(rejected))
            self.report.count(REJECTED)
            reason = {"error": rejected.code, "reason": str(rejected)}
            self.report.error("record rejected", **labels, **reason)
        except RetryRecord as retry:
            return self._retry(record, labels, str(retry), retry.wait_s)
        except (AwsError, MalformedData) as error:
            self.report.count(self.failure_metric)
            self.report.error("record failed", **labels, **_error_labels(error))
            return self._retry(record, labels, str(error))
        except Exception as error:  # noqa: BLE001 - a bug with one record must not fail the others
            self.report.count(self.failure_metric)
            self.report.count(DEFECTS)
            self.report.defect("record failed", error, **labels)
            return self._retry(record, labels, f"an unexpected {type(error).__name__}")
        return True

    def _retry(
        self, record: R, labels: Mapping[str, str], reason: str, wait_s: int | None = None
    ) -> bool:
        metric = self.retries.retry_later(record, reason, wait_s)
        if metric is None:
            return False
        self.report.count(metric)
        self.report.error("record sent elsewhere", **labels, metric=metric, reason=reason)
        return True


def _error_labels(error: Exception) -> dict[str, str]:
    return {"error": type(error).__name__, "reason": str(error)}


class QueueRetries:
    """Implements RetryPolicy for messages. Hides failed messages, and makes old ones dead letters.

    `queues` are the messages' queues. `dead_letters` gets the dead letters of all queues.
    """

    def __init__(
        self, queues: Sequence[SqsQueue], dead_letters: Queue, clock: Callable[[], datetime]
    ) -> None:
        self._queues = {queue.name: queue for queue in queues}
        self._dead_letters = dead_letters
        self._clock = clock

    def reject(self, record: SqsMessage, code: str, reason: str) -> None:
        """Sends a dead letter with its reason."""
        age_attribute = (
            {FIRST_SENT_ATTRIBUTE: str(record.first_sent_ms)} if record.first_sent_ms else {}
        )
        attributes = {"reason": code, "why": reason, **age_attribute}
        self._dead_letters.send(record.dead_letter_body, attributes=attributes)

    def is_too_old(self, record: SqsMessage) -> bool:
        """Returns True if the message is too old for another attempt."""
        return record.age_s(self._clock()) >= GIVE_UP_AFTER.total_seconds()

    def retry_later(self, record: SqsMessage, reason: str, wait_s: int | None = None) -> str | None:
        """Hides the message, so that SQS delivers it again after `wait_s` seconds.

        Without `wait_s`, the delay grows with each delivery. A message that is too old becomes a
        dead letter; then the metric to count is returned, otherwise None.
        """
        if self.is_too_old(record):
            self.reject(record, "abandoned", reason)
            return ABANDONED
        if wait_s is None:
            wait_s = retry_delay_s(record)
        if queue := self._queues.get(record.queue_name):
            longest_s = MAX_VISIBILITY_S - _RUN_TIME_RESERVE_S
            queue.change_visibility(record.receipt_handle, min(wait_s, longest_s))
        return None


def retry_delay_s(record: SqsMessage) -> int:
    """Returns for how many seconds to hide a failed message.

    The message's id determines a share of 80% to 100% of the full wait.
    """
    longest_s = doubled_s(MIN_WAIT_S, record.receive_count - 1, MAX_WAIT_S)
    digest = hashlib.sha256(f"{record.identifier} {record.receive_count}".encode()).digest()
    fraction = digest[0] / 255
    return round(longest_s * (_MIN_JITTER_FACTOR + (1 - _MIN_JITTER_FACTOR) * fraction))


class StreamRetries(Struct, frozen=True):
    """Implements RetryPolicy for table changes.

    It sends the keys of failed changes to a queue, so that no change blocks its shard.
    """

    decisions: Queue
    undecided: Queue

    def reject(self, record: TableChange, code: str, reason: str) -> None:
        """Sends a dead letter with its reason."""
        self.undecided.send(record.dead_letter_body, attributes={"reason": code, "why": reason})

    def retry_later(
        self, record: TableChange, reason: str, wait_s: int | None = None
    ) -> str | None:
        """Sends the keys to the queue. After an AwsError, the stream delivers the record again."""
        del wait_s
        self.decisions.send(record.dead_letter_body, delay_s=MIN_WAIT_S, attributes={"why": reason})
        return REQUEUED


def entry_point(build: Callable[[Mapping[str, str]], Handler]) -> Handler:
    """Returns the function that Lambda calls. `build` makes it once from the environment.

    On Lambda it is built immediately, since init has a full core for any memory size. Elsewhere,
    such as in tests, it is built at the first event.
    """

    @cache
    def built_handler() -> Handler:
        return build(os.environ)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return built_handler()(event, context)

    if ON_LAMBDA:
        built_handler()
    return handler
