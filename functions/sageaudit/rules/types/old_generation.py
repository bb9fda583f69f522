"""Instances of an old generation, where a newer one does the work for less.

What it checks: The type's family is marked as legacy in the catalogue: m4, c4, p2, p3, p3dn.
Why it costs: A newer generation has faster vCPUs or GPUs, mostly at a lower hourly rate.
Saving: Derived. A CPU type: the same seconds on the cheapest successor with at least its vCPUs and
    memory. A GPU type: the run on each successor; another GPU takes at most so many times as long
    as both makers' peaks say: the slow end is counted, the range shown. Only where both prices are
    known and the successor is no dearer by the hour.
When it is wrong: Code that was built for the old GPU must be built again for the new one. No
    figure, and no type advised, for several GPUs joined by NVLink where the successor has none, for
    several instances (EFA), and where use was not recorded: then the cheaper successors are only
    mentioned.
What to do: Take the successor. An image with a recent framework runs on it as it is.
Sources: Editorial table of the catalogue (`legacy_family`, `successors`), whose sizes are EC2's.
    GPU peaks: NVIDIA's data sheets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sageaudit.domain.bill.candidate import Candidate, Constraint
from sageaudit.domain.bill.compatibility import type_fixed
from sageaudit.domain.bill.resize import Resize, impossible
from sageaudit.domain.prices.market import InstanceType, Rate, comparable
from sageaudit.rules import api
from sageaudit.rules.types.another_type import resized


@dataclass(frozen=True, slots=True)
class _Advice:
    """A type to move to with what it changes, or only why there is none."""

    to: InstanceType | None
    caution: str
    change: api.SetType | None = None
    best: api.SetType | None = None


def _type_fixed(case: api.JobCase) -> str | None:
    return type_fixed(case.job)


@api.rule(
    id="SA301",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(api.HEADROOM,),
    not_applicable=(_type_fixed, api.never_started, api.free),
)
def check(case: api.JobCase) -> api.Outcome:
    """The catalogue says what is old; prices and recorded use say what a successor is worth."""
    groups = case.job.groups
    name = groups[0].instance_type if groups else None
    today = case.market.types.get(name) if name else None
    if today is None:
        reason = f"{name} is not in the catalogue" if name else "the instance type is not known"
        return api.Unknown("type_unknown", reason)
    if not today.legacy:
        return api.Clear()
    advice = _on_gpus(case) if today.accelerator else _on_cpus(case, today)
    now, then = _rate(case, today), _rate(case, advice.to) if advice.to else None
    return api.derived(
        _summary(case, advice.to, now, then),
        {
            "instance_type": today.name,
            "successor": advice.to.name if advice.to else None,
            "usd_per_hour": now.usd if now else None,
            "successor_usd_per_hour": then.usd if then else None,
        },
        fix=api.type_fix(case.job, advice.to.name if advice.to else None),
        change=advice.change,
        best=advice.best,
        caution=advice.caution,
    )


def _summary(
    case: api.JobCase, to: InstanceType | None, now: Rate | None, then: Rate | None
) -> str:
    old = f"It ran on {case.job.instances}, an old generation"
    if to is None or now is None or then is None:
        return f"{old}."
    return f"{old}: {to.name} costs ${then.usd:.3f} instead of ${now.usd:.3f} an hour."


def _rate(case: api.JobCase, instance_type: InstanceType) -> Rate | None:
    return case.market.hourly(case.job.region, case.job.kind, instance_type.name)


def _successors(case: api.JobCase, today: InstanceType) -> Iterator[InstanceType]:
    """Those of the table that are no old generation themselves: the advice ends there."""
    for name in today.successors:
        successor = case.market.types.get(name)
        if successor is not None and not successor.legacy and case.job.kind in successor.kinds:
            yield successor


def _on_cpus(case: api.JobCase, today: InstanceType) -> _Advice:
    """The cheapest successor that is no smaller in anything; of two at one price the newer one."""
    now, fitting, reasons = _rate(case, today), [], []
    for position, successor in enumerate(_successors(case, today)):
        then = _rate(case, successor)
        if successor.vcpu < today.vcpu or successor.memory_gib < today.memory_gib:
            reasons.append(f"{successor.name} is smaller")
        elif now is None or then is None or not comparable(now, then):
            reasons.append(f"{successor.name} and {today.name} have no prices of one time and kind")
        elif then.usd > now.usd:
            reasons.append(f"{successor.name} costs more by the hour")
        else:
            fitting.append((then.usd, -position, successor))
    if not fitting:
        return _Advice(None, f"No figure: {'; '.join(reasons) or 'no successor is known'}.")
    best = min(fitting, key=lambda row: row[:2])[2]
    assumes = f"a vCPU of {best.family} counts as one of {today.family}"
    return _Advice(best, f"Assumes the same run time: {assumes}.", api.SetType(best.name))


def _on_gpus(case: api.JobCase) -> _Advice:
    if why := impossible(case.job, case.market):
        return _Advice(None, f"No figure: {why}.")
    today = case.market.types[case.job.groups[0].instance_type]
    names = {successor.name for successor in _successors(case, today)}
    run = resized(case, lambda other: other.name in names)
    for candidate in run.worthwhile:
        return _Advice(candidate.type, candidate.because, candidate.change, candidate.best)
    reasons = [candidate.refused.reason for candidate in run.candidates if candidate.refused]
    if not reasons:
        return _Advice(None, "No figure: no successor is cheaper for this run.")
    unproven = [candidate.type.name for candidate in run.candidates if _unproven(run, candidate)]
    trial = f" Cheaper by the hour, if it fits: {' or '.join(unproven)}." if unproven else ""
    return _Advice(None, f"No figure: {reasons[0]}.{trial}")


def _unproven(run: Resize, candidate: Candidate) -> bool:
    """Cheaper by the hour, and not advised only because the use was not recorded."""
    refused = candidate.refused
    unrecorded = refused is not None and refused.constraint is Constraint.NOT_RECORDED
    return unrecorded and run.cheaper(candidate)
