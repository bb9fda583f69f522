"""What a job's instances cost by the hour, and the small type that its code can be tested on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from sageaudit.domain.bill.type_vetoes import type_refused
from sageaudit.domain.job.job import InstanceGroup, Job
from sageaudit.domain.prices.market import InstanceType, Market


@dataclass(frozen=True, slots=True)
class SmallType:
    """Its name, and the USD per hour of one instance."""

    name: str
    hourly_usd: Decimal


def cluster_usd_per_hour(job: Job, market: Market) -> Decimal | None:
    """All instances of a job together; None when a rate is not known."""
    rates = [_usd_per_hour(job, market, group.instance_type) for group in job.groups]
    if not rates or None in rates:
        return None
    pairs = zip(rates, job.groups, strict=True)
    return sum((rate * group.count for rate, group in pairs if rate is not None), Decimal(0))


def small_type(job: Job, market: Market, below_usd: Decimal) -> SmallType | None:
    """The cheapest type below an hourly rate, of the same GPU model if there is one; else None."""
    today = market.types.get(job.groups[0].instance_type) if len(job.groups) == 1 else None
    if today is None:
        return None
    cheapest_first = sorted(
        (candidate.gpu_model != today.gpu_model, usd, candidate.name)
        for candidate in _suited(job, market, today)
        if (usd := _known_usd(job, market, candidate.name)) is not None and usd < below_usd
    )
    if not cheapest_first:
        return None
    _, hourly_usd, name = cheapest_first[0]
    return SmallType(name, hourly_usd)


def _suited(job: Job, market: Market, today: InstanceType) -> Iterator[InstanceType]:
    """Types that run the same code: GPUs of the same maker, or without any the same family."""
    on_one = replace(job, groups=(InstanceGroup(today.name, 1),))
    for candidate in market.types.values():
        alike = candidate.accelerator == today.accelerator
        if not today.accelerator:
            alike = candidate.family == today.family
        usable = candidate.name != today.name and job.kind in candidate.kinds
        current = today.legacy or not candidate.legacy
        if alike and usable and current and type_refused(on_one, today, candidate) is None:
            yield candidate


def _known_usd(job: Job, market: Market, instance_type: str) -> Decimal | None:
    """None for an estimate too: a type to test on must be one that is sold."""
    rate = market.hourly(job.region, job.kind, instance_type)
    return None if rate is None or rate.is_estimate else rate.usd


def _usd_per_hour(job: Job, market: Market, instance_type: str) -> Decimal | None:
    rate = market.hourly(job.region, job.kind, instance_type)
    return None if rate is None else rate.usd
