"""What the rules on runs that ended early share: what is not lost, what a second try may cure, and
what is known where memory ran out.

The memory of a host's GPUs that rose steadily until it ran out is a leak, or a batch that grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median

from msgspec import Struct

from sageaudit.domain.job.course import failure_class, is_trial, kept_results, limit_reached
from sageaudit.domain.job.failure_words import AWS_ERROR, GPU_MEMORY, HOST_MEMORY
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.resize.type_choice import cheapest_type
from sageaudit.domain.resize.type_vetoes import type_refusal
from sageaudit.domain.usage.series import Series
from sageaudit.rules import api

GROWS_BY = api.Threshold(
    "min_gpu_memory_growth_percent",
    10,
    "percent of a host's GPU memory",
    "twice the increase at which Debugger's rule fires",
    "SageMaker Debugger, GPUMemoryIncrease",
)
FULL_FROM = api.Threshold(
    "min_gpu_memory_percent",
    80,
    "percent of a host's GPU memory",
    "below it something else than the growth filled it",
)
POINTS_FROM = api.Threshold(
    "min_gpu_memory_points", 25, "points", "five in each fifth of the run: fewer make no trend"
)
GROWTH_THRESHOLDS = (GROWS_BY, FULL_FROM, POINTS_FROM)
_LAST_POINTS = 3
"""The minute in which a process dies has a lower mean: the highest of the last points counts."""
_PARTS = 5
_MOST_AT_ONCE = 0.75
"""If more of the rise comes within two neighbouring fifths, it is a step: our choice."""
_DEEPEST_FALL = 0.5
"""A fall of more of the rise is a sawtooth: our choice."""
_NEARLY_FULL_PERCENT = 80
"""Below it a one-minute mean is no sign that the memory ran out; our choice."""
_MAX_RATE_FACTOR = 4
"""A type that costs more than this is no fix to paste beside a smaller batch; our choice."""
_MEMORY_STEPS = {
    GPU_MEMORY: (
        "Halve the batch and accumulate gradients over two steps, or take a GPU with more memory; "
        "test the longest batch first"
    ),
    HOST_MEMORY: "Use fewer data-loader workers and load less at once, or a type with more memory",
}
_FIND_GROWTH_STEP = (
    "Find what keeps growing, as a smaller batch only delays the failure: losses and outputs that "
    "are kept between steps without detach() or item(), caches, sequences that get longer"
)


def why_not_lost(job: api.Job) -> api.NotApplicable | api.Unknown | None:
    """Why a run that was stopped, or reached its limit, is not judged lost, or None.

    A run that failed by itself is lost whatever it left before.
    """
    stopped = job.status == "Stopped"
    if not stopped and limit_reached(job) is None:
        return None
    if stopped and is_trial(job):
        return api.NotApplicable("stopped by or with its tuning job")
    if left := kept_results(job):
        return api.NotApplicable(f"it ended early, but it left {left}")
    if stopped and job.has_artifact is None:
        reason = "whether the stopped job left anything is not recorded"
        return api.Unknown("artifact_unknown", reason)
    return None


def retry_fix(job: api.Job) -> tuple[api.Parameter, ...]:
    """A RetryStrategy for an internal error of AWS; SageMaker has it for training jobs only."""
    if failure_class(job) != AWS_ERROR or job.kind is not api.JobKind.TRAINING:
        return ()
    return (api.Parameter("RetryStrategy.MaximumRetryAttempts", None, 2),)


class MemoryFailure(Struct, frozen=True):
    """A clause for the summary, what to do first, the numbers, and a larger type as a fix."""

    clause: str
    first_step: str
    evidence: dict[str, api.Scalar]
    larger_type_fix: tuple[api.Parameter, ...]


def memory_failure(case: api.FamilyCase) -> MemoryFailure | None:
    """None where the failure message says nothing of memory, or not whose."""
    whose = failure_class(case.job)
    if whose not in _MEMORY_STEPS:
        return None
    on_gpu = whose == GPU_MEMORY
    growth = memory_growth(case) if on_gpu else None
    metric = api.Metric.GPU_MEMORY if on_gpu else api.Metric.MEMORY
    word, key = ("GPU memory", "gpu_memory") if on_gpu else ("host memory", "host_memory")
    last = _final_percent(case, metric)
    # a larger type only delays the failure of what keeps growing
    larger = None if growth else _larger_type(case, on_gpu=on_gpu)
    return MemoryFailure(
        clause=_clause(word, last, (case.whole_run.gpus or 1) if on_gpu else 1, growth),
        first_step=_FIND_GROWTH_STEP if growth else _MEMORY_STEPS[whose],
        evidence={
            f"{key}_last_percent": None if last is None else round(last, 1),
            **(growth.evidence if growth else {}),
        },
        larger_type_fix=() if larger is None else api.type_fix(case.job, larger),
    )


def _clause(word: str, last: float | None, gpus: int, growth: MemoryGrowth | None) -> str:
    if last is None:
        return f"its {word} was not recorded"
    over = f" on average over {gpus} GPUs" if gpus > 1 else ""
    if growth is not None:
        return f"{word} {growth.text}{over}"
    unseen = word == "host memory" and last < _NEARLY_FULL_PERCENT
    doubt = ", which does not show that it ran out: a minute's mean hides a short peak"
    return f"{word} was last recorded at {last:.0f}%{over}{doubt if unseen else ''}"


def _final_percent(case: api.JobCase, metric: api.Metric) -> float | None:
    """The host that was fullest at its end."""
    lines = case.whole_run.series.get(metric, {}).values()
    ends = [max(line.present[-_LAST_POINTS:]) for line in lines if line.present]
    return max(ends, default=None)


def _larger_type(case: api.JobCase, *, on_gpu: bool) -> str | None:
    """The cheapest type with more of this memory that runs the same code, if its rate is known and
    not far above today's.
    """
    job, [today, *others] = case.job, case.instance_types or [None]
    if today is None or others or job.kind not in api.INSTANCE_KINDS:
        return None

    def fits(other: InstanceType) -> bool:
        more = _has_more_memory(today, other, on_gpu=on_gpu)
        return more and type_refusal(job, today, other) is None

    found = cheapest_type(job, case.market, fits)
    rate = case.market.hourly(job.region, job.kind, today.name)
    if found is None:
        return None
    usd, larger = found
    return None if rate is not None and usd > _MAX_RATE_FACTOR * rate.usd else larger


def _has_more_memory(today: InstanceType, other: InstanceType, *, on_gpu: bool) -> bool:
    """At least as many devices and vCPUs of the same maker, current, and more of the memory."""
    if other.accelerator != today.accelerator or other.gpus < today.gpus or other.is_legacy:
        return False
    if on_gpu:
        return (other.gpu_memory_gib or 0) > (today.gpu_memory_gib or 0) > 0
    return other.memory_gib > today.memory_gib and other.vcpu >= today.vcpu


class MemoryGrowth(Struct, frozen=True):
    """A steady rise on one host; `host` is None for the only one of a job."""

    host: str | None
    from_percent: float
    to_percent: float
    minutes: float

    @property
    def text(self) -> str:
        """The rise, as the end of a sentence about the memory."""
        where = f" on {self.host.rpartition('/')[2]}" if self.host else ""
        rise = f"from about {self.from_percent:.0f}% to {self.to_percent:.0f}%"
        return f"rose steadily over {api.minutes_text(self.minutes)}{where}, {rise}"

    @property
    def evidence(self) -> dict[str, api.Scalar]:
        """The numbers of the rise."""
        return {
            "gpu_memory_rose_from_percent": round(self.from_percent, 1),
            "gpu_memory_rose_to_percent": round(self.to_percent, 1),
            "gpu_memory_rose_minutes": round(self.minutes),
        }


def memory_growth(case: api.JobCase) -> MemoryGrowth | None:
    """The rise on the host that was fullest at its end; None without one, and where points lack.

    Only active minutes are compared: before the work the memory is empty.
    """
    usage = case.active_usage
    hosts = usage.series.get(api.Metric.GPU_MEMORY)
    if not hosts or not usage.period_s or usage.find_gap(api.Metric.GPU_MEMORY):
        return None
    grown = []
    for host, line in hosts.items():
        stretch = _until_death(line)
        if (start := _rise_from(case, stretch.present)) is not None:
            minutes = len(stretch.values) * usage.period_s / 60
            name = host if len(hosts) > 1 else None
            grown.append(MemoryGrowth(name, start, stretch.present[-1], minutes))
    return max(grown, key=lambda growth: growth.to_percent, default=None)


def _until_death(line: Series) -> Series:
    """From the first point to the highest of the last ones."""
    known = [at for at, value in enumerate(line.values) if value is not None]
    end = max(known[-_LAST_POINTS:], key=lambda at: (line.values[at] or 0.0, at))
    return line.slice(known[0], end + 1)


def _rise_from(case: api.JobCase, points: Sequence[float]) -> float | None:
    """The median of the first fifth, where the memory rose steadily from there to its end.

    Steadily: the median of each fifth is above the one before, two fifths further on it is at most
    three quarters of the rise higher, and no point is half of the rise below an earlier one.
    """
    if len(points) < case.threshold(POINTS_FROM) or points[-1] < case.threshold(FULL_FROM):
        return None
    ends = [round(len(points) * part / _PARTS) for part in range(_PARTS + 1)]
    medians = [median(points[start:end]) for start, end in pairwise(ends)]
    rise = medians[-1] - medians[0]
    at_once = max(later - before for before, later in zip(medians, medians[2:], strict=False))
    fall = max(high - point for high, point in zip(accumulate(points, max), points, strict=True))
    rises = all(later > before for before, later in pairwise(medians))
    steady = rises and at_once <= _MOST_AT_ONCE * rise and fall < _DEEPEST_FALL * rise
    return medians[0] if steady and rise >= case.threshold(GROWS_BY) else None
