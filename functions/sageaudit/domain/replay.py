"""Would this run have fitted on another type? Recorded use, scaled to each candidate.

P99.5 of the busiest host with 20% headroom, as Compute Optimizer sizes EC2 instances. A candidate
is refused with the constraint that binds; a demand that was not recorded refuses too. Minute
means hide peaks, so periods above 5 minutes refuse every candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.job import Job
from sageaudit.domain.market import Component, InstanceType, Market
from sageaudit.domain.measurements import Measurements, Metric
from sageaudit.domain.series import percentile

PEAK_PERCENTILE = 99.5
HEADROOM = 1.2
_COARSEST_PERIOD_S = 300
_NOT_STEADY = ("t3", "-flex")
"""Families whose CPU is not theirs all the time: never advised for a job that computes."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What the busiest host needs, headroom included; None where it was not recorded."""

    vcpu: float | None
    memory_gib: float | None
    gpus: float | None
    gpu_memory_gib: float | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A type with its hourly rate, and what refuses it (None: it fits)."""

    type: InstanceType
    usd_per_hour: Decimal
    refused: str | None


def demand(seen: Measurements, current: InstanceType) -> Demand:
    """Peak use of the busiest host in cores, GiB and GPUs, times 1.2."""
    gpu_memory = None
    if current.gpu_memory_gib is not None:
        gpu_memory = _peak(seen, Metric.GPU_MEMORY, float(current.gpu_memory_gib) * current.gpus)
    return Demand(
        vcpu=_peak(seen, Metric.CPU, current.vcpu),
        memory_gib=_peak(seen, Metric.MEMORY, float(current.memory_gib)),
        gpus=_peak(seen, Metric.GPU, current.gpus) if current.gpus else 0.0,
        gpu_memory_gib=gpu_memory if current.gpus else 0.0,
    )


def _peak(seen: Measurements, metric: Metric, whole: float) -> float | None:
    hosts = seen.series.get(metric)
    if not hosts or (seen.period_s or 0) > _COARSEST_PERIOD_S:
        return None
    peaks = [percentile(series.present, PEAK_PERCENTILE) for series in hosts.values()]
    return max(peaks) / 100 * whole * HEADROOM


def same_gpu(
    job: Job, current: InstanceType, seen: Measurements, market: Market
) -> list[Candidate]:
    """Cheaper types with fewer or as many GPUs of the same model, the cheapest first."""
    need = demand(seen, current)
    return [
        Candidate(kind, usd, _refusal(kind, need))
        for kind, usd in _cheaper(job, current, market)
        if kind.gpu_model == current.gpu_model and 0 < kind.gpus <= current.gpus
    ]


def smaller_cpu(
    job: Job, current: InstanceType, seen: Measurements, market: Market
) -> list[Candidate]:
    """Cheaper types of the same family, the cheapest first."""
    need = demand(seen, current)
    return [
        Candidate(kind, usd, _refusal(kind, need))
        for kind, usd in _cheaper(job, current, market)
        if kind.family == current.family
    ]


def without_gpu(job: Job, current: InstanceType, market: Market) -> Candidate | None:
    """The cheapest CPU type with at least the same vCPUs and memory: the run fits as it is."""
    for kind, usd in _cheaper(job, current, market):
        holds = kind.vcpu >= current.vcpu and kind.memory_gib >= current.memory_gib
        if holds and kind.accelerator is None and not kind.gpus and not kind.legacy:
            return Candidate(kind, usd, None)
    return None


def _cheaper(
    job: Job, current: InstanceType, market: Market
) -> Iterator[tuple[InstanceType, Decimal]]:
    """Types priced below the current one for this kind of job in its region, the cheapest first."""
    if job.region is None:
        return
    component = Component.of(job.kind)
    today = market.prices.hourly(job.region, component, current.name)
    if today is None:
        return
    priced = []
    for kind in market.types.values():
        rate = market.prices.hourly(job.region, component, kind.name)
        if rate is not None and rate.usd < today.usd and not kind.family.endswith(_NOT_STEADY):
            priced.append((rate.usd, kind.name, kind))
    for usd, _, kind in sorted(priced, key=lambda row: row[:2]):
        yield kind, usd


def _refusal(kind: InstanceType, need: Demand) -> str | None:
    gpu_memory = float(kind.gpu_memory_gib or 0) * kind.gpus
    for what, required, offered in (
        ("vCPU", need.vcpu, float(kind.vcpu)),
        ("host memory GiB", need.memory_gib, float(kind.memory_gib)),
        ("GPU count", need.gpus, float(kind.gpus)),
        ("GPU memory GiB", need.gpu_memory_gib, gpu_memory),
    ):
        if required is None:
            return f"{what} used was not recorded"
        if required > offered:
            return f"{what}: {required:.1f} needed with headroom, {offered:g} offered"
    return None
