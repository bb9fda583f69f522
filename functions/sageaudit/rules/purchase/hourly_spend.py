"""What an account spent in each hour: each run's dollars spread evenly over its time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.job.job import seconds_between

_HOUR = timedelta(hours=1)
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class RunCost:
    """`usd` of one run that ended at `ended_at` after `elapsed_s` seconds, more than 0."""

    ended_at: datetime
    elapsed_s: Decimal
    usd: Decimal


def hourly_spend(runs: Iterable[RunCost], ends_at: datetime, hours: int) -> tuple[Decimal, ...]:
    """USD in each of the last whole hours (UTC) before `ends_at`, the oldest first.

    What a run spent before or after these hours is left out.
    """
    last_hour = ends_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first_hour = last_hour - hours * _HOUR
    spend_usd = [_ZERO] * hours
    for run in runs:
        usd_per_s = run.usd / run.elapsed_s
        started_at = run.ended_at - timedelta(seconds=float(run.elapsed_s))
        first = max((started_at - first_hour) // _HOUR, 0)
        last = min((run.ended_at - first_hour) // _HOUR, hours - 1)
        for hour in range(first, last + 1):
            begins = first_hour + hour * _HOUR
            inside_s = seconds_between(max(started_at, begins), min(run.ended_at, begins + _HOUR))
            spend_usd[hour] += usd_per_s * (inside_s or _ZERO)
    return tuple(spend_usd)


def reached_usd(hourly: Iterable[Decimal], percent: Decimal) -> Decimal:
    """The spend that at least `percent` of the hours reach; 0 without hours."""
    falling = sorted(hourly, reverse=True)
    position = math.ceil(percent * len(falling) / 100) - 1
    return falling[max(position, 0)] if falling else _ZERO
