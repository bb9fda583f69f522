"""What the rules on runs that ended early share: what is not lost, what a second try may cure, and
what is known where memory ran out.
"""

from __future__ import annotations

from msgspec import Struct

from sageaudit.domain.job.course import is_trial, kept, limit_hit, reason_class
from sageaudit.domain.job.failure_words import AWS_ERROR, GPU_MEMORY, HOST_MEMORY
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.resize.type_choice import cheapest_type
from sageaudit.domain.resize.type_vetoes import type_refused
from sageaudit.rules import api
from sageaudit.rules.limits.memory_growth import LAST_POINTS, MemoryGrowth, memory_growth

_NEAR_FULL_PERCENT = 80
"""Below it a one-minute mean is no sign that the memory ran out; our choice."""
_TIMES_THE_RATE = 4
"""A type that costs more than this is no fix to paste beside a smaller batch; our choice."""
_ADVICE = {
    GPU_MEMORY: (
        "Halve the batch and accumulate gradients over two steps, or take a GPU with more memory; "
        "test the longest batch first"
    ),
    HOST_MEMORY: "Use fewer data-loader workers and load less at once, or a type with more memory",
}
_FIND_GROWTH = (
    "Find what keeps growing, as a smaller batch only delays the failure: losses and outputs that "
    "are kept between steps without detach() or item(), caches, sequences that get longer"
)


def not_lost(job: api.Job) -> api.NotApplicable | api.Unknown | None:
    """Why a run that was stopped, or reached its limit, is not judged lost, or None.

    A run that failed by itself is lost whatever it left before.
    """
    stopped = job.status == "Stopped"
    if not stopped and limit_hit(job) is None:
        return None
    if stopped and is_trial(job):
        return api.NotApplicable("stopped by or with its tuning job")
    if left := kept(job):
        return api.NotApplicable(f"it ended early, but it left {left}")
    if stopped and job.left_artifact is None:
        reason = "whether the stopped job left anything is not recorded"
        return api.Unknown("artifact_unknown", reason)
    return None


def retry_fix(job: api.Job) -> tuple[api.Parameter, ...]:
    """A RetryStrategy for an internal error of AWS; SageMaker has it for training jobs only."""
    if reason_class(job) != AWS_ERROR or job.kind is not api.JobKind.TRAINING:
        return ()
    return (api.Parameter("RetryStrategy.MaximumRetryAttempts", None, 2),)


class MemoryFailure(Struct, frozen=True):
    """A clause for the summary, what to do first, the numbers, and a larger type as a fix."""

    clause: str
    advice: str
    evidence: dict[str, api.Scalar]
    larger: tuple[api.Parameter, ...]


def memory_failure(case: api.FamilyCase) -> MemoryFailure | None:
    """None where the failure message says nothing of memory, or not whose."""
    whose = reason_class(case.job)
    if whose not in _ADVICE:
        return None
    on_gpu = whose == GPU_MEMORY
    growth = memory_growth(case) if on_gpu else None
    metric = api.Metric.GPU_MEMORY if on_gpu else api.Metric.MEMORY
    word, key = ("GPU memory", "gpu_memory") if on_gpu else ("host memory", "host_memory")
    last = _last_percent(case, metric)
    # a larger type only delays the failure of what keeps growing
    larger = None if growth else _larger(case, on_gpu=on_gpu)
    return MemoryFailure(
        clause=_clause(word, last, (case.whole.gpus or 1) if on_gpu else 1, growth),
        advice=_FIND_GROWTH if growth else _ADVICE[whose],
        evidence={
            f"{key}_last_percent": None if last is None else round(last, 1),
            **(growth.evidence if growth else {}),
        },
        larger=() if larger is None else api.type_fix(case.job, larger),
    )


def _clause(word: str, last: float | None, gpus: int, growth: MemoryGrowth | None) -> str:
    if last is None:
        return f"its {word} was not recorded"
    over = f" on average over {gpus} GPUs" if gpus > 1 else ""
    if growth is not None:
        return f"{word} {growth.text}{over}"
    unseen = word == "host memory" and last < _NEAR_FULL_PERCENT
    doubt = ", which does not show that it ran out: a minute's mean hides a short peak"
    return f"{word} was last recorded at {last:.0f}%{over}{doubt if unseen else ''}"


def _last_percent(case: api.JobCase, metric: api.Metric) -> float | None:
    """The host that was fullest at its end."""
    lines = case.whole.series.get(metric, {}).values()
    ends = [max(line.present[-LAST_POINTS:]) for line in lines if line.present]
    return max(ends, default=None)


def _larger(case: api.JobCase, *, on_gpu: bool) -> str | None:
    """The cheapest type with more of this memory that runs the same code, if its rate is known and
    not far above today's.
    """
    job, [today, *others] = case.job, case.types or [None]
    if today is None or others or job.kind not in api.ON_INSTANCES:
        return None

    def fits(other: InstanceType) -> bool:
        more = _holds_more(today, other, on_gpu=on_gpu)
        return more and type_refused(job, today, other) is None

    found = cheapest_type(job, case.market, fits)
    rate = case.market.hourly(job.region, job.kind, today.name)
    if found is None or (rate is not None and found.hourly_usd > _TIMES_THE_RATE * rate.usd):
        return None
    return found.name


def _holds_more(today: InstanceType, other: InstanceType, *, on_gpu: bool) -> bool:
    """At least as many devices and vCPUs of the same maker, current, and more of the memory."""
    if other.accelerator != today.accelerator or other.gpus < today.gpus or other.legacy:
        return False
    if on_gpu:
        return (other.gpu_memory_gib or 0) > (today.gpu_memory_gib or 0) > 0
    return other.memory_gib > today.memory_gib and other.vcpu >= today.vcpu
