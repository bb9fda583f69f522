"""Candidates: the other instance types for a run, each with a computed bill or a refusal.

If a family has runs on two types, their times and bills are used instead of assumptions. Each run
stores the family's earlier changes to a smaller type that raised the cost. So these changes are
known as long as the family has runs.
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
from sageaudit.domain.money import format_usd
from sageaudit.domain.prices.market import InstanceType, Rate

MAX_RUNTIME_FACTOR = Decimal(2)
"""The largest run-time factor of a candidate. If a run may take longer on a type, the type is
refused, however cheap it is. Our choice. Work whose mean fits on fewer GPUs always stays below this
factor."""
MIN_SHOWN_FACTOR = Decimal("1.005")
"""The smallest run-time factor that is shown. A smaller one would read "1.00 times as long"."""
_FAR_BREAK_EVEN = 2
"""If the break-even factor is more than this many times the counted factor, no text mentions it."""

MIN_RUNS = 3
"""The number of runs that a median needs. Our choice."""
MAX_STEPS = 8
"""The maximum number of costlier steps that a run stores, the newest first."""


class Constraint(enum.Enum):
    """Why a run does not fit on another type."""

    __hash__ = object.__hash__  # faster than the default: each refused type is looked up

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
    """Why a type is refused for a run: the broken constraint, and a reason with the numbers."""

    constraint: Constraint
    reason: str


class RuntimeFactor(NamedTuple):
    """The run time on another type as a multiple of the current run time.

    `counted` is the slow end of the range, and decides the saving. `best` is the fast end.
    """

    counted: Decimal
    best: Decimal
    explanation: str
    is_measured: bool = False
    """Whether the family's own runs on both types measured the factor."""
    needs_trial: bool = False
    """Whether the factor is a guess that only a trial run on the type can replace."""


class Candidate(NamedTuple):
    """Another instance type with a refusal, or with a run's computed time and bill on it.

    `usd`: the bill in USD at the counted run time. `best_usd`: the bill at the shortest run time.
    None means unknown. `feasible_unpriced`: the type fits and is not larger than the current type,
    but its price cannot be compared.
    """

    type: InstanceType
    rate: Rate | None
    refusal: TypeRefusal | None = None
    runtime_factor: RuntimeFactor | None = None
    usd: Decimal | None = None
    best_usd: Decimal | None = None
    break_even_factor: Decimal | None = None
    """The run-time factor at which the new bill equals the current bill. None if a bill is unknown,
    or if the best and counted bills are equal."""
    feasible_unpriced: bool = False

    @property
    def change(self) -> SetType:
        """The change of the job to this type, at the counted run time."""
        if self.runtime_factor is None:
            return SetType(self.type.name)
        return SetType(self.type.name, self.runtime_factor.counted, self.runtime_factor.needs_trial)

    @property
    def explanation(self) -> str:
        """The text that explains the run time and price on the type; empty for a refused type."""
        if self.runtime_factor is None:
            return ""
        sentences = [self.runtime_factor.explanation]
        is_longer = self.runtime_factor.counted >= MIN_SHOWN_FACTOR
        if is_longer and self.best_change is not None and self.break_even_factor is not None:
            break_even_text = (
                f"; it still saves money up to {self.break_even_factor:.2f} times as long"
            )
            if self.break_even_factor > _FAR_BREAK_EVEN * self.runtime_factor.counted:
                break_even_text = ""
            sentences.append(
                "The saving assumes that a run takes"
                f" {self.runtime_factor.counted:.2f} times as long{break_even_text}."
            )
        if self.price_note is not None and not self.has_estimated_rate:
            sentences.append(self.price_note)
        return " ".join(sentences)

    @property
    def has_estimated_rate(self) -> bool:
        """Whether the type's rate is an estimate. SageMaker may not sell such a type."""
        return self.rate is not None and self.rate.is_estimate

    @property
    def needs_trial(self) -> bool:
        """Whether the saving is only possible, because the rate or the run time is a guess."""
        return self.has_estimated_rate or (
            self.runtime_factor is not None and self.runtime_factor.needs_trial
        )

    @property
    def was_cheaper_per_run(self) -> bool:
        """Whether the family's runs cost less on this type, although it costs more per hour."""
        return (
            self.runtime_factor is not None
            and self.runtime_factor.is_measured
            and self.runtime_factor.needs_trial
        )

    @property
    def price_note(self) -> str | None:
        """How the type's rate was estimated or taken from another day; None for other rates."""
        if self.rate is None:
            return None
        ratio = self.rate.note if self.rate.is_by_ratio else None
        sentences = [text for text in (self.rate.estimate_basis, ratio) if text]
        return " ".join(f"{text[0].upper()}{text[1:]}." for text in sentences) or None

    @property
    def best_change(self) -> SetType | None:
        """The change of the job to this type, at the best run time; None without a range."""
        if self.runtime_factor is None or self.runtime_factor.best == self.runtime_factor.counted:
            return None
        return SetType(self.type.name, self.runtime_factor.best, self.runtime_factor.needs_trial)


class TriedType(Struct, frozen=True):
    """A family's comparable runs on one type: their number, and the medians of seconds and USD."""

    type: InstanceType
    runs: int
    seconds: Decimal
    usd: Decimal

    @property
    def has_enough_runs(self) -> bool:
        """Whether there are enough runs for a median."""
        return self.runs >= MIN_RUNS


class CostlierStep(Struct, frozen=True):
    """A step to a smaller type that made a family's runs cost more.

    It applies only to runs with the same number of instances and kind of purchase.
    """

    from_type: str
    to_type: str
    from_usd: Decimal
    to_usd: Decimal
    instance_count: int
    purchase: Purchase

    @property
    def reason(self) -> str:
        """Why no run is moved to `to_type` or to a smaller type."""
        cost = (
            f"{format_usd(self.to_usd)} on {self.to_type},"
            f" {format_usd(self.from_usd)} on {self.from_type}"
        )
        return f"a step to a smaller type already made the family's runs more expensive: {cost}"


class FamilyTypes(Struct, frozen=True):
    """The types of a family's last comparable runs, and its costlier steps to smaller types.

    `steps` has each step with its smaller type. A step may be older than the runs of `tried_types`.
    """

    tried_types: tuple[TriedType, ...] = ()
    steps: tuple[tuple[CostlierStep, InstanceType], ...] = ()


def find_costlier_steps(
    tried_types: Collection[TriedType], instance_count: int, purchase: Purchase
) -> Iterator[CostlierStep]:
    """Yields the steps to a smaller type that made comparable runs cost more.

    The larger type needs enough runs for a median. One run on the smaller type is enough.
    """
    for larger, smaller in permutations(tried_types, 2):
        if (
            larger.has_enough_runs
            and _is_smaller(smaller.type, larger.type)
            and smaller.usd > larger.usd
        ):
            names = larger.type.name, smaller.type.name
            yield CostlierStep(*names, larger.usd, smaller.usd, instance_count, purchase)


def is_disproved(step: CostlierStep, tried_types: Collection[TriedType]) -> bool:
    """Returns whether enough runs on both types show that the step does not cost more."""
    usd = {row.type.name: row.usd for row in tried_types if row.has_enough_runs}
    from_usd, to_usd = usd.get(step.from_type), usd.get(step.to_type)
    return from_usd is not None and to_usd is not None and to_usd <= from_usd


def factor_from_family(
    family: FamilyTypes, current_type: InstanceType, other_type: InstanceType
) -> RuntimeFactor | TypeRefusal | None:
    """Returns the run-time factor that the family's own runs show, or a refusal; None if neither.

    A faster type counts as equally fast, since its runs may have had less data. A type that costs
    more per hour but less per run needs a trial.
    """
    by_name = {row.type.name: row for row in family.tried_types if row.has_enough_runs}
    current_runs, other_runs = by_name.get(current_type.name), by_name.get(other_type.name)
    for step, small in family.steps:
        is_costlier_type = (
            other_type == small
            and current_type != small
            and (current_runs is None or other_runs is None)
        )
        if is_costlier_type or _is_smaller(other_type, small):
            return TypeRefusal(Constraint.RUN_TIME, step.reason)
    if current_runs is None or other_runs is None:
        return None
    factor = other_runs.seconds / current_runs.seconds
    sentence = f"the family's runs took {factor:.2f} times as long there"
    if factor > MAX_RUNTIME_FACTOR:
        return TypeRefusal(Constraint.RUN_TIME, sentence)
    runs_text = f"{other_runs.runs} and {current_runs.runs} runs"
    if other_runs.runs == current_runs.runs:
        runs_text = f"{other_runs.runs} runs on each type"
    reason = f"On {other_type.name}, {sentence.removesuffix(' there')} (medians of {runs_text})."
    if (
        other_runs.usd < current_runs.usd
        and other_runs.usd / other_runs.seconds > current_runs.usd / current_runs.seconds
    ):
        cost = (
            f"They cost {format_usd(other_runs.usd)}, not {format_usd(current_runs.usd)};"
            " the data may differ."
        )
        return RuntimeFactor(factor, factor, f"{reason} {cost}", is_measured=True, needs_trial=True)
    return RuntimeFactor(max(factor, Decimal(1)), factor, reason, is_measured=True)


def _is_smaller(other: InstanceType, reference: InstanceType) -> bool:
    """Returns whether `other` has the same GPU model, fewer GPUs or vCPUs, and more of neither."""
    is_within = other.gpus <= reference.gpus and other.vcpu <= reference.vcpu
    is_equal = (other.gpus, other.vcpu) == (reference.gpus, reference.vcpu)
    return other.gpu_model == reference.gpu_model and is_within and not is_equal
