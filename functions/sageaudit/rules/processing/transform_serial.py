"""A transform job sends one request at a time, and its instances are hardly busy.

What it checks: MaxConcurrentTransforms is 1 or not set. The type has at least 2 vCPUs, their mean
    use over the active minutes is under 40%, and no GPU is busy.
Why it costs: The instance is billed while it waits for the next request to be read, sent and
    stored.
Saving: Possible, without a figure: only a run shows how much faster concurrent requests are.
When it is wrong: If MaxConcurrentTransforms is not set, the container's execution-parameters
    endpoint decides; without one it is 1. An input file without SplitType is a single request. A
    model that fills the memory can serve only one request at a time.
What to do: Do one of the two. Raise MaxConcurrentTransforms, up to the number of vCPUs;
    MaxConcurrentTransforms times MaxPayloadInMB (6 by default) may not exceed 100 MB. Or take a
    smaller type, which one request at a time keeps busy.
Sources: botocore, CreateTransformJob: MaxConcurrentTransforms, MaxPayloadInMB. Flexera: underused
    below 40%.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.processing.transform_requests import (
    CONCURRENT,
    CPU_BELOW,
    DEFAULT_PAYLOAD_MB,
    MAX_PAYLOAD_MB,
    cpu_mean,
)

MIN_VCPU = api.Threshold("min_vcpus", 2, "vCPUs per instance", "one vCPU serves one request")


def _concurrent_reason(case: api.JobCase) -> str | None:
    concurrent = case.job.batch.max_concurrent or 1
    return f"it sends {concurrent} requests at a time" if concurrent > 1 else None


@api.rule(
    id="SA801",
    scope=api.JobCase,
    kinds={api.JobKind.TRANSFORM},
    thresholds=(CPU_BELOW, MIN_VCPU),
    required_metrics=(api.Metric.CPU,),
    skips_busy_gpu=True,
    not_applicable=(_concurrent_reason,),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the CPU use and how the job sends its requests."""
    batch, vcpu = case.job.batch, case.active_usage.vcpu or 0
    mean_percent = cpu_mean(case)
    if isinstance(mean_percent, api.Unknown):
        return mean_percent
    payload_mb = DEFAULT_PAYLOAD_MB if batch.max_payload_mb is None else batch.max_payload_mb
    new_concurrent = min(
        vcpu, MAX_PAYLOAD_MB // max(payload_mb, 1)
    )  # 0: payloads are sent in chunks of any size
    if (
        mean_percent >= case.threshold(CPU_BELOW)
        or vcpu < case.threshold(MIN_VCPU)
        or new_concurrent <= 1
    ):
        return api.Clear()
    return api.possible_saving(
        f"MaxConcurrentTransforms is {'1' if batch.max_concurrent else 'not set'}, and CPU "
        f"averaged {mean_percent:.0f}% of {vcpu} vCPUs over"
        f" {api.minutes_text(case.active_usage.minutes)} on "
        f"{case.job.instances}.",
        {
            "max_concurrent_transforms": batch.max_concurrent,
            "max_payload_mb": batch.max_payload_mb,
            "cpu_mean_percent": round(mean_percent, 1),
            "vcpu": vcpu,
            "active_minutes": round(case.active_usage.minutes),
        },
        fix=(api.Parameter(CONCURRENT, batch.max_concurrent, new_concurrent),),
        caution=(
            "Only a test run can show how much faster it is with concurrent requests. "
            "A smaller type is the alternative: do only one of the two."
        ),
    )
