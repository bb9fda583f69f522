"""The pauses between tries of something that fails temporarily."""

from __future__ import annotations

from datetime import timedelta

GIVE_UP_AFTER = timedelta(days=3, hours=12)
"""A message is abandoned at this age: our choice. A dead letter keeps the age of its message, so
this must be before SQS moves it, which takes at least 4 days."""
_MOST_DOUBLINGS = 10
"""More doublings are never needed, and a large number would overflow."""


def doubled_s(first_s: int, times: int, longest_s: int) -> int:
    """Returns `first_s` seconds, doubled `times` times (0 if negative), at most `longest_s`."""
    doublings = min(max(times, 0), _MOST_DOUBLINGS)
    return int(min(first_s * 2**doublings, longest_s))
