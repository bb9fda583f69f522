"""What a function says of its records: JSON lines in its log, and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from sageaudit.adapters.lambda_runtime.counts import Counts
from sageaudit.text import untrusted

_CALLER = 3
"""Calls between a log line and where it is written: `location` names who reports, not this file."""


class Report:
    """Of one function, under its service's name. Text may quote anything: it stays one line."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._logger = Logger(service=environ.get("POWERTOOLS_SERVICE_NAME", "sageaudit"))
        self._counts = Counts(environ)

    def info(self, message: str, **named: Any) -> None:
        """What was done."""
        self._logger.info(message, extra=_safe(named), stacklevel=_CALLER)

    def warning(self, message: str, **named: Any) -> None:
        """What was not done and is tried again, or what is missing."""
        self._logger.warning(message, extra=_safe(named), stacklevel=_CALLER)

    def error(self, message: str, **named: Any) -> None:
        """What was not done."""
        self._logger.error(message, extra=_safe(named), stacklevel=_CALLER)

    def defect(self, message: str, error: Exception, **named: Any) -> None:
        """What nobody foresaw, with its traceback."""
        self._logger.error(message, exc_info=error, extra=_safe(named), stacklevel=_CALLER)

    def count(self, name: str, *, channel: str | None = None) -> None:
        """One more."""
        self._counts.add(name, channel=channel)

    def flush(self) -> None:
        """Prints the counts."""
        self._counts.flush()


def _safe(named: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: untrusted.log(value) if isinstance(value, str) else value
        for key, value in named.items()
    }
