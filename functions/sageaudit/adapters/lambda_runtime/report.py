"""A function's report about its records: JSON lines in its log, and counts as EMF lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from sageaudit.domain.token_shapes import redact
from sageaudit.errors import UnreadableItem
from sageaudit.output.text import untrusted

REQUEST_ID = "function_request_id"
"""The key of Lambda's request id in log lines. Powertools uses the same name."""
UNREADABLE = "UnreadableItems"
"""The metric for stored items that cannot be read, in all functions."""
_CALLER = 3
"""Stack levels to the caller, so that `location` in a log line names the caller."""


class _Formatter(LambdaPowertoolsFormatter):
    """Removes secrets, since an unexpected error's text may quote one."""

    def serialize(self, log: Any) -> str:
        return super().serialize(_redacted(log))


class RecordReport:
    """One function's log and counts.

    Texts may quote user input, so each is escaped to one line. Powertools' `Metrics` is not used:
    the whole process shares it, it has only one set of dimensions, and it warns if it is empty.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._service = environ.get("POWERTOOLS_SERVICE_NAME", "sageaudit")
        self._namespace = environ.get("POWERTOOLS_METRICS_NAMESPACE", "sageaudit")
        self._logger = Logger(service=self._service, logger_formatter=_Formatter())
        self._counts: dict[str | None, Counter[str]] = {}
        self._invocation: dict[str, Any] = {}
        self._labels: dict[str, Any] = {}

    def start_invocation(self, context: Any) -> None:
        """Begins an invocation. Its request id is added to all following lines."""
        request_id = getattr(context, "aws_request_id", None)
        self._invocation = {} if request_id is None else {REQUEST_ID: request_id}
        self._labels = {}

    def set_labels(self, **labels: Any) -> None:
        """Sets labels for the following lines, such as the job. `flush` clears them."""
        self._labels = labels

    def info(self, message: str, **labels: Any) -> None:
        """Logs something that was done."""
        self._logger.info(message, extra=self._extra(labels), stacklevel=_CALLER)

    def warning(self, message: str, **labels: Any) -> None:
        """Logs something that is missing or will be tried again."""
        self._logger.warning(message, extra=self._extra(labels), stacklevel=_CALLER)

    def error(self, message: str, **labels: Any) -> None:
        """Logs something that failed."""
        self._logger.error(message, extra=self._extra(labels), stacklevel=_CALLER)

    def defect(self, message: str, error: Exception, **labels: Any) -> None:
        """Logs an unexpected error with its traceback."""
        self._logger.error(message, exc_info=error, extra=self._extra(labels), stacklevel=_CALLER)

    def count(self, name: str, *, channel: str | None = None, number: int = 1) -> None:
        """Adds `number` to a metric; 0 also publishes a value. `channel` is a dimension."""
        self._counts.setdefault(channel, Counter())[name] += number

    def unreadable(self, items: Iterable[UnreadableItem]) -> None:
        """Logs and counts stored items that a list left out because they cannot be read."""
        for item in items:
            self.count(UNREADABLE)
            self.error("stored item left out", item=item.key, reason=item.reason)

    def flush(self) -> None:
        """Prints the counts, one line per channel, and clears counts and labels."""
        for channel, names in self._counts.items():
            metrics = EphemeralMetrics(service=self._service, namespace=self._namespace)
            if channel is not None:
                metrics.add_dimension("channel", channel)
            for key, value in self._invocation.items():
                metrics.add_metadata(key, value)
            for name, count in names.items():
                metrics.add_metric(name, MetricUnit.Count, count)
            metrics.flush_metrics(raise_on_empty_metrics=True)
        self._counts.clear()
        self._labels = {}

    def _extra(self, labels: Mapping[str, Any]) -> dict[str, Any]:
        return _safe({**self._invocation, **self._labels, **labels})


def _safe(labels: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: untrusted.for_log(redact(value)) if isinstance(value, str) else value
        for key, value in labels.items()
    }


def _redacted(part: Any) -> Any:
    if isinstance(part, str | BaseException):
        return redact(str(part))
    if isinstance(part, Mapping):
        return {key: _redacted(value) for key, value in part.items()}
    return [_redacted(value) for value in part] if isinstance(part, list | tuple) else part
