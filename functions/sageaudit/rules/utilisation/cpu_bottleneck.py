"""The CPU is at its limit, and the GPU waits for it.

What it checks: In the minutes for which a host has both: CPU at 90% or more while the GPU is at 10%
    or less, in at least 50% of the active minutes of all hosts. Or, milder: mean CPU over 60% and
    mean GPU under 10%.
Why it costs: The GPU is most of the price, and is billed while the CPU prepares its next batch.
Saving: None is counted: only a run shows how much shorter it gets when the GPU no longer waits, and
    the other ways cost more by the hour.
When it is wrong: Code that computes on the CPU by design, with a little GPU work between, looks the
    same: it may need a CPU type. One-minute means hide a loader that waits for the GPU in turn.
    `num_workers` stands for the code's own name of it: names and values of hyperparameters are not
    stored.
What to do: First the data loader: one worker for each vCPU, OMP_NUM_THREADS=1 within each,
    prefetch, decode and augment once in a processing job, or on the GPU (DALI). Then a size with
    more vCPUs a GPU. Last a heterogeneous cluster with CPU instances that load data, which adds
    their cost.
Sources: SageMaker Debugger, CPUBottleneck: threshold 50%, cpu_threshold 90, gpu_threshold 10;
    Dataloader: workers between 70% and 200% of the cores. cloud-finops-skills: CPU over 60% with
    GPU under 10% is a near-certain bottleneck. ICSE 2024 (10.1145/3597503.3639232): 46% of badly
    used GPUs wait for data.
"""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.prices.market import InstanceType
from sageaudit.rules import api
from sageaudit.rules.utilisation.data_loader import CPU_FROM, loader_fix

_DEBUGGER, _FINOPS = "Debugger CPUBottleneck", "cloud-finops-skills"
SHARE_FROM = api.Threshold(
    "share_from", 50, "percent of active minutes", "half the time", _DEBUGGER
)
GPU_TO = api.Threshold("gpu_to", 10, "percent of all GPUs", "waiting", _DEBUGGER)
CPU_MEAN_OVER = api.Threshold("cpu_mean_over", 60, "percent of all vCPUs", "milder tier", _FINOPS)
GPU_MEAN_BELOW = api.Threshold("gpu_mean_below", 10, "percent of all GPUs", "milder tier", _FINOPS)


@api.rule(
    id="SA203",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(SHARE_FROM, CPU_FROM, GPU_TO, CPU_MEAN_OVER, GPU_MEAN_BELOW),
    needs=(api.Metric.CPU, api.Metric.GPU),
    coarsest_period_s=300,
)
def check(case: api.JobCase) -> api.Outcome:
    """Pools the minutes of all hosts, each with its own CPU and GPU."""
    pairs = list(_pairs(case.usage))
    if not pairs:
        reason = "no host has CPU and GPU points of the same minutes"
        return api.Unknown("points_apart", reason)
    waits = [cpu >= case.limit(CPU_FROM) and gpu <= case.limit(GPU_TO) for cpu, gpu in pairs]
    share = 100 * sum(waits) / len(pairs)
    cpu, gpu = api.mean([cpu for cpu, _ in pairs]), api.mean([gpu for _, gpu in pairs])
    mild = cpu > case.limit(CPU_MEAN_OVER) and gpu < case.limit(GPU_MEAN_BELOW)
    strict = share >= case.limit(SHARE_FROM)
    if not strict and not mild:
        return api.Clear()
    over = f"{case.usage.minutes:.0f} active minutes on {case.job.instances}"
    return api.advice(
        (
            f"In {share:.0f}% of {over} the CPU was at {case.limit(CPU_FROM):g}% or more with the "
            f"GPU at {case.limit(GPU_TO):g}% or less."
            if strict
            else f"The CPU averaged {cpu:.0f}% and the GPU {gpu:.0f}% over {over}."
        ),
        {
            "waiting_percent": round(share, 1),
            "cpu_mean_percent": round(cpu, 1),
            "gpu_mean_percent": round(gpu, 1),
            "vcpu": case.usage.vcpu,
            "gpus": case.usage.gpus,
            "loader_workers": case.job.hints.loader_workers,
            "active_minutes": round(case.usage.minutes),
        },
        fix=loader_fix(case),
        alternatives=tuple(_more_vcpu(case)) if strict else (),
        caution=(
            "No figure: only a run shows how much shorter it gets. Start with the data loader: "
            "more vCPUs a GPU cost more by the hour, and a heterogeneous cluster adds instances."
        ),
    )


def _pairs(usage: api.Measurements) -> Iterator[tuple[float, float]]:
    """CPU and GPU of one host in one minute."""
    for host, gpu_line in usage.series[api.Metric.GPU].items():
        cpu_line = usage.series[api.Metric.CPU].get(host)
        if cpu_line is not None:
            for cpu, gpu in zip(cpu_line.values, gpu_line.values, strict=True):
                if cpu is not None and gpu is not None:
                    yield cpu, gpu


def _more_vcpu(case: api.JobCase) -> Iterator[tuple[api.Parameter, ...]]:
    """The smallest size with as many of the same GPU and more vCPUs.

    Only for a CPU at its limit: else the next run's advice would turn it back.
    """
    today = case.market.types.get(case.job.groups[0].instance_type)
    prepaid = case.job.purchase is api.Purchase.TRAINING_PLAN
    if today is None or len(case.job.groups) > 1 or prepaid:
        return
    larger = [
        other for other in case.market.types.values() if _feeds_more(other, today, case.job.kind)
    ]
    by_size = sorted(larger, key=lambda other: (other.vcpu, other.memory_gib, other.name))
    for smallest in by_size[:1]:
        yield api.type_fix(case.job, smallest.name)


def _feeds_more(other: InstanceType, today: InstanceType, kind: api.JobKind) -> bool:
    same = (other.gpu_model, other.gpu_memory_gib, other.gpus)
    return (
        same == (today.gpu_model, today.gpu_memory_gib, today.gpus)
        and other.vcpu > today.vcpu
        and kind in other.kinds
    )
