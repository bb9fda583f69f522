"""What rules about runs that ended early share: what is not lost, what a retry may fix, and how
memory ran out.

If the GPU memory of a host rose steadily until it ran out, memory leaks or the batch grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median

from msgspec import Struct

from sageaudit.domain.job.course import failure_class, is_trial, kept_results, reached_limit
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
    "below this, something other than the growth filled it",
)
POINTS_FROM = api.Threshold(
    "min_gpu_memory_points", 25, "points", "five in each fifth of the run; fewer show no trend"
)
GROWTH_THRESHOLDS = (GROWS_BY, FULL_FROM, POINTS_FROM)
_LAST_POINTS = 3
"""The highest of this many last points counts, because a dying process lowers the mean of its
minute."""
_PARTS = 5
"""The active minutes are cut into this many equal parts, whose medians are compared."""
_MAX_STEP_SHARE = 0.75
"""A rise is a jump, not growth, if two steps bring more than this share of it. Our choice."""
_MAX_FALL_SHARE = 0.5
"""A fall by this share of the rise or more is a sawtooth, not steady growth. Our choice."""
_NEARLY_FULL_PERCENT = 80
"""A one-minute mean from this percent on shows that host memory ran out. Our choice."""
_MAX_RATE_FACTOR = 4
"""A larger type is named only up to this many times the current rate. Our choice."""
_MEMORY_STEPS = {
    GPU_MEMORY: (
        "Halve the batch and accumulate gradients over two steps, or take a GPU with more memory; "
        "test the longest batch first"
    ),
    HOST_MEMORY: (
        "Use fewer data-loader workers and load less at once, or take a type with more memory"
    ),
}
_FIND_GROWTH_STEP = (
    "Find what keeps growing, as a smaller batch only delays the failure: losses and outputs that "
    "are kept between steps without detach() or item(), caches, sequences that get longer"
)


def why_not_lost(job: api.Job) -> api.NotApplicable | api.Unknown | None:
    """Returns why a run that was stopped or reached its limit does not count as lost.

    None if it counts as lost, as a run that failed by itself always does.
    """
    stopped = job.status == "Stopped"
    if not stopped and reached_limit(job) is None:
        return None
    if stopped and is_trial(job):
        return api.NotApplicable("stopped by or with its tuning job")
    if results := kept_results(job):
        return api.NotApplicable(f"it ended early, but it left {results}")
    if stopped and job.has_artifact is None:
        reason = "whether the stopped job left anything is not recorded"
        return api.Unknown("artifact_unknown", reason)
    return None


def retry_fix(job: api.Job) -> tuple[api.Parameter, ...]:
    """Returns a RetryStrategy if an internal error of AWS ended a training job; otherwise empty."""
    if failure_class(job) != AWS_ERROR or job.kind is not api.JobKind.TRAINING:
        return ()
    return (api.Parameter("RetryStrategy.MaximumRetryAttempts", None, 2),)


class MemoryFailure(Struct, frozen=True):
    """How memory ran out.

    `clause`: how full memory was, for a sentence. `first_step`: what to do first.
    `larger_type_fix`: empty if no larger type is recommended.
    """

    clause: str
    first_step: str
    evidence: dict[str, api.Scalar]
    larger_type_fix: tuple[api.Parameter, ...]


def memory_failure(case: api.FamilyCase) -> MemoryFailure | None:
    """Returns how memory ran out, or None if the failure message does not say which memory."""
    failure = failure_class(case.job)
    if failure not in _MEMORY_STEPS:
        return None
    on_gpu = failure == GPU_MEMORY
    growth = memory_growth(case) if on_gpu else None
    metric = api.Metric.GPU_MEMORY if on_gpu else api.Metric.MEMORY
    label, key = ("GPU memory", "gpu_memory") if on_gpu else ("host memory", "host_memory")
    last_percent = _final_percent(case, metric)
    # if memory keeps growing, a larger type only delays the failure
    larger = None if growth else _larger_type(case, on_gpu=on_gpu)
    return MemoryFailure(
        clause=_clause(label, last_percent, (case.whole_run.gpus or 1) if on_gpu else 1, growth),
        first_step=_FIND_GROWTH_STEP if growth else _MEMORY_STEPS[failure],
        evidence={
            f"{key}_last_percent": None if last_percent is None else round(last_percent, 1),
            **(growth.evidence if growth else {}),
        },
        larger_type_fix=() if larger is None else api.type_fix(case.job, larger),
    )


def _clause(label: str, last_percent: float | None, gpus: int, growth: MemoryGrowth | None) -> str:
    if last_percent is None:
        return f"its {label} was not recorded"
    gpus_text = f" on average over {gpus} GPUs" if gpus > 1 else ""
    if growth is not None:
        return f"{label} {growth.text}{gpus_text}"
    is_doubtful = label == "host memory" and last_percent < _NEARLY_FULL_PERCENT
    doubt = ", which does not show that it ran out: a one-minute mean hides a short peak"
    return (
        f"{label} was last recorded at {last_percent:.0f}%{gpus_text}{doubt if is_doubtful else ''}"
    )


def _final_percent(case: api.JobCase, metric: api.Metric) -> float | None:
    lines = case.whole_run.series.get(metric, {}).values()
    last_peaks = [max(line.present[-_LAST_POINTS:]) for line in lines if line.present]
    return max(last_peaks, default=None)


def _larger_type(case: api.JobCase, *, on_gpu: bool) -> str | None:
    job, [current_type, *other_types] = case.job, case.instance_types or [None]
    if current_type is None or other_types or job.kind not in api.INSTANCE_KINDS:
        return None

    def is_fitting(candidate: InstanceType) -> bool:
        has_more = _has_more_memory(current_type, candidate, on_gpu=on_gpu)
        return has_more and type_refusal(job, current_type, candidate) is None

    cheapest = cheapest_type(job, case.market, is_fitting)
    rate = case.market.hourly(job.region, job.kind, current_type.name)
    if cheapest is None:
        return None
    usd, larger = cheapest
    return None if rate is not None and usd > _MAX_RATE_FACTOR * rate.usd else larger


def _has_more_memory(current_type: InstanceType, candidate: InstanceType, *, on_gpu: bool) -> bool:
    """True if the candidate has more of the memory that ran out: the GPU's, or else the host's.

    It also needs the same kind of accelerator, and at least as many of them. For host memory it
    needs at least as many vCPUs. Legacy types are excluded.
    """
    if (
        candidate.accelerator != current_type.accelerator
        or candidate.gpus < current_type.gpus
        or candidate.is_legacy
    ):
        return False
    if on_gpu:
        return (candidate.gpu_memory_gib or 0) > (current_type.gpu_memory_gib or 0) > 0
    return candidate.memory_gib > current_type.memory_gib and candidate.vcpu >= current_type.vcpu


class MemoryGrowth(Struct, frozen=True):
    """A steady rise of GPU memory on one host.

    `host` is None if the job has only one host.
    """

    host: str | None
    from_percent: float
    to_percent: float
    minutes: float

    @property
    def text(self) -> str:
        """The end of a sentence: `rose steadily over 2 h, from about 40% to 95%`."""
        host_text = f" on {self.host.rpartition('/')[2]}" if self.host else ""
        rise_text = f"from about {self.from_percent:.0f}% to {self.to_percent:.0f}%"
        return f"rose steadily over {api.minutes_text(self.minutes)}{host_text}, {rise_text}"

    @property
    def evidence(self) -> dict[str, api.Scalar]:
        """The rise as evidence of a finding."""
        return {
            "gpu_memory_rose_from_percent": round(self.from_percent, 1),
            "gpu_memory_rose_to_percent": round(self.to_percent, 1),
            "gpu_memory_rose_minutes": round(self.minutes),
        }


def memory_growth(case: api.JobCase) -> MemoryGrowth | None:
    """Returns the steady rise on the host whose GPU memory was fullest at last.

    None if memory did not rise steadily, or if points are missing. Memory is empty before the work,
    so only active minutes count.
    """
    usage = case.active_usage
    hosts = usage.series.get(api.Metric.GPU_MEMORY)
    if not hosts or not usage.period_s or usage.find_gap(api.Metric.GPU_MEMORY):
        return None
    growths = []
    for host, line in hosts.items():
        stretch = _trim_to_last_peak(line)
        if (start := _rise_start(case, stretch.present)) is not None:
            minutes = len(stretch.values) * usage.period_s / 60
            name = host if len(hosts) > 1 else None
            growths.append(MemoryGrowth(name, start, stretch.present[-1], minutes))
    return max(growths, key=lambda growth: growth.to_percent, default=None)


def _trim_to_last_peak(line: Series) -> Series:
    positions = [position for position, value in enumerate(line.values) if value is not None]
    end = max(
        positions[-_LAST_POINTS:], key=lambda position: (line.values[position] or 0.0, position)
    )
    return line.slice(positions[0], end + 1)


def _rise_start(case: api.JobCase, points: Sequence[float]) -> float | None:
    """Returns the median of the first fifth, or None if memory did not rise steadily."""
    if len(points) < case.threshold(POINTS_FROM) or points[-1] < case.threshold(FULL_FROM):
        return None
    ends = [round(len(points) * part / _PARTS) for part in range(_PARTS + 1)]
    medians = [median(points[start:end]) for start, end in pairwise(ends)]
    rise = medians[-1] - medians[0]
    largest_step = max(
        later - earlier for earlier, later in zip(medians, medians[2:], strict=False)
    )
    fall = max(peak - point for peak, point in zip(accumulate(points, max), points, strict=True))
    is_rising = all(later > earlier for earlier, later in pairwise(medians))
    is_steady = (
        is_rising and largest_step <= _MAX_STEP_SHARE * rise and fall < _MAX_FALL_SHARE * rise
    )
    return medians[0] if is_steady and rise >= case.threshold(GROWS_BY) else None
