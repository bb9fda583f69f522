"""A transform job sends record by record to instances that have little to do.

What it checks: BatchStrategy is SingleRecord, the mean CPU over the active minutes is under 40% of
    all vCPUs, and no GPU is busy.
Why it costs: Each record is a request of its own: the instance is billed while requests are made
    and answered, not only while the model computes.
Saving: Possible, without a figure: how much faster batches are depends on records and container,
    and only a run shows it.
When it is wrong: The container takes one record a request, or its answer to a batch has another
    form. Padding of RecordIO and TFRecord is removed only for single records.
What to do: BatchStrategy MultiRecord with SplitType Line, RecordIO or TFRecord, and AssembleWith
    Line for answers by line; MaxPayloadInMB sets the size of a batch.
Sources: botocore, CreateTransformJob.BatchStrategy and TransformInput.SplitType. Flexera:
    under-used below 40%.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.processing.transform_requests import CPU_BELOW, cpu_mean


def _not_single(case: api.JobCase) -> str | None:
    single = case.job.batch.strategy == "SingleRecord"
    return None if single else "BatchStrategy is not SingleRecord"


@api.rule(
    id="SA802",
    scope=api.JobCase,
    kinds={api.JobKind.TRANSFORM},
    thresholds=(CPU_BELOW,),
    required_metrics=(api.Metric.CPU,),
    skips_busy_gpu=True,
    not_applicable=(_not_single,),
)
def check(case: api.JobCase) -> api.Outcome:
    """Needs the CPU and how the job sends its requests."""
    average = cpu_mean(case)
    if isinstance(average, api.Unknown):
        return average
    if average >= case.threshold(CPU_BELOW):
        return api.Clear()
    return api.possible_saving(
        f"BatchStrategy is SingleRecord, and CPU averaged {average:.0f}% over "
        f"{api.minutes_text(case.active_usage.minutes)} on {case.job.instances}.",
        {
            "batch_strategy": "SingleRecord",
            "cpu_mean_percent": round(average, 1),
            "vcpu": case.active_usage.vcpu,
            "active_minutes": round(case.active_usage.minutes),
        },
        fix=(api.Parameter("BatchStrategy", "SingleRecord", "MultiRecord"),),
        caution=(
            "Only a run shows how much faster batches are. The container must take "
            "several records a request; without SplitType the strategy has no effect."
        ),
    )
