"""Words and confidence that idle-tail and idle-middle share."""

from __future__ import annotations

from collections.abc import Iterable

from sageaudit.rules import api

WAITS = "A run that waits for a query or for another job looks the same."
NEEDS_NO_GPU = "Assumes that what one core did meanwhile, if anything, needs none of these GPUs."
ON_CPU = (
    "No dollars are counted, because something worked meanwhile. Long work without the GPU costs "
    "less in a processing job on a CPU type."
)


def asleep(whole: api.Measurements, stretches: Iterable[range]) -> bool:
    """Whether every host is known to be idle in all these periods: none kept even a core busy."""
    return all(whole.idle(minute) for stretch in stretches for minute in stretch)
