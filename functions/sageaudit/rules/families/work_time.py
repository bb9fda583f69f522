"""How long a job's own code worked between two moments, and when its work ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.usage.edges import idle_tail
from sageaudit.domain.usage.measurements import Measurements

Windows = Sequence[tuple[datetime, datetime]]
"""Start and end of each time that the code ran, as `work_windows` gives them."""


def worked_s(windows: Windows, start: datetime, end: datetime) -> Decimal:
    """Whole seconds of the work windows between two moments, without interruptions."""
    overlaps = (min(stop, end) - max(begin, start) for begin, stop in windows)
    positive = (overlap for overlap in overlaps if overlap > timedelta())
    return Decimal(int(sum(positive, timedelta()).total_seconds()))


def work_ended_at(windows: Windows, whole: Measurements) -> datetime:
    """When the idle tail begins, to the period; without a tail, the end of the last window."""
    ended_at = windows[-1][1]
    idle_periods = len(idle_tail(whole))
    if not idle_periods or not whole.period_s:
        return ended_at
    last_period = ended_at.timestamp() // whole.period_s * whole.period_s
    return datetime.fromtimestamp(last_period - idle_periods * whole.period_s, UTC)
