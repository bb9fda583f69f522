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
class Spent:
    """`usd` of one run that ended at `ended_at` after `elapsed_s` seconds, more than 0."""

    ended_at: datetime
    elapsed_s: Decimal
    usd: Decimal


def hourly_usd(spent: Iterable[Spent], ends_at: datetime, hours: int) -> tuple[Decimal, ...]:
    """USD of the last whole hours (UTC) before `ends_at`, the oldest first.

    What a run spent before or after these hours is left out.
    """
    over = ends_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first = over - hours * _HOUR
    made = [_ZERO] * hours
    for one in spent:
        rate = one.usd / one.elapsed_s
        begun = one.ended_at - timedelta(seconds=float(one.elapsed_s))
        for hour in range(
            max(_hours_between(first, begun), 0),
            min(_hours_between(first, one.ended_at) + 1, hours),
        ):
            opens = first + hour * _HOUR
            inside = seconds_between(max(begun, opens), min(one.ended_at, opens + _HOUR))
            made[hour] += rate * (inside or _ZERO)
    return tuple(made)


def _hours_between(first: datetime, moment: datetime) -> int:
    return (moment - first) // _HOUR


def reached_usd(hourly: Iterable[Decimal], percent: Decimal) -> Decimal:
    """The spend that at least so many percent of the hours reach; 0 of no hours."""
    falling = sorted(hourly, reverse=True)
    at = math.ceil(percent * len(falling) / 100) - 1
    return falling[max(at, 0)] if falling else _ZERO
