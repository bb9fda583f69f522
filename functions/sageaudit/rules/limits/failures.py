"""What the rules on runs that ended early share: what is not lost, what a second try may cure, and
what is known where memory ran out.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from sageaudit.domain.bill.type_rate import cheapest_type
from sageaudit.domain.bill.type_vetoes import type_refused
from sageaudit.domain.job.failure import is_trial, kept, limit_hit, reason_class
from sageaudit.domain.job.failure_words import AWS_ERROR, GPU_MEMORY, HOST_MEMORY
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.growth import Growth, steady_growth
from sageaudit.rules import api
from sageaudit.rules.types.another_type import times_dearer
from sageaudit.rules.utilisation.gpu_memory_growth import PATIENCE, WINDOW, points_an_hour

_LAST_POINTS = 3
"""The minute in which a process dies has a lower mean: the highest of the last points counts."""
_MONTH_DAYS = 30
_NEAR_FULL_PERCENT = 80
"""Below it a one-minute mean is no sign that the memory ran out; our choice."""
_ADVICE = {
    GPU_MEMORY: (
        "Halve the batch and accumulate gradients over two steps, or take a GPU with more memory; "
        "test the longest batch first"
    ),
    HOST_MEMORY: "Use fewer data-loader workers and load less at once, or a type with more memory",
}


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


@dataclass(frozen=True, slots=True)
class MemoryFailure:
    """A clause for the summary, what to do first, the numbers, and a larger type as a fix.

    The larger type is only a fix where it costs the family's runs less than the failures do;
    `price` is the sentence that compares the two.
    """

    clause: str
    advice: str
    price: str
    evidence: dict[str, api.Evidence]
    larger: tuple[api.Parameter, ...]


def memory_failure(case: api.FamilyCase) -> MemoryFailure | None:
    """None where the failure message says nothing of memory, or not whose."""
    whose = reason_class(case.job)
    if whose not in _ADVICE:
        return None
    on_gpu = whose == GPU_MEMORY
    metric = api.Metric.GPU_MEMORY if on_gpu else api.Metric.MEMORY
    word, key = ("GPU memory", "gpu_memory") if on_gpu else ("host memory", "host_memory")
    last = _last_percent(case, metric)
    grown = _growth(case, metric)
    unseen = not on_gpu and last is not None and last < _NEAR_FULL_PERCENT
    larger = _larger(case, on_gpu=on_gpu)
    price = _price_of(case, larger) if larger else None
    doubt = ", which does not show that it ran out: a minute's mean hides a short peak"
    return MemoryFailure(
        clause=f"{_clause(word, last, grown, case)}{doubt if unseen else ''}",
        advice=_ADVICE[whose],
        price=price.sentence if price else "",
        evidence={
            f"{key}_last_percent": None if last is None else round(last, 1),
            f"{key}_points_per_hour": None if grown is None else round(grown.per_hour, 1),
            **(price.evidence if price else {}),
        },
        larger=()
        if larger is None or (price and not price.pays)
        else api.type_fix(case.job, larger),
    )


@dataclass(frozen=True, slots=True)
class _Price:
    """What a larger type costs more, and what the failures cost, for each run that completes."""

    type: str
    more_usd: Decimal
    failures_usd: Decimal
    runs_a_month: int | None

    @property
    def pays(self) -> bool:
        return self.more_usd < self.failures_usd

    @property
    def evidence(self) -> dict[str, api.Evidence]:
        return {
            "larger_type_more_usd": round(self.more_usd, 4),
            "failures_usd": round(self.failures_usd, 4),
            "runs_a_month": self.runs_a_month,
        }

    @property
    def sentence(self) -> str:
        month, runs = "", self.runs_a_month
        if runs is not None:
            month = (
                f" (${self.more_usd * runs:,.2f} against ${self.failures_usd * runs:,.2f} a month)"
            )
        than = "less" if self.pays else "no less"
        return (
            f"For all runs {self.type} costs {than} than the failures: ${self.more_usd:,.2f} more "
            f"against ${self.failures_usd:,.2f} for each run that completes{month}"
        )


def _price_of(case: api.FamilyCase, larger: str) -> _Price | None:
    """None before a run completed on these instances: then only another type may end the failures.

    A run is taken to last as long on the larger type.
    """
    job, own_usd = case.job, case.bill.total_usd
    known = [run for run in case.runs_alike if run.total_usd is not None]
    done = [run for run in known if run.status == "Completed"]
    why = reason_class(job)
    failed = [run for run in known if run.status == "Failed" and run.facts.reason_class == why]
    times = times_dearer(case, job.groups[0].instance_type, larger)
    if not done or own_usd is None or times is None:
        return None
    costs_usd = [run.total_usd for run in done if run.total_usd is not None]
    lost_usd = sum((run.total_usd or Decimal(0) for run in failed), own_usd)
    month = case.recent(_MONTH_DAYS)
    whole = month is not None and len(month) < len(case.runs)
    return _Price(
        type=larger,
        more_usd=median(costs_usd) * (times - 1),
        failures_usd=lost_usd / len(done),
        runs_a_month=sum(run in done for run in month) if month and whole else None,
    )


def _clause(word: str, last: float | None, grown: Growth | None, case: api.JobCase) -> str:
    if last is None:
        return f"its {word} was not recorded"
    gpus = case.whole.gpus or 1
    over = f" on average over {gpus} GPUs" if word == "GPU memory" and gpus > 1 else ""
    pace = f", after it grew {points_an_hour(grown)}" if grown else ""
    return f"{word} was last recorded at {last:.0f}%{over}{pace}"


def _last_percent(case: api.JobCase, metric: api.Metric) -> float | None:
    """The host that was fullest at its end."""
    lines = case.whole.series.get(metric, {}).values()
    ends = [max(line.present[-_LAST_POINTS:]) for line in lines if line.present]
    return max(ends, default=None)


def _growth(case: api.JobCase, metric: api.Metric) -> Growth | None:
    """The fastest of the hosts that grow steadily."""
    found = [
        steady_growth(
            line,
            period_s=case.usage.period_s,
            skipped_min=PATIENCE.value,
            window_min=WINDOW.value,
            ran_out=True,
        )
        for line in case.usage.series.get(metric, {}).values()
    ]
    return max((one for one in found if one), key=lambda one: one.per_hour, default=None)


def _larger(case: api.JobCase, *, on_gpu: bool) -> str | None:
    """The cheapest type with more of this memory that runs the same code, if its rate is known."""
    job, [today, *others] = case.job, case.types or [None]
    if today is None or others or job.kind not in api.ON_INSTANCES:
        return None

    def fits(other: InstanceType) -> bool:
        more = _holds_more(today, other, on_gpu=on_gpu)
        return more and type_refused(job, today, other) is None

    found = cheapest_type(job, case.market, fits)
    return found.name if found else None


def _holds_more(today: InstanceType, other: InstanceType, *, on_gpu: bool) -> bool:
    """At least as many devices and vCPUs of the same maker, current, and more of the memory."""
    if other.accelerator != today.accelerator or other.gpus < today.gpus or other.legacy:
        return False
    if on_gpu:
        return (other.gpu_memory_gib or 0) > (today.gpu_memory_gib or 0) > 0
    return other.memory_gib > today.memory_gib and other.vcpu >= today.vcpu
