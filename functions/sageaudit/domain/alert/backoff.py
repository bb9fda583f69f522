"""Pauses between tries of what fails for a while."""

from __future__ import annotations

from datetime import timedelta

GIVE_UP_AFTER = timedelta(days=3, hours=12)
"""The age at which a message is given up. A dead letter keeps the age that it had, so it must not
wait for SQS to move it after 4 days and more: our choice."""
_MOST_DOUBLINGS = 10
"""More are longer than any pause here, and a large count would be a large number."""


def doubled_s(first_s: int, times: int, longest_s: int) -> int:
    """`first_s` seconds, doubled so many times (none below 0), at most `longest_s`."""
    doublings = min(max(times, 0), _MOST_DOUBLINGS)
    return int(min(first_s * 2**doublings, longest_s))
