"""The GPU did nothing at all.

## What it checks
Every point of GPUUtilization, of all hosts, is exactly 0 through at least 15 minutes of the job's
own code. Idle head and tail are not cut: a GPU that works later or earlier is another story.

## Why it costs
The GPU is most of what the instance costs.

## Saving
Derived: the same seconds on the cheapest CPU type that holds P99.5 of vCPU and host memory plus
20%; where one was not recorded, on one that has no less of it. Without such a type: no figure.

## When it is wrong
One-minute means of a short burst may be rounded to 0, and points may be missing where it worked.
Code that does use the GPU, and fell back to the CPU by mistake, is to be mended instead.

## What to do
If the code has no use for a GPU (scikit-learn, gradient boosting on the CPU, pandas): a CPU type.
If it has: look for a CPU-only build of the framework, a driver or CUDA version that does not match
the container, a missing `.to("cuda")`.

## Sources
Jobstats and Job Defense Shield, cancel-zero-gpu: all samples 0, acted on after 120 minutes. The
first GPU points come 3 to 6 minutes late in recorded jobs. AWS publishes no such metric for
Trainium: Unknown there.
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
from sageaudit.domain.bill.resize import Resize, resize
from sageaudit.domain.job.request_paths import TYPE_PATHS
from sageaudit.domain.usage.measurements import Metric
from sageaudit.domain.usage.series import mean
from sageaudit.rules.card import HEADROOM, JobCase, Threshold, rule
from sageaudit.rules.utilisation.gpu_underused import Advice, never_worked, unmovable

FROM = Threshold(
    "from_minutes", 15, "minutes", "late points and start-up are behind it", "our choice"
)
_MEND = "If the code was meant to use the GPU, mend that instead."


@rule(
    id="SA201",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(FROM, HEADROOM),
    needs=(Metric.GPU,),
    whole_run=True,
    subsumes={"cpu-bottleneck", "old-generation", "profile-me", "trainium-candidate"},
)
def check(case: JobCase) -> Outcome:
    """Looks at the whole run, and sizes the CPU type by its active minutes."""
    whole = case.whole
    if not never_worked(whole) or whole.minutes < case.limit(FROM):
        return Clear()
    hosts, expected = len(whole.series[Metric.GPU]), whole.hosts_expected or 0
    if hosts < expected:
        return Unknown("hosts_missing", f"{hosts} of {expected} hosts have {Metric.GPU.value}")
    advice, group = _advice(case), case.job.groups[0]
    cores = [v for line in case.usage.series.get(Metric.CPU, {}).values() for v in line.present]
    busy = round(mean(cores) * case.usage.vcpu / 100, 2) if cores and case.usage.vcpu else None
    return Found(
        confidence=Confidence.DERIVED if advice.to else Confidence.HEURISTIC,
        bucket=Bucket.AVOIDABLE if advice.to else Bucket.NONE,
        summary=f"The GPU did nothing in {whole.minutes:.0f} minutes on {case.job.instances}.",
        evidence={
            "gpu_max_percent": 0,
            "minutes": round(whole.minutes),
            "cpu_mean_cores": busy,
            "vcpu": whole.vcpu,
            "period_s": whole.period_s,
        },
        fix=(
            (Parameter(TYPE_PATHS[case.job.kind], group.instance_type, advice.to.type.name),)
            if advice.to
            else ()
        ),
        change=advice.to.change if advice.to else None,
        caution=advice.caution,
    )


def _advice(case: JobCase) -> Advice:
    if why := unmovable(case):
        return Advice(None, f"No figure: {why}. {_MEND}")
    resized = resize(
        case.job,
        case.usage,
        case.market,
        headroom_percent=Decimal(str(case.limit(HEADROOM))),
        only=lambda kind: kind.accelerator is None,
    )
    for one in resized.worthwhile:
        if not one.type.legacy or resized.today.legacy:
            return Advice(one, f"{one.because} {_MEND}")
    return Advice(None, f"No figure: {_why_none(resized)}. {_MEND}")


def _why_none(resized: Resize) -> str:
    """The largest cheaper CPU type says what binds."""
    refused = [one for one in resized.candidates if one.refused and resized.cheaper(one)]
    if not refused or refused[-1].refused is None:
        return "no cheaper CPU type is priced here"
    return f"{refused[-1].type.name} is refused ({refused[-1].refused.reason})"
