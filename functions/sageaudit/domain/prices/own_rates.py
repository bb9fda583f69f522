"""What the company paid, by region, component and type, each with the days on which it was paid.

`sageaudit prices learn` works these rates out of a cost report. A rate holds from its first day
until a newer one is known, and never for a day before: what was paid then is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct, field

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import KnownRate, rate_on
from sageaudit.domain.prices.market import Rate

TYPE = re.compile(r"ml\.[a-z0-9-]{1,30}\.[a-z0-9-]{1,30}")
"""An instance type's name, also of one that is not in the catalogue."""
HIGHEST_USD = Decimal(10_000)
"""Far above the price of any instance-hour: a higher rate is a mistake, and is refused."""
LEARNT = "learnt from "
"""How the source of a learnt rate begins."""


class RateBasis(StrEnum):
    """What a rate counts: `net` is the on-demand price after discounts, without hours that a
    Savings Plan covers; `amortised` is the average over all hours, covered ones at the plan's cost.
    """

    NET = "net"
    AMORTISED = "amortised"


class OwnRate(Struct, frozen=True):
    """USD per instance-hour, or per GB-month where `what` is the key of ML storage.

    `first` and `last` are the days (UTC) of the usage behind it, `quantity` its hours or GB-months.
    """

    region: str
    component: Component
    what: str
    usd: Decimal
    first: date
    last: date
    quantity: Decimal
    source: str
    note: str | None = None

    @property
    def key(self) -> str:
        """Equal for the rates of one product."""
        return _key(self.region, self.component, self.what)

    @property
    def days(self) -> str:
        """Its days as one text: `2026-10-01/2026-10-31`."""
        return str(self.first) if self.first == self.last else f"{self.first}/{self.last}"


class OwnRates(Struct, frozen=True):
    """The learnt rates of one basis; `account` is None where they are of all accounts."""

    basis: RateBasis
    account: str | None = None
    by_key: Mapping[str, tuple[OwnRate, ...]] = field(default_factory=dict)

    @property
    def rows(self) -> list[OwnRate]:
        """All rates, by product and day."""
        return [rate for key in sorted(self.by_key) for rate in self.by_key[key]]

    def on(self, region: str, component: Component, what: str, day: date | None) -> Rate | None:
        """The own rate of a day; the newest without a day. None where none was paid until then."""
        rates = self.by_key.get(_key(region, component, what), ())
        known = [self._known(rate) for rate in rates]
        if not known or (day is not None and day < known[0].first):
            return None
        rate = rate_on(known, day)
        if rate is None:
            return None
        # An own rate is compared with prices of its own day, so an earlier one is not "past".
        rate = rate._replace(
            learnt="net" if self.basis is RateBasis.NET else "amortised",
            era="ambiguous" if rate.other_usd else "today",
        )
        newest = known[-1]
        if day is None or day <= newest.last:
            return rate
        carried = f"the newest own rate, of {newest.rate.as_of}, for {day}"
        return rate._replace(note=" · ".join(filter(None, (carried, rate.note))))

    def _known(self, rate: OwnRate) -> KnownRate:
        counted = "net of discounts" if self.basis is RateBasis.NET else "amortised"
        source = f"{LEARNT}{rate.source}, {counted}"
        own = Rate(rate.usd, rate.days, source, rate.note, kind="own")
        return KnownRate(own, rate.first, rate.last)


def own_rates(basis: RateBasis, account: str | None, rates: Iterable[OwnRate]) -> OwnRates:
    """The rates by product, each product's in the order of their days."""
    by_key: dict[str, list[OwnRate]] = {}
    for rate in sorted(rates, key=lambda rate: (rate.key, rate.first)):
        by_key.setdefault(rate.key, []).append(rate)
    return OwnRates(basis, account, {key: tuple(known) for key, known in by_key.items()})


def merged(known: OwnRates, learnt: OwnRates) -> OwnRates:
    """Learnt rates stand in place of known ones of the same product and days; others stay."""
    kept = [
        rate
        for rate in known.rows
        if not any(
            rate.first <= one.last and one.first <= rate.last
            for one in learnt.by_key.get(rate.key, ())
        )
    ]
    return own_rates(known.basis, known.account, [*kept, *learnt.rows])


def _key(region: str, component: Component, what: str) -> str:
    return f"{region}/{component.value}/{what}"
