"""A dear run that works little has never been profiled.

## What it checks
It cost at least $50, its GPU (without one, its CPU) averaged under 50% of the active time, and no
profiler was on.

## Why it costs
CloudWatch tells that it waits, not for what. Without a profile the next run waits as long.

## Saving
None: a profile saves nothing by itself. Other findings price what is known already.

## When it is wrong
Its code may run a profiler of its own, which no answer of AWS tells. A model that must wait, such
as for a simulator, stays as it is.

## What to do
Profile a few hundred steps with what the framework brings: torch.profiler, the TensorFlow Profiler,
both shown by TensorBoard; or NVIDIA Nsight Systems. `ProfilerConfig` is left to accounts that
already use it: SageMaker Debugger is closed to new customers since 2026-07-30, and SageMaker
Profiler ends on 2027-06-30.

## Sources
ICSE 2024 (10.1145/3597503.3639232): of 400 jobs at 50% GPU or less, 85% were mended with a few
lines. Jobstats: target 50%. AWS guide, Debugger and Profiler availability change.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.edges import work_metric
from sageaudit.domain.usage.measurements import Metric, Missing
from sageaudit.domain.usage.series import mean_of_hosts
from sageaudit.rules.card import JobCase, Threshold, rule

FROM = Threshold("from_usd", 50, "USD", "an hour of the one who profiles", "our choice")
BELOW = Threshold("below_percent", 50, "percent of its time", "it waits", "ICSE 2024, Jobstats")


def _excuse(case: JobCase) -> str | None:
    if case.job.profiled:
        return "a profiler was on"
    total_usd, dear_usd = case.bill.total_usd, Decimal(str(case.limit(FROM)))
    cheap = total_usd is not None and total_usd < dear_usd
    return f"it cost less than ${dear_usd:.2f}" if cheap else None


@rule(
    id="SA707",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(FROM, BELOW),
    needs=(Metric.CPU,),
    excuse=_excuse,
    in_chat=False,
)
def check(case: JobCase) -> Outcome:
    """Pools all hosts; where there are GPUs, theirs is the figure."""
    total_usd = case.bill.total_usd
    if total_usd is None:
        return Unknown("bill_unknown", "the cost of this run is not known")
    metric = work_metric(case.usage)
    if isinstance(metric, Missing):
        return Unknown(metric.code, metric.reason)
    average = mean_of_hosts(case.usage.series[metric].values())
    if average >= case.limit(BELOW):
        return Clear()
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.NONE,
        summary=(
            f"It cost ${total_usd:,.2f} with its {metric.name} at {average:.0f}%, and no profiler "
            "says why."
        ),
        evidence={
            "total_usd": total_usd,
            "metric": metric.value,
            "mean_percent": round(average, 1),
            "active_minutes": round(case.usage.minutes),
        },
        fix=_fix(case.job.profiled),
        caution=(
            "No figure: a profile saves nothing by itself. Debugger is closed to new customers "
            "since 2026-07-30: they take torch.profiler or the TensorFlow Profiler."
        ),
    )


def _fix(profiled: bool | None) -> tuple[Parameter, ...]:
    """A place for the profile; a profiler that was switched off must be switched on too."""
    place = Parameter("ProfilerConfig.S3OutputPath", None, "s3://<bucket>/<prefix>")
    if profiled is None:
        return (place,)
    return (Parameter("ProfilerConfig.DisableProfiler", True, False), place)
