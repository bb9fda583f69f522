"""The GPU works little.

## What it checks
Over the active minutes the mean GPU utilisation is under 25%, or it is under 50% and even the
busiest host's P95 stays under 70%. Idle head and tail are cut first.

## Why it costs
A GPU-hour is billed the same busy or waiting.

## Saving
Derived, never (1 - utilisation) x cost: the run is replayed on cheaper types that hold P99.5 plus
20% of all it used. A GPU that never worked: the same seconds without one. Else the same seconds on
a smaller type of the same GPU, or, where the throughput of both GPUs has a source, at most so many
times as long on another GPU: the slow end is counted, the range shown. Otherwise none.

## When it is wrong
"Utilisation" counts any kernel as busy: low means waste, high does not mean efficient. One-minute
means hide peaks, and CloudWatch has neither I/O wait nor single GPUs.

## What to do
Feed it faster (data-loader workers, prefetch, FastFile), raise the batch size, or take less.

## Sources
SageMaker Debugger, LowGPUUtilization: threshold_p95 70. Jobstats: job mean amber under 25%, target
50%. ICSE 2024 (10.1145/3597503.3639232): of 400 jobs at 50% or less, 46% wait for data.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.candidate import Candidate
from sageaudit.domain.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter
from sageaudit.domain.job import Purchase
from sageaudit.domain.measurements import Metric
from sageaudit.domain.replay import Replay, replay
from sageaudit.domain.series import mean, percentile
from sageaudit.rules.card import JobCase, Threshold, rule
from sageaudit.rules.cpu_underused import HEADROOM, TYPE_PATHS

MEAN_BELOW = Threshold("mean_below", 25, "percent of one GPU", "amber", "Jobstats config.py")
P95_BELOW = Threshold("p95_below", 70, "percent of one GPU", "low", "Debugger LowGPUUtilization")
TARGET = Threshold("target", 50, "percent of one GPU", "busy enough", "Jobstats, target")
_NEVER_WORKED_PERCENT = 1.0
_FEED_IT = "First feed the GPU faster or raise the batch size."


@dataclass(frozen=True, slots=True)
class _Advice:
    """A type to move to with why it holds, or only why there is none."""

    to: Candidate | None
    caution: str


@rule(
    id="SA202",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(MEAN_BELOW, P95_BELOW, TARGET, HEADROOM),
    needs=(Metric.GPU, Metric.CPU),
)
def check(case: JobCase) -> Outcome:
    """Pools all hosts for the mean, and takes the busiest host for the P95."""
    hosts = [series.present for series in case.seen.series[Metric.GPU].values()]
    points = [value for host in hosts for value in host]
    average, p95 = mean(points), max(percentile(host, 95) for host in hosts)
    low = average < case.limit(MEAN_BELOW)
    flat = p95 < case.limit(P95_BELOW) and average < case.limit(TARGET)
    if not low and not flat:
        return Clear()
    advice = _advice(case, max(points))
    group = case.job.groups[0]
    cores = mean([v for s in case.seen.series[Metric.CPU].values() for v in s.present])
    fix = (
        (Parameter(TYPE_PATHS[case.job.kind], group.instance_type, advice.to.type.name),)
        if advice.to
        else ()
    )
    return Found(
        confidence=Confidence.DERIVED if advice.to else Confidence.HEURISTIC,
        bucket=Bucket.AVOIDABLE if advice.to else Bucket.NONE,
        summary=_summary(case, average, p95, max(points)),
        evidence={
            "gpu_mean_percent": round(average, 1),
            "gpu_p95_percent": round(p95, 1),
            "gpu_max_percent": round(max(points), 1),
            "cpu_mean_cores": round(cores * (case.seen.vcpu or 0) / 100, 2),
            "vcpu": case.seen.vcpu,
            "active_minutes": round(case.seen.minutes),
            "period_s": case.seen.period_s,
        },
        fix=fix,
        change=advice.to.change if advice.to else None,
        best=advice.to.best if advice.to else None,
        caution=advice.caution,
    )


def _summary(case: JobCase, average: float, p95: float, peak: float) -> str:
    minutes, what = f"{case.seen.minutes:.0f} active minutes", case.job.instances
    if peak <= _NEVER_WORKED_PERCENT:
        return f"The GPU did nothing in {minutes} on {what}."
    return f"The GPU averaged {average:.0f}% (P95 {p95:.0f}%) over {minutes} on {what}."


def _advice(case: JobCase, peak: float) -> _Advice:
    if len(case.job.groups) > 1:
        return _Advice(None, "No figure: hosts of a mixed cluster have no map to their types.")
    if case.job.purchase is Purchase.TRAINING_PLAN:
        return _Advice(None, "No figure: its training plan is prepaid, for this type.")
    replayed = replay(
        case.job, case.seen, case.market, headroom_percent=Decimal(str(case.limit(HEADROOM)))
    )
    today = replayed.today
    usable = [one for one in replayed.worthwhile if not one.type.legacy or today.legacy]
    if peak <= _NEVER_WORKED_PERCENT:
        return _without_gpu([one for one in usable if not one.type.accelerator])
    same = [one for one in usable if one.best is None and one.type.gpus]
    for one in same or [one for one in usable if one.best is not None]:
        return _Advice(one, f"{_because(one)} Minute means hide peaks: try it once.")
    return _Advice(None, f"No figure: {_why_none(replayed)}. {_FEED_IT}")


def _without_gpu(fitting: list[Candidate]) -> _Advice:
    if not fitting:
        return _Advice(None, "No figure: no cheaper CPU type that holds the rest is priced here.")
    mend = "If the code was meant to use the GPU, mend that instead."
    takes = fitting[0].takes
    return _Advice(fitting[0], f"{takes.because if takes else ''} {mend}".strip())


def _because(one: Candidate) -> str:
    if one.takes is None:
        return ""
    if one.best is None or one.break_even is None:
        return one.takes.because
    even = f"it pays while the run takes at most {one.break_even:.2f} times as long"
    return f"{one.takes.because} Counted at {one.takes.counted:.2f} times as long; {even}."


def _why_none(replayed: Replay) -> str:
    """The dearest cheaper type of the same GPU says what binds."""
    today = replayed.today
    same = [
        one
        for one in replayed.candidates
        if one.refused and one.type.gpu_model == today.gpu_model and replayed.cheaper(one)
    ]
    if not same:
        return f"this is the smallest type with a {today.gpu_model}"
    nearest = same[-1]
    return f"{nearest.type.name} is refused ({nearest.refused.reason if nearest.refused else ''})"
