"""Which fixes are not possible for a job, or not together with each other.

| fix | not with | because |
|---|---|---|
| managed spot | warm pool, instance groups, training plan, serverless | SageMaker refuses it |
| warm pool | managed spot, instance groups, serverless | SageMaker refuses it |
| warm pool | training plan | its capacity is kept and paid already |
| managed spot | several p4, p5 or p6 instances | all must be had, and kept, at once |
| managed spot | a Savings Plan | spot takes usage from a commitment that is paid anyway |
| early stopping of a tuning job | Hyperband | it stops early itself, and takes no `Auto` |
| another type | a higher hourly rate: `resize` offers none | no later advice reverses it |
| another GPU model | several instances | their network, EFA above all, may bind |
| GPUs without NVLink | several GPUs that exchange over NVLink | PCIe is several times slower |
| T4, V100, K80 | signs of bf16 or FlashAttention on a newer GPU | both need Ampere or later |
| a type without EFA | instances that train together over EFA | their exchange would bind |

Sources: SageMaker guide on warm pools and managed spot; automatic model tuning, early stopping;
EC2 user guide, accelerated computing types, and Capacity Blocks for ML, which reserve "highly
sought-after GPU instances" (p4d, p5 and later); CUDA C++ programming guide (bf16 from compute
capability 8.0 on, tensor cores from 7.0 on); README of Dao-AILab/flash-attention.
"""

from __future__ import annotations

import re

from sageaudit.domain.bill.change import Change, SetPurchase
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.prices.market import InstanceType

_SCARCE = re.compile(r"ml\.p[4-9]")
HYPERBAND = "Hyperband"
_WITHOUT_TENSOR_CORES = frozenset({"K80"})
_WITHOUT_BF16 = frozenset({"K80", "V100", "T4"})
_WITH_NVLINK = frozenset({"V100", "A100", "H100", "H200", "B200", "B300", "GB200 (B200)"})
"""GPU models as the catalogue names them. EC2 has these only on boards that NVLink joins."""


def spot_refused(job: Job) -> str | None:
    """Why a job cannot run on managed spot, or None."""
    reasons = (
        (job.purchase is Purchase.SPOT, "it ran on managed spot"),
        (job.purchase is Purchase.TRAINING_PLAN, "its training plan is prepaid"),
        (job.purchase is Purchase.SERVERLESS, "it is serverless"),
        (
            len(job.groups) > 1 or any(group.name for group in job.groups),
            "managed spot does not take instance groups",
        ),
        (job.warm_pool is not None, "managed spot does not keep a warm pool"),
    )
    return next((why for applies, why in reasons if applies), None)


def spot_scarce(job: Job) -> str | None:
    """Why there is no hope of spot capacity on which dollars could rest, or None."""
    several = (job.instance_count or 0) > 1
    scarce = [g.instance_type for g in job.groups if _SCARCE.match(g.instance_type)]
    if not several or not scarce:
        return None
    return f"spot capacity for several {scarce[0]} at once cannot be counted on"


def warm_pool_refused(job: Job) -> str | None:
    """Why a job cannot keep a warm pool or does not need one, or None."""
    reasons = (
        (job.purchase is Purchase.SPOT, "managed spot does not keep a warm pool"),
        (job.purchase is Purchase.TRAINING_PLAN, "its training plan keeps the capacity"),
        (job.purchase is Purchase.SERVERLESS, "it is serverless"),
        (len(job.groups) > 1, "a warm pool does not take instance groups"),
        (job.warm_pool is not None, "it keeps a warm pool"),
    )
    return next((why for applies, why in reasons if applies), None)


def has_tensor_cores(instance_type: InstanceType) -> bool:
    """Whether its GPU has tensor cores: 16-bit matrix products are then many times faster."""
    return instance_type.gpus > 0 and instance_type.gpu_model not in _WITHOUT_TENSOR_CORES


def has_bf16(instance_type: InstanceType) -> bool:
    """Whether its GPU supports bf16 and FlashAttention."""
    return instance_type.gpus > 0 and instance_type.gpu_model not in _WITHOUT_BF16


def type_refused(job: Job, today: InstanceType, other: InstanceType) -> str | None:
    """Why work that needs its GPUs cannot move to another type, or None."""
    several = (job.instance_count or 0) > 1
    gpus = [(row.gpu_model, row.gpu_memory_gib) for row in (today, other)]
    if gpus[0] == gpus[1]:
        apart = several and job.hints.distribution is not None and today.efa and not other.efa
        return (
            f"its instances train together over EFA, and {other.name} has none" if apart else None
        )
    if several:
        return "between several instances the network may be what limits another GPU"
    linked = min(today.gpus, other.gpus) > 1 and today.gpu_model in _WITH_NVLINK
    if linked and other.gpu_model not in _WITH_NVLINK:
        return f"its {today.gpus} {today.gpu_model} exchange data over NVLink, which it lacks"
    if has_bf16(today) and not has_bf16(other):
        for sign, what in (
            (job.hints.flash_attention, "FlashAttention"),
            (job.hints.mixed_precision, "16-bit precision, perhaps bf16"),
        ):
            if sign:
                return f"the run uses {what}: the {other.gpu_model} is too old for it"
    return None


def early_stopping_refused(strategy: str | None) -> str | None:
    """Why a tuning job cannot take TrainingJobEarlyStoppingType Auto, or None."""
    return "Hyperband stops trials early itself" if strategy == HYPERBAND else None


def type_fixed(job: Job) -> str | None:
    """Why no other type is searched for (several types, or a prepaid one), or None."""
    if len({group.instance_type for group in job.groups}) > 1:
        return "its instances are of several types"
    plan = job.purchase is Purchase.TRAINING_PLAN
    return "its training plan is prepaid, for this type" if plan else None


def refused(change: Change, job: Job, *, savings_plan: bool) -> str | None:
    """Why a change's dollars are not counted for this job, or None."""
    if not isinstance(change, SetPurchase) or change.purchase is not Purchase.SPOT:
        return None
    if savings_plan:
        return "spot takes usage from a Savings Plan that is paid used or not"
    return spot_refused(job)
