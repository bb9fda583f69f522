"""`[watch]` of a policy: which running jobs are watched, and from when on a message is sent."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.policy.table_reader import TableReader
from sageaudit.domain.usage.series import FROM_S

LEAST_MINUTES, MOST_MINUTES = FROM_S // 60, 12 * 60
"""A standstill is half an hour or more; half of what is read of a job's metrics is the most."""


class Watching(Struct, frozen=True):
    """Jobs above `usd_per_hour` are watched; those without a price from `gpus_unpriced` on.

    `idle_minutes`: without work, until a message. `longest_times` the family's longest run: the
    same. All of these are our choice: $5 is a GPU instance of some size, and 45 minutes are longer
    than checkpoints and evaluations.
    """

    usd_per_hour: Decimal = Decimal(5)
    gpus_unpriced: int = 4
    idle_minutes: int = 45
    longest_times: Decimal = Decimal(3)

    def includes(self, usd_per_hour: Decimal | None, gpus: int) -> bool:
        """Whether a job of this rate is watched; of an unknown rate, one of so many GPUs."""
        if usd_per_hour is None:
            return gpus >= max(self.gpus_unpriced, 1)
        return usd_per_hour > self.usd_per_hour


def parse(reader: TableReader) -> Watching | None:
    """Reads the table; None where it is off. Raises BadPolicy."""
    on, usual = reader.take("on", bool, True), Watching()
    idle_minutes = _whole(reader, "idle_minutes", usual.idle_minutes)
    watching = Watching(
        usd_per_hour=reader.amount("usd_per_hour", usual.usd_per_hour),
        gpus_unpriced=_whole(reader, "gpus_unpriced", usual.gpus_unpriced),
        idle_minutes=idle_minutes,
        longest_times=reader.amount("longest_times", usual.longest_times, ""),
    )
    reader.done()
    if not LEAST_MINUTES <= idle_minutes <= MOST_MINUTES:
        raise reader.refusal("idle_minutes", f"is not from {LEAST_MINUTES} to {MOST_MINUTES}")
    if watching.longest_times < 1:
        raise reader.refusal("longest_times", "is below 1: every run would be too long")
    return watching if on else None


def _whole(reader: TableReader, key: str, default: int) -> int:
    value = reader.take(key, int, default)
    if isinstance(value, bool) or value < 0:
        raise reader.refusal(key, "is not a whole number of 0 or more")
    return int(value)
