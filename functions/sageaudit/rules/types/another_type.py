"""The best type that a run can move to; where there is none, the reason in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from sageaudit.domain.bill.candidate import Candidate
from sageaudit.domain.bill.compatibility import type_fixed
from sageaudit.domain.bill.finding import FoundDetails
from sageaudit.domain.bill.resize import Resize, impossible, resize
from sageaudit.domain.prices.market import InstanceType, comparable
from sageaudit.rules import api

PEAKS_HIDDEN = "One-minute means hide peaks: try it once."


@dataclass(frozen=True, slots=True)
class BestType:
    """The candidate that certainly saves most, the second best, and why; `run` has all of them.

    Without a candidate `why` says what keeps the run on its type.
    """

    first: Candidate | None
    second: Candidate | None
    why: str
    run: Resize | None = None

    def details(self, case: api.JobCase, hint: str = "") -> FoundDetails:
        """The fix as it is counted and at best, the second best beside it; words without a type."""
        caution = f"{self.why} {hint}".strip()
        if self.first is None:
            return {"caution": caution}
        second = (api.type_fix(case.job, self.second.type.name),) if self.second else ()
        return {
            "fix": api.type_fix(case.job, self.first.type.name),
            "alternatives": second,
            "change": self.first.change,
            "best": self.first.best,
            "caution": caution,
        }


def best_type(case: api.JobCase, *, legacy: bool = True) -> BestType:
    """All types ranked together: the same GPU, fewer GPUs, another GPU, none.

    `legacy` is False to leave out those of an old generation.
    """
    if reason := cannot_move(case):
        return BestType(None, None, f"No figure: {reason}.")
    headroom = Decimal(str(case.limit(api.HEADROOM)))
    run = resize(case.job, case.whole, case.market, headroom_percent=headroom)
    certain = (other for other in run.certain if legacy or not other.type.legacy)
    first, second = (*islice(certain, 2), None, None)[:2]
    if first is None:
        return BestType(None, None, f"No figure: {_why_none(run)}.", run)
    peaks = f" {PEAKS_HIDDEN}" if _shrinks(run, first) else ""
    return BestType(first, second, f"{first.because}{peaks}", run)


def cannot_move(case: api.JobCase) -> str | None:
    """Why no other type can be named for a run at all, or None."""
    if case.job.purchase is api.Purchase.TRAINING_PLAN:
        return "its training plan is prepaid, for this type"
    return impossible(case.job, case.market)


def no_other_type(case: api.JobCase) -> str | None:
    """For cards: why no other type is looked for, or None."""
    return type_fixed(case.job)


def _shrinks(run: Resize, to: Candidate) -> bool:
    """Whether it has less of anything that may have peaks."""
    today, other = run.today, to.type
    return other.vcpu < today.vcpu or other.memory_gib < today.memory_gib


def _why_none(run: Resize) -> str:
    """What keeps the run from the dearest of the cheaper types, one with the same GPU if any."""
    if run.rate is None:
        return f"no price of {run.today.name} is known here"
    refused = [candidate for candidate in run.candidates if run.cheaper(candidate)]
    if run.today.gpus and not run.need.gpu_idle:
        refused = [candidate for candidate in refused if candidate.type.gpus]
    alike = [other for other in refused if other.type.gpu_model == run.today.gpu_model]
    for candidate in reversed(alike or refused):
        if candidate.refused:
            return f"{candidate.type.name} does not fit ({candidate.refused.reason})"
    return "no type that is cheaper by the hour saves anything"


def more_vcpu(case: api.JobCase) -> InstanceType | None:
    """The smallest size with as many of the same GPU and more vCPUs."""
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
    by_size = sorted(larger, key=lambda other: (other.vcpu, other.memory_gib, other.name))
    return next(iter(by_size), None)


def times_dearer(case: api.JobCase, today: str, other: str) -> Decimal | None:
    """The hourly price of another type over today's; None without two comparable prices."""
    region, kind = case.job.region, case.job.kind
    now, then = (case.market.hourly(region, kind, name) for name in (today, other))
    if now is None or then is None or not now.usd or not comparable(now, then):
        return None
    return then.usd / now.usd
