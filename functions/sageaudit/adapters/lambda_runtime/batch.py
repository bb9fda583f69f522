"""One invocation: works on each record alone, and answers which records to deliver again.

SQS delivers again each message that the answer names. A stream starts again at the record that the
answer names, so no record after it is started. Why this is no `BatchProcessor` of Powertools:
docs/decisions/0010-what-powertools-does.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.errors import AwsError, RejectedEvent
from sageaudit.ports import Queue

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
DEFECTS = "Defects"
"""The metric for records that failed with an unexpected error, in all three functions."""
REJECTED = "RejectedEvents"
"""The metric for records that went to the dead-letter queue without a retry."""


class Record(Protocol):
    """One record of a batch."""

    LABEL: ClassVar[str]
    """The name of its identifier in a log."""
    IN_ORDER: ClassVar[bool]
    """Whether the records after one that is not done must wait."""

    def __init__(self, raw: dict[str, Any]) -> None: ...

    @property
    def identifier(self) -> str:
        """How an answer names it."""

    @property
    def letter(self) -> str:
        """The body to send to the dead-letter queue."""


R = TypeVar("R", bound=Record)


class ComesBack(Exception):
    """A record has to wait, and nothing failed: it is delivered again when it is visible again."""


class Batch(Generic[R]):
    """A Lambda function: `work` processes one record, or raises.

    RejectedEvent sends the record to the dead-letter queue with its code as the reason, because a
    retry would end the same way. After any other error the record is delivered again, and the error
    is logged and counted as `failed`. With less than `stop_before_ms` of the function's time left,
    no record is started: a function that times out answers nothing, and its whole batch would be
    delivered again.
    """

    def __init__(
        self,
        record: type[R],
        work: Callable[[R], None],
        *,
        failed: str,
        stop_before_ms: int,
        dead_letters: Queue,
        report: Report,
    ) -> None:
        self._record = record
        self._work = work
        self._failed = failed
        self._stop_before_ms = stop_before_ms
        self._dead_letters = dead_letters
        self._report = report

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answers which records to deliver again; the others are done."""
        coming_back = (
            {"itemIdentifier": record.identifier}
            for record in map(self._record, event["Records"])
            if self._out_of_time(context) or not self._done(record)
        )
        failures = list(islice(coming_back, 1) if self._record.IN_ORDER else coming_back)
        self._report.flush()
        return {"batchItemFailures": failures}

    def _done(self, record: R) -> bool:
        named = {self._record.LABEL: record.identifier}
        try:
            self._work_or_reject(record, named)
        except ComesBack:
            return False
        except AwsError as error:
            self._report.count(self._failed)
            reason = {"error": type(error).__name__, "reason": str(error)}
            self._report.error("record failed", **named, **reason)
            return False
        except Exception as error:  # noqa: BLE001 - a bug with one record must not fail the others
            self._report.count(self._failed)
            self._report.count(DEFECTS)
            self._report.defect("record failed", error, **named)
            return False
        return True

    def _work_or_reject(self, record: R, named: Mapping[str, str]) -> None:
        try:
            self._work(record)
        except RejectedEvent as rejected:
            attributes = {"reason": rejected.code, "why": str(rejected)}
            self._dead_letters.send(record.letter, attributes=attributes)
            self._report.count(REJECTED)
            reason = {"error": rejected.code, "reason": str(rejected)}
            self._report.error("record rejected", **named, **reason)

    def _out_of_time(self, context: Any) -> bool:
        return context is not None and context.get_remaining_time_in_millis() < self._stop_before_ms


def entry_point(build: Callable[[Mapping[str, str]], Handler]) -> Handler:
    """The function that Lambda calls: built from the environment at a process's first event."""

    @cache
    def built() -> Handler:
        return build(os.environ)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return built()(event, context)

    return handler
