"""The best type that a run can move to; where there is none, the reason in one sentence."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.bill.billed_job import type_fixed
from sageaudit.domain.prices.market import InstanceType, Rate, comparable
from sageaudit.domain.resize.candidate import Candidate, Constraint, TypeRefusal
from sageaudit.domain.resize.resize import Resize, impossible
from sageaudit.domain.resize.type_choice import for_family, times_there
from sageaudit.domain.resize.type_vetoes import image_refused
from sageaudit.rules import api

PEAKS_HIDDEN = "Means of a minute hide short peaks: try it once."
_NAMED = 3
"""Types without a price that a sentence names; the others are counted."""
_BY_NEED = frozenset(
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


class BestType(Struct, frozen=True):
    """The candidate that certainly saves most, the second best, and why; `run` has all of them.

    Without a candidate `why` says what keeps the run on its type, in words without a full stop.
    """

    first: Candidate | None
    second: Candidate | None
    why: str
    run: Resize | None = None

    @property
    def refused(self) -> frozenset[str]:
        """Types on which the run does not fit, whatever they cost."""
        refused = self.run.refused if self.run else ()
        unsure = {Constraint.NOT_RECORDED, Constraint.NOT_OFFERED, Constraint.BILL}
        return frozenset(offer.type.name for offer, why in refused if why.constraint not in unsure)

    def details(self, case: api.JobCase, hint: str = "") -> api.FoundDetails:
        """The fix as it is counted and at best, the second best beside it; words without a type."""
        if self.first is None:
            return {"caution": f"Nothing is counted: {self.why}. {hint}".strip()}
        second = (api.type_fix(case.job, self.second.type.name),) if self.second else ()
        return {
            "fix": api.type_fix(case.job, self.first.type.name),
            "alternatives": second,
            "change": self.first.change,
            "best": self.first.best,
            "other_changes": (self.second.change,) if self.second else (),
            "caution": f"{self.why} {hint}".strip(),
        }


def best_type(case: api.JobCase, *, legacy: bool = True) -> BestType:
    """All types ranked together: the same GPU, fewer GPUs, another GPU, none.

    `legacy` is False to leave out those of an old generation.
    """
    if reason := _cannot_move(case):
        return BestType(None, None, reason)
    run = case.resized()
    certain, possible = (
        [other for other in others if legacy or not other.type.legacy]
        for others in (run.certain, run.on_trial)
    )
    known = certain or possible
    if not known:
        return BestType(None, None, _why_none(run, legacy=legacy), run)
    types = case.market.types
    needs = () if run.need.gpu_idle and run.today.gpus else case.needs
    suits = for_family(run, known, needs, types, case.recommended_type)
    first, second = suits[0], next(iter(suits[1:]), None)
    unheld = len(needs) - len(times_there(first.type, needs, types))
    if unheld and case.follows:
        of = f"{unheld} of its family's last {len(needs)} runs"
        return BestType(None, None, f"{of} need more than {first.type.name}", run)
    reasons = [first.because, PEAKS_HIDDEN if _shrinks(run, first) else ""]
    if known[0] not in suits:
        reasons.append(f"{known[0].type.name} holds this run, and fewer of its family's last ones.")
    reasons += [_back(run, other) for other in possible if certain and other.cost_less][:1]
    return BestType(first, second, " ".join(filter(None, reasons)), run)


def _back(run: Resize, other: Candidate) -> str:
    """On a dearer type that the runs left for this one, where another certainly saves."""
    saves = run.saves(other)
    about = "" if saves is None else f" (about ${saves:,.2f} a run)"
    return f"Going back to {other.type.name} is worth a trial{about}. {other.because}"


def _cannot_move(case: api.JobCase) -> str | None:
    """Why no other type can be named for a run at all, or None."""
    if case.job.purchase is api.Purchase.TRAINING_PLAN:
        return "its training plan is prepaid, for this type"
    return impossible(case.job, case.market)


def no_other_type(case: api.JobCase) -> str | None:
    """For cards: why no other type is looked for, or None."""
    return type_fixed(case.job)


def _shrinks(run: Resize, to: Candidate) -> bool:
    """Whether it has less of anything that may have peaks, and was not tried."""
    today, other = run.today, to.type
    if to.takes is not None and to.takes.tried:
        return False
    return other.vcpu < today.vcpu or other.memory_gib < today.memory_gib


def _why_none(run: Resize, *, legacy: bool) -> str:
    """What keeps the run from the dearest of the cheaper types, one with the same GPU if any."""
    if run.rate is None:
        return f"no price of {run.today.name} is known here"
    at_work = run.today.gpus > 0 and not run.need.gpu_idle

    def considered(kind: InstanceType) -> bool:
        return bool(kind.gpus or not at_work) and (legacy or not kind.legacy)

    refused = [(offer.type, why) for offer, why in run.refused if offer.less]
    refused = [(kind, why) for kind, why in refused if considered(kind)]
    needs = [(kind, why) for kind, why in refused if why.constraint in _BY_NEED]
    alike = [(kind, why) for kind, why in needs if kind.gpu_model == run.today.gpu_model]
    for kind, why in reversed(alike or needs or refused):
        return _said(kind, why)
    if any(run.cheaper(one) and considered(one.type) for one in run.fitting if not one.by_estimate):
        return f"no type that is cheaper by the hour saves anything{_not_compared(run)}"
    kinds = f"{'GPU ' if at_work else ''}type"
    return f"no {kinds} with a known price is cheaper by the hour{_not_compared(run)}"


def _not_compared(run: Resize) -> str:
    """Names types that would hold the run and have no price here: nothing is said of them."""
    names = [other.name for other in run.not_compared]
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"; without a price to compare: {', '.join(names[:_NAMED])}{more}"


def _said(kind: InstanceType, why: TypeRefusal) -> str:
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


def times_dearer(case: api.JobCase, today: str, other: str) -> Decimal | None:
    """The hourly price of another type over today's; None without two comparable known prices."""
    region, kind = case.job.region, case.job.kind
    now, then = (case.market.hourly(region, kind, name) for name in (today, other))
    if now is None or then is None or not now.usd or not comparable(now, then):
        return None
    if now.is_estimate or then.is_estimate:
        return None
    return then.usd / now.usd


def hourly_rate(case: api.JobCase | api.RequestCase, instance_type: InstanceType) -> Rate | None:
    """What the type costs where and how the job ran."""
    return case.market.hourly(case.job.region, case.job.kind, instance_type.name)


def said(rate: Rate) -> str:
    """`$0.230`, or `about $0.230 (estimated)` for a rate that nobody has read."""
    return f"about ${rate.usd:.3f} (estimated)" if rate.is_estimate else f"${rate.usd:.3f}"


def successors(case: api.JobCase, today: InstanceType, refused: Collection[str]) -> str:
    """A sentence that names those of the table which the job could take; empty without any.

    `refused`: types on which the run is known not to fit.

    One without a price is said to have none: it may not be sold there.
    """
    names = [
        row.name if hourly_rate(case, row) else f"{row.name} (no price known here)"
        for row in _current(case, today)
        if row.name not in refused and image_refused(case.job, today, row) is None
    ]
    return f"Its successors: {' or '.join(names)}." if names else ""


def image_bars_all(case: api.JobCase, today: InstanceType) -> bool:
    """Whether there are successors, and the run's image is for none of their GPUs."""
    rows = _current(case, today)
    return bool(rows) and all(image_refused(case.job, today, row) for row in rows)


def _current(case: api.JobCase, today: InstanceType) -> list[InstanceType]:
    known = (case.market.types.get(name) for name in today.successors)
    return [
        row for row in known if row is not None and not row.legacy and case.job.kind in row.kinds
    ]
