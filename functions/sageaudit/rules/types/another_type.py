"""The other type that a run may move to; where there is none, the reason in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from sageaudit.domain.bill.candidate import Candidate
from sageaudit.domain.bill.compatibility import type_fixed
from sageaudit.domain.bill.finding import FoundDetails
from sageaudit.domain.bill.resize import Resize, impossible, resize
from sageaudit.domain.prices.market import InstanceType, comparable
from sageaudit.rules import api

PEAKS_HIDDEN = "One-minute means hide peaks: try it once."


def resized(case: api.JobCase, only: Callable[[InstanceType], bool] = lambda _: True) -> Resize:
    """The run on each other type that `only` takes, with the policy's headroom."""
    headroom = Decimal(str(case.limit(api.HEADROOM)))
    return resize(case.job, case.usage, case.market, headroom_percent=headroom, only=only)


def cannot_move(case: api.JobCase) -> str | None:
    """Why no other type can be named for a run at all, or None."""
    if case.job.purchase is api.Purchase.TRAINING_PLAN:
        return "its training plan is prepaid, for this type"
    return impossible(case.job, case.market)


def no_other_type(case: api.JobCase) -> str | None:
    """For cards: why no other type is looked for, or None."""
    return type_fixed(case.job)


def cheaper(run: Resize) -> Iterator[Candidate]:
    """The types that hold the run and save, the cheapest first; none of an older generation."""
    for candidate in run.worthwhile:
        if not candidate.type.legacy or run.today.legacy:
            yield candidate


def why_none(run: Resize, otherwise: str, *, gpu_model: str | None = None) -> str:
    """What keeps the run from the dearest of the cheaper types, else `otherwise`.

    With `gpu_model`, of the types that have this GPU.
    """
    refused = [
        (candidate.type.name, candidate.refused.reason)
        for candidate in run.candidates
        if candidate.refused and run.cheaper(candidate)
        if gpu_model is None or candidate.type.gpu_model == gpu_model
    ]
    if not refused:
        return otherwise
    name, reason = refused[-1]
    return f"{name} does not fit ({reason})"


def cheaper_gpu(case: api.JobCase) -> tuple[Candidate | None, str]:
    """A type with the same GPU if there is one, else with another whose throughput is known."""
    if reason := cannot_move(case):
        return None, f"No figure: {reason}."
    run = resized(case)
    usable = list(cheaper(run))
    same_gpu = [candidate for candidate in usable if candidate.best is None and candidate.type.gpus]
    for candidate in same_gpu or [candidate for candidate in usable if candidate.best is not None]:
        return candidate, f"{candidate.because} {PEAKS_HIDDEN}"
    model = run.today.gpu_model
    smallest = f"this is the smallest type with a {model}"
    return None, f"No figure: {why_none(run, smallest, gpu_model=model)}."


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


def move(case: api.JobCase, to: Candidate | None, caution: str) -> FoundDetails:
    """The fix of a finding that names a type, as it is counted and at best; only words without."""
    if to is None:
        return {"caution": caution}
    return {
        "fix": api.type_fix(case.job, to.type.name),
        "change": to.change,
        "best": to.best,
        "caution": caution,
    }
