"""Finds the types that a job could use instead, and whether each fits what a run used.

A type fits if each resource that it has less of than the current type is enough for the run. The
other resources are enough, even if their use was not recorded. Fewer vCPUs slow down the minutes in
which more cores were busy. The factor is the mean over all minutes of max(1, cores with headroom /
vCPUs).

Checks that do not depend on the run are cached for jobs of one day, region, kind and type.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import (
    ESTIMATE_TOLERANCE,
    InstanceType,
    Market,
    Rate,
    is_comparable,
)
from sageaudit.domain.resize.candidate import Constraint, TypeRefusal
from sageaudit.domain.usage.demand import Demand, ResourceNeed

MAX_VCPU_FACTOR = Decimal("1.25")
"""The largest run-time factor from fewer vCPUs. Beyond it, one-minute means say too little about
the peaks. Our choice."""
SAME_GPU_HEADROOM = 1.1
"""The headroom factor for memory on the same GPU model, where framework and caches take as much as
now. Our choice."""
FACTOR_PRECISION = Decimal("0.0001")
"""Run-time factors are rounded up to a multiple of this."""
_BURSTABLE_FAMILIES = ("t3", "-flex")
"""The endings of families whose full CPU is not guaranteed. They are never recommended."""
_NUMBER = re.compile(r"\d+")

_NO_UNCERTAINTY = Decimal(0)
_OFFER_CACHE_SIZE = 32
"""The maximum number of lists of types in each cache."""


class Fit(NamedTuple):
    """Whether a run that now uses `current_type` fits `other_type`."""

    job: Job
    current_type: InstanceType
    demand: Demand
    headroom_percent: Decimal
    other_type: InstanceType

    def size_refusal(self) -> TypeRefusal | None:
        """Returns why `other_type` does not fit the run; None if it fits.

        Returns a resource that is certainly too small before one whose use was not recorded.
        """
        unrecorded = None
        for resource in (
            Fit._gpu_count_refusal,
            Fit._gpu_memory_refusal,
            Fit._vcpu_refusal,
            Fit._disk_refusal,
            Fit._memory_refusal,
        ):
            refusal = resource(self)
            if refusal is not None and refusal.constraint is not Constraint.NOT_RECORDED:
                return refusal
            unrecorded = unrecorded or refusal
        return unrecorded

    def _gpu_count_refusal(self) -> TypeRefusal | None:
        need, gpus = self.demand, self.other_type.gpus
        if need.gpus.is_met_by(gpus) is None:
            return _unrecorded_refusal("use of the GPU", need.gpus)
        return gpu_count_refusal(need, gpus)

    def _memory_refusal(self) -> TypeRefusal | None:
        need, offered = self.demand.memory_gib, float(self.other_type.memory_gib)
        if (fits := need.is_met_by(offered)) is None:
            return _unrecorded_refusal("host memory used", need)
        if fits:
            return None
        figures = f"{need.needed:.1f} GiB needed with headroom, {offered:g} GiB offered"
        return TypeRefusal(Constraint.MEMORY, f"{Constraint.MEMORY.value}: {figures}")

    def _disk_refusal(self) -> TypeRefusal | None:
        """Returns a refusal if the other type has too little disk for the run, or None.

        A type without its own disk has the volume of the request. If the disk use was not recorded,
        no type is refused, because most jobs use almost no disk.
        """
        needed_gb, local_gb, current_gb = (
            self.demand.disk_gb.needed,
            self.other_type.local_gb,
            self.current_type.local_gb,
        )
        offered_gb = (self.job.volume_gb or None) if local_gb is None else local_gb
        if needed_gb is None or current_gb is None or offered_gb is None:
            return None
        if offered_gb >= min(needed_gb, current_gb):
            return None
        figures = f"{needed_gb:.0f} GB needed with headroom, {offered_gb} GB offered"
        return TypeRefusal(Constraint.STORAGE, f"disk: {figures}")

    def _vcpu_refusal(self) -> TypeRefusal | None:
        """Returns a refusal if a GPU would wait for the vCPUs, or the run would take too long."""
        need, offered = self.demand.vcpu, self.other_type.vcpu
        if offered >= self.current_type.vcpu:
            return None
        if need.needed is None:
            return _unrecorded_refusal("vCPU used", need)
        feeds_gpu = self.current_type.gpus and not self.demand.is_gpu_idle
        gpu_waits = feeds_gpu and any(host.is_at_limit(offered) for host in self.demand.cores)
        if gpu_waits or self.vcpu_factor() > MAX_VCPU_FACTOR:
            figures = f"{need.needed:.1f} needed with headroom, {offered} offered"
            return TypeRefusal(Constraint.VCPU, f"{Constraint.VCPU.value}: {figures}")
        return None

    def vcpu_factor(self, headroom_percent: Decimal | None = None) -> Decimal:
        """Returns the run-time factor from fewer vCPUs on `other_type`; 1 without fewer vCPUs.

        `headroom_percent` defaults to that of the run.
        """
        if self.other_type.vcpu >= self.current_type.vcpu or not self.demand.cores:
            return Decimal(1)
        percent = self.headroom_percent if headroom_percent is None else headroom_percent
        return self.demand.vcpu_factor(self.other_type.vcpu / (1 + float(percent) / 100))

    def _gpu_memory_refusal(self) -> TypeRefusal | None:
        """Returns a refusal if the GPU memory may be too small, or None.

        CloudWatch has only the sum of a host's GPUs, so one GPU may use all of it. A sum that fits
        on one current GPU fits on any GPU of that size. A larger sum counts as spread evenly, with
        headroom. Copies in data-parallel work do not add up.
        """
        need, gpus = self.demand.gpu_memory_gib, self.current_type.gpus
        if not need.available:
            return None
        current_gib, offered_gib = (
            float(row.gpu_memory_gib or 0) for row in (self.current_type, self.other_type)
        )
        has_replicas = self.job.hints.has_model_replicas
        if offered_gib >= current_gib and (has_replicas or self.other_type.gpus >= gpus):
            return None
        if need.needed is None:
            return _unrecorded_refusal(f"{Constraint.GPU_MEMORY.value} used", need)
        is_same_model = self.current_type.gpu_model == self.other_type.gpu_model
        headroom = SAME_GPU_HEADROOM if is_same_model else 1 + float(self.headroom_percent) / 100
        if offered_gib < current_gib:
            needed_gib = min(need.needed * headroom, current_gib)
        elif need.needed * headroom <= current_gib:
            return None
        else:
            gpus_per_gpu = math.ceil(gpus / self.other_type.gpus) if self.other_type.gpus else gpus
            needed_gib = need.needed / gpus * gpus_per_gpu * headroom
        if needed_gib <= offered_gib:
            return None
        figures = f"{needed_gib:.1f} GiB needed, {offered_gib:g} GiB offered"
        return TypeRefusal(Constraint.GPU_MEMORY, f"{Constraint.GPU_MEMORY.value}: {figures}")


def gpu_count_refusal(need: Demand, gpus: int) -> TypeRefusal | None:
    """Returns why this many GPUs cannot do the run's mean work, or None.

    If the mean work fits, GPUs that share it take less than twice as long.
    """
    if need.gpus.is_met_by(gpus) is not False:
        return None
    figures = f"{need.gpus.needed:.1f} busy on average, {gpus} offered"
    return TypeRefusal(Constraint.GPUS, f"{Constraint.GPUS.value}: {figures}")


def type_class_refusal(current_type: InstanceType, other_type: InstanceType) -> TypeRefusal | None:
    """Returns why no run may move to the other type, however little it needs, or None."""
    if other_type.accelerator and not other_type.gpus:
        reason = f"{other_type.name} has no GPU and needs other code"
        return TypeRefusal(Constraint.ACCELERATOR, reason)
    if other_type.is_legacy and not current_type.is_legacy:
        reason = f"{other_type.family} is an older generation than {current_type.family}"
        return TypeRefusal(Constraint.GENERATION, reason)
    if not current_type.accelerator and _generation(other_type.family) < _generation(
        current_type.family
    ):
        reason = (
            f"a vCPU of {other_type.family} is older than one of {current_type.family},"
            " and may be slower"
        )
        return TypeRefusal(Constraint.GENERATION, reason)
    if other_type.family.endswith(_BURSTABLE_FAMILIES):
        reason = f"{other_type.family} is burstable or flexible: its full vCPU is not guaranteed"
        return TypeRefusal(Constraint.VCPU, reason)
    if not current_type.accelerator and current_type.is_ebs_billed != other_type.is_ebs_billed:
        reason = (
            f"{current_type.family} and {other_type.family} keep data on different kinds of disk"
        )
        if None in (current_type.is_ebs_billed, other_type.is_ebs_billed):
            families = f"{current_type.family} and {other_type.family}"
            reason = f"whether {families} keep data alike is not known"
        return TypeRefusal(Constraint.STORAGE, reason)
    return None


def _unrecorded_refusal(use: str, need: ResourceNeed) -> TypeRefusal:
    return TypeRefusal(Constraint.NOT_RECORDED, f"the {use} is not known ({need.unknown_because})")


def _generation(family: str) -> int:
    """Returns the number in a family's name, such as 7 for m7i; 0 without a number."""
    digits = _NUMBER.search(family)
    return int(digits[0]) if digits else 0


class TypeOffer(Struct, frozen=True):
    """A type other than the current type, with the checks that do not need the run.

    `refusal`: why the type is not sold, or that its price cannot be compared. `type_class_refusal`:
    why no run may move to it. `can_fit`: the type could be used if its price could be compared. It
    has no more GPUs and vCPUs than the current type, and nothing else speaks against it.
    `is_cheaper_per_hour`: False for an estimated price.
    """

    type: InstanceType
    rate: Rate | None
    refusal: TypeRefusal | None
    type_class_refusal: TypeRefusal | None
    can_fit: bool
    is_cheaper_per_hour: bool


@lru_cache(maxsize=_OFFER_CACHE_SIZE)
def offers(
    market: Market, region: str | None, kind: JobKind, own_type: str
) -> tuple[TypeOffer, ...]:
    """Returns an offer for each type other than `own_type`, the cheapest per hour first."""
    current_type, own_rate = market.types[own_type], market.hourly(region, kind, own_type)
    type_offers = []
    for other_type in market.types.values():
        if other_type.name == current_type.name:
            continue
        rate = market.hourly(region, kind, other_type.name)
        refusal, class_refusal = (
            _availability_refusal(region, kind, (current_type, own_rate), (other_type, rate)),
            type_class_refusal(current_type, other_type),
        )
        is_larger = other_type.gpus > current_type.gpus or other_type.vcpu > current_type.vcpu
        is_unpriced = refusal is not None and refusal.constraint is Constraint.BILL
        type_offers.append(
            TypeOffer(
                other_type,
                rate,
                refusal,
                class_refusal,
                can_fit=is_unpriced and not is_larger and class_refusal is None,
                is_cheaper_per_hour=rate is not None
                and not rate.is_estimate
                and is_cheaper_per_hour(own_rate, rate),
            )
        )
    return tuple(sorted(type_offers, key=lambda offer: hourly_price_order(offer.type, offer.rate)))


@lru_cache(maxsize=_OFFER_CACHE_SIZE)
def named_offers(
    market: Market, region: str | None, kind: JobKind, own_type: str, names: frozenset[str]
) -> tuple[TypeOffer, ...]:
    """Returns the `offers` of the types with these names."""
    all_offers = offers(market, region, kind, own_type)
    return tuple(offer for offer in all_offers if offer.type.name in names)


@lru_cache(maxsize=_OFFER_CACHE_SIZE)
def possibly_cheaper_types(
    market: Market, region: str | None, kind: JobKind, own_type: str
) -> frozenset[str]:
    """Returns the names of the types that may cost less per hour than `own_type`."""
    own_rate = market.hourly(region, kind, own_type)
    return frozenset(
        offer.type.name
        for offer in offers(market, region, kind, own_type)
        if own_rate is None
        or offer.rate is None
        or offer.rate.usd < own_rate.usd
        or not is_comparable(own_rate, offer.rate)
    )


def _availability_refusal(
    region: str | None,
    kind: JobKind,
    own_type_and_rate: tuple[InstanceType, Rate | None],
    other_type_and_rate: tuple[InstanceType, Rate | None],
) -> TypeRefusal | None:
    (own_type, own_rate), (other_type, rate) = own_type_and_rate, other_type_and_rate
    if kind not in other_type.kinds:
        reason = f"{kind.value} jobs do not take {other_type.name}"
        return TypeRefusal(Constraint.NOT_OFFERED, reason)
    if rate is None:
        reason = f"no price known for {other_type.name} in {region}"
        return TypeRefusal(Constraint.BILL, reason)
    if rate.unlisted_reason is not None:
        reason = f"{other_type.name} may not be sold for {kind.value} jobs: {rate.unlisted_reason}"
        return TypeRefusal(Constraint.NOT_OFFERED, reason)
    if own_rate is not None and not is_comparable(own_rate, rate):
        reason = f"{other_type.name} and {own_type.name} have no price of one time and kind"
        return TypeRefusal(Constraint.BILL, reason)
    return None


def rate_uncertainty(rate: Rate | None, other_rate: Rate | None) -> Decimal:
    """Returns the share (0..1) by which a rate may be wrong; 0 if neither is an estimate."""
    for known_rate in (rate, other_rate):
        if known_rate is not None and known_rate.is_estimate:
            return ESTIMATE_TOLERANCE
    return _NO_UNCERTAINTY


def is_cheaper_per_hour(rate: Rate | None, other_rate: Rate | None) -> bool:
    """Returns whether `other_rate` is certainly below `rate`. False if a rate is unknown.

    An estimated rate must be lower by more than its uncertainty.
    """
    if rate is None or other_rate is None:
        return False
    return other_rate.usd < rate.usd * (1 - rate_uncertainty(rate, other_rate))


def hourly_price_order(instance_type: InstanceType, rate: Rate | None) -> tuple[Decimal, str]:
    """Returns the sort key of a type: its hourly price. Types without a price come last."""
    return (rate.usd if rate else Decimal("Infinity"), instance_type.name)
