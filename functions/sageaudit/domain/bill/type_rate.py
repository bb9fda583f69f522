"""Rates by the hour, and the small type that the same code can be tried out on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from sageaudit.domain.bill.compatibility import type_refused
from sageaudit.domain.job.job import InstanceGroup, Job
from sageaudit.domain.prices.market import InstanceType, Market


@dataclass(frozen=True, slots=True)
class SmallType:
    """Its name and USD per hour of one instance."""

    name: str
    hourly_usd: Decimal


def cluster_usd_per_hour(job: Job, market: Market) -> Decimal | None:
    """All instances of a job together; None where a rate is not known."""
    rates = [_usd_per_hour(job, market, group.instance_type) for group in job.groups]
    if not rates or None in rates:
        return None
    pairs = zip(rates, job.groups, strict=True)
    return sum((rate * group.count for rate, group in pairs if rate is not None), Decimal(0))


def small_type(job: Job, market: Market, below_usd: Decimal) -> SmallType | None:
    """The cheapest type under a rate, with the same GPU model if there is one; else None."""
    today = market.types.get(job.groups[0].instance_type) if len(job.groups) == 1 else None
    if today is None:
        return None
    found = sorted(
        (other.gpu_model != today.gpu_model, usd, other.name)
        for other in _suited(job, market, today)
        if (usd := _usd_per_hour(job, market, other.name)) is not None and usd < below_usd
    )
    return SmallType(found[0][2], found[0][1]) if found else None


def _suited(job: Job, market: Market, today: InstanceType) -> Iterator[InstanceType]:
    """Types that run the same code: the same maker of GPUs, or the same family without any."""
    alone = replace(job, groups=(InstanceGroup(today.name, 1),))
    for other in market.types.values():
        like = other.accelerator == today.accelerator
        if not today.accelerator:
            like = other.family == today.family
        usable = other.name != today.name and job.kind in other.kinds
        newer = today.legacy or not other.legacy
        if like and usable and newer and type_refused(alone, today, other) is None:
            yield other


def _usd_per_hour(job: Job, market: Market, instance_type: str) -> Decimal | None:
    rate = market.hourly(job.region, job.kind, instance_type)
    return None if rate is None else rate.usd
