"""What the runs of a family took and cost on the types that it tried.

It replaces what is assumed of a move between two of them, and says where to stop: after a step to a
smaller type that made the runs dearer, no smaller one is a saving.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations

from sageaudit.domain.bill.candidate import Constraint, Duration, TypeRefusal
from sageaudit.domain.bill.moved_run import MOST_TIMES_AS_LONG
from sageaudit.domain.prices.market import InstanceType

ENOUGH_RUNS = 3
"""For a median of runs: our choice."""


@dataclass(frozen=True, slots=True)
class TriedType:
    """Like runs on one type: how many, and the medians of their seconds and dollars."""

    type: InstanceType
    runs: int
    seconds: Decimal
    usd: Decimal

    @property
    def enough(self) -> bool:
        """Whether the medians are no accident."""
        return self.runs >= ENOUGH_RUNS


def as_tried(
    tried: Collection[TriedType], today: InstanceType, other: InstanceType
) -> Duration | TypeRefusal | None:
    """How long a run takes on another type by those runs, or why it is not moved there.

    None where they say nothing. One dear run is enough to go no further down. A type that was
    faster is counted as no faster: the data may have been less. One that is dearer by the hour and
    was cheaper by the run is worth a trial.
    """
    for more, less in permutations(tried, 2):
        dearer = more.enough and _smaller(less.type, more.type) and less.usd > more.usd
        if dearer and _smaller(other, less.type):
            cost = f"${less.usd:,.2f} on {less.type.name}, ${more.usd:,.2f} on {more.type.name}"
            why = f"a step to a smaller type already made the family's runs dearer: {cost}"
            return TypeRefusal(Constraint.RUN_TIME, why)
    known = {one.type.name: one for one in tried if one.enough}
    now, there = known.get(today.name), known.get(other.name)
    if now is None or there is None:
        return None
    times = there.seconds / now.seconds
    why = f"the family's runs took {times:.2f} times as long there"
    if times > MOST_TIMES_AS_LONG:
        return TypeRefusal(Constraint.RUN_TIME, why)
    because = f"T{why[1:]} (medians of {there.runs} and {now.runs} runs)."
    if there.usd < now.usd and there.usd / there.seconds > now.usd / now.seconds:
        cost = f"They cost ${there.usd:,.2f}, not ${now.usd:,.2f}; the data may differ."
        return Duration(times, times, f"{because} {cost}", tried=True, trial=True)
    return Duration(max(times, Decimal(1)), times, because, tried=True)


def _smaller(other: InstanceType, than: InstanceType) -> bool:
    """Of the same kind, with less of GPUs or vCPUs and no more of either."""
    no_more = other.gpus <= than.gpus and other.vcpu <= than.vcpu
    same = (other.gpus, other.vcpu) == (than.gpus, than.vcpu)
    return other.gpu_model == than.gpu_model and no_more and not same
