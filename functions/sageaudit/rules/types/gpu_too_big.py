"""The GPU of a p type is far more than the run uses.

What it checks: On a p type, over the active minutes: the mean GPU utilisation is at most 20%, GPU
    memory peaks at no more than 10 GiB for each GPU of a host, no more than 12 cores a GPU are
    busy, and the type that certainly saves most is a g type.
Why it costs: p types are made for large models on several GPUs; a small model pays for what it
    leaves idle.
Saving: Derived, never (1 - utilisation) x cost: the run on the g type, which holds P99.5 of memory
    plus 20%. It may take longer, by the ratio that was measured on training work
    (docs/evidence/gpu-throughput.md) and by the minutes in which more cores were busy than it has.
    The longest run time is counted, the range shown. If a type with the same GPU saves more,
    gpu-underused reports that.
When it is wrong: One-minute means hide peaks, and CloudWatch has no split by GPU. These are never
    advised: a GPU without a measured ratio; T4 and V100 if the run shows signs of bf16 or
    FlashAttention; GPUs without NVLink in place of several with it; another GPU for several
    instances; a GPU that the image's CUDA does not support; a family that a built-in algorithm does
    not document.
What to do: Try one run on the g type, or give the GPU more work: a larger batch, several models.
Sources: Job Defense Shield, gpu-model-too-powerful, its example values: GPU utilisation at most
    20%, GPU memory at most 10 GB, at most 12 cores a GPU. Ratios:
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
MAX_GPU_MEMORY = api.Threshold("max_gpu_memory_gib", 10, "GiB a GPU", "a small model", _SHIELD)
MAX_CORES = api.Threshold("max_cores", 12, "busy cores a GPU", "a g type has as many", _SHIELD)


def _other_family(case: api.JobCase) -> str | None:
    p_types = all(group.instance_type.startswith("ml.p") for group in case.job.groups)
    return None if p_types else "it is for p types"


@api.rule(
    id="SA302",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MAX_MEAN, MAX_GPU_MEMORY, MAX_CORES, api.HEADROOM),
    required_metrics=(api.Metric.GPU, api.Metric.GPU_MEMORY, api.Metric.CPU, api.Metric.MEMORY),
    can_pool_runs=True,
    finds_waste=True,
    not_applicable=(_other_family, type_fixed_reason, api.free),
    subsumes={"cheaper-type", "gpu-underused"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Pools all hosts for the mean; peaks are the busiest host's."""
    average = case.active_usage.mean(api.Metric.GPU)
    memory, cpu = (
        case.active_usage.busiest_percentile(metric, PEAK_PERCENTILE)
        for metric in (api.Metric.GPU_MEMORY, api.Metric.CPU)
    )
    today = case.current_type
    memory_gib = memory / 100 * float(today.gpu_memory_gib or 0)
    cores = cpu / 100 * today.vcpu / max(today.gpus, 1)
    much_else = memory_gib > case.threshold(MAX_GPU_MEMORY) or cores > case.threshold(MAX_CORES)
    if average > case.threshold(MAX_MEAN) or much_else:
        return api.Clear()
    best = best_type(case)
    if best.resize is None:
        return api.Unknown("not_replayable", best.reason)
    if best.resize.demand.is_gpu_idle:
        return COVERED_BY_GPU_IDLE
    g_type = best.first
    if g_type is None or not g_type.type.family.startswith("g"):
        return _unrecorded_outcome(best) or api.Clear()
    return api.derived_saving(
        f"{case.minutes_text(case.active_usage.minutes)} on {case.job.instances} used"
        f" {average:.0f}% of "
        f"{_memory_used(today, memory_gib)}: {g_type.type.name} has enough.",
        {
            "gpu_mean_percent": round(average, 1),
            "gpu_memory_peak_gib": round(memory_gib * today.gpus, 1),
            "gpus": today.gpus,
            "cores_peak_per_gpu": round(cores, 1),
            "active_minutes": round(case.active_usage.minutes),
        },
        **best.details(case),
    )


def _memory_used(today: InstanceType, gib_each: float) -> str:
    """CloudWatch has only the sum of a host's GPUs, which may all be on one of them."""
    if today.gpus == 1:
        return f"the GPU and {gib_each:.1f} GiB of its memory"
    return f"its {today.gpus} GPUs and {gib_each * today.gpus:.1f} GiB of their memory together"


def _unrecorded_outcome(best: TypeRecommendation) -> api.Unknown | None:
    """A cheaper g type that only a missing record keeps from being advised."""
    if best.resize is None or best.first is not None:
        return None
    reasons = (
        why for other, why in best.resize.unrecorded_refusals if other.family.startswith("g")
    )
    return next((api.Unknown("not_recorded", why) for why in reasons), None)
