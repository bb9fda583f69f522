"""The best type that a run can move to, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.bill.billed_job import type_change_refusal
from sageaudit.domain.prices.market import InstanceType, Rate, is_comparable
from sageaudit.domain.resize.candidate import Candidate, Constraint, TypeRefusal
from sageaudit.domain.resize.resize import Resize, resize_refusal
from sageaudit.domain.resize.type_choice import best_for_family, runtime_factors
from sageaudit.domain.resize.type_vetoes import image_refusal
from sageaudit.rules import api

HIDDEN_PEAKS_CAUTION = "Averages over a minute hide short peaks, so try it on one run first."
_MAX_NAMED_TYPES = 3
"""A sentence names this many types without a price, and counts the others."""
_CAPACITY_CONSTRAINTS = frozenset(
    {
        Constraint.VCPU,
        Constraint.MEMORY,
        Constraint.GPUS,
        Constraint.GPU_MEMORY,
        Constraint.GPU_MODEL,
        Constraint.RUN_TIME,
        Constraint.NOT_RECORDED,
    }
)
"""Constraints that follow from what the run needs. They explain more than a type's own limits."""


class TypeRecommendation(Struct, frozen=True):
    """The types to recommend to a run. `first` saves most, `second` is the next best.

    `reason` explains `first`, or what keeps the run on its type, without a full stop. `resize`: the
    results for all types; None if no type was tried.
    """

    first: Candidate | None
    second: Candidate | None
    reason: str
    resize: Resize | None = None

    @property
    def refused_types(self) -> frozenset[str]:
        """The types on which the run does not fit, regardless of their cost."""
        refusals = self.resize.refusals if self.resize else ()
        uncertain = {Constraint.NOT_RECORDED, Constraint.NOT_OFFERED, Constraint.BILL}
        return frozenset(
            offer.type.name for offer, refusal in refusals if refusal.constraint not in uncertain
        )

    def details(self, case: api.JobCase, hint: str = "") -> api.DetectionDetails:
        """Returns the parts of a finding: the fix, its savings, and the second best type.

        `hint`: a sentence to add to the caution. Without a type to recommend there is only a
        caution.
        """
        if self.first is None:
            return {"caution": f"Nothing is counted: {self.reason}. {hint}".strip()}
        alternative = (api.type_fix(case.job, self.second.type.name),) if self.second else ()
        return {
            "fix": api.type_fix(case.job, self.first.type.name),
            "alternatives": alternative,
            "change": self.first.change,
            "best": self.first.best_change,
            "other_changes": (self.second.change,) if self.second else (),
            "caution": f"{self.reason} {hint}".strip(),
        }


def best_type(case: api.JobCase, *, include_legacy: bool = True) -> TypeRecommendation:
    """Returns the types that save most: with the same GPU, fewer GPUs, another GPU or no GPU.

    If there is none, the result has the reason. `include_legacy=False` leaves out types of an old
    generation.
    """
    if reason := _move_refusal(case):
        return TypeRecommendation(None, None, reason)
    resize = case.resize()
    certain, possible = (
        [candidate for candidate in group if include_legacy or not candidate.type.is_legacy]
        for group in (resize.certain_savings, resize.possible_savings)
    )
    savings = certain or possible
    if not savings:
        return TypeRecommendation(
            None, None, _no_type_reason(resize, legacy=include_legacy), resize
        )
    types = case.market.types
    needs = (
        () if resize.demand.is_gpu_idle and resize.current_type.gpus else case.family_smallest_types
    )
    candidates = best_for_family(resize, savings, needs, types, case.recommended_type)
    first, second = candidates[0], next(iter(candidates[1:]), None)
    unfit_runs = len(needs) - len(runtime_factors(first.type, needs, types))
    if unfit_runs and case.is_following_recommendation:
        runs_text = f"{unfit_runs} of its family's last {len(needs)} runs"
        return TypeRecommendation(
            None, None, f"{runs_text} need more than {first.type.name}", resize
        )
    reasons = [first.explanation, HIDDEN_PEAKS_CAUTION if _is_smaller(resize, first) else ""]
    if savings[0] not in candidates:
        reasons.append(
            f"This run fits {savings[0].type.name}, but fewer of its family's last runs do."
        )
    reasons += [
        _former_type_sentence(resize, candidate)
        for candidate in possible
        if certain and candidate.was_cheaper_per_run
    ][:1]
    return TypeRecommendation(first, second, " ".join(filter(None, reasons)), resize)


def _former_type_sentence(resize: Resize, candidate: Candidate) -> str:
    """Returns a sentence on a type with a higher rate, on which the family's runs cost less."""
    saving_usd = resize.saving_usd(candidate)
    amount_text = "" if saving_usd is None else f" (about {api.format_usd(saving_usd)} per run)"
    return (
        f"Going back to {candidate.type.name} is worth a trial{amount_text}. "
        f"{candidate.explanation}"
    )


def _move_refusal(case: api.JobCase) -> str | None:
    if case.job.purchase is api.Purchase.TRAINING_PLAN:
        return "its training plan is prepaid, for this type"
    return resize_refusal(case.job, case.market)


def type_fixed_reason(case: api.JobCase) -> str | None:
    """Returns why the job cannot change its type, or None if it can."""
    return type_change_refusal(case.job)


def _is_smaller(resize: Resize, candidate: Candidate) -> bool:
    """True if the type has fewer vCPUs or less memory, so that hidden peaks may not fit.

    False for a type with a measured run time.
    """
    current, new = resize.current_type, candidate.type
    if candidate.runtime_factor is not None and candidate.runtime_factor.is_measured:
        return False
    return new.vcpu < current.vcpu or new.memory_gib < current.memory_gib


def _no_type_reason(resize: Resize, *, legacy: bool) -> str:
    """Returns why no type saves anything, if possible about a type with the same GPU.

    `legacy`: types of an old generation are considered too.
    """
    if resize.rate is None:
        return f"no price of {resize.current_type.name} is known here"
    uses_gpu = resize.current_type.gpus > 0 and not resize.demand.is_gpu_idle

    def is_considered(instance_type: InstanceType) -> bool:
        return bool(instance_type.gpus or not uses_gpu) and (legacy or not instance_type.is_legacy)

    refusals = [
        (offer.type, refusal) for offer, refusal in resize.refusals if offer.is_cheaper_per_hour
    ]
    refusals = [
        (instance_type, refusal)
        for instance_type, refusal in refusals
        if is_considered(instance_type)
    ]
    capacity_refusals = [
        (instance_type, refusal)
        for instance_type, refusal in refusals
        if refusal.constraint in _CAPACITY_CONSTRAINTS
    ]
    same_gpu_refusals = [
        (instance_type, refusal)
        for instance_type, refusal in capacity_refusals
        if instance_type.gpu_model == resize.current_type.gpu_model
    ]
    for instance_type, refusal in reversed(same_gpu_refusals or capacity_refusals or refusals):
        return _refusal_text(instance_type, refusal)
    if any(
        resize.is_cheaper_per_hour(candidate) and is_considered(candidate.type)
        for candidate in resize.fitting
        if not candidate.has_estimated_rate
    ):
        return f"no type that costs less per hour saves anything{_unpriced_text(resize)}"
    type_text = f"{'GPU ' if uses_gpu else ''}type"
    return f"no {type_text} with a known price costs less per hour{_unpriced_text(resize)}"


def _unpriced_text(resize: Resize) -> str:
    names = [instance_type.name for instance_type in resize.feasible_unpriced_by_size]
    if not names:
        return ""
    more_text = (
        f" and {len(names) - _MAX_NAMED_TYPES} more" if len(names) > _MAX_NAMED_TYPES else ""
    )
    return f"; without a price to compare: {', '.join(names[:_MAX_NAMED_TYPES])}{more_text}"


def _refusal_text(instance_type: InstanceType, refusal: TypeRefusal) -> str:
    if refusal.constraint is Constraint.NOT_RECORDED:
        return f"whether {instance_type.name} fits is not known ({refusal.reason})"
    return f"the nearest cheaper type, {instance_type.name}, does not fit ({refusal.reason})"


def next_size_by_vcpu(case: api.JobCase) -> InstanceType | None:
    """Returns the smallest type with the same GPUs and more vCPUs.

    Types with a known price come first. A type without a price may not be sold in the region. None
    if there is no such type, or if the job is prepaid or has several groups.
    """
    current_type = case.market.types.get(case.job.groups[0].instance_type)
    is_prepaid = case.job.purchase is api.Purchase.TRAINING_PLAN
    if current_type is None or len(case.job.groups) > 1 or is_prepaid:
        return None
    same_gpus = (current_type.gpu_model, current_type.gpu_memory_gib, current_type.gpus)
    larger_types = [
        instance_type
        for instance_type in case.market.types.values()
        if (instance_type.gpu_model, instance_type.gpu_memory_gib, instance_type.gpus) == same_gpus
        and instance_type.vcpu > current_type.vcpu
        and case.job.kind in instance_type.kinds
    ]
    by_size = sorted(
        larger_types,
        key=lambda instance_type: (
            hourly_rate(case, instance_type) is None,
            instance_type.vcpu,
            instance_type.memory_gib,
            instance_type.name,
        ),
    )
    return next(iter(by_size), None)


def price_ratio(case: api.JobCase, current_type: str, other_type: str) -> Decimal | None:
    """Returns the hourly price of `other_type` divided by that of `current_type`.

    None if a price is unknown or estimated, or if the two are not comparable.
    """
    region, kind = case.job.region, case.job.kind
    current_rate, other_rate = (
        case.market.hourly(region, kind, name) for name in (current_type, other_type)
    )
    if (
        current_rate is None
        or other_rate is None
        or not current_rate.usd
        or not is_comparable(current_rate, other_rate)
    ):
        return None
    if current_rate.is_estimate or other_rate.is_estimate:
        return None
    return other_rate.usd / current_rate.usd


def hourly_rate(case: api.JobCase | api.RequestCase, instance_type: InstanceType) -> Rate | None:
    """Returns the type's hourly rate for the job's region and kind, or None if it is not known."""
    return case.market.hourly(case.job.region, case.job.kind, instance_type.name)


def rate_text(rate: Rate) -> str:
    """Returns `$0.23`, or `about $0.23 (estimated)` for an estimated rate."""
    usd_text = api.format_rate(rate.usd)
    return f"about {usd_text} (estimated)" if rate.is_estimate else usd_text


def successors_sentence(
    case: api.JobCase, current_type: InstanceType, refused_types: Collection[str]
) -> str:
    """Returns a sentence that names the successors that the job could use, or "".

    `refused_types`: the types on which the run does not fit. A successor without a known price is
    marked.
    """
    names = [
        successor.name
        if hourly_rate(case, successor)
        else f"{successor.name} (no price known here)"
        for successor in _current_successors(case, current_type)
        if successor.name not in refused_types
        and image_refusal(case.job, current_type, successor) is None
    ]
    return f"Its successors: {' or '.join(names)}." if names else ""


def is_image_unfit_for_successors(case: api.JobCase, current_type: InstanceType) -> bool:
    """Returns True if the type has successors, and the run's image works on none of them."""
    successors = _current_successors(case, current_type)
    return bool(successors) and all(
        image_refusal(case.job, current_type, successor) for successor in successors
    )


def _current_successors(case: api.JobCase, current_type: InstanceType) -> list[InstanceType]:
    successors = (case.market.types.get(name) for name in current_type.successors)
    return [
        successor
        for successor in successors
        if successor is not None and not successor.is_legacy and case.job.kind in successor.kinds
    ]
