"""Instance types that a run cannot move to, whatever their speed and price, and what to check.

| not to | for | because |
|---|---|---|
| another GPU model | several instances that may exchange data | their network may be the limit |
| GPUs without NVLink, or the reverse | several GPUs that stay several | ratios do not apply |
| a type without EFA | instances that train together over EFA | their exchange would be slower |
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
"""GPU models, named as in the catalogue, that EC2 has only on boards with NVLink."""
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
"""Compute capabilities, and the first CUDA toolkit that builds for each."""
_DROPPED_BY_CUDA: tuple[tuple[Decimal, int], ...] = ((Decimal("5.0"), 12), (Decimal("7.5"), 13))
"""The first major version of CUDA without code for architectures below each compute capability."""
_CPU_TAG = re.compile(r"(?:^|[-_.])cpu(?:$|[-_.])")
_SMALL_A100_GIB = Decimal(40)
_VOLTA = Decimal("7.0")
_PYTORCH_WITHOUT_VOLTA = (2, 11)
_CUDA_WITHOUT_VOLTA = (12, 8)
"""From this CUDA toolkit on, builds of PyTorch 2.11 and later leave out Volta."""


def has_tensor_cores(instance_type: InstanceType) -> bool:
    """Returns whether a type's GPU has tensor cores, which speed up 16-bit work many times."""
    return instance_type.gpus > 0 and instance_type.gpu_model not in _WITHOUT_TENSOR_CORES


def has_bf16(instance_type: InstanceType) -> bool:
    """Returns whether a type's GPU supports bf16 and FlashAttention."""
    return instance_type.gpus > 0 and instance_type.gpu_model not in _WITHOUT_BF16


def type_refusal(job: Job, current_type: InstanceType, other_type: InstanceType) -> str | None:
    """Returns why a run that needs its GPUs cannot move to another type with GPUs, or None."""
    has_several_instances = (job.instance_count or 0) > 1
    if _gpu(current_type) == _gpu(other_type):
        lacks_efa = (
            has_several_instances
            and job.hints.distribution is not None
            and current_type.efa
            and not other_type.efa
        )
        without_efa = f"its instances train together over EFA, and {other_type.name} has none"
        return without_efa if lacks_efa else None
    reasons = (
        _network_refusal(job) if has_several_instances else None,
        _nvlink_refusal(current_type, other_type),
        _precision_refusal(job, current_type, other_type),
    )
    reason = next(filter(None, reasons), None)
    return reason or image_refusal(job, current_type, other_type)


def image_refusal(job: Job, current_type: InstanceType, other_type: InstanceType) -> str | None:
    """Returns why the run's image or built-in algorithm rules out the other type, or None."""
    return _cuda_refusal(job, other_type) or algorithm_refusal(job, current_type, other_type)


def own_image_refusal(job: Job, own_type: InstanceType) -> str | None:
    """Returns why a job's image does not support the job's own type, or None."""
    if refused := _cuda_refusal(job, own_type):
        return refused
    if own_type.gpus and _CPU_TAG.search(addresses.tag(job.image)):
        return "by its tag the image is for CPUs, and uses no GPU"
    algorithm = builtin_algorithm(job.image)
    if algorithm is None:
        return None
    if own_type.gpus and algorithm.is_cpu_only:
        return f"{algorithm.name} uses no GPU"
    if not own_type.gpus and not own_type.accelerator and algorithm.is_gpu_only:
        return f"{algorithm.name} trains on GPU instances only"
    return None


def algorithm_refusal(job: Job, current_type: InstanceType, other_type: InstanceType) -> str | None:
    """Returns why SageMaker's guide speaks against another type for a built-in algorithm, or None.

    The family that the job runs on is never refused, even if the guide does not name it.
    """
    algorithm = builtin_algorithm(job.image)
    if algorithm is None or other_type.family == current_type.family:
        return None
    if not other_type.gpus:
        gpu_only_reason = f"{algorithm.name} trains on GPU instances only"
        return gpu_only_reason if algorithm.is_gpu_only and not other_type.accelerator else None
    if algorithm.is_cpu_only:
        return f"{algorithm.name} on a GPU is not documented"
    if other_type.family in algorithm.families:
        return None
    return (
        f"{algorithm.name} on {other_type.family} is not documented: its guide names "
        + ", ".join(sorted(algorithm.families))
    )


def _network_refusal(job: Job) -> str | None:
    """Returns why the instances may depend on their network, or None.

    Transform instances never exchange data: SageMaker gives each its own objects. Nor do processing
    instances that get parts of the data, unless a framework joins them.
    """
    if not job.kind.spec.can_hosts_communicate:
        return None
    limit = "their network may be the limit, not the GPU"
    if framework := job.hints.distribution or addresses.cluster_framework(
        job.image, job.entry_point
    ):
        return f"its instances exchange data as they work ({framework}): {limit}"
    if builtin_algorithm(job.image) is not None:
        return f"instances of a built-in algorithm may exchange data as they train: {limit}"
    if not any(channel.distribution == "ShardedByS3Key" for channel in job.channels):
        return f"its instances may exchange data, as nothing splits it between them: {limit}"
    return None


def can_train_together(job: Job) -> bool:
    """Returns whether a job is a training job on several instances.

    Its script may use them together, as in distributed training.
    """
    has_several_instances = (job.instance_count or 0) > 1
    return has_several_instances and job.kind is JobKind.TRAINING


def _gpu(row: InstanceType) -> tuple[str | None, Decimal | None]:
    return row.gpu_model, row.gpu_memory_gib


def _nvlink_refusal(current_type: InstanceType, other_type: InstanceType) -> str | None:
    if min(current_type.gpus, other_type.gpus) <= 1:
        return None
    has_nvlink, other_has_nvlink = (
        row.gpu_model in _WITH_NVLINK for row in (current_type, other_type)
    )
    if has_nvlink and not other_has_nvlink:
        gpus = f"{current_type.gpus} {current_type.gpu_model}"
        return f"its {gpus} may exchange data over NVLink, which {other_type.name} lacks"
    if other_has_nvlink and not has_nvlink:
        gpu = current_type.gpu_model
        return f"several {gpu} have no NVLink: nothing compares them with those joined"
    return None


def _precision_refusal(
    job: Job, current_type: InstanceType, other_type: InstanceType
) -> str | None:
    hints = job.hints
    if has_bf16(current_type) and not has_bf16(other_type):
        for sign, feature in (
            (hints.flash_attention, "FlashAttention"),
            (hints.mixed_precision, "16-bit precision, perhaps bf16"),
        ):
            if sign:
                return f"the run uses {feature}: the {other_type.gpu_model} is too old for it"
    is_new_blackwell = (
        other_type.gpu_model in _BLACKWELL and current_type.gpu_model not in _BLACKWELL
    )
    if hints.flash_attention and is_new_blackwell:
        return (
            f"the run uses FlashAttention, and for the {other_type.gpu_model} it is not documented"
        )
    if hints.fp8 and other_type.gpu_model in _WITHOUT_FP8:
        return f"the run uses fp8: the {other_type.gpu_model} is too old for it"
    return None


def _cuda_refusal(job: Job, other_type: InstanceType) -> str | None:
    toolkit = addresses.cuda(job.image)
    if toolkit is None or other_type.gpu_peaks is None:
        return None
    name, capability = other_type.gpu_model, other_type.gpu_peaks.compute_capability
    first_cuda = _first_cuda(other_type)
    if first_cuda is not None and toolkit < first_cuda:
        return (
            f"its image has CUDA {_version_text(toolkit)}, and the {name} needs"
            f" {_version_text(first_cuda)} or later"
        )
    dropping_version = _dropping_cuda_version(capability)
    if dropping_version is not None and toolkit[0] >= dropping_version:
        return f"its image has CUDA {_version_text(toolkit)}, which has dropped the {name}"
    pytorch_version = addresses.pytorch(job.image)
    if (
        capability == _VOLTA
        and pytorch_version
        and pytorch_version >= _PYTORCH_WITHOUT_VOLTA
        and toolkit >= _CUDA_WITHOUT_VOLTA
    ):
        return (
            f"PyTorch {_version_text(pytorch_version)} for CUDA {_version_text(toolkit)} has"
            f" dropped the {name}"
        )
    return None


def _first_cuda(row: InstanceType) -> addresses.Version | None:
    if row.gpu_peaks is None:
        return None
    capability = row.gpu_peaks.compute_capability
    return next(
        (first for min_capability, first in _FIRST_CUDA if capability >= min_capability), None
    )


def _dropping_cuda_version(capability: Decimal) -> int | None:
    return next((major for below, major in _DROPPED_BY_CUDA if capability < below), None)


def _version_text(version: addresses.Version) -> str:
    return f"{version[0]}.{version[1]}"


def move_caveats(job: Job, current_type: InstanceType, other_type: InstanceType) -> Iterator[str]:
    """Yields sentences on what the owner must check before a move to another GPU model.

    Recordings do not show these facts, but each may rule out the move.
    """
    if _gpu(current_type) == _gpu(other_type):
        return
    if can_train_together(job):
        yield "Each instance gets a part of the data: check that they exchange none as they train."
    first_cuda, current_cuda = _first_cuda(other_type), _first_cuda(current_type)
    if addresses.cuda(job.image) is None and other_type.gpu_peaks is not None:
        if first_cuda is not None and (current_cuda is None or first_cuda > current_cuda):
            yield (
                f"The CUDA version of its image is not known: the {other_type.gpu_model} needs "
                f"{_version_text(first_cuda)} or later."
            )
        dropped = _dropping_cuda_version(other_type.gpu_peaks.compute_capability)
        if dropped is not None:
            yield (
                f"The CUDA version of its image is not known: CUDA {dropped} has dropped the "
                f"{other_type.gpu_model}."
            )
    if other_type.gpu_model == "A100" and other_type.gpu_memory_gib == _SMALL_A100_GIB:
        yield "Most workloads ran on the A100 of 80 GiB, which has 1.3 times this one's bandwidth."
    if has_bf16(current_type) and not has_bf16(other_type):
        yield f"The {other_type.gpu_model} has no bf16: check that the code does not use it."
    if (
        job.hints.flash_attention
        and current_type.gpu_model in _HOPPER
        and other_type.gpu_model not in _HOPPER
    ):
        yield "FlashAttention-3 runs on Hopper only: check which version it uses."
