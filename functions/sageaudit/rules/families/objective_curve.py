"""The curve of a job's objective, for the rules that ask when it stopped improving."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.usage.objective import Watched, watch
from sageaudit.rules import api

POINTS = api.Threshold("points_from", 20, "points", "fewer draw no curve", "our choice")
WINDOWS_MISSING = api.Unknown("phases_missing", "when Training ran is not known")


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
