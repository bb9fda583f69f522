"""One invocation: every record on its own, and an answer that names those to deliver again.

SQS delivers each message again that is named. A stream goes back to the record that is named, so
nothing after it is begun.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from aws_lambda_powertools import Logger

from sageaudit.adapters.lambda_runtime import stream
from sageaudit.adapters.lambda_runtime.counts import Counts
from sageaudit.errors import AwsError
from sageaudit.text import untrusted

Record = dict[str, Any]
Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
DEFECTS = "Defects"
"""Counts records that failed with what nobody foresaw, in all three functions."""


@dataclass(frozen=True, slots=True)
class Source:
    """What feeds a function. `name` is what an answer calls a record, `label` stands in a log."""

    label: str
    name: Callable[[Record], str]
    in_order: bool


MESSAGES = Source("message_id", lambda record: str(record["messageId"]), in_order=False)
STREAM = Source("sequence_number", stream.sequence_number, in_order=True)


class Batch:
    """How a function goes through its batches: `task` names it in logs, `failed` is its count.

    No record is begun when less than `stop_before_ms` of the function's time is left: one that is
    cut off answers nothing, and its whole batch would come back.
    """

    def __init__(
        self,
        source: Source,
        *,
        task: str,
        failed: str,
        stop_before_ms: int,
        logger: Logger,
        counts: Counts,
    ) -> None:
        self._source = source
        self._failure = f"{task} failed"
        self._failed = failed
        self._stop_before_ms = stop_before_ms
        self._logger = logger
        self._counts = counts

    def run(
        self, event: dict[str, Any], context: Any, work: Callable[[Record], bool]
    ) -> dict[str, Any]:
        """Answers which records come back; `work` says of each whether it is done."""
        coming_back = (
            {"itemIdentifier": self._source.name(record)}
            for record in event["Records"]
            if self._out_of_time(context) or not self._done(record, work)
        )
        failures = list(islice(coming_back, 1) if self._source.in_order else coming_back)
        self._counts.flush()
        return {"batchItemFailures": failures}

    def note(self, message: str, record: Record, code: str, reason: str) -> None:
        """One line about a record that was not done; the reason may quote anything."""
        extra = {**self._named(record), "error": code, "reason": untrusted.log(reason)}
        self._logger.error(message, extra=extra)

    def _done(self, record: Record, work: Callable[[Record], bool]) -> bool:
        try:
            return work(record)
        except AwsError as error:
            self._counts.add(self._failed)
            self.note(self._failure, record, type(error).__name__, str(error))
        except Exception:  # the boundary: a defect on one record must not fail the batch's others
            self._counts.add(self._failed)
            self._counts.add(DEFECTS)
            self._logger.exception(self._failure, extra=self._named(record))
        return False

    def _named(self, record: Record) -> dict[str, str]:
        return {self._source.label: untrusted.log(self._source.name(record))}

    def _out_of_time(self, context: Any) -> bool:
        return context is not None and context.get_remaining_time_in_millis() < self._stop_before_ms
