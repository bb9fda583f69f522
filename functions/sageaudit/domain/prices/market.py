"""Instance types, their dated prices, and the measured run times on other GPUs.

An absent type or price is unknown. A run-time ratio belongs to a precision class, because two GPUs
may be similar in one class and far apart in another. Data sheets cannot replace a measurement. For
a run of unknown precision, the range goes from the lowest to the highest ratio of the usual
classes: half precision (FP16, BF16) and FP32.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Mapping
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import BILLED_KINDS, Component, JobKind

MIN_WORKLOADS = 2
"""The fewest measured workloads from which a range is made: our choice."""
_PLACES = Decimal("0.0001")
_ONE = Decimal(1)

PriceKind = Literal["list", "own", "estimate"]
"""`list`: AWS's list price. `own`: the company's own price from its policy. `estimate`: EC2's price
times a factor."""
ESTIMATE_TOLERANCE = Decimal("0.01")
"""The share by which an estimated rate may be wrong. 98.6% of 2,186 pairs of SageMaker's and EC2's
rates are within 1% of their family's factor."""
_MARKET_CACHE_SIZE = 8
"""The number of related markets that each market caches. The jobs of a day run on few types."""
Era = Literal["today", "past", "before_known", "ambiguous"]
"""How a price's date relates to the job's day. `today`: the newest known price. `past`: an earlier
price. `before_known`: the day is before any known price. `ambiguous`: the day is between two
different prices."""


class Precision(enum.StrEnum):
    """The number format that a run computes in.

    `FP32`: TF32 on GPUs from Ampere on. `STRICT`: FP32 without TF32.
    """

    HALF = "16-bit"
    FP32 = "fp32"
    STRICT = "fp32-strict"
    FP8 = "fp8"

    @property
    def label(self) -> str:
        """The precision class, for people."""
        return {"fp32": "FP32", "fp32-strict": "FP32 without TF32"}.get(self.value, self.value)


UNKNOWN_PRECISION = frozenset({Precision.HALF, Precision.FP32})
"""The precisions that a run of unknown precision may have. Measured ratios of FP32 without TF32
count too."""


class GpuPeaks(Struct, frozen=True):
    """The data sheet of one GPU: dense TFLOPS at boost clock, and GB/s. None without a source.

    `compute_capability`: NVIDIA's number of the architecture, such as 8.6.
    """

    fp32_tflops: Decimal | None
    tf32_tflops: Decimal | None
    fp16_tflops: Decimal | None
    memory_gb_s: Decimal | None
    compute_capability: Decimal
    source: str


class GpuRatio(Struct, frozen=True):
    """The training throughput of the GPU `fast` divided by that of the GPU `slow`.

    `times_low` and `times_high`: the lowest and highest ratio over the workloads. `works`: the
    number of workloads that one suite ran on both GPUs. It is 0 if the ratio comes from two suites,
    or from ratios of both GPUs to a third GPU (`via`). `stand_ins`: GPUs that were measured in
    place of similar ones.
    """

    fast: str
    slow: str
    precision: Precision
    times_low: Decimal
    times_high: Decimal
    works: int
    via: str | None = None
    stand_ins: tuple[str, ...] = ()

    @property
    def is_range(self) -> bool:
        """Whether the ratio is based on more than one workload."""
        return not self.works or self.works >= MIN_WORKLOADS


class RuntimeRange(Struct, frozen=True):
    """The run time on another GPU divided by the run time on the current GPU.

    The range applies if the GPU limits the speed. `rows`: the measured ratios behind the range.
    """

    low: Decimal
    high: Decimal
    rows: tuple[GpuRatio, ...] = ()

    @property
    def basis(self) -> str:
        """A phrase about the measurements, such as "on 13 measured training workloads"."""
        works = sum(row.works for row in self.rows)
        through = sorted({row.via for row in self.rows if row.via})
        parts = [f"on {works} measured training workloads"] if works else []
        if through:
            parts.append(f"by measured ratios of both to the {' and '.join(through)}")
        if any(not row.works and not row.via for row in self.rows):
            parts.append("by two suites' figures for one model")
        if any("A10G" in (row.fast, row.slow) and row.stand_ins for row in self.rows):
            parts.append("an A10 in place of the A10G in most")
        return ", ".join(parts)


class UnmeasuredPrecisions(Struct, frozen=True):
    """The precision classes without a known range.

    `missing_precisions`: not measured at all. `single_workload_precisions`: measured with one
    workload only.
    """

    missing_precisions: frozenset[Precision]
    single_workload_precisions: frozenset[Precision]


def runtime_range(
    current_gpu: str, other_gpu: str, ratios: Iterable[GpuRatio], precisions: frozenset[Precision]
) -> RuntimeRange | UnmeasuredPrecisions:
    """Returns the widest range of run times over all `precisions`.

    If a precision has no measured range, returns the precisions without one instead.
    """
    both_ways = ((current_gpu, other_gpu), (other_gpu, current_gpu))
    rows = [row for row in ratios if (row.fast, row.slow) in both_ways]
    measured_precisions = {row.precision for row in rows if row.is_range}
    unmeasured_precisions = precisions - measured_precisions
    if unmeasured_precisions:
        single_workload = unmeasured_precisions & {row.precision for row in rows}
        return UnmeasuredPrecisions(unmeasured_precisions - single_workload, single_workload)
    relevant_precisions = set(precisions)
    if precisions == UNKNOWN_PRECISION:
        relevant_precisions.add(Precision.STRICT)
    chosen_rows = tuple(
        row for row in rows if row.precision in relevant_precisions and row.is_range
    )
    ends = [_ends(row, slower=row.slow == other_gpu) for row in chosen_rows]
    return RuntimeRange(min(low for low, _ in ends), max(high for _, high in ends), chosen_rows)


def _ends(row: GpuRatio, *, slower: bool) -> tuple[Decimal, Decimal]:
    if slower:
        return row.times_low, row.times_high
    low = (_ONE / row.times_high).quantize(_PLACES, ROUND_DOWN)
    return low, (_ONE / row.times_low).quantize(_PLACES, ROUND_UP)


def fp32_peak_ratio(
    current_peaks: GpuPeaks, other_peaks: GpuPeaks, measured_range: RuntimeRange
) -> Decimal | None:
    """Returns the current GPU's FP32 peak divided by the other GPU's, if it is a reason to check.

    It is a reason if no ratio without TF32 was measured, and if it is above 1 and above the
    measured range. Returns None otherwise. It is not a run-time ratio.
    """
    has_strict_range = any(row.precision is Precision.STRICT for row in measured_range.rows)
    if has_strict_range or not current_peaks.fp32_tflops or not other_peaks.fp32_tflops:
        return None
    # GPUs up to Turing have no TF32, so FP32 is what was measured there.
    if current_peaks.tf32_tflops is None and other_peaks.tf32_tflops is None:
        return None
    peak_ratio = current_peaks.fp32_tflops / other_peaks.fp32_tflops
    return peak_ratio if peak_ratio > max(measured_range.high, _ONE) else None


class Rate(NamedTuple):
    """A price in USD per unit, with its date (ISO), its source and doubts about it (`note`).

    `as_of`: None without a date. `price_age`: how the date relates to the job's day. `other_usd`:
    the older of two prices if `price_age` is "ambiguous". `estimate_basis`: how an estimate was
    made. `is_by_ratio`: the rate was computed from another type's rate. `is_discounted`: the rate
    is an estimate less the policy's percentage. `unlisted_reason`: why SageMaker may not sell the
    type. `learned_basis`: what a rate from a cost report counts; None for other rates.
    """

    usd: Decimal
    as_of: str | None
    source: str
    note: str | None = None
    kind: PriceKind = "list"
    other_usd: Decimal | None = None
    price_age: Era = "today"
    is_by_ratio: bool = False
    estimate_basis: str | None = None
    is_discounted: bool = False
    unlisted_reason: str | None = None
    learned_basis: Literal["net", "amortised"] | None = None

    @property
    def is_estimate(self) -> bool:
        """Whether the rate was estimated, not read."""
        return self.kind == "estimate"

    @property
    def is_negotiated(self) -> bool:
        """Whether the rate is what the company pays, and not AWS's price before discounts."""
        return self.kind == "own" or self.is_discounted


def is_comparable(rate: Rate | None, other: Rate | None) -> bool:
    """Returns whether two rates are known and can be compared.

    Either both or none of them must be negotiated, and either both or none must be past prices. An
    estimate can be compared with a list price, but the caller must say so.
    """
    if rate is None or other is None:
        return False
    return rate.is_negotiated == other.is_negotiated and (rate.price_age == "past") == (
        other.price_age == "past"
    )


class InstanceType(Struct, frozen=True):
    """One row of the catalogue. GPU memory is per GPU; `is_ebs_billed` is None if unknown.

    `gpu_peaks`: None without a data sheet. `gpu_ratios`: the measured ratios between the type's GPU
    and others. `kinds`: the job kinds that may use the type. `efa`: whether the type supports an
    Elastic Fabric Adapter; None if unknown. `network_gbps`: the maximum gigabits per second.
    `successors`: newer types that replace the type, an editorial choice.
    """

    name: str
    family: str
    category: str
    vcpu: int
    memory_gib: Decimal
    gpus: int
    gpu_model: str | None
    gpu_memory_gib: Decimal | None
    accelerator: str | None
    is_ebs_billed: bool | None
    is_legacy: bool
    gpu_peaks: GpuPeaks | None = None
    gpu_ratios: tuple[GpuRatio, ...] = ()
    kinds: frozenset[JobKind] = frozenset(BILLED_KINDS)
    efa: bool | None = None
    network_gbps: Decimal | None = None
    successors: tuple[str, ...] = ()
    local_gb: int | None = None
    """The size of the local NVMe storage; None if the type has none or the size is unknown."""


class Prices(Protocol):
    """A price book. The methods that read rates return None if a rate is unknown."""

    @property
    def version(self) -> str:
        """The source and date of the prices, stored with the audit."""

    def hourly_rate(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """Returns USD per instance-hour, on demand."""

    def newest_hourly_rate(
        self, region: str, component: Component, instance_type: str
    ) -> Rate | None:
        """Returns USD per instance-hour, on demand, by the newest price."""

    def storage_rate(self, region: str, component: Component) -> Rate | None:
        """Returns USD per GB-month of ML storage."""

    def usage_type(self, region: str, component: Component, product: str) -> str | None:
        """Returns the usage type as bills show it; None if the region's prefix is unknown."""

    def absence_reason(self, region: str, component: Component, product: str) -> str | None:
        """Returns why a rate is unknown, without a full stop; None if there is no reason.

        `product`: the instance type, or the key of ML storage.
        """


class Market(Struct, frozen=True, eq=False, dict=True):
    """Instance types and prices, from which a bill is computed.

    `job_type`: the instance type to which other types are compared; None without such a type. The
    jobs of one day, type and policy share one market, which caches rates. Two markets are equal
    only if they are the same object.
    """

    types: Mapping[str, InstanceType]
    prices: Prices
    job_type: str | None = None

    @cached_property
    def _rates(self) -> dict[tuple[str, JobKind, str], Rate | None]:
        return {}

    @cached_property
    def _related_markets(self) -> deque[Market]:
        return deque(maxlen=_MARKET_CACHE_SIZE)

    def relative_to(self, job: Job) -> Market:
        """Returns a market in which other types are comparable with the job's own type.

        A type without a rate of the job's day gets the job's own rate times the ratio of both
        types' newest rates. For a job of several types, no rate changes.
        """
        types = {group.instance_type for group in job.groups}
        return self._with(self.prices, types.pop() if len(types) == 1 else None)

    def with_prices(self, prices: Prices) -> Market:
        """Returns the market with the same types at other prices."""
        return self._with(prices, self.job_type)

    def _with(self, prices: Prices, job_type: str | None) -> Market:
        if job_type == self.job_type and prices is self.prices:
            return self
        for market in self._related_markets:
            if market.job_type == job_type and market.prices == prices:
                return market
        market = Market(self.types, prices, job_type)
        self._related_markets.append(market)
        return market

    def hourly(self, region: str | None, kind: JobKind, instance_type: str) -> Rate | None:
        """Returns USD per instance-hour for a job of this kind, on demand; None if unknown."""
        if region is None:
            return None
        key = (region, kind, instance_type)
        if key not in self._rates:
            self._rates[key] = self._lookup_rate(region, kind, instance_type)
        return self._rates[key]

    def _lookup_rate(self, region: str, kind: JobKind, instance_type: str) -> Rate | None:
        component = kind.spec.component
        rate = self.prices.hourly_rate(region, component, instance_type)
        if self.job_type in {None, instance_type} or rate is None:
            return rate
        base = self.hourly(region, kind, self.job_type)
        if base is None or is_comparable(base, rate):
            return rate
        if base.learned_basis and rate.kind == "list":
            note = (
                f"no own rate of {instance_type} is known: its list price, the most that it costs"
            )
            return rate._replace(kind="own", price_age=base.price_age, note=note, is_by_ratio=True)
        return self._rate_by_ratio(region, component, instance_type, base) or rate

    def _rate_by_ratio(
        self, region: str, component: Component, other: str, base: Rate
    ) -> Rate | None:
        newest, own_newest = (
            self.prices.newest_hourly_rate(region, component, name)
            for name in (other, self.job_type or "")
        )
        if newest is None or own_newest is None or not own_newest.usd:
            return None
        if newest.is_negotiated != base.is_negotiated or not is_comparable(newest, own_newest):
            return None
        ratio = newest.usd / own_newest.usd
        dates = sorted({rate.as_of or "no date" for rate in (newest, own_newest)})
        note = (
            f"no rate of {other} is known for the job's day: the rate of {self.job_type} on that "
            f"day times {ratio:.4f}, the ratio of the newest rates of both ({' and '.join(dates)})"
        )
        estimate = next((rate for rate in (base, newest, own_newest) if rate.is_estimate), base)
        return base._replace(
            usd=base.usd * ratio,
            other_usd=None,
            note=note,
            is_by_ratio=True,
            kind=estimate.kind,
            estimate_basis=estimate.estimate_basis,
            is_discounted=estimate.is_estimate and base.is_negotiated,
            unlisted_reason=newest.unlisted_reason,
        )
