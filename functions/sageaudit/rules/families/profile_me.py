"""An expensive run that works little has never been profiled.

What it checks: It cost at least $50, its GPU (without one, its CPU) averaged under 50% of the
    active time, and no profiler was on.
Why it costs: CloudWatch shows that it waits, not for what: the next run waits as long.
Saving: None: a profile alone saves nothing.
When it is wrong: Its code may run a profiler of its own, which AWS does not report. A model that
    must wait, such as for a simulator, cannot change.
What to do: Profile a few hundred steps with the framework's own tool: torch.profiler or the
    TensorFlow Profiler, both shown by TensorBoard; or NVIDIA Nsight Systems. `ProfilerConfig` is
    for accounts that already use it: SageMaker Debugger is closed to new customers since
    2026-07-30, and SageMaker Profiler ends on 2027-06-30.
Sources: ICSE 2024 (10.1145/3597503.3639232): of 400 jobs at 50% GPU or less, 85% were fixed with a
    few lines. Jobstats: target 50%. AWS guide, Debugger and Profiler availability change.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.usage.edges import work_metric
from sageaudit.rules import api

FROM = api.Threshold("from_usd", 50, "USD", "an hour of work to profile it")
BELOW = api.Threshold("below_percent", 50, "percent of its time", "it waits", "ICSE 2024, Jobstats")


def _profiled(case: api.JobCase) -> str | None:
    return "a profiler was on" if case.job.profiled else None


def _cheap(case: api.JobCase) -> str | None:
    total_usd, from_usd = case.bill.total_usd, Decimal(str(case.limit(FROM)))
    cheap = total_usd is not None and total_usd < from_usd
    return f"it cost less than ${from_usd:.2f}" if cheap else None


@api.rule(
    id="SA707",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(FROM, BELOW),
    needs=(api.Metric.CPU,),
    not_applicable=(_profiled, _cheap),
    in_chat=False,
    once_a_family=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Averages all hosts: their GPUs if they have any, else their CPUs."""
    total_usd = case.bill.total_usd
    if total_usd is None:
        return api.BILL_UNKNOWN
    metric = work_metric(case.usage)
    if isinstance(metric, api.Missing):
        return api.unknown(metric)
    average = api.mean_of_hosts(case.usage.series[metric].values())
    if average >= case.limit(BELOW):
        return api.Clear()
    return api.advice(
        f"It cost ${total_usd:,.2f} with its {metric.name} at {average:.0f}%, and no profiler "
        "shows why.",
        {
            "total_usd": total_usd,
            "metric": metric.value,
            "mean_percent": round(average, 1),
            "active_minutes": round(case.usage.minutes),
        },
        fix=_fix(case.job.profiled),
        caution=(
            "A profile saves nothing by itself. Debugger is closed to new customers "
            "since 2026-07-30: they use torch.profiler or the TensorFlow Profiler."
        ),
    )


def _fix(profiled: bool | None) -> tuple[api.Parameter, ...]:
    """An output path; a profiler that was switched off must be switched on too."""
    output = api.Parameter("ProfilerConfig.S3OutputPath", None, "s3://<bucket>/<prefix>")
    if profiled is None:
        return (output,)
    return (api.Parameter("ProfilerConfig.DisableProfiler", True, False), output)
