"""The best type that a run can move to; where there is none, the reason in one sentence."""

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

HIDDEN_PEAKS_CAUTION = "Means of a minute hide short peaks: try it once."
_MAX_NAMED_TYPES = 3
"""Types without a price that a sentence names; the others are counted."""
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
"""Refusals by what the run needs, which say more than those by what a type is."""


class TypeRecommendation(Struct, frozen=True):
    """The candidate that certainly saves most, the second best, and why; `run` has all of them.

    Without a candidate `why` says what keeps the run on its type, in words without a full stop.
    """

    first: Candidate | None
    second: Candidate | None
    reason: str
    resize: Resize | None = None

    @property
    def refused_types(self) -> frozenset[str]:
        """Types on which the run does not fit, whatever they cost."""
        refused = self.resize.refusals if self.resize else ()
        unsure = {Constraint.NOT_RECORDED, Constraint.NOT_OFFERED, Constraint.BILL}
        return frozenset(offer.type.name for offer, why in refused if why.constraint not in unsure)

    def details(self, case: api.JobCase, hint: str = "") -> api.DetectionDetails:
        """The fix as it is counted and at best, the second best beside it; words without a type."""
        if self.first is None:
            return {"caution": f"Nothing is counted: {self.reason}. {hint}".strip()}
        second = (api.type_fix(case.job, self.second.type.name),) if self.second else ()
        return {
            "fix": api.type_fix(case.job, self.first.type.name),
            "alternatives": second,
            "change": self.first.change,
            "best": self.first.best_change,
            "other_changes": (self.second.change,) if self.second else (),
            "caution": f"{self.reason} {hint}".strip(),
        }


def best_type(case: api.JobCase, *, include_legacy: bool = True) -> TypeRecommendation:
    """All types ranked together: the same GPU, fewer GPUs, another GPU, none.

    `legacy` is False to leave out those of an old generation.
    """
    if reason := _move_refusal(case):
        return TypeRecommendation(None, None, reason)
    run = case.resize()
    certain, possible = (
        [other for other in others if include_legacy or not other.type.is_legacy]
        for others in (run.certain_savings, run.possible_savings)
    )
    known = certain or possible
    if not known:
        return TypeRecommendation(None, None, _no_type_reason(run, legacy=include_legacy), run)
    types = case.market.types
    needs = () if run.demand.is_gpu_idle and run.current_type.gpus else case.family_smallest_types
    suits = best_for_family(run, known, needs, types, case.recommended_type)
    first, second = suits[0], next(iter(suits[1:]), None)
    unheld = len(needs) - len(runtime_factors(first.type, needs, types))
    if unheld and case.is_following_recommendation:
        of = f"{unheld} of its family's last {len(needs)} runs"
        return TypeRecommendation(None, None, f"{of} need more than {first.type.name}", run)
    reasons = [first.explanation, HIDDEN_PEAKS_CAUTION if _is_smaller(run, first) else ""]
    if known[0] not in suits:
        reasons.append(f"{known[0].type.name} holds this run, and fewer of its family's last ones.")
    reasons += [
        _way_back_sentence(run, other)
        for other in possible
        if certain and other.was_cheaper_per_run
    ][:1]
    return TypeRecommendation(first, second, " ".join(filter(None, reasons)), run)


def _way_back_sentence(run: Resize, other: Candidate) -> str:
    """On a dearer type that the runs left for this one, where another certainly saves."""
    saves = run.saving_usd(other)
    about = "" if saves is None else f" (about ${saves:,.2f} a run)"
    return f"Going back to {other.type.name} is worth a trial{about}. {other.explanation}"


def _move_refusal(case: api.JobCase) -> str | None:
    """Why no other type can be named for a run at all, or None."""
    if case.job.purchase is api.Purchase.TRAINING_PLAN:
        return "its training plan is prepaid, for this type"
    return resize_refusal(case.job, case.market)


def type_fixed_reason(case: api.JobCase) -> str | None:
    """For cards: why no other type is looked for, or None."""
    return type_change_refusal(case.job)


def _is_smaller(run: Resize, candidate: Candidate) -> bool:
    """Whether it has less of anything that may have peaks, and was not tried."""
    today, other = run.current_type, candidate.type
    if candidate.runtime_factor is not None and candidate.runtime_factor.is_measured:
        return False
    return other.vcpu < today.vcpu or other.memory_gib < today.memory_gib


def _no_type_reason(run: Resize, *, legacy: bool) -> str:
    """What keeps the run from the dearest of the cheaper types, one with the same GPU if any."""
    if run.rate is None:
        return f"no price of {run.current_type.name} is known here"
    at_work = run.current_type.gpus > 0 and not run.demand.is_gpu_idle

    def considered(kind: InstanceType) -> bool:
        return bool(kind.gpus or not at_work) and (legacy or not kind.is_legacy)

    refused = [(offer.type, why) for offer, why in run.refusals if offer.is_cheaper_per_hour]
    refused = [(kind, why) for kind, why in refused if considered(kind)]
    needs = [(kind, why) for kind, why in refused if why.constraint in _CAPACITY_CONSTRAINTS]
    alike = [(kind, why) for kind, why in needs if kind.gpu_model == run.current_type.gpu_model]
    for kind, why in reversed(alike or needs or refused):
        return _refusal_text(kind, why)
    if any(
        run.is_cheaper_per_hour(one) and considered(one.type)
        for one in run.fitting
        if not one.has_estimated_rate
    ):
        return f"no type that is cheaper by the hour saves anything{_unpriced_text(run)}"
    kinds = f"{'GPU ' if at_work else ''}type"
    return f"no {kinds} with a known price is cheaper by the hour{_unpriced_text(run)}"


def _unpriced_text(run: Resize) -> str:
    """Names types that would hold the run and have no price here: nothing is said of them."""
    names = [other.name for other in run.feasible_unpriced_by_size]
    if not names:
        return ""
    more = f" and {len(names) - _MAX_NAMED_TYPES} more" if len(names) > _MAX_NAMED_TYPES else ""
    return f"; without a price to compare: {', '.join(names[:_MAX_NAMED_TYPES])}{more}"


def _refusal_text(kind: InstanceType, why: TypeRefusal) -> str:
    if why.constraint is Constraint.NOT_RECORDED:
        return f"whether {kind.name} fits is not known ({why.reason})"
    return f"the nearest cheaper type, {kind.name}, does not fit ({why.reason})"


def more_vcpu(case: api.JobCase) -> InstanceType | None:
    """The smallest size with as many of the same GPU and more vCPUs, of those with a price here.

    Where no price is known at all, of all of them: the type without a price may not be sold here.
    """
    today = case.market.types.get(case.job.groups[0].instance_type)
    prepaid = case.job.purchase is api.Purchase.TRAINING_PLAN
    if today is None or len(case.job.groups) > 1 or prepaid:
        return None
    same_gpus = (today.gpu_model, today.gpu_memory_gib, today.gpus)
    larger = [
        other
        for other in case.market.types.values()
        if (other.gpu_model, other.gpu_memory_gib, other.gpus) == same_gpus
        and other.vcpu > today.vcpu
        and case.job.kind in other.kinds
    ]
    by_size = sorted(
        larger,
        key=lambda other: (
            hourly_rate(case, other) is None,
            other.vcpu,
            other.memory_gib,
            other.name,
        ),
    )
    return next(iter(by_size), None)


def price_ratio(case: api.JobCase, current_type: str, other_type: str) -> Decimal | None:
    """The hourly price of another type over today's; None without two comparable known prices."""
    region, kind = case.job.region, case.job.kind
    now, then = (case.market.hourly(region, kind, name) for name in (current_type, other_type))
    if now is None or then is None or not now.usd or not is_comparable(now, then):
        return None
    if now.is_estimate or then.is_estimate:
        return None
    return then.usd / now.usd


def hourly_rate(case: api.JobCase | api.RequestCase, instance_type: InstanceType) -> Rate | None:
    """What the type costs where and how the job ran."""
    return case.market.hourly(case.job.region, case.job.kind, instance_type.name)


def rate_text(rate: Rate) -> str:
    """`$0.230`, or `about $0.230 (estimated)` for a rate that nobody has read."""
    return f"about ${rate.usd:.3f} (estimated)" if rate.is_estimate else f"${rate.usd:.3f}"


def successors_sentence(case: api.JobCase, today: InstanceType, refused: Collection[str]) -> str:
    """A sentence that names those of the table which the job could take; empty without any.

    `refused`: types on which the run is known not to fit.

    One without a price is said to have none: it may not be sold there.
    """
    names = [
        row.name if hourly_rate(case, row) else f"{row.name} (no price known here)"
        for row in _current_successors(case, today)
        if row.name not in refused and image_refusal(case.job, today, row) is None
    ]
    return f"Its successors: {' or '.join(names)}." if names else ""


def is_image_unfit_for_successors(case: api.JobCase, today: InstanceType) -> bool:
    """Whether there are successors, and the run's image is for none of their GPUs."""
    rows = _current_successors(case, today)
    return bool(rows) and all(image_refusal(case.job, today, row) for row in rows)


def _current_successors(case: api.JobCase, today: InstanceType) -> list[InstanceType]:
    known = (case.market.types.get(name) for name in today.successors)
    return [
        row for row in known if row is not None and not row.is_legacy and case.job.kind in row.kinds
    ]
