"""The types beside a job's own, with their hourly price and what keeps every run from them.

None of this depends on what a run used, so the jobs of one day, region, kind and type share it.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from msgspec import Struct

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import ESTIMATE_WITHIN, InstanceType, Market, Rate, comparable
from sageaudit.domain.resize.candidate import Constraint, TypeRefusal
from sageaudit.domain.resize.fit import unlike

_KNOWN = Decimal(0)
_KEPT = 32
"""Lists of types that a process keeps, of 200 rows each: the newest markets, kinds and types."""


class Offer(Struct, frozen=True):
    """A type beside today's, before anything of a run is asked.

    `refused`: why it is, where it is not sold or has no price to compare. `unlike`: why no run is
    advised to move to it. `may_hold`: it is no larger than today's, and its price alone refuses it.
    `less`: it costs less by the hour, and its price is no estimate.
    """

    type: InstanceType
    rate: Rate | None
    refused: TypeRefusal | None
    unlike: TypeRefusal | None
    may_hold: bool
    less: bool


@lru_cache(maxsize=_KEPT)
def offers(market: Market, region: str | None, kind: JobKind, own_type: str) -> tuple[Offer, ...]:
    """Every other type, by its hourly price; the jobs of one market, kind and type share them."""
    today, own = market.types[own_type], market.hourly(region, kind, own_type)
    found = []
    for other in market.types.values():
        if other.name == today.name:
            continue
        rate = market.hourly(region, kind, other.name)
        refused, why = _not_sold(region, kind, (today, own), (other, rate)), unlike(today, other)
        larger = other.gpus > today.gpus or other.vcpu > today.vcpu
        unpriced = refused is not None and refused.constraint is Constraint.BILL
        found.append(
            Offer(
                other,
                rate,
                refused,
                why,
                may_hold=unpriced and not larger and why is None,
                less=rate is not None and not rate.is_estimate and costs_less(own, rate),
            )
        )
    return tuple(sorted(found, key=lambda offer: by_hour(offer.type, offer.rate)))


@lru_cache(maxsize=_KEPT)
def offers_of(
    market: Market, region: str | None, kind: JobKind, own_type: str, names: frozenset[str]
) -> tuple[Offer, ...]:
    """Those of `offers` with these names."""
    every = offers(market, region, kind, own_type)
    return tuple(offer for offer in every if offer.type.name in names)


@lru_cache(maxsize=_KEPT)
def may_cost_less(
    market: Market, region: str | None, kind: JobKind, own_type: str
) -> frozenset[str]:
    """The types that are not known to cost as much by the hour, or more."""
    own = market.hourly(region, kind, own_type)
    return frozenset(
        offer.type.name
        for offer in offers(market, region, kind, own_type)
        if own is None
        or offer.rate is None
        or offer.rate.usd < own.usd
        or not comparable(own, offer.rate)
    )


def _not_sold(
    region: str | None,
    kind: JobKind,
    today: tuple[InstanceType, Rate | None],
    offered: tuple[InstanceType, Rate | None],
) -> TypeRefusal | None:
    (own, own_rate), (other, rate) = today, offered
    if kind not in other.kinds:
        why = f"{kind.value} jobs do not take {other.name}"
        return TypeRefusal(Constraint.NOT_OFFERED, why)
    if rate is None:
        why = f"no price known for {other.name} in {region}"
        return TypeRefusal(Constraint.BILL, why)
    if rate.unlisted is not None:
        why = f"{other.name} may not be sold for {kind.value} jobs: {rate.unlisted}"
        return TypeRefusal(Constraint.NOT_OFFERED, why)
    if own_rate is not None and not comparable(own_rate, rate):
        why = f"{other.name} and {own.name} have no price of one time and kind"
        return TypeRefusal(Constraint.BILL, why)
    return None


def doubt(today: Rate | None, other: Rate | None) -> Decimal:
    """The share by which either rate may be wrong; 0 of known ones."""
    for rate in (today, other):
        if rate is not None and rate.is_estimate:
            return ESTIMATE_WITHIN
    return _KNOWN


def costs_less(today: Rate | None, other: Rate | None) -> bool:
    """Priced below today's type by the hour; below what an estimate may be wrong, too."""
    if today is None or other is None:
        return False
    return other.usd < today.usd * (1 - doubt(today, other))


def by_hour(kind: InstanceType, rate: Rate | None) -> tuple[Decimal, str]:
    """Sort key of types: by their hourly price, those without one last."""
    return (rate.usd if rate else Decimal("Infinity"), kind.name)
