"""The CPU is at its limit, and the GPU waits for it.

## What it checks
In the minutes for which a host has both: CPU at 90% or more while the GPU is at 10% or less, in at
least 50% of the active minutes of all hosts. A milder tier: mean CPU over 60% and mean GPU under
10%.

## Why it costs
The GPU is most of the price, and is billed while the CPU prepares its next batch.

## Saving
None is counted: how much shorter a well-fed run is only a run shows, and the dearer ways cost more
by the hour.

## When it is wrong
Code that computes on the CPU by design, with a little GPU work between, looks the same: it may want
a CPU type. One-minute means hide a loader that waits for the GPU by turns. `num_workers` stands for
the code's own name of it: names and values of hyperparameters are not kept.

## What to do
First the data loader: one worker for each vCPU, OMP_NUM_THREADS=1 within each, prefetch, decode and
augment once in a processing job, or on the GPU (DALI). Then a size with more vCPUs a GPU. Last a
heterogeneous cluster with CPU instances that load data, which adds their cost.

## Sources
SageMaker Debugger, CPUBottleneck: threshold 50%, cpu_threshold 90, gpu_threshold 10; Dataloader:
workers between 70% and 200% of the cores. cloud-finops-skills: CPU over 60% with GPU under 10% is a
near-certain bottleneck. ICSE 2024 (10.1145/3597503.3639232): 46% of badly used GPUs wait for data.
"""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.request_paths import TYPE_PATHS
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.series import mean
from sageaudit.rules.card import JobCase, Threshold, rule

_DEBUGGER, _FINOPS = "Debugger CPUBottleneck", "cloud-finops-skills"
SHARE_FROM = Threshold("share_from", 50, "percent of active minutes", "half the time", _DEBUGGER)
CPU_FROM = Threshold("cpu_from", 90, "percent of all vCPUs", "at its limit", _DEBUGGER)
GPU_TO = Threshold("gpu_to", 10, "percent of all GPUs", "waiting", _DEBUGGER)
CPU_MEAN_OVER = Threshold("cpu_mean_over", 60, "percent of all vCPUs", "milder tier", _FINOPS)
GPU_MEAN_BELOW = Threshold("gpu_mean_below", 10, "percent of all GPUs", "milder tier", _FINOPS)
_WORKERS_FROM, _WORKERS_TO = 0.7, 2.0
"""Of the cores: min_threshold 70 and max_threshold 200 of Debugger's Dataloader rule."""


@rule(
    id="SA203",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(SHARE_FROM, CPU_FROM, GPU_TO, CPU_MEAN_OVER, GPU_MEAN_BELOW),
    needs=(Metric.CPU, Metric.GPU),
    coarsest_period_s=300,
)
def check(case: JobCase) -> Outcome:
    """Pools the minutes of all hosts, each with its own CPU and GPU."""
    pairs = list(_pairs(case.usage))
    if not pairs:
        return Unknown("points_apart", "no host has CPU and GPU points of the same minutes")
    waits = [cpu >= case.limit(CPU_FROM) and gpu <= case.limit(GPU_TO) for cpu, gpu in pairs]
    share = 100 * sum(waits) / len(pairs)
    cpu, gpu = mean([cpu for cpu, _ in pairs]), mean([gpu for _, gpu in pairs])
    mild = cpu > case.limit(CPU_MEAN_OVER) and gpu < case.limit(GPU_MEAN_BELOW)
    strict = share >= case.limit(SHARE_FROM)
    if not strict and not mild:
        return Clear()
    over = f"{case.usage.minutes:.0f} active minutes on {case.job.instances}"
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.NONE,
        summary=(
            f"In {share:.0f}% of {over} the CPU was at {case.limit(CPU_FROM):g}% or more with the "
            f"GPU at {case.limit(GPU_TO):g}% or less."
            if strict
            else f"The CPU averaged {cpu:.0f}% and the GPU {gpu:.0f}% over {over}."
        ),
        evidence={
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
            "No figure: only a run shows how much shorter it gets. First the data loader; more "
            "vCPUs a GPU cost more by the hour, and a heterogeneous cluster adds instances."
        ),
    )


def loader_fix(case: JobCase) -> tuple[Parameter, ...]:
    """A worker for each vCPU, where the job sets a count far from that."""
    workers, job = case.job.hints.loader_workers, case.job
    if workers is None or not case.usage.vcpu or job.kind is not JobKind.TRAINING:
        return ()
    processes = _processes(job, case.usage)
    share = workers * processes / case.usage.vcpu
    if _WORKERS_FROM <= share <= _WORKERS_TO:
        return ()
    each = max(case.usage.vcpu // processes, 1)
    workers_each = Parameter("HyperParameters.num_workers", str(workers), str(each))
    if share < _WORKERS_FROM:
        return (workers_each,)
    return (workers_each, Parameter("Environment.OMP_NUM_THREADS", None, "1"))


def _processes(job: Job, usage: Measurements) -> int:
    """A distributed run has one process, with workers of its own, for each GPU."""
    return max(usage.gpus or 1, 1) if job.hints.distribution else 1


def _pairs(usage: Measurements) -> Iterator[tuple[float, float]]:
    """CPU and GPU of one host in one minute."""
    for host, line in usage.series[Metric.GPU].items():
        cpu = usage.series[Metric.CPU].get(host)
        if cpu is not None:
            for one, other in zip(cpu.values, line.values, strict=True):
                if one is not None and other is not None:
                    yield one, other


def _more_vcpu(case: JobCase) -> Iterator[tuple[Parameter, ...]]:
    """The smallest size with as many of the same GPU and more vCPUs.

    Only for a CPU at its limit: else the next run's advice would turn it back.
    """
    name = case.job.groups[0].instance_type
    today = case.market.types.get(name)
    if today is None or len(case.job.groups) > 1 or case.job.purchase is Purchase.TRAINING_PLAN:
        return
    larger = [kind for kind in case.market.types.values() if _feeds_more(kind, today, case.job)]
    for kind in sorted(larger, key=lambda kind: (kind.vcpu, kind.memory_gib, kind.name))[:1]:
        yield (Parameter(TYPE_PATHS[case.job.kind], name, kind.name),)


def _feeds_more(kind: InstanceType, today: InstanceType, job: Job) -> bool:
    same = (kind.gpu_model, kind.gpu_memory_gib, kind.gpus)
    return (
        same == (today.gpu_model, today.gpu_memory_gib, today.gpus)
        and kind.vcpu > today.vcpu
        and job.kind in kind.kinds
    )
