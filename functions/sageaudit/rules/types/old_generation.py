"""Instances of an old generation, where a newer one does the work for less.

## What it checks
The type's family is marked as legacy in the catalogue: m4, c4, p2, p3, p3dn.

## Why it costs
A newer generation has faster vCPUs or GPUs, mostly at a lower hourly rate.

## Saving
Derived. A CPU type: the same seconds on the cheapest successor with at least its vCPUs and memory.
A GPU type: the run replayed on the successors; another GPU takes at most so many times as long as
both makers' peaks say: the slow end is counted, the range shown. Only where both prices are known
and the successor is no dearer by the hour.

## When it is wrong
The GPU is another one then: code built for it alone must be built again. No figure, and no type
advised, for several GPUs joined by NVLink where the successor has none, for several instances
(EFA), and where what the run used was not recorded: there the cheaper successors are mentioned.

## What to do
Take the successor. An image with a recent framework runs on it as it is.

## Sources
Editorial table of the catalogue (`legacy_family`, `successors`), whose sizes are EC2's. GPU peaks:
NVIDIA's data sheets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.bill.candidate import Constraint
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.bill.compatibility import type_fixed
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.bill.resize import impossible, resize
from sageaudit.domain.job.request_paths import TYPE_PATHS
from sageaudit.domain.prices.market import InstanceType, Rate, comparable
from sageaudit.rules.card import HEADROOM, JobCase, rule


@dataclass(frozen=True, slots=True)
class _Advice:
    """A type to move to with what it changes, or only why there is none."""

    to: InstanceType | None
    caution: str
    change: SetType | None = None
    best: SetType | None = None


def _not_applicable(case: JobCase) -> str | None:
    if why := type_fixed(case.job):
        return why
    return "it never started" if case.job.never_started else case.job.free


@rule(
    id="SA301",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(HEADROOM,),
    not_applicable=(_not_applicable,),
)
def check(case: JobCase) -> Outcome:
    """The catalogue says what is old; prices and recorded use say what a successor is worth."""
    job = case.job
    name = job.groups[0].instance_type if job.groups else None
    today = case.market.types.get(name) if name else None
    if today is None:
        what = f"{name} is not in the catalogue" if name else "the instance type is not known"
        return Unknown("type_unknown", what)
    if not today.legacy:
        return Clear()
    advice = _on_gpus(case) if today.accelerator else _on_cpus(case, today)
    now, then = _rate(case, today), _rate(case, advice.to) if advice.to else None
    return Found(
        confidence=Confidence.DERIVED if advice.to else Confidence.HEURISTIC,
        bucket=Bucket.AVOIDABLE if advice.to else Bucket.NONE,
        summary=_summary(case, advice.to, now, then),
        evidence={
            "instance_type": today.name,
            "successor": advice.to.name if advice.to else None,
            "usd_per_hour": now.usd if now else None,
            "successor_usd_per_hour": then.usd if then else None,
        },
        fix=(Parameter(TYPE_PATHS[job.kind], today.name, advice.to.name),) if advice.to else (),
        change=advice.change,
        best=advice.best,
        caution=advice.caution,
    )


def _summary(case: JobCase, to: InstanceType | None, now: Rate | None, then: Rate | None) -> str:
    old = f"It ran on {case.job.instances}, an old generation"
    if to is None or now is None or then is None:
        return f"{old}."
    return f"{old}: {to.name} costs ${then.usd:.3f} instead of ${now.usd:.3f} an hour."


def _rate(case: JobCase, kind: InstanceType) -> Rate | None:
    return case.market.hourly(case.job.region, case.job.kind, kind.name)


def _successors(case: JobCase, today: InstanceType) -> Iterator[InstanceType]:
    """Those of the table that are no old generation themselves: the advice ends there."""
    for name in today.successors:
        kind = case.market.types.get(name)
        if kind is not None and not kind.legacy and case.job.kind in kind.kinds:
            yield kind


def _on_cpus(case: JobCase, today: InstanceType) -> _Advice:
    """The cheapest successor that is no smaller in anything; of two at one price the newer one."""
    now, fitting, whys = _rate(case, today), [], []
    for position, kind in enumerate(_successors(case, today)):
        then = _rate(case, kind)
        if kind.vcpu < today.vcpu or kind.memory_gib < today.memory_gib:
            whys.append(f"{kind.name} is smaller")
        elif now is None or then is None or not comparable(now, then):
            whys.append(f"{kind.name} and {today.name} have no prices of one time and kind")
        elif then.usd > now.usd:
            whys.append(f"{kind.name} is dearer by the hour")
        else:
            fitting.append((then.usd, -position, kind))
    if not fitting:
        return _Advice(None, f"No figure: {'; '.join(whys) or 'no successor is known'}.")
    best = min(fitting, key=lambda row: row[:2])[2]
    assumes = f"a vCPU of {best.family} is taken for one of {today.family}"
    return _Advice(best, f"Assumes that it takes as long: {assumes}.", SetType(best.name))


def _on_gpus(case: JobCase) -> _Advice:
    if why := impossible(case.job, case.market):
        return _Advice(None, f"No figure: {why}.")
    today = case.market.types[case.job.groups[0].instance_type]
    names = {kind.name for kind in _successors(case, today)}
    resized = resize(
        case.job,
        case.usage,
        case.market,
        headroom_percent=Decimal(str(case.limit(HEADROOM))),
        only=lambda kind: kind.name in names,
    )
    for one in resized.worthwhile:
        return _Advice(one.type, one.because, one.change, one.best)
    refused = [(one, one.refused) for one in resized.candidates if one.refused]
    if not refused:
        return _Advice(None, "No figure: no successor is cheaper for this run.")
    open_to = [
        one.type.name
        for one, why in refused
        if why.constraint is Constraint.NOT_RECORDED and resized.cheaper(one)
    ]
    trial = f" Cheaper by the hour, if it holds the run: {' or '.join(open_to)}." if open_to else ""
    return _Advice(None, f"No figure: {refused[0][1].reason}.{trial}")
