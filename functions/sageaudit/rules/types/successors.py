"""The newer type that takes the place of one of an old generation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sageaudit.domain.bill.resize import impossible
from sageaudit.domain.prices.market import InstanceType, Rate, comparable
from sageaudit.rules import api
from sageaudit.rules.types.another_type import resized


@dataclass(frozen=True, slots=True)
class Successor:
    """A type to move to with what it changes, or only why there is none."""

    type: InstanceType | None
    caution: str
    change: api.SetType | None = None
    best: api.SetType | None = None


def hourly_rate(case: api.JobCase, instance_type: InstanceType) -> Rate | None:
    """What the type costs where and how the job ran."""
    return case.market.hourly(case.job.region, case.job.kind, instance_type.name)


def _successors(case: api.JobCase, today: InstanceType) -> Iterator[InstanceType]:
    """Those of the table that are no old generation themselves: the advice ends there."""
    for name in today.successors:
        successor = case.market.types.get(name)
        if successor is not None and not successor.legacy and case.job.kind in successor.kinds:
            yield successor


def cpu_successor(case: api.JobCase, today: InstanceType) -> Successor:
    """The cheapest successor that is no smaller in anything; of two at one price the newer one."""
    now, fitting, reasons = hourly_rate(case, today), [], []
    for position, successor in enumerate(_successors(case, today)):
        then = hourly_rate(case, successor)
        if successor.vcpu < today.vcpu or successor.memory_gib < today.memory_gib:
            reasons.append(f"{successor.name} is smaller")
        elif now is None or then is None or not comparable(now, then):
            reasons.append(f"{successor.name} and {today.name} have no prices of one time and kind")
        elif then.usd > now.usd:
            reasons.append(f"{successor.name} costs more by the hour")
        else:
            fitting.append((then.usd, -position, successor))
    if not fitting:
        return Successor(None, f"No figure: {'; '.join(reasons) or 'no successor is known'}.")
    best = min(fitting, key=lambda row: row[:2])[2]
    assumes = f"a vCPU of {best.family} counts as one of {today.family}"
    return Successor(best, f"Assumes the same run time: {assumes}.", api.SetType(best.name))


def gpu_successor(case: api.JobCase) -> Successor:
    """The cheapest successor that holds what the run used."""
    if why := impossible(case.job, case.market):
        return Successor(None, f"No figure: {why}.")
    today = case.market.types[case.job.groups[0].instance_type]
    names = {successor.name for successor in _successors(case, today)}
    run = resized(case, lambda other: other.name in names)
    for candidate in run.worthwhile:
        return Successor(candidate.type, candidate.because, candidate.change, candidate.best)
    reasons = [candidate.refused.reason for candidate in run.candidates if candidate.refused]
    if not reasons:
        return Successor(None, "No figure: no successor is cheaper for this run.")
    unproven = [candidate.type.name for candidate, _ in run.unrecorded]
    trial = f" Cheaper by the hour, if it fits: {' or '.join(unproven)}." if unproven else ""
    return Successor(None, f"No figure: {reasons[0]}.{trial}")
