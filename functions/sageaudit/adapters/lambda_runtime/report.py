"""What a function reports about its records: JSON lines in its log, and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from sageaudit.adapters.lambda_runtime.counts import Counts
from sageaudit.domain.job.redact import redact
from sageaudit.text import untrusted

_CALLER = 3
"""Stack levels to the caller: `location` in a log line names the caller, not this file."""


class _Formatter(LambdaPowertoolsFormatter):
    """Powertools' JSON lines; the message of an unexpected error may quote a secret."""

    def serialize(self, log: Any) -> str:
        """The line, with no secret in its traceback."""
        return super().serialize(_redacted(log))


class Report:
    """Log and counts of one function. A text may quote user input: it is escaped to one line."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._logger = Logger(
            service=environ.get("POWERTOOLS_SERVICE_NAME", "sageaudit"),
            logger_formatter=_Formatter(),
        )
        self._counts = Counts(environ)

    def info(self, message: str, **named: Any) -> None:
        """Something that was done."""
        self._logger.info(message, extra=_safe(named), stacklevel=_CALLER)

    def warning(self, message: str, **named: Any) -> None:
        """Something that will be tried again, or that is missing."""
        self._logger.warning(message, extra=_safe(named), stacklevel=_CALLER)

    def error(self, message: str, **named: Any) -> None:
        """Something that was not done."""
        self._logger.error(message, extra=_safe(named), stacklevel=_CALLER)

    def defect(self, message: str, error: Exception, **named: Any) -> None:
        """An unexpected error, with its traceback."""
        self._logger.error(message, exc_info=error, extra=_safe(named), stacklevel=_CALLER)

    def count(self, name: str, *, channel: str | None = None, number: int = 1) -> None:
        """Adds one, or a number."""
        self._counts.add(name, channel=channel, number=number)

    def flush(self) -> None:
        """Prints the counts."""
        self._counts.flush()


def _safe(named: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: untrusted.log(redact(value)) if isinstance(value, str) else value
        for key, value in named.items()
    }


def _redacted(part: Any) -> Any:
    if isinstance(part, str | BaseException):
        return redact(str(part))
    if isinstance(part, Mapping):
        return {key: _redacted(inner) for key, inner in part.items()}
    return [_redacted(inner) for inner in part] if isinstance(part, list | tuple) else part
