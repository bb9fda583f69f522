"""Instance types that a run cannot move to, whatever their speed and price, and what to check.

| not to | for | because |
|---|---|---|
| another GPU model | several instances that may exchange data | their network may bind |
| GPUs without NVLink, or the reverse | several GPUs that stay several | ratios do not apply |
| a type without EFA | instances that train together over EFA | their exchange would bind |
| K80, V100, T4 | signs of bf16 or FlashAttention on a newer GPU | both need Ampere or later |
| Blackwell | signs of FlashAttention on an older GPU | its README does not list it |
| a GPU before Ada | signs of fp8 | it has none |
| a GPU newer than the image's CUDA toolkit, or dropped by it | any | it has no code for it |
| a family that its guide does not name | a built-in algorithm | not documented |
| a type without GPU | a built-in algorithm for GPUs only | it does not train there |

Sources: EC2 user guide, accelerated computing types; CUDA C++ programming guide (bf16 from compute
capability 8.0 on, tensor cores from 7.0 on); README of Dao-AILab/flash-attention; first toolkits:
pytorch's select_compute_arch.cmake; last ones: pytorch issues 157517, 172352 and 190385 (CUDA 13
drops what is before Turing, CUDA 12 drops Kepler; wheels for CUDA 12.8 are without Volta from
PyTorch 2.11 on). A newer GPU can run older code by PTX, slowly and not for every library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from sageaudit.domain.job import addresses
from sageaudit.domain.job.addresses import builtin_algorithm
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import InstanceType

_WITHOUT_TENSOR_CORES = frozenset({"K80"})
_WITHOUT_BF16 = frozenset({"K80", "V100", "T4"})
_WITHOUT_FP8 = _WITHOUT_BF16 | {"A10G", "A100"}
_WITH_NVLINK = frozenset({"V100", "A100", "H100", "H200", "B200", "B300", "GB200 (B200)"})
"""GPU models as the catalogue names them. EC2 has these only on boards that NVLink joins."""
_HOPPER = frozenset({"H100", "H200"})
_BLACKWELL = frozenset({"B200", "B300", "GB200 (B200)", "RTX PRO Server 6000", "RTX PRO 4500"})
_FIRST_CUDA: tuple[tuple[Decimal, addresses.Version], ...] = (
    (Decimal("12.0"), (12, 8)),
    (Decimal("10.0"), (12, 8)),
    (Decimal("8.9"), (11, 8)),
    (Decimal("8.6"), (11, 1)),
    (Decimal("8.0"), (11, 0)),
    (Decimal("7.5"), (10, 0)),
    (Decimal("7.0"), (9, 0)),
)
"""Compute capability, and the first toolkit that builds for it."""
_DROPPED_BY_CUDA: tuple[tuple[Decimal, int], ...] = ((Decimal("5.0"), 12), (Decimal("7.5"), 13))
"""Architectures below the capability have no code from this major version on."""
_CPU_TAG = re.compile(r"(?:^|[-_.])cpu(?:$|[-_.])")
_SMALL_A100_GIB = Decimal(40)
_VOLTA = Decimal("7.0")
_PYTORCH_WITHOUT_VOLTA = (2, 11)
_CUDA_WITHOUT_VOLTA = (12, 8)
"""From this toolkit on, builds of that PyTorch leave Volta out."""


def has_tensor_cores(instance_type: InstanceType) -> bool:
    """Whether its GPU has tensor cores: 16-bit matrix products are then many times faster."""
    return instance_type.gpus > 0 and instance_type.gpu_model not in _WITHOUT_TENSOR_CORES


def has_bf16(instance_type: InstanceType) -> bool:
    """Whether its GPU supports bf16 and FlashAttention."""
    return instance_type.gpus > 0 and instance_type.gpu_model not in _WITHOUT_BF16


def type_refusal(job: Job, current_type: InstanceType, other_type: InstanceType) -> str | None:
    """Returns why a run that needs its GPUs cannot move to another type with GPUs, or None."""
    several = (job.instance_count or 0) > 1
    if _gpu(current_type) == _gpu(other_type):
        lacks_efa = (
            several
            and job.hints.distribution is not None
            and current_type.efa
            and not other_type.efa
        )
        without_efa = f"its instances train together over EFA, and {other_type.name} has none"
        return without_efa if lacks_efa else None
    reasons = (
        _network_refusal(job) if several else None,
        _nvlink_refusal(current_type, other_type),
        _precision_refusal(job, current_type, other_type),
    )
    reason = next(filter(None, reasons), None)
    return reason or image_refusal(job, current_type, other_type)


def image_refusal(job: Job, today: InstanceType, other: InstanceType) -> str | None:
    """Returns why the run's image does not support the other type's GPU, or None."""
    return _cuda_refusal(job, other) or algorithm_refusal(job, today, other)


def own_image_refusal(job: Job, today: InstanceType) -> str | None:
    """Returns why a job's image does not support the type that the job itself asks for, or None."""
    if refused := _cuda_refusal(job, today):
        return refused
    if today.gpus and _CPU_TAG.search(addresses.tag(job.image)):
        return "by its tag the image is for CPUs, and uses no GPU"
    algorithm = builtin_algorithm(job.image)
    if algorithm is None:
        return None
    if today.gpus and algorithm.is_cpu_only:
        return f"{algorithm.name} uses no GPU"
    if not today.gpus and not today.accelerator and algorithm.is_gpu_only:
        return f"{algorithm.name} trains on GPU instances only"
    return None


def algorithm_refusal(job: Job, today: InstanceType, other: InstanceType) -> str | None:
    """Returns why SageMaker's guide does not allow a built-in algorithm to move there, or None.

    An undocumented family is not called impossible: what runs, runs.
    """
    algorithm = builtin_algorithm(job.image)
    if algorithm is None or other.family == today.family:
        return None
    if not other.gpus:
        gpu_only_reason = f"{algorithm.name} trains on GPU instances only"
        return gpu_only_reason if algorithm.is_gpu_only and not other.accelerator else None
    if algorithm.is_cpu_only:
        return f"{algorithm.name} on a GPU is not documented"
    if other.family in algorithm.families:
        return None
    return f"{algorithm.name} on {other.family} is not documented: its guide names " + ", ".join(
        sorted(algorithm.families)
    )


def _network_refusal(job: Job) -> str | None:
    """Returns why the network may limit several instances; None if each works alone.

    Transform instances never exchange data: SageMaker gives each its own objects. Nor do the
    instances of a processing job that get parts of its data, unless a framework joins them.
    """
    if not job.kind.spec.can_hosts_communicate:
        return None
    limit = "their network may be the limit, not the GPU"
    if joined := job.hints.distribution or addresses.cluster_framework(job.image, job.entry_point):
        return f"its instances exchange data as they work ({joined}): {limit}"
    if builtin_algorithm(job.image) is not None:
        return f"instances of a built-in algorithm may exchange data as they train: {limit}"
    if not any(channel.distribution == "ShardedByS3Key" for channel in job.channels):
        return f"its instances may exchange data, as nothing splits it between them: {limit}"
    return None


def can_train_together(job: Job) -> bool:
    """Returns whether several instances train on parts of the data, without a sign that they join.

    Such a script may still join its instances itself.
    """
    several = (job.instance_count or 0) > 1
    return several and job.kind is JobKind.TRAINING


def _gpu(row: InstanceType) -> tuple[str | None, Decimal | None]:
    return row.gpu_model, row.gpu_memory_gib


def _nvlink_refusal(today: InstanceType, other: InstanceType) -> str | None:
    if min(today.gpus, other.gpus) <= 1:
        return None
    linked, joined = (row.gpu_model in _WITH_NVLINK for row in (today, other))
    if linked and not joined:
        gpus = f"{today.gpus} {today.gpu_model}"
        return f"its {gpus} may exchange data over NVLink, which {other.name} lacks"
    if joined and not linked:
        return f"several {today.gpu_model} have no NVLink: nothing compares them with those joined"
    return None


def _precision_refusal(job: Job, today: InstanceType, other: InstanceType) -> str | None:
    hints = job.hints
    if has_bf16(today) and not has_bf16(other):
        for sign, feature in (
            (hints.flash_attention, "FlashAttention"),
            (hints.mixed_precision, "16-bit precision, perhaps bf16"),
        ):
            if sign:
                return f"the run uses {feature}: the {other.gpu_model} is too old for it"
    is_new_blackwell = other.gpu_model in _BLACKWELL and today.gpu_model not in _BLACKWELL
    if hints.flash_attention and is_new_blackwell:
        return f"the run uses FlashAttention, and for the {other.gpu_model} it is not documented"
    if hints.fp8 and other.gpu_model in _WITHOUT_FP8:
        return f"the run uses fp8: the {other.gpu_model} is too old for it"
    return None


def _cuda_refusal(job: Job, other: InstanceType) -> str | None:
    toolkit = addresses.cuda(job.image)
    if toolkit is None or other.gpu_peaks is None:
        return None
    name, capability = other.gpu_model, other.gpu_peaks.compute_capability
    first = _first_cuda(other)
    if first is not None and toolkit < first:
        return (
            f"its image has CUDA {_version_text(toolkit)}, and the {name} needs"
            f" {_version_text(first)} or later"
        )
    dropped = _dropping_cuda_version(capability)
    if dropped is not None and toolkit[0] >= dropped:
        return f"its image has CUDA {_version_text(toolkit)}, which has dropped the {name}"
    torch = addresses.pytorch(job.image)
    if (
        capability == _VOLTA
        and torch
        and torch >= _PYTORCH_WITHOUT_VOLTA
        and toolkit >= _CUDA_WITHOUT_VOLTA
    ):
        return (
            f"PyTorch {_version_text(torch)} for CUDA {_version_text(toolkit)} has dropped the"
            f" {name}"
        )
    return None


def _first_cuda(row: InstanceType) -> addresses.Version | None:
    if row.gpu_peaks is None:
        return None
    capability = row.gpu_peaks.compute_capability
    return next((first for least, first in _FIRST_CUDA if capability >= least), None)


def _dropping_cuda_version(capability: Decimal) -> int | None:
    return next((major for below, major in _DROPPED_BY_CUDA if capability < below), None)


def _version_text(version: addresses.Version) -> str:
    return f"{version[0]}.{version[1]}"


def move_caveats(job: Job, today: InstanceType, other: InstanceType) -> Iterator[str]:
    """Yields sentences on what no recording shows, and what would rule out another GPU model."""
    if _gpu(today) == _gpu(other):
        return
    if can_train_together(job):
        yield "Each instance gets a part of the data: check that they exchange none as they train."
    first, current = _first_cuda(other), _first_cuda(today)
    if addresses.cuda(job.image) is None and other.gpu_peaks is not None:
        if first is not None and (current is None or first > current):
            yield (
                f"The CUDA version of its image is not known: the {other.gpu_model} needs "
                f"{_version_text(first)} or later."
            )
        dropped = _dropping_cuda_version(other.gpu_peaks.compute_capability)
        if dropped is not None:
            yield (
                f"The CUDA version of its image is not known: CUDA {dropped} has dropped the "
                f"{other.gpu_model}."
            )
    if other.gpu_model == "A100" and other.gpu_memory_gib == _SMALL_A100_GIB:
        yield "Most workloads ran on the A100 of 80 GiB, which has 1.3 times this one's bandwidth."
    if has_bf16(today) and not has_bf16(other):
        yield f"The {other.gpu_model} has no bf16: check that the code does not use it."
    if job.hints.flash_attention and today.gpu_model in _HOPPER and other.gpu_model not in _HOPPER:
        yield "FlashAttention-3 runs on Hopper only: check which version it uses."
