"""How long a job's own code worked, and until when: the clock of a job's algorithm metrics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.usage.edges import idle_tail
from sageaudit.domain.usage.measurements import Measurements

Windows = Sequence[tuple[datetime, datetime]]


def worked_s(windows: Windows, start: datetime, end: datetime) -> Decimal:
    """Whole seconds of the work windows between two moments, without what interrupted them."""
    parts = (min(stop, end) - max(begun, start) for begun, stop in windows)
    spans = (part for part in parts if part > timedelta())
    return Decimal(int(sum(spans, timedelta()).total_seconds()))


def busy_until(windows: Windows, whole: Measurements) -> datetime:
    """Where the idle tail begins, to the period; without one, the end of the last work window."""
    ended_at = windows[-1][1]
    idle = len(idle_tail(whole))
    if not idle or not whole.period_s:
        return ended_at
    grid_end = ended_at.timestamp() // whole.period_s * whole.period_s
    return datetime.fromtimestamp(grid_end - idle * whole.period_s, UTC)
