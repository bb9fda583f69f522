"""What a job's instances cost by the hour, and the cheapest type that fits what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import ROUND_DOWN, Decimal
from math import ceil

from msgspec import Struct

from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.resize.resize import HEADROOM_PERCENT

_ROOM = 1 + float(HEADROOM_PERCENT) / 100


class PricedType(Struct, frozen=True):
    """A type's name, and the USD per hour of one instance."""

    name: str
    hourly_usd: Decimal


def cluster_usd_per_hour(job: Job, market: Market) -> Decimal | None:
    """All instances of a job together; None when a rate is not known."""
    total = Decimal(0)
    for group in job.groups:
        rate = market.hourly(job.region, job.kind, group.instance_type)
        if rate is None:
            return None
        total += rate.usd * group.count
    return total if job.groups else None


def cheapest_type(
    job: Job, market: Market, fits: Callable[[InstanceType], bool], *, estimated: bool = False
) -> PricedType | None:
    """The cheapest type that this kind of job may use and that fits, of those with a known rate.

    `estimated`: an estimated rate will do. Of equal rates the first by name.
    """
    found = [(usd, other.name) for usd, other in _priced(job, market, fits, estimated=estimated)]
    if not found:
        return None
    usd, name = min(found)
    return PricedType(name, usd)


def _priced(
    job: Job, market: Market, fits: Callable[[InstanceType], bool], *, estimated: bool = False
) -> Iterator[tuple[Decimal, InstanceType]]:
    for other in market.types.values():
        if job.kind in other.kinds and fits(other):
            rate = market.hourly(job.region, job.kind, other.name)
            if rate is not None and (estimated or not rate.is_estimate):
                yield rate.usd, other


def seconds_beside_cpu_type(
    job: Job, market: Market, seconds: Decimal, cores: float, memory_gib: float
) -> Decimal:
    """The seconds whose bill is left after current CPU types do the same; 0 where that is not
    known.
    """
    share = share_beside_cpu_type(job, market, cores, memory_gib) if seconds else None
    return (seconds * (share or 0)).quantize(Decimal(1), ROUND_DOWN)


def share_beside_cpu_type(
    job: Job, market: Market, cores: float, memory_gib: float
) -> Decimal | None:
    """The share (0..1) of the hourly price that is left after current CPU types do the same for
    each host: as many as have its cores and its memory, with a fifth above. None where a price is
    not known.
    """
    today_usd = cluster_usd_per_hour(job, market)
    current_cpu = _priced(job, market, lambda other: not (other.accelerator or other.legacy))
    costs_usd = [
        usd
        * ceil(max(cores * _ROOM / other.vcpu, memory_gib * _ROOM / float(other.memory_gib), 0.01))
        for usd, other in current_cpu
    ]
    if not costs_usd or not today_usd:
        return None
    return max(1 - min(costs_usd) * (job.instance_count or 1) / today_usd, Decimal(0))
