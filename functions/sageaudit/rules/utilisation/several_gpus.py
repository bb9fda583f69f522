"""Instances with several GPUs: how many a run needs, and what spreads its work over all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sageaudit.domain.job.family import repository
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.demand import PEAK_PERCENTILE
from sageaudit.rules import api


@dataclass(frozen=True, slots=True)
class GpusNeeded:
    """What the busiest host needs at its peak, and how many GPUs hold it."""

    gpus: float
    memory_gib: float
    fits_on: int


def one_gpu(case: api.JobCase) -> str | None:
    """For cards: there are no fewer GPUs to take."""
    types = [case.market.types.get(group.instance_type) for group in case.job.groups]
    return "its instances have one GPU" if types and types[0] and types[0].gpus == 1 else None


def gpus_needed(usage: api.Measurements, today: InstanceType) -> GpusNeeded | api.Unknown:
    """By the P99.5 of GPU use and GPU memory; Unknown where the size of a GPU is not known."""
    each = float(today.gpu_memory_gib or 0)
    if not each:
        return api.Unknown("not_recorded", f"the memory of a {today.gpu_model} is not known")
    use, memory = (
        api.percentile_of_busiest(usage.series[metric].values(), PEAK_PERCENTILE) / 100 * today.gpus
        for metric in (api.Metric.GPU, api.Metric.GPU_MEMORY)
    )
    fits_on = max(math.ceil(round(use, 2)), math.ceil(round(memory, 2)), 1)
    return GpusNeeded(use, memory * each, fits_on)


def distribute(job: api.Job, today: InstanceType) -> tuple[api.Parameter, ...]:
    """What launches one process a GPU in AWS's own PyTorch containers, where nothing does yet."""
    pytorch = "pytorch" in (repository(job.image) or "")
    if job.kind is not api.JobKind.TRAINING or job.hints.distribution or not pytorch:
        return ()
    if today.family not in {"p4d", "p4de"}:
        return (api.Parameter("HyperParameters.sagemaker_torch_distributed_enabled", None, "true"),)
    return (
        api.Parameter("HyperParameters.sagemaker_distributed_dataparallel_enabled", None, "true"),
        api.Parameter("HyperParameters.sagemaker_instance_type", None, today.name),
    )
