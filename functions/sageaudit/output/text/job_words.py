"""When a job ran and which family it belongs to, in words."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.audit.document import JobDocument
from sageaudit.domain.job.duration import duration
from sageaudit.output.text.words import time_of


def family_words(name: str) -> str:
    """A family's name; of a tuning job, whose family is its ARN, the job name only."""
    _, tuning, job = name.partition(":hyper-parameter-tuning-job/")
    return f"tuning job {job}" if tuning else name


def when(job: JobDocument) -> str | None:
    """`2026-06-09 08:02 to 11:04 UTC (3 h 2 min)`; None where no time is known."""
    start, end = time_of(job["started_at"]), time_of(job["ended_at"])
    if start is None:
        return f"ended {end:%Y-%m-%d %H:%M} UTC, never started" if end else None
    if end is None:
        return f"started {start:%Y-%m-%d %H:%M} UTC, not ended"
    seconds = Decimal(int((end - start).total_seconds()))
    day = "" if end.date() == start.date() else f"{end:%Y-%m-%d} "
    return f"{start:%Y-%m-%d %H:%M} to {day}{end:%H:%M} UTC ({duration(seconds)})"
