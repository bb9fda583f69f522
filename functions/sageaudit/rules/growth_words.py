"""How fast a memory grows and when it is full, with the digits that a slope has."""

from __future__ import annotations

from sageaudit.domain.usage.growth import Growth

_HOURS_FROM = 2.0


def points_an_hour(growth: Growth) -> str:
    """`about 36 points an hour`: two digits."""
    return f"about {float(f'{growth.per_hour:.2g}'):g} points an hour"


def about_hours(hours: float) -> str:
    """`40 min`, `3 h`: to ten minutes, and to whole hours from two on."""
    if hours >= _HOURS_FROM:
        return f"{hours:.0f} h"
    return f"{max(10 * round(hours * 6), 10)} min"
