"""The curve of a job's objective, and how long its code worked: for rules that ask when it stopped
improving.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.usage.edges import idle_tail
from sageaudit.domain.usage.objective import Watched, watch
from sageaudit.rules import api

POINTS = api.Threshold("points_from", 20, "points", "fewer draw no curve")
WINDOWS_MISSING = api.Unknown("phases_missing", "when Training ran is not known")
Windows = Sequence[tuple[datetime, datetime]]
"""Start and end of each time that the code ran, as `work_windows` gives them."""


def no_own_metric(case: api.JobCase) -> str | None:
    """Without an algorithm metric there is no curve."""
    reports = case.job.metric_names or case.whole.curves
    return None if reports else "its container defines no metric of its own"


def objective_curve(
    case: api.JobCase, no_gain: api.Threshold = api.NO_GAIN
) -> Watched | api.Missing:
    """The objective of this run; a gain of at most `no_gain` is none."""
    return watch(
        case.whole.curves,
        case.policy.objectives,
        case.job.objective,
        min_points=int(case.limit(POINTS)),
        tolerance_percent=Decimal(str(case.limit(no_gain))),
    )


def worked_s(windows: Windows, start: datetime, end: datetime) -> Decimal:
    """Whole seconds of the work windows between two moments, without interruptions."""
    overlaps = (min(stop, end) - max(begin, start) for begin, stop in windows)
    positive = (overlap for overlap in overlaps if overlap > timedelta())
    return Decimal(int(sum(positive, timedelta()).total_seconds()))


def work_ended_at(windows: Windows, whole: api.Measurements) -> datetime:
    """When the idle tail begins, to the period; without a tail, the end of the last window."""
    ended_at = windows[-1][1]
    idle_periods = len(idle_tail(whole))
    if not idle_periods or not whole.period_s:
        return ended_at
    last_period = ended_at.timestamp() // whole.period_s * whole.period_s
    return datetime.fromtimestamp(last_period - idle_periods * whole.period_s, UTC)
