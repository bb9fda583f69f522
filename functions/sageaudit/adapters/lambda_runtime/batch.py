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
from sageaudit.adapters.lambda_runtime.retries import Retries
from sageaudit.errors import AwsError, BadHistory, Malformed, RejectedEvent

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
DEFECTS = "Defects"
"""The metric for records that failed with an unexpected error, in each function."""
REJECTED = "RejectedEvents"
"""The metric for records that went to the dead letters without a retry."""


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
    """A record has to wait for `wait_s` seconds, for the reason that the text says."""

    def __init__(self, why: str, wait_s: int) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class Batch(Generic[R]):
    """A Lambda function: `work` processes one record, or raises.

    RejectedEvent sends the record away with its code as the reason, because a retry would end the
    same way. After any other error `retries` says when the record comes back, and the error is
    logged and counted as `failed`; one that is not expected is counted as a defect too. With less
    than `stop_before_ms` of the function's time left, no record is started: a function that times
    out answers nothing, and its whole batch would be delivered again. Counts are printed after each
    record, so that a later one cannot lose them. `begin` is told, before each record, how many
    milliseconds the function has left.
    """

    def __init__(
        self,
        record: type[R],
        work: Callable[[R], None],
        *,
        failed: str,
        stop_before_ms: int,
        retries: Retries[R],
        report: Report,
        begin: Callable[[float | None], None] = lambda _: None,
    ) -> None:
        self._record = record
        self._work = work
        self._failed = failed
        self._stop_before_ms = stop_before_ms
        self._retries = retries
        self._report = report
        self._begin = begin

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answers which records to deliver again; the others are done."""
        self._report.begin(context)
        coming_back = (
            {"itemIdentifier": record.identifier}
            for record in map(self._record, event["Records"])
            if not self._done(record, _left_ms(context))
        )
        failures = list(islice(coming_back, 1) if self._record.IN_ORDER else coming_back)
        return {"batchItemFailures": failures}

    def _done(self, record: R, left_ms: float | None) -> bool:
        if left_ms is not None and left_ms < self._stop_before_ms:
            return False
        self._begin(left_ms)
        named = {self._record.LABEL: record.identifier}
        try:
            return self._worked(record, named)
        except AwsError as error:  # what was not done could not be sent elsewhere either
            self._report.error("record failed", **named, **_said(error))
            return False
        finally:
            self._report.flush()

    def _worked(self, record: R, named: Mapping[str, str]) -> bool:
        try:
            self._work(record)
        except RejectedEvent as rejected:
            self._retries.reject(record, rejected.code, str(rejected))
            self._report.count(REJECTED)
            reason = {"error": rejected.code, "reason": str(rejected)}
            self._report.error("record rejected", **named, **reason)
        except ComesBack as waits:
            return self._again(record, named, str(waits), waits.wait_s)
        except (AwsError, BadHistory, Malformed) as error:
            self._report.count(self._failed)
            self._report.error("record failed", **named, **_said(error))
            return self._again(record, named, str(error))
        except Exception as error:  # noqa: BLE001 - a bug with one record must not fail the others
            self._report.count(self._failed)
            self._report.count(DEFECTS)
            self._report.defect("record failed", error, **named)
            return self._again(record, named, f"an unexpected {type(error).__name__}")
        return True

    def _again(
        self, record: R, named: Mapping[str, str], why: str, wait_s: int | None = None
    ) -> bool:
        gone = self._retries.again(record, why, wait_s)
        if gone is None:
            return False
        self._report.count(gone)
        self._report.error("record sent elsewhere", **named, metric=gone, reason=why)
        return True


def _left_ms(context: Any) -> float | None:
    return None if context is None else context.get_remaining_time_in_millis()


def _said(error: Exception) -> dict[str, str]:
    return {"error": type(error).__name__, "reason": str(error)}


def entry_point(build: Callable[[Mapping[str, str]], Handler]) -> Handler:
    """The function that Lambda calls: built from the environment at a process's first event."""

    @cache
    def built() -> Handler:
        return build(os.environ)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return built()(event, context)

    return handler
