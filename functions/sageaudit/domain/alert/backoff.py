"""Pauses between tries of what fails for a while."""

from __future__ import annotations

from datetime import timedelta

GIVE_UP_AFTER = timedelta(days=3, hours=12)
"""The age at which a message is abandoned: our choice. A dead letter keeps its message's age, so it
must not wait until SQS moves it, which takes 4 days or more."""
_MOST_DOUBLINGS = 10
"""More doublings would exceed every pause here, and a large count would give a huge number."""


def doubled_s(first_s: int, times: int, longest_s: int) -> int:
    """Returns `first_s` seconds, doubled `times` times (0 if negative), at most `longest_s`."""
    doublings = min(max(times, 0), _MOST_DOUBLINGS)
    return int(min(first_s * 2**doublings, longest_s))
