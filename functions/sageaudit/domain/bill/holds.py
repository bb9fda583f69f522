"""Whether a type holds what a run used: each resource that it offers less of than today's type."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from sageaudit.domain.bill.candidate import Constraint, Refusal
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.demand import Demand, Need

_NOT_STEADY = ("t3", "-flex")
"""Families without their full CPU all the time: never advised for a job that computes."""
_NUMBER = re.compile(r"\d+")


def refusals(
    job: Job, today: InstanceType, need: Demand, other: InstanceType, headroom: float
) -> Iterator[Refusal]:
    """Constraints that are certainly broken first, then those that cannot be checked.

    `headroom` is the factor on a peak where other devices take over what one held, at least 1.
    """
    if other.accelerator and not other.gpus:
        yield Refusal(Constraint.ACCELERATOR, f"{other.name} has no GPU and needs other code")
    if other.legacy and not today.legacy:
        why = f"{other.family} is an older generation than {today.family}"
        yield Refusal(Constraint.GENERATION, why)
    if not today.accelerator and _generation(other.family) < _generation(today.family):
        why = f"a vCPU of {other.family} is older than one of {today.family}, and may be slower"
        yield Refusal(Constraint.GENERATION, why)
    if other.family.endswith(_NOT_STEADY):
        why = f"{other.family} is burstable or flexible: its full vCPU is not guaranteed"
        yield Refusal(Constraint.VCPU, why)
    if not today.accelerator and today.ebs_billed != other.ebs_billed:
        why = f"{today.family} and {other.family} keep data on different kinds of disk"
        if None in (today.ebs_billed, other.ebs_billed):
            why = f"whether {today.family} and {other.family} keep data alike is not known"
        yield Refusal(Constraint.STORAGE, why)
    checks = (
        _gpu_count(need.gpus, other),
        _GpuMemory(job, today, need.gpu_memory_gib, headroom).refusal(other),
        _peak(Constraint.VCPU, "", need.vcpu, other.vcpu),
        _peak(Constraint.MEMORY, " GiB", need.memory_gib, float(other.memory_gib)),
    )
    broken = [refusal for refusal in checks if refusal is not None]
    broken.sort(key=lambda refusal: refusal.constraint is Constraint.NOT_RECORDED)
    yield from broken


@cache
def _generation(family: str) -> int:
    """The number in its name: 7 of m7i; 0 without one."""
    digits = _NUMBER.search(family)
    return int(digits[0]) if digits else 0


def _gpu_count(need: Need, other: InstanceType) -> Refusal | None:
    """The mean work must fit: GPUs that share it then take less than twice as long."""
    holds = need.held_by(other.gpus)
    if holds is None:
        why = f"the use of the GPU is not known ({need.unknown})"
        return Refusal(Constraint.NOT_RECORDED, why)
    if holds:
        return None
    why = f"{Constraint.GPUS.value}: {need.needed:.1f} busy on average, {other.gpus} offered"
    return Refusal(Constraint.GPUS, why)


def _peak(constraint: Constraint, unit: str, need: Need, offered: float) -> Refusal | None:
    holds = need.held_by(offered)
    if holds is None:
        why = f"the {constraint.value} used is not known ({need.unknown})"
        return Refusal(Constraint.NOT_RECORDED, why)
    if holds:
        return None
    asked = f"{need.needed:.1f}{unit} needed with headroom, {offered:g}{unit} offered"
    return Refusal(constraint, f"{constraint.value}: {asked}")


@dataclass(frozen=True, slots=True)
class _GpuMemory:
    """GPU memory. CloudWatch has only the sum of a host's GPUs, so it may all be on one of them.

    What fits on one GPU together fits on a GPU of that size. More is spread evenly, with headroom.
    Copies of data-parallel work do not add up: what one GPU held fits on each of its size.
    """

    job: Job
    today: InstanceType
    need: Need
    headroom: float

    def refusal(self, other: InstanceType) -> Refusal | None:
        """Why the memory of the other type's GPUs is too small or cannot be checked, or None."""
        each, offered = (float(row.gpu_memory_gib or 0) for row in (self.today, other))
        copies = self.job.hints.copies
        if not self.need.today or (offered >= each and (copies or other.gpus >= self.today.gpus)):
            return None
        if self.need.needed is None:
            why = f"the {Constraint.GPU_MEMORY.value} used is not known ({self.need.unknown})"
            return Refusal(Constraint.NOT_RECORDED, why)
        if offered < each:
            return _too_small(min(self.need.needed * self.headroom, each), offered)
        if self.need.needed <= each:
            return None
        share_one = math.ceil(self.today.gpus / other.gpus) if other.gpus else self.today.gpus
        return _too_small(self.need.needed / self.today.gpus * share_one * self.headroom, offered)


def _too_small(needed_gib: float, offered_gib: float) -> Refusal | None:
    if needed_gib <= offered_gib:
        return None
    asked = f"{needed_gib:.1f} GiB needed, {offered_gib:g} GiB offered"
    return Refusal(Constraint.GPU_MEMORY, f"{Constraint.GPU_MEMORY.value}: {asked}")
