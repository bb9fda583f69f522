"""Instances with several GPUs: how many a run needs, and what spreads its work over all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sageaudit.domain.bill.resize import Resize
from sageaudit.domain.job.family import repository
from sageaudit.domain.prices.market import InstanceType
from sageaudit.rules import api


@dataclass(frozen=True, slots=True)
class GpusNeeded:
    """What the busiest host needs, headroom included, and how many GPUs hold it."""

    gpus: float
    memory_gib: float
    fits_on: int


def one_gpu(case: api.JobCase) -> str | None:
    """For cards: there are no fewer GPUs to take."""
    types = [case.market.types.get(group.instance_type) for group in case.job.groups]
    return "its instances have one GPU" if types and types[0] and types[0].gpus == 1 else None


def fewer_of_the_same(other: InstanceType, today: InstanceType) -> bool:
    """A type with the same GPU, and fewer of it."""
    same = (other.gpu_model, other.gpu_memory_gib) == (today.gpu_model, today.gpu_memory_gib)
    return same and 0 < other.gpus < today.gpus


def gpus_needed(run: Resize) -> GpusNeeded | api.Unknown:
    """Unknown where GPU use or GPU memory was not recorded."""
    gpus, memory = run.need.gpus, run.need.gpu_memory_gib
    each = run.today.gpu_memory_gib
    if gpus.needed is None or memory.needed is None or not each:
        unknown = f"the memory of a {run.today.gpu_model} is not known"
        return api.Unknown("not_recorded", gpus.unknown or memory.unknown or unknown)
    fits_on = max(math.ceil(gpus.needed), math.ceil(memory.needed / float(each)), 1)
    return GpusNeeded(gpus.needed, memory.needed, fits_on)


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
