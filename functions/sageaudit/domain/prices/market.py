"""Instance types and their dated prices. A type or price that is absent is unknown."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import BILLED_KINDS, Component, JobKind
from sageaudit.domain.prices.market import GpuPeaks, GpuRatio

PriceKind = Literal["list", "own", "estimate"]
"""AWS's list price, the company's own price set in its policy, or EC2's price times a factor."""
ESTIMATE_WITHIN = Decimal("0.01")
"""98.6% of 2,186 pairs of SageMaker's and EC2's rates lie within 1% of their family's factor: a
difference below that, between an estimated rate and another one, may not exist."""
_KEPT = 8
"""Markets that are kept of each: the jobs of a day run on few types."""
Era = Literal["today", "past", "before_known", "ambiguous"]


class Rate(NamedTuple):
    """A price in USD per unit, with its date (ISO), source and the reason to doubt it.

    `kind`: AWS's list price, the company's own, or an estimate. `as_of` is None without a date.
    `era`: "today" is the newest known price, "past" an earlier one; "before_known" is the newest
    for a day before any known price, "ambiguous" the newest for a day between two different
    prices. `other_usd` is the older of two such prices.

    `estimated`: how an estimate was made, in one sentence; None for every other rate. `discounted`:
    an estimate less the policy's percentage. `unlisted`: why SageMaker may not sell the type.
    `learnt`: what an own rate from a cost report counts; None for all others.
    """

    usd: Decimal
    as_of: str | None
    source: str
    note: str | None = None
    kind: PriceKind = "list"
    other_usd: Decimal | None = None
    era: Era = "today"
    by_ratio: bool = False
    estimated: str | None = None
    discounted: bool = False
    unlisted: str | None = None
    learnt: Literal["net", "amortised"] | None = None

    @property
    def is_estimate(self) -> bool:
        """True for a rate that nobody has read."""
        return self.kind == "estimate"

    @property
    def negotiated(self) -> bool:
        """True for what the company pays, false for what AWS asks before discounts."""
        return self.kind == "own" or self.discounted


def comparable(rate: Rate | None, other: Rate | None) -> bool:
    """True if both rates are known, both or neither negotiated, and both or neither past prices.

    An estimate is comparable with a list price: whoever compares them says so.
    """
    if rate is None or other is None:
        return False
    return rate.negotiated == other.negotiated and (rate.era == "past") == (other.era == "past")


class InstanceType(Struct, frozen=True):
    """One row of the catalogue. GPU memory is per GPU; `ebs_billed` is None when unknown.

    `gpu_peaks` is None without a data sheet; `gpu_ratios` are those that were measured of its GPU
    model and others. `kinds` are the job kinds that may use the type.
    `efa`: supports an Elastic Fabric Adapter; None when unknown. `network_gbps`: the most gigabits
    a second that its network carries. `successors`: types of newer generations that replace it, an
    editorial choice.
    """

    name: str
    family: str
    category: str
    vcpu: int
    memory_gib: Decimal
    gpus: int
    gpu_model: str | None
    gpu_memory_gib: Decimal | None
    accelerator: str | None
    ebs_billed: bool | None
    legacy: bool
    gpu_peaks: GpuPeaks | None = None
    gpu_ratios: tuple[GpuRatio, ...] = ()
    kinds: frozenset[JobKind] = frozenset(BILLED_KINDS)
    efa: bool | None = None
    network_gbps: Decimal | None = None
    successors: tuple[str, ...] = ()
    local_gb: int | None = None
    """The size of its local NVMe storage; None where it has none or the size is not known."""


class Prices(Protocol):
    """A price book: each method returns a dated rate, or None for unknown."""

    @property
    def version(self) -> str:
        """Source and date of the prices, stored with the audit."""

    def hourly(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """USD per instance-hour, on demand."""

    def newest(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """USD per instance-hour, on demand, by the newest known price, whatever the job's day."""

    def storage(self, region: str, component: Component) -> Rate | None:
        """USD per GB-month of ML storage."""

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """The usage type as bills print it; None where the region's prefix was never observed."""


class Market(Struct, frozen=True, eq=False, dict=True):
    """Instance types and prices, from which a bill is computed.

    `own_type`: the type of the job whose alternatives are priced, see `relative_to`. Prices do not
    change, so each rate is asked for once and kept in `_rates`, and what is made of a market is
    kept beside it: the jobs of one day, type and policy share one market. Two are equal where they
    are one and the same, so that what is worked out of one can be kept by it.
    """

    types: Mapping[str, InstanceType]
    prices: Prices
    own_type: str | None = None

    @cached_property
    def _rates(self) -> dict[tuple[str, JobKind, str], Rate | None]:
        return {}

    @cached_property
    def _made(self) -> deque[Market]:
        return deque(maxlen=_KEPT)

    def relative_to(self, job: Job) -> Market:
        """The same market, in which every other type is comparable with the job's own type.

        A type without a rate of the job's day gets the job's own rate times the ratio of the newest
        rates of both types. The job's own bill does not change. Jobs of several types stay as is.
        """
        kinds = {group.instance_type for group in job.groups}
        return self._with(self.prices, kinds.pop() if len(kinds) == 1 else None)

    def at(self, prices: Prices) -> Market:
        """The same types at other prices."""
        return self._with(prices, self.own_type)

    def _with(self, prices: Prices, own_type: str | None) -> Market:
        if own_type == self.own_type and prices is self.prices:
            return self
        for made in self._made:
            if made.own_type == own_type and made.prices == prices:
                return made
        made = Market(self.types, prices, own_type)
        self._made.append(made)
        return made

    def hourly(self, region: str | None, kind: JobKind, instance_type: str) -> Rate | None:
        """USD per instance-hour of a job of this kind, on demand; None where it is not known."""
        if region is None:
            return None
        asked = (region, kind, instance_type)
        if asked not in self._rates:
            self._rates[asked] = self._asked(region, kind, instance_type)
        return self._rates[asked]

    def _asked(self, region: str, kind: JobKind, instance_type: str) -> Rate | None:
        component = kind.row.component
        rate = self.prices.hourly(region, component, instance_type)
        if self.own_type in {None, instance_type} or rate is None:
            return rate
        own = self.hourly(region, kind, self.own_type)
        if own is None or comparable(own, rate):
            return rate
        if own.learnt and rate.kind == "list":
            most = (
                f"no own rate of {instance_type} is known: its list price, the most that it costs"
            )
            return rate._replace(kind="own", era=own.era, note=most, by_ratio=True)
        return self._by_ratio(region, component, instance_type, own) or rate

    def _by_ratio(self, region: str, component: Component, other: str, own: Rate) -> Rate | None:
        newest, own_newest = (
            self.prices.newest(region, component, name) for name in (other, self.own_type or "")
        )
        if newest is None or own_newest is None or not own_newest.usd:
            return None
        if newest.negotiated != own.negotiated or not comparable(newest, own_newest):
            return None
        ratio = newest.usd / own_newest.usd
        dates = sorted({rate.as_of or "no date" for rate in (newest, own_newest)})
        how = (
            f"no rate of {other} is known for the job's day: the rate of {self.own_type} on that "
            f"day times {ratio:.4f}, the ratio of the newest rates of both ({' and '.join(dates)})"
        )
        guess = next((rate for rate in (own, newest, own_newest) if rate.is_estimate), own)
        return own._replace(
            usd=own.usd * ratio,
            other_usd=None,
            note=how,
            by_ratio=True,
            kind=guess.kind,
            estimated=guess.estimated,
            discounted=guess.is_estimate and own.negotiated,
            unlisted=newest.unlisted,
        )
