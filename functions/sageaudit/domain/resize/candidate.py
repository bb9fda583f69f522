"""An instance type that a run is tried on, and what the family's runs took on those they tried.

A candidate has its cost, or the reason for its refusal.

What the runs took replaces what is assumed of a move between two types, and says where to stop:
after a step to a smaller type that made the runs dearer, no smaller one is a saving. Such a step is
known for as long as the family has runs: each run keeps those of the runs before it.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from decimal import Decimal
from itertools import permutations
from typing import NamedTuple

from msgspec import Struct

from sageaudit.domain.bill.change import SetType
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.prices.market import InstanceType, Rate

MOST_TIMES_AS_LONG = Decimal(2)
"""A run that may take longer than this is no like-for-like alternative, however cheap: our choice.
Work that fits on fewer GPUs by its mean always takes less."""
LONGER = Decimal("1.005")
"""A multiple of the run time below this reads as "1.00 times as long"."""
_FAR = 2
"""A break-even this many times the counted run time needs no words."""

ENOUGH_RUNS = 3
"""For a median of runs: our choice."""
MOST_STEPS = 8
"""Steps that a run keeps, the newest first: what is stored of it stays small."""


class Constraint(enum.Enum):
    """Why a run does not fit on another type."""

    __hash__ = object.__hash__  # each is one object, and looked up for every refused type

    VCPU = "vCPU"
    MEMORY = "host memory"
    GPUS = "GPU count"
    GPU_MEMORY = "GPU memory"
    GPU_MODEL = "GPU model"
    RUN_TIME = "run time"
    STORAGE = "storage"
    GENERATION = "generation"
    ACCELERATOR = "accelerator"
    NOT_RECORDED = "not recorded"
    NOT_OFFERED = "not offered"
    BILL = "no price"


class TypeRefusal(NamedTuple):
    """The broken constraint, and a sentence with its numbers."""

    constraint: Constraint
    reason: str


class Duration(NamedTuple):
    """Run time as a multiple of today's: as counted and at best, with the reason."""

    counted: Decimal
    best: Decimal
    because: str
    tried: bool = False
    """Measured by the family's own runs there."""
    trial: bool = False
    """A guess: only a run there says how long it takes."""


class Candidate(NamedTuple):
    """One type: a refusal, or the run's duration and cost (USD). None means unknown.

    `feasible_unpriced`: no larger than today's type, and refused only because no price of it can be
    compared: it may be the cheaper one.
    """

    type: InstanceType
    rate: Rate | None
    refused: TypeRefusal | None = None
    takes: Duration | None = None
    usd: Decimal | None = None
    best_usd: Decimal | None = None
    break_even: Decimal | None = None
    """The multiple of the run time at which the cost equals today's; None without a range."""
    feasible_unpriced: bool = False

    @property
    def change(self) -> SetType:
        """The change of the job as counted."""
        if self.takes is None:
            return SetType(self.type.name)
        return SetType(self.type.name, self.takes.counted, self.takes.trial)

    @property
    def because(self) -> str:
        """Why it takes as long as counted, and up to what it pays; empty for a refused one."""
        if self.takes is None:
            return ""
        sentences = [self.takes.because]
        longer = self.takes.counted >= LONGER
        if longer and self.best is not None and self.break_even is not None:
            even = f"; up to {self.break_even:.2f} times as long it still saves money"
            if self.break_even > _FAR * self.takes.counted:
                even = ""
            sentences.append(f"Counted as {self.takes.counted:.2f} times as long{even}.")
        if self.price_note is not None and not self.by_estimate:
            sentences.append(self.price_note)
        return " ".join(sentences)

    @property
    def by_estimate(self) -> bool:
        """Whether its rate is an estimate: SageMaker may not sell it."""
        return self.rate is not None and self.rate.is_estimate

    @property
    def on_trial(self) -> bool:
        """Whether its saving is possible at most."""
        return self.by_estimate or (self.takes is not None and self.takes.trial)

    @property
    def cost_less(self) -> bool:
        """Whether the family's runs there cost less, though it costs more by the hour."""
        return self.takes is not None and self.takes.tried and self.takes.trial

    @property
    def price_note(self) -> str | None:
        """How its rate was computed, where no rate of the job's day, or none at all, is known."""
        if self.rate is None:
            return None
        ratio = self.rate.note if self.rate.by_ratio else None
        sentences = [text for text in (self.rate.estimated, ratio) if text]
        return " ".join(f"{text[0].upper()}{text[1:]}." for text in sentences) or None

    @property
    def best(self) -> SetType | None:
        """The other end of the range, where there is one."""
        if self.takes is None or self.takes.best == self.takes.counted:
            return None
        return SetType(self.type.name, self.takes.best, self.takes.trial)


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
