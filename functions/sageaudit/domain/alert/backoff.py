"""The pauses between tries of an action that fails temporarily."""

from __future__ import annotations

from datetime import timedelta

GIVE_UP_AFTER = timedelta(days=3, hours=12)
"""The age at which a message is abandoned: our choice. A dead letter keeps its message's age, and
SQS may move it after 4 days, so this must be less."""
_MOST_DOUBLINGS = 10
"""The most doublings of a pause: more are never needed, and a large number would overflow."""


def doubled_s(first_s: int, times: int, longest_s: int) -> int:
    """Returns `first_s` seconds, doubled `times` times (0 if negative), at most `longest_s`."""
    doublings = min(max(times, 0), _MOST_DOUBLINGS)
    return int(min(first_s * 2**doublings, longest_s))
