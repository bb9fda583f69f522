"""The GPU work of an instance fits on fewer of its GPUs.

What it checks: GPU use and GPU memory are summed over the GPUs of each instance. The P99.5 of both
    sums on the busiest host fits on at most half of its GPUs.
Why it costs: All GPUs are billed, but code that is not distributed uses only the first one.
Saving: Derived: the run on the type that certainly saves most. Without such a type there is no
    figure.
    - If one GPU takes over the work of k GPUs, each busy for a share u of the time, the run takes
      at most 1 + u (k - 1) times as long. This time is counted.
    - If the sum never exceeds one GPU and the job shows no sign of distribution, one GPU did the
      work. Then the same run time is counted.
    - If the job is known to use all GPUs (DDP, Horovod, SMP and others), the saving is only
      possible.
When it is wrong: CloudWatch has only the sum of an instance's GPUs: one at 80% and four at 20% look
    the same. So the finding never says that one GPU was unused. One-minute means hide peaks. Work
    that is spread over all GPUs may take longer on fewer.
What to do: Spread the work over all GPUs: with SageMaker's data parallel library (SMDDP) on p4d and
    p4de, otherwise with PyTorch DDP and one process for each GPU.
    - If it is spread already, use a larger batch.
    - Or take a smaller size if the run fits one.
Sources: Jobstats and Job Defense Shield: n of m GPUs unused. cloud-finops-skills, multi-GPU
    underutilised: one above 30%, others under 5%. SMDDP's types: SageMaker guide, p4d.24xlarge and
    p4de.24xlarge. Compute Optimizer: P99.5 with 20% headroom.
"""

from __future__ import annotations

import math

from sageaudit.domain.job.addresses import repository
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.demand import PEAK_PERCENTILE
from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type
from sageaudit.rules.utilisation.gpus import outcome_if_gpu_idle

MAX_GPU_SHARE = api.Threshold(
    "max_gpu_share_percent", 50, "percent of the GPUs", "the next smaller size has half as many"
)

SUM_ONLY_CAUTION = "CloudWatch shows only the sum of an instance's GPUs, not each one."
DISTRIBUTE_STEP = "Spread the work over all GPUs instead."
LARGER_BATCH_STEP = "Use a larger batch instead, so that each GPU has more work."


def _one_gpu_reason(case: api.JobCase) -> str | None:
    first = next(iter(case.instance_types), None)
    return "its instances have one GPU" if first and first.gpus == 1 else None


@api.rule(
    id="SA204",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MAX_GPU_SHARE, api.HEADROOM),
    required_metrics=(api.Metric.GPU, api.Metric.GPU_MEMORY),
    can_pool_runs=True,
    finds_waste=True,
    max_period_s=300,
    not_applicable=(api.mixed_types_reason, _one_gpu_reason),
    subsumes={"cheaper-type", "gpu-underused", "trainium-candidate"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Computes how many GPUs have room for the GPU use and the GPU memory."""
    if idle_outcome := outcome_if_gpu_idle(case):
        return idle_outcome
    current_type = case.current_type
    each_gib = float(current_type.gpu_memory_gib or 0)
    if not each_gib:
        return api.Unknown("not_recorded", f"the memory of a {current_type.gpu_model} is not known")
    gpus, memory = (
        case.active_usage.busiest_percentile(metric, PEAK_PERCENTILE) / 100 * current_type.gpus
        for metric in (api.Metric.GPU, api.Metric.GPU_MEMORY)
    )
    fits_on = max(math.ceil(round(gpus, 2)), math.ceil(round(memory, 2)), 1)
    if 100 * fits_on > case.threshold(MAX_GPU_SHARE) * current_type.gpus:
        return api.Clear()
    recommendation, distribution_fix = best_type(case), _distribution_fix(case.job, current_type)
    step = LARGER_BATCH_STEP if case.job.hints.has_gpu_ranks else DISTRIBUTE_STEP
    details = recommendation.details(
        case, SUM_ONLY_CAUTION if recommendation.first else f"{SUM_ONLY_CAUTION} {step}"
    )
    if recommendation.first is None:
        details["fix"] = distribution_fix
    elif distribution_fix:
        details["alternatives"] = (*details.get("alternatives", ()), distribution_fix)
    count_text = "One" if fits_on == 1 else str(fits_on)
    verb = "is" if fits_on == 1 else "are"
    return api.derived_saving(
        f"{count_text} of the {current_type.gpus} GPUs {verb} enough for "
        f"{case.minutes_text(case.active_usage.minutes)} on {case.job.instances}: at its peak the "
        f"work used {_gpus_text(gpus)} GPUs and {memory * each_gib:.1f} GiB of GPU memory.",
        {
            "gpus": current_type.gpus,
            "gpus_needed": round(gpus, 2),
            "gpu_memory_needed_gib": round(memory * each_gib, 1),
            "memory_of_each_gpu_gib": current_type.gpu_memory_gib,
            "fits_on_gpus": fits_on,
            "active_minutes": round(case.active_usage.minutes),
        },
        **details,
    )


def _gpus_text(needed: float) -> str:
    number_text = f"{needed:.1f}"
    return "under 0.1" if number_text == "0.0" else number_text


def _distribution_fix(job: api.Job, current_type: InstanceType) -> tuple[api.Parameter, ...]:
    """Returns the parameters that start one process per GPU in AWS's PyTorch containers.

    Empty for other images, or if the job already distributes its work.
    """
    is_pytorch = "pytorch" in (repository(job.image) or "")
    if job.kind is not api.JobKind.TRAINING or job.hints.distribution or not is_pytorch:
        return ()
    if current_type.family not in {"p4d", "p4de"}:
        return (api.Parameter("HyperParameters.sagemaker_torch_distributed_enabled", None, "true"),)
    return (
        api.Parameter("HyperParameters.sagemaker_distributed_dataparallel_enabled", None, "true"),
        api.Parameter("HyperParameters.sagemaker_instance_type", None, current_type.name),
    )
