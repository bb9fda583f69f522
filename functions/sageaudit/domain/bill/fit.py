"""Whether another type holds what a run used, before anything is said of how long it takes.

It holds the run where each resource of which it offers less than today's type is enough. A resource
of which it offers no less is enough, recorded or not. Fewer vCPUs make the minutes longer in which
more cores were busy: the mean over all minutes of max(1, cores with headroom / vCPUs).
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import NamedTuple

from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.resize.candidate import Constraint, TypeRefusal
from sageaudit.domain.usage.demand import Demand, Need

MOST_TIMES_ON_VCPUS = Decimal("1.25")
"""Fewer vCPUs may make a run longer by a quarter; beyond it the means of a minute say too little
about the peaks. Our choice."""
SAME_GPU_HEADROOM = 1.1
"""Of GPU memory on a GPU of the same model, whose framework and caches take as much. Our choice."""
PLACES = Decimal("0.0001")
"""Of a multiple of the run time."""
_NOT_STEADY = ("t3", "-flex")
"""Families without their full CPU all the time: never advised for a job that computes."""
_NUMBER = re.compile(r"\d+")


class Fit(NamedTuple):
    """A run on `today` with its demand, and the type `other`: a tuple, as `Candidate`."""

    job: Job
    today: InstanceType
    need: Demand
    headroom_percent: Decimal
    other: InstanceType

    def too_small(self) -> TypeRefusal | None:
        """Why the type does not hold the run, what is certain before what was not recorded."""
        unrecorded = None
        for resource in (
            Fit._too_few_gpus,
            Fit._too_little_gpu_memory,
            Fit._too_few_vcpus,
            Fit._too_small_a_disk,
            Fit._too_little_memory,
        ):
            refusal = resource(self)
            if refusal is not None and refusal.constraint is not Constraint.NOT_RECORDED:
                return refusal
            unrecorded = unrecorded or refusal
        return unrecorded

    def _too_few_gpus(self) -> TypeRefusal | None:
        need, gpus = self.need, self.other.gpus
        if need.gpus.held_by(gpus) is None:
            return _not_recorded("use of the GPU", need.gpus)
        return too_few_gpus(need, gpus)

    def _too_little_memory(self) -> TypeRefusal | None:
        need, offered = self.need.memory_gib, float(self.other.memory_gib)
        if (holds := need.held_by(offered)) is None:
            return _not_recorded("host memory used", need)
        if holds:
            return None
        asked = f"{need.needed:.1f} GiB needed with headroom, {offered:g} GiB offered"
        return TypeRefusal(Constraint.MEMORY, f"{Constraint.MEMORY.value}: {asked}")

    def _too_small_a_disk(self) -> TypeRefusal | None:
        """From a type with a disk of its own; a volume is as large as the request says.

        Where its use was not recorded nothing is said: of most jobs it reads near 0.
        """
        needed, local_gb, today_gb = (
            self.need.disk_gb.needed,
            self.other.local_gb,
            self.today.local_gb,
        )
        offered_gb = (self.job.volume_gb or None) if local_gb is None else local_gb
        if needed is None or today_gb is None or offered_gb is None:
            return None
        if offered_gb >= min(needed, today_gb):
            return None
        asked = f"{needed:.0f} GB needed with headroom, {offered_gb} GB offered"
        return TypeRefusal(Constraint.STORAGE, f"disk: {asked}")

    def _too_few_vcpus(self) -> TypeRefusal | None:
        """A GPU waits for CPUs at their limit, and more vCPUs would be the next advice."""
        need, offered = self.need.vcpu, self.other.vcpu
        if offered >= self.today.vcpu:
            return None
        if need.needed is None:
            return _not_recorded("vCPU used", need)
        feeds = self.today.gpus and not self.need.gpu_idle
        waits = feeds and any(host.at_limit(offered) for host in self.need.cores)
        if waits or self.times_on_vcpus() > MOST_TIMES_ON_VCPUS:
            asked = f"{need.needed:.1f} needed with headroom, {offered} offered"
            return TypeRefusal(Constraint.VCPU, f"{Constraint.VCPU.value}: {asked}")
        return None

    def times_on_vcpus(self, headroom_percent: Decimal | None = None) -> Decimal:
        """How many times as long the work of the vCPUs takes there, with headroom."""
        if self.other.vcpu >= self.today.vcpu or not self.need.cores:
            return Decimal(1)
        percent = self.headroom_percent if headroom_percent is None else headroom_percent
        return self.need.times_on_vcpus(self.other.vcpu / (1 + float(percent) / 100))

    def _too_little_gpu_memory(self) -> TypeRefusal | None:
        """CloudWatch has only the sum of a host's GPUs, so it may all be on one of them.

        What fits on one GPU together fits on a GPU of that size. More is spread evenly, with
        headroom. Copies of data-parallel work do not add up: what one GPU held fits on each of its
        size.
        """
        need, gpus = self.need.gpu_memory_gib, self.today.gpus
        if not need.today:
            return None
        each, offered = (float(row.gpu_memory_gib or 0) for row in (self.today, self.other))
        copies = self.job.hints.copies
        if offered >= each and (copies or self.other.gpus >= gpus):
            return None
        if need.needed is None:
            return _not_recorded(f"{Constraint.GPU_MEMORY.value} used", need)
        same = self.today.gpu_model == self.other.gpu_model
        headroom = SAME_GPU_HEADROOM if same else 1 + float(self.headroom_percent) / 100
        if offered < each:
            needed_gib = min(need.needed * headroom, each)
        elif need.needed * headroom <= each:
            return None
        else:
            share_one = math.ceil(gpus / self.other.gpus) if self.other.gpus else gpus
            needed_gib = need.needed / gpus * share_one * headroom
        if needed_gib <= offered:
            return None
        asked = f"{needed_gib:.1f} GiB needed, {offered:g} GiB offered"
        return TypeRefusal(Constraint.GPU_MEMORY, f"{Constraint.GPU_MEMORY.value}: {asked}")


def too_few_gpus(need: Demand, gpus: int) -> TypeRefusal | None:
    """Why so many GPUs do not hold the run, which comes before anything else; None: they may.

    The mean work must fit: GPUs that share it then take less than twice as long.
    """
    if need.gpus.held_by(gpus) is not False:
        return None
    asked = f"{need.gpus.needed:.1f} busy on average, {gpus} offered"
    return TypeRefusal(Constraint.GPUS, f"{Constraint.GPUS.value}: {asked}")


def unlike(today: InstanceType, other: InstanceType) -> TypeRefusal | None:
    """Why no run is advised to move there, however small its demand; None where one may be."""
    if other.accelerator and not other.gpus:
        why = f"{other.name} has no GPU and needs other code"
        return TypeRefusal(Constraint.ACCELERATOR, why)
    if other.legacy and not today.legacy:
        why = f"{other.family} is an older generation than {today.family}"
        return TypeRefusal(Constraint.GENERATION, why)
    if not today.accelerator and _generation(other.family) < _generation(today.family):
        why = f"a vCPU of {other.family} is older than one of {today.family}, and may be slower"
        return TypeRefusal(Constraint.GENERATION, why)
    if other.family.endswith(_NOT_STEADY):
        why = f"{other.family} is burstable or flexible: its full vCPU is not guaranteed"
        return TypeRefusal(Constraint.VCPU, why)
    if not today.accelerator and today.ebs_billed != other.ebs_billed:
        why = f"{today.family} and {other.family} keep data on different kinds of disk"
        if None in (today.ebs_billed, other.ebs_billed):
            why = f"whether {today.family} and {other.family} keep data alike is not known"
        return TypeRefusal(Constraint.STORAGE, why)
    return None


def _not_recorded(what: str, need: Need) -> TypeRefusal:
    return TypeRefusal(Constraint.NOT_RECORDED, f"the {what} is not known ({need.unknown})")


def _generation(family: str) -> int:
    """The number in its name: 7 of m7i; 0 without one."""
    digits = _NUMBER.search(family)
    return int(digits[0]) if digits else 0
