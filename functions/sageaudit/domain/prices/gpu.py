"""How many times as long training takes on another GPU model: ranges that were measured.

A ratio belongs to a precision class, because two GPUs that are alike in one class may be far apart
in another. A class without a ratio is unknown: data sheets explain, they are no ratio. A run whose
precision is unknown may be in either of the two usual classes, so the widest range of both counts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from decimal import ROUND_DOWN, ROUND_UP, Decimal

from msgspec import Struct

WORKS_FROM = 2
"""One measured work is a point and no range: our choice."""
_PLACES = Decimal("0.0001")
_ONE = Decimal(1)


class Precision(enum.StrEnum):
    """In which numbers a run computes. `FP32` is TF32 from Ampere on, `STRICT` has TF32 off."""

    HALF = "16-bit"
    FP32 = "fp32"
    STRICT = "fp32-strict"
    FP8 = "fp8"

    @property
    def label(self) -> str:
        """For people."""
        return {"fp32": "FP32", "fp32-strict": "FP32 without TF32"}.get(self.value, self.value)


UNKNOWN_PRECISION = frozenset({Precision.HALF, Precision.FP32})
"""What a run may be whose precision is not known. Without TF32 little was measured: that class
counts where it was, and `strict_doubt` says where it may be slower."""


class GpuPeaks(Struct, frozen=True):
    """One GPU's data sheet: dense TFLOPS at boost clock, GB/s; None without a source.

    `compute_capability` is NVIDIA's number of the architecture, such as 8.6.
    """

    fp32_tflops: Decimal | None
    tf32_tflops: Decimal | None
    fp16_tflops: Decimal | None
    memory_gb_s: Decimal | None
    compute_capability: Decimal
    source: str


class GpuRatio(Struct, frozen=True):
    """Training throughput of `fast` over that of `slow`, lowest and highest over the works.

    Models as the catalogue names them. `works`: how many works one suite ran on both; 0 where the
    ratio was composed of two others, through `via`, or taken from two suites.
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
        """Whether it is more than one work's figure."""
        return not self.works or self.works >= WORKS_FROM


class TimesAsLong(Struct, frozen=True):
    """The time on another GPU over today's, where the GPU is the limit: `low` up to `high`."""

    low: Decimal
    high: Decimal
    rows: tuple[GpuRatio, ...] = ()

    @property
    def basis(self) -> str:
        """What it was found by, such as "on 13 measured training workloads"."""
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


class Unmeasured(Struct, frozen=True):
    """No range is known: the classes that lack one, and those in which one work alone was run."""

    absent: frozenset[Precision]
    one_work: frozenset[Precision]


def times_as_long(
    today: str, other: str, ratios: Iterable[GpuRatio], classes: frozenset[Precision]
) -> TimesAsLong | Unmeasured:
    """The range over all `classes` that the run may be in; each of them must have one."""
    both_ways = ((today, other), (other, today))
    rows = [row for row in ratios if (row.fast, row.slow) in both_ways]
    known = {row.precision for row in rows if row.is_range}
    lacking = classes - known
    if lacking:
        single = lacking & {row.precision for row in rows}
        return Unmeasured(lacking - single, single)
    counted = set(classes)
    if classes == UNKNOWN_PRECISION:
        counted.add(Precision.STRICT)
    used = tuple(row for row in rows if row.precision in counted and row.is_range)
    ends = [_ends(row, slower=row.slow == other) for row in used]
    return TimesAsLong(min(low for low, _ in ends), max(high for _, high in ends), used)


def _ends(row: GpuRatio, *, slower: bool) -> tuple[Decimal, Decimal]:
    """Towards the slower GPU the ratio itself; towards the faster one its inverse."""
    if slower:
        return row.times_low, row.times_high
    low = (_ONE / row.times_high).quantize(_PLACES, ROUND_DOWN)
    return low, (_ONE / row.times_low).quantize(_PLACES, ROUND_UP)


def strict_doubt(today: GpuPeaks, other: GpuPeaks, found: TimesAsLong) -> Decimal | None:
    """How many times today's FP32 peak is that of the other GPU, where no measured range covers it.

    A reason to look, and no ratio: without TF32 most pairs were never measured.
    """
    strict = any(row.precision is Precision.STRICT for row in found.rows)
    if strict or not today.fp32_tflops or not other.fp32_tflops:
        return None
    # Up to Turing there is no TF32, so that FP32 is what was measured there.
    if today.tf32_tflops is None and other.tf32_tflops is None:
        return None
    quotient = today.fp32_tflops / other.fp32_tflops
    return quotient if quotient > max(found.high, _ONE) else None
