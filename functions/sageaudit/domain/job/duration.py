"""A duration in words."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def duration(seconds: Decimal | None) -> str:
    """`45 s`, `12 min 4 s`, `3 h 2 min`, `2 d 4 h`."""
    if seconds is None:
        return "unknown"
    whole = int(seconds.to_integral_value(ROUND_HALF_UP))
    if whole < 0:
        return f"-{duration(-seconds)}"
    if whole < _MINUTE_S:
        return f"{whole} s"
    for size, unit, part, small in (
        (_DAY_S, "d", _HOUR_S, "h"),
        (_HOUR_S, "h", _MINUTE_S, "min"),
        (_MINUTE_S, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {small}" if rest else "")
    raise AssertionError(whole)


def duration_min(minutes: float) -> str:
    """The same of minutes, rounded to whole ones: `8 h 59 min`."""
    return duration(Decimal(round(minutes)) * _MINUTE_S)
