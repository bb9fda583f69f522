"""The peak demand of a run, from its recorded usage.

P99.5 of the busiest host, as Compute Optimizer sizes EC2 instances. Where the demand is unknown, a
reason says why: periods above 5 minutes hide peaks, a run with fewer than 15 active minutes has too
few points, and with less than 70% of the points the peak may be among the missing ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.activity import IDLE_TO_GPU_PERCENT
from sageaudit.domain.usage.measurements import (
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
)
from sageaudit.domain.usage.series import mean, percentile_of_busiest

PEAK_PERCENTILE = 99.5
_COARSEST_PERIOD_S = 300
_PLACES = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Need:
    """One resource of one host: its peak plus headroom, and what the host has today.

    `needed` is None where it is not known; `unknown` says why.
    """

    needed: float | None
    today: float
    unknown: str | None = None

    def held_by(self, offered: float) -> bool | None:
        """Whether `offered` is enough; None where the use was not recorded.

        A run never needs more than today's instance offers.
        """
        return None if self.needed is None else min(self.needed, self.today) <= offered


@dataclass(frozen=True, slots=True)
class Demand:
    """What the busiest host needs, in cores, GiB and GPUs. `gpu_memory_gib` is over all its GPUs.

    `gpu_busy` is the mean GPU utilisation (0..1) of the busiest host, rounded up; None where it was
    not recorded. `recorded` is False where no metric was recorded.
    """

    vcpu: Need
    memory_gib: Need
    gpus: Need
    gpu_memory_gib: Need
    gpu_busy: Decimal | None
    recorded: bool

    @property
    def gpu_idle(self) -> bool:
        """Whether the GPU is known never to have worked."""
        return self.gpus.needed == 0


def demand(usage: Measurements, today: InstanceType, headroom_percent: Decimal) -> Demand:
    """The demand of a run on the type `today`, from the usage of its active minutes."""
    factor = 1 + float(headroom_percent) / 100
    gpu_memory = float(today.gpu_memory_gib or 0) * today.gpus
    idle = _gpu_idle(usage)
    gpus = _need(usage, Metric.GPU, today.gpus, factor)
    on_gpus = _need(usage, Metric.GPU_MEMORY, gpu_memory, factor)
    nothing = Need(0.0, 0.0)
    return Demand(
        vcpu=_need(usage, Metric.CPU, today.vcpu, factor),
        memory_gib=_need(usage, Metric.MEMORY, float(today.memory_gib), factor),
        gpus=nothing if idle or not today.gpus else gpus,
        gpu_memory_gib=nothing if idle or not today.gpus else on_gpus,
        gpu_busy=_busy(usage) if today.gpus else None,
        recorded=bool(usage.series),
    )


def _need(usage: Measurements, metric: Metric, today: float, factor: float) -> Need:
    unknown = _unknown(usage, metric)
    if unknown is not None:
        return Need(None, today, unknown)
    peak = percentile_of_busiest(usage.series[metric].values(), PEAK_PERCENTILE)
    return Need(peak / 100 * today * factor, today)


def _unknown(usage: Measurements, metric: Metric) -> str | None:
    """Why a metric's peak is unknown, or None."""
    if metric in usage.series and (usage.period_s or 0) > _COARSEST_PERIOD_S:
        return f"a point every {usage.period_s} s hides peaks"
    return _too_few(usage, metric)


def _too_few(usage: Measurements, metric: Metric) -> str | None:
    """Why even a metric's mean is unknown, or None."""
    share = usage.share(metric)
    if share is None:
        missing = usage.missing.get(metric)
        return missing.reason if missing else "no points"
    if usage.minutes < MIN_ACTIVE_MINUTES:
        return f"{usage.minutes:.0f} active minutes, {MIN_ACTIVE_MINUTES} needed"
    return f"only {share:.0%} of the points" if share < MIN_COVERAGE else None


def _gpu_idle(usage: Measurements) -> bool:
    """Whether no point of any host is above 1%: a coarse period then hides no work either."""
    if _too_few(usage, Metric.GPU) is not None:
        return False
    lines = usage.series[Metric.GPU].values()
    return max(value for line in lines for value in line.present) <= IDLE_TO_GPU_PERCENT


def _busy(usage: Measurements) -> Decimal | None:
    """The mean of the busiest host, since the slowest host sets the pace of all."""
    if _too_few(usage, Metric.GPU) is not None:
        return None
    busiest = max(mean(line.present) for line in usage.series[Metric.GPU].values())
    return (Decimal(str(busiest)) / 100).quantize(_PLACES, ROUND_UP)
