"""A transform job sends one record per request, and its instances are hardly busy.

What it checks: BatchStrategy is SingleRecord, the mean CPU over the active minutes is under 40% of
    all vCPUs, and no GPU is busy.
Why it costs: Each record is a separate request, and the instance is billed while requests are sent
    and answered.
Saving: Possible, without a figure: only a run shows how much faster batches are.
When it is wrong: The container may take only one record per request, or answer a batch in another
    format. Padding of RecordIO and TFRecord is removed only for single records.
What to do: Set BatchStrategy to MultiRecord, SplitType to Line, RecordIO or TFRecord, and
    AssembleWith to Line if answers are lines. MaxPayloadInMB sets the size of a batch.
Sources: botocore, CreateTransformJob.BatchStrategy and TransformInput.SplitType. Flexera: underused
    below 40%.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.processing.transform_requests import CPU_BELOW, cpu_mean


def _not_single_reason(case: api.JobCase) -> str | None:
    is_single = case.job.batch.strategy == "SingleRecord"
    return None if is_single else "BatchStrategy is not SingleRecord"


@api.rule(
    id="SA802",
    scope=api.JobCase,
    kinds={api.JobKind.TRANSFORM},
    thresholds=(CPU_BELOW,),
    required_metrics=(api.Metric.CPU,),
    skips_busy_gpu=True,
    not_applicable=(_not_single_reason,),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the CPU use and how the job sends its requests."""
    mean_percent = cpu_mean(case)
    if isinstance(mean_percent, api.Unknown):
        return mean_percent
    if mean_percent >= case.threshold(CPU_BELOW):
        return api.Clear()
    return api.possible_saving(
        f"BatchStrategy is SingleRecord, and CPU averaged {mean_percent:.0f}% over "
        f"{api.minutes_text(case.active_usage.minutes)} on {case.job.instances}.",
        {
            "batch_strategy": "SingleRecord",
            "cpu_mean_percent": round(mean_percent, 1),
            "vcpu": case.active_usage.vcpu,
            "active_minutes": round(case.active_usage.minutes),
        },
        fix=(api.Parameter("BatchStrategy", "SingleRecord", "MultiRecord"),),
        caution=(
            "Only a test run can show how much faster it is with batches. The container must "
            "accept several records per request. Without SplitType the strategy has no effect."
        ),
    )
