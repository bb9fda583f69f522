"""The clock of the command line. Tests replace it."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Returns this computer's time, in UTC."""
    return datetime.now(UTC)
