"""The run uses little of the GPU of its p type.

What it checks: On a p type, the mean GPU utilisation over the active minutes is at most 20%. Per
    GPU, memory peaks at 10 GiB or less, and at most 12 cores are busy. The type that certainly
    saves most is a g type.
Why it costs: p types are made for large models on several GPUs. A small model leaves most of such
    an instance idle.
Saving: Derived: the run on the g type, which has room for the P99.5 of memory plus 20%. The longest
    run time is counted, and the range is shown.
    - The run may take longer by the ratio that was measured on training work
      (docs/evidence/gpu-throughput.md).
    - A minute takes longer too if more cores were busy than the g type has.
    - If a type with the same GPU saves more, gpu-underused reports that.
When it is wrong: One-minute means hide peaks, and CloudWatch does not show single GPUs. The rule
    never recommends these:
    - A GPU without a measured ratio, or one that the image's CUDA does not support.
    - A T4 or V100 if the run shows signs of bf16 or FlashAttention.
    - GPUs without NVLink instead of several GPUs with NVLink.
    - Another GPU if the run has several instances.
    - An instance family that a built-in algorithm's guide does not name.
What to do: Try one run on the g type. Or give the GPU more work: a larger batch, or several models.
Sources: Job Defense Shield, gpu-model-too-powerful, its example values: GPU utilisation at most
    20%, GPU memory at most 10 GB, at most 12 cores per GPU. Ratios:
    docs/evidence/gpu-throughput.md.
"""

from __future__ import annotations

from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.demand import PEAK_PERCENTILE
from sageaudit.rules import api
from sageaudit.rules.types.another_type import TypeRecommendation, best_type, type_fixed_reason
from sageaudit.rules.utilisation.gpus import COVERED_BY_GPU_IDLE

_SHIELD = "Job Defense Shield, gpu-model-too-powerful"
MAX_MEAN = api.Threshold("max_mean_percent", 20, "percent of all GPUs", "little work", _SHIELD)
MAX_GPU_MEMORY = api.Threshold("max_gpu_memory_gib", 10, "GiB per GPU", "a small model", _SHIELD)
MAX_CORES = api.Threshold("max_cores", 12, "busy cores per GPU", "g types have as many", _SHIELD)


def _other_family_reason(case: api.JobCase) -> str | None:
    is_p_type = all(group.instance_type.startswith("ml.p") for group in case.job.groups)
    return None if is_p_type else "it is for p types"


@api.rule(
    id="SA302",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MAX_MEAN, MAX_GPU_MEMORY, MAX_CORES, api.HEADROOM),
    required_metrics=(api.Metric.GPU, api.Metric.GPU_MEMORY, api.Metric.CPU, api.Metric.MEMORY),
    can_pool_runs=True,
    finds_waste=True,
    not_applicable=(_other_family_reason, type_fixed_reason, api.free_reason),
    subsumes={"cheaper-type", "gpu-underused"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the mean of all hosts, and the peaks of the busiest host."""
    mean_percent = case.active_usage.mean(api.Metric.GPU)
    memory, cpu = (
        case.active_usage.busiest_percentile(metric, PEAK_PERCENTILE)
        for metric in (api.Metric.GPU_MEMORY, api.Metric.CPU)
    )
    current_type = case.current_type
    memory_gib = memory / 100 * float(current_type.gpu_memory_gib or 0)
    cores = cpu / 100 * current_type.vcpu / max(current_type.gpus, 1)
    needs_much = memory_gib > case.threshold(MAX_GPU_MEMORY) or cores > case.threshold(MAX_CORES)
    if mean_percent > case.threshold(MAX_MEAN) or needs_much:
        return api.Clear()
    recommendation = best_type(case)
    if recommendation.resize is None:
        return api.Unknown("not_replayable", recommendation.reason)
    if recommendation.resize.demand.is_gpu_idle:
        return COVERED_BY_GPU_IDLE
    g_type = recommendation.first
    if g_type is None or not g_type.type.family.startswith("g"):
        return _unrecorded_outcome(recommendation) or api.Clear()
    return api.derived_saving(
        f"In {case.minutes_text(case.active_usage.minutes)} on {case.job.instances}, the job used"
        f" {mean_percent:.0f}% of "
        f"{_gpu_use_text(current_type, memory_gib)}: {g_type.type.name} is enough.",
        {
            "gpu_mean_percent": round(mean_percent, 1),
            "gpu_memory_peak_gib": round(memory_gib * current_type.gpus, 1),
            "gpus": current_type.gpus,
            "cores_peak_per_gpu": round(cores, 1),
            "active_minutes": round(case.active_usage.minutes),
        },
        **recommendation.details(case),
    )


def _gpu_use_text(current_type: InstanceType, gib_each: float) -> str:
    """Returns a text with the GPU memory of a host, because CloudWatch does not split it by GPU.

    `gib_each`: the peak GiB of each GPU's memory.
    """
    if current_type.gpus == 1:
        return f"the GPU and {gib_each:.1f} GiB of its memory"
    return (
        f"its {current_type.gpus} GPUs and {gib_each * current_type.gpus:.1f} GiB of their memory "
        "together"
    )


def _unrecorded_outcome(recommendation: TypeRecommendation) -> api.Unknown | None:
    """Returns Unknown if only a missing record prevents the recommendation of a cheaper g type."""
    if recommendation.resize is None or recommendation.first is not None:
        return None
    reasons = (
        reason
        for instance_type, reason in recommendation.resize.unrecorded_refusals
        if instance_type.family.startswith("g")
    )
    return next((api.Unknown("not_recorded", reason) for reason in reasons), None)
