"""One invocation: every record on its own, and an answer that names those to deliver again.

SQS delivers each message again that is named. A stream goes back to the record that is named, so
nothing after it is begun. Why this is no `BatchProcessor`: docs/decisions/0010.
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
"""Counts records that failed with what nobody foresaw, in all three functions."""
REJECTED = "RejectedEvents"
"""Counts records that went to the dead letters at once."""


class Record(Protocol):
    """One record of a batch."""

    LABEL: ClassVar[str]
    """What its identifier is called in a log."""
    IN_ORDER: ClassVar[bool]
    """Whether no record may be begun after one that is not done."""

    def __init__(self, raw: dict[str, Any]) -> None: ...

    @property
    def identifier(self) -> str:
        """What an answer calls it."""

    @property
    def letter(self) -> str:
        """What goes to the dead letters."""


R = TypeVar("R", bound=Record)


class ComesBack(Exception):
    """A record is not done and nothing failed: it is delivered again when it is visible again."""


class Batch(Generic[R]):
    """A function of Lambda: `work` does one record, or raises.

    RejectedEvent sends the record to the dead letters with its code as the reason: a second try
    would find the same. What else is raised brings the record back, and is logged and counted as
    `failed`. No record is begun when less than `stop_before_ms` of the function's time is left: one
    that is cut off answers nothing, and its whole batch would come back.
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
        """Answers which records come back; the others are done."""
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
        except Exception as error:  # noqa: BLE001 - a defect on one record must not fail the others
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
    """What Lambda calls: wired from the environment at the first event, once for each process."""

    @cache
    def built() -> Handler:
        return build(os.environ)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return built()(event, context)

    return handler
