"""What the runs of a family took and cost on the types that it tried.

It replaces what is assumed of a move between two of them, and says where to stop: after a step to a
smaller type that made the runs dearer, no smaller one is a saving. Such a step is known for as long
as the family has runs: each run keeps those of the runs before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal
from itertools import permutations

from msgspec import Struct

from sageaudit.domain.job.job import Purchase
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.resize.candidate import MOST_TIMES_AS_LONG, Constraint, Duration, TypeRefusal

ENOUGH_RUNS = 3
"""For a median of runs: our choice."""
MOST_STEPS = 8
"""Steps that a run keeps, the newest first: what is stored of it stays small."""


class TriedType(Struct, frozen=True):
    """Like runs on one type: how many, and the medians of their seconds and dollars."""

    type: InstanceType
    runs: int
    seconds: Decimal
    usd: Decimal

    @property
    def enough(self) -> bool:
        """Whether the medians are no accident."""
        return self.runs >= ENOUGH_RUNS


class DearerStep(Struct, frozen=True):
    """A step to a smaller type that made a family's runs dearer: what they cost on either then.

    It says something of runs with this count of instances that are bought alike.
    """

    from_type: str
    to_type: str
    from_usd: Decimal
    to_usd: Decimal
    instance_count: int
    purchase: Purchase

    @property
    def reason(self) -> str:
        """Why no run is moved to that type, or to a smaller one."""
        cost = f"${self.to_usd:,.2f} on {self.to_type}, ${self.from_usd:,.2f} on {self.from_type}"
        return f"a step to a smaller type already made the family's runs dearer: {cost}"


class FamilyTypes(Struct, frozen=True):
    """The types of a family's last like runs, and its dearer steps with the smaller type of each.

    `steps` may be older than the runs of `tried`.
    """

    tried: tuple[TriedType, ...] = ()
    steps: tuple[tuple[DearerStep, InstanceType], ...] = ()


def steps_of(
    tried: Collection[TriedType], instance_count: int, purchase: Purchase
) -> Iterator[DearerStep]:
    """The steps to a smaller type that made these like runs dearer; one dear run is enough."""
    for more, less in permutations(tried, 2):
        if more.enough and _smaller(less.type, more.type) and less.usd > more.usd:
            names = more.type.name, less.type.name
            yield DearerStep(*names, more.usd, less.usd, instance_count, purchase)


def is_disproved(step: DearerStep, tried: Collection[TriedType]) -> bool:
    """Whether enough runs on both types by now say that the step makes them no dearer."""
    usd = {one.type.name: one.usd for one in tried if one.enough}
    before, after = usd.get(step.from_type), usd.get(step.to_type)
    return before is not None and after is not None and after <= before


def as_tried(
    family: FamilyTypes, today: InstanceType, other: InstanceType
) -> Duration | TypeRefusal | None:
    """How long a run takes on another type by those runs, or why it is not moved there.

    None where they say nothing. A type that was faster is counted as no faster: the data may have
    been less. One that is dearer by the hour and was cheaper by the run is worth a trial.
    """
    known = {one.type.name: one for one in family.tried if one.enough}
    now, there = known.get(today.name), known.get(other.name)
    for step, less in family.steps:
        again = other == less and today != less and (now is None or there is None)
        if again or _smaller(other, less):
            return TypeRefusal(Constraint.RUN_TIME, step.reason)
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
