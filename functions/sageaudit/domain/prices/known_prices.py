"""Prices that sources know, what the company paid, and which price was in force on a day.

AWS does not publish when a price changed; only the days on which a price was read are known. On a
day between two different prices, the newer price is used, and both are shown. A rate of the company
is valid from its first day until a newer rate is known.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.money import format_rate
from sageaudit.domain.prices.market import Era, Rate

SAME_PRICE_TOLERANCE = Decimal("0.002")
"""Two prices count as one price if they differ by at most this share. AWS rounds one price
differently in different products; the largest difference was 0.18%."""
_DATE_SPAN = re.compile(r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2}))?)?")

TYPE = re.compile(r"ml\.[a-z0-9-]{1,30}\.[a-z0-9-]{1,30}")
"""The form of an instance type's name, even if the catalogue does not have the type."""
MAX_RATE_USD = Decimal(10_000)
"""The highest accepted rate in USD. A higher rate is a mistake."""
OWN_RATE_SOURCE_PREFIX = "learnt from "
"""The beginning of the source of a rate from a cost report."""


class DatedRate(Struct, frozen=True):
    """A rate, and the first and last day on which it is known to be in force.

    `has_vague_dates`: the price was read on an unknown day between the two.
    """

    rate: Rate
    first_day: date
    last_day: date
    has_vague_dates: bool = False

    @classmethod
    def from_observation(
        cls, usd: Decimal, observed_on: str, source: str, note: str | None = None
    ) -> DatedRate:
        """Returns the rate of a price that was read on `observed_on`.

        `observed_on`: a day, month or year, or a span (`2021/2022`). Raises ValueError for any
        other form.
        """
        start, _, end = observed_on.partition("/")
        is_vague = bool(end) or "-" not in start
        rate = Rate(usd, observed_on, source, note)
        return cls(rate, _span(start)[0], _span(end or start)[1], is_vague)


class Quote(Struct, frozen=True):
    """A source's dated rates for one product.

    `absence_reason`: why there are no rates, if known. `is_absent`: the source was read completely,
    and does not have the product.
    """

    rates: tuple[DatedRate, ...] = ()
    absence_reason: str | None = None
    is_absent: bool = False


class SourcePrices(Protocol):
    """Prices read from a source. The methods make no network calls."""

    @property
    def name(self) -> str:
        """The source's name, as notes show it."""

    @property
    def version(self) -> str | None:
        """The source and its date, stored with the audit; None if nothing was read."""

    def quote(self, region: str, component: Component, product: str) -> Quote:
        """Returns the rates in USD per on-demand instance-hour or, for ML storage, per GB-month."""

    def usage_type(self, region: str, component: Component, product: str) -> str | None:
        """Returns the usage type as bills show it; None if unknown."""


class PriceSource(Protocol):
    """A source of prices: a table, a file or an API."""

    def read(self, region: str | None, component: Component) -> SourcePrices:
        """Returns the prices of a region and component. Never raises: quotes say what is absent."""


def rate_on(rates: Sequence[DatedRate], day: date | None) -> Rate | None:
    """Returns the rate in force on `day`, or the newest if `day` is None. None without rates.

    If the price of `day` is not certain, `note` and `price_age` of the rate say so.
    """
    if not rates:
        return None
    newest = max(rates, key=lambda rate: (rate.last_day, rate.first_day))
    if day is None:
        return newest.rate
    rates_in_force = [
        rate
        for rate in rates
        if rate.first_day <= day <= rate.last_day and not rate.has_vague_dates
    ]
    if rates_in_force:
        rate_of_day = max(rates_in_force, key=lambda rate: (rate.last_day, rate.first_day))
        return rate_of_day.rate._replace(price_age="today" if rate_of_day is newest else "past")
    earlier_rates = (
        rate
        for rate in rates
        if rate.last_day < day or (rate.has_vague_dates and rate.first_day <= day)
    )
    rate_before = max(earlier_rates, key=lambda rate: rate.last_day, default=None)
    later_rates = (rate for rate in rates if rate.first_day > day)
    rate_after = min(later_rates, key=lambda rate: rate.first_day, default=None)
    if rate_after is None:
        return newest.rate
    if rate_before is None:
        note = f"the earliest known price, of {rate_after.rate.as_of}, for {day}"
        return _doubtful(rate_after.rate, note, "before_known" if rate_after is newest else "past")
    usd, older_usd = rate_after.rate.usd, rate_before.rate.usd
    if abs(usd - older_usd) <= SAME_PRICE_TOLERANCE * usd:
        return rate_after.rate._replace(price_age="today" if rate_after is newest else "past")
    both_rates = " and ".join(
        f"{format_rate(known.rate.usd)} ({known.rate.as_of})" for known in (rate_before, rate_after)
    )
    note = f"ambiguous: {day} lies between two known prices, {both_rates}"
    era: Era = "ambiguous" if rate_after is newest else "past"
    return _doubtful(rate_after.rate, note, era)._replace(other_usd=older_usd)


def pricing_day(job: Job, now: datetime) -> date:
    """Returns the day (UTC) whose prices apply.

    It is the day of the job's start, else of its creation, else of `now`.
    """
    moment = job.started_at or job.created_at or now
    return moment.astimezone(UTC).date() if moment.tzinfo else moment.date()


def _doubtful(rate: Rate, reason: str, era: Era) -> Rate:
    return rate._replace(note=" · ".join(filter(None, (reason, rate.note))), price_age=era)


def _span(text: str) -> tuple[date, date]:
    match = _DATE_SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is neither a day, a month nor a year")
    year = int(match["year"])
    if match["month"] is None:
        return date(year, 1, 1), date(year, 12, 31)
    month = int(match["month"])
    if match["day"] is None:
        return date(year, month, 1), date(year, month, monthrange(year, month)[1])
    return date(year, month, int(match["day"])), date(year, month, int(match["day"]))


class RateBasis(StrEnum):
    """What a company's own rate counts.

    `net`: the on-demand price after discounts. Hours that a Savings Plan covers do not count.
    `amortised`: the average over all hours. Hours that a Savings Plan covers count at the plan's
    cost.
    """

    NET = "net"
    AMORTISED = "amortised"


class OwnRate(Struct, frozen=True):
    """A company's own rate: USD per instance-hour, or per GB-month of ML storage.

    `product`: the instance type, or the key of ML storage. `first` and `last`: the days (UTC) of
    the usage behind the rate. `quantity`: the hours or GB-months of this usage.
    """

    region: str
    component: Component
    product: str
    usd: Decimal
    first: date
    last: date
    quantity: Decimal
    source: str
    note: str | None = None

    @property
    def key(self) -> str:
        """A key that is equal for the rates of one region, component and product."""
        return _key(self.region, self.component, self.product)

    @property
    def days(self) -> str:
        """The days of the usage as one text: `2026-10-01/2026-10-31`."""
        return str(self.first) if self.first == self.last else f"{self.first}/{self.last}"


class OwnRates(Struct, frozen=True):
    """The company's own rates of one basis. `account`: None if the rates are for all accounts.

    `by_key`: the rates by `OwnRate.key`, in the order of their days.
    """

    basis: RateBasis
    account: str | None = None
    by_key: Mapping[str, tuple[OwnRate, ...]] = field(default_factory=dict)

    @property
    def rows(self) -> list[OwnRate]:
        """All rates, by product and day."""
        return [rate for key in sorted(self.by_key) for rate in self.by_key[key]]

    def rate_for_day(
        self, region: str, component: Component, product: str, day: date | None
    ) -> Rate | None:
        """Returns the own rate of a day, or the newest if `day` is None.

        Returns None if `day` is before the first rate, or if there are no rates.
        """
        rates = self.by_key.get(_key(region, component, product), ())
        dated = [self._dated_rate(rate) for rate in rates]
        if not dated or (day is not None and day < dated[0].first_day):
            return None
        rate = rate_on(dated, day)
        if rate is None:
            return None
        # Own rates are compared with prices of their own day, so none of them is "past".
        rate = rate._replace(
            learned_basis="net" if self.basis is RateBasis.NET else "amortised",
            price_age="ambiguous" if rate.other_usd else "today",
        )
        newest = dated[-1]
        if day is None or day <= newest.last_day:
            return rate
        note = f"the newest own rate, of {newest.rate.as_of}, for {day}"
        return rate._replace(note=" · ".join(filter(None, (note, rate.note))))

    def _dated_rate(self, rate: OwnRate) -> DatedRate:
        basis = "net of discounts" if self.basis is RateBasis.NET else "amortised"
        source = f"{OWN_RATE_SOURCE_PREFIX}{rate.source}, {basis}"
        learnt_rate = Rate(rate.usd, rate.days, source, rate.note, kind="own")
        return DatedRate(learnt_rate, rate.first, rate.last)


def group_own_rates(basis: RateBasis, account: str | None, rates: Iterable[OwnRate]) -> OwnRates:
    """Returns the rates grouped by product, in the order of their days."""
    by_key: dict[str, list[OwnRate]] = {}
    for rate in sorted(rates, key=lambda rate: (rate.key, rate.first)):
        by_key.setdefault(rate.key, []).append(rate)
    return OwnRates(basis, account, {key: tuple(group) for key, group in by_key.items()})


def merge_own_rates(old_rates: OwnRates, new_rates: OwnRates) -> OwnRates:
    """Returns the new rates, and the old rates whose product or days the new rates do not cover."""
    rates = [
        rate
        for rate in old_rates.rows
        if not any(
            rate.first <= row.last and row.first <= rate.last
            for row in new_rates.by_key.get(rate.key, ())
        )
    ]
    return group_own_rates(old_rates.basis, old_rates.account, [*rates, *new_rates.rows])


def _key(region: str, component: Component, product: str) -> str:
    return f"{region}/{component.value}/{product}"
