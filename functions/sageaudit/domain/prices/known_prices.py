"""The prices that sources know, and which of them was in force on a job's day.

AWS does not publish when a price changed; only the days on which a price was read are known. On a
day between two different prices the rate is ambiguous: the newer is used and both are shown.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Protocol

from msgspec import Struct

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.market import Era, Rate

SAME_WITHIN = Decimal("0.002")
"""AWS rounds one price differently in different products; the largest difference was 0.18%."""
_SEEN = re.compile(r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2}))?)?")


class KnownRate(Struct, frozen=True):
    """A rate, and the first and last day on which it was in force.

    `vague`: it was read at some time between those days; another price may hold on a given day.
    """

    rate: Rate
    first: date
    last: date
    vague: bool = False

    @classmethod
    def seen(cls, usd: Decimal, when: str, source: str, note: str | None = None) -> KnownRate:
        """A price read on a day, in a month or year, or in a span of them such as `2021/2022`.

        Raises ValueError for another form of `when`.
        """
        start, _, end = when.partition("/")
        vague = bool(end) or "-" not in start
        rate = Rate(usd, when, source, note)
        return cls(rate, _span(start)[0], _span(end or start)[1], vague)


class Quote(Struct, frozen=True):
    """A source's dated rates for one product. Without rates, `why` may give the reason.

    `absent`: the source was read as a whole, and the product is not in it.
    """

    rates: tuple[KnownRate, ...] = ()
    why: str | None = None
    absent: bool = False


class KnownPrices(Protocol):
    """Prices read from a source; these methods make no network calls."""

    @property
    def name(self) -> str:
        """The source's name, as notes print it."""

    @property
    def version(self) -> str | None:
        """Source and date, for the audit's record; None when nothing was read."""

    def quote(self, region: str, component: Component, what: str) -> Quote:
        """USD per instance-hour, on demand; per GB-month where `what` is the key of ML storage."""

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """The usage type as bills print it; None where it is not known."""


class PriceSource(Protocol):
    """Where prices come from: a table, a file, an API."""

    def read(self, region: str | None, component: Component) -> KnownPrices:
        """The prices of a region and component. Never raises: quotes say why a rate is absent."""


def rate_on(known: Sequence[KnownRate], day: date | None) -> Rate | None:
    """The rate in force on `day`; the newest rate without a day. None when no rate is known."""
    if not known:
        return None
    newest = max(known, key=lambda rate: (rate.last, rate.first))
    if day is None:
        return newest.rate
    in_force = [rate for rate in known if rate.first <= day <= rate.last and not rate.vague]
    if in_force:
        of_day = max(in_force, key=lambda rate: (rate.last, rate.first))
        return of_day.rate._replace(era="today" if of_day is newest else "past")
    earlier = (rate for rate in known if rate.last < day or (rate.vague and rate.first <= day))
    before = max(earlier, key=lambda rate: rate.last, default=None)
    later = (rate for rate in known if rate.first > day)
    after = min(later, key=lambda rate: rate.first, default=None)
    if after is None:
        return newest.rate
    if before is None:
        note = f"the earliest known price, of {after.rate.as_of}, for {day}"
        return _doubtful(after.rate, note, "before_known" if after is newest else "past")
    usd, older_usd = after.rate.usd, before.rate.usd
    if abs(usd - older_usd) <= SAME_WITHIN * usd:
        return after.rate._replace(era="today" if after is newest else "past")
    both = f"${older_usd} ({before.rate.as_of}) and ${usd} ({after.rate.as_of})"
    note = f"ambiguous: {day} lies between two known prices, {both}"
    era: Era = "ambiguous" if after is newest else "past"
    return _doubtful(after.rate, note, era)._replace(other_usd=older_usd)


def day_of(job: Job, now: datetime) -> date:
    """The day (UTC) whose prices apply to a job: its start, else its creation, else `now`."""
    moment = job.started_at or job.created_at or now
    return moment.astimezone(UTC).date() if moment.tzinfo else moment.date()


def _doubtful(rate: Rate, why: str, era: Era) -> Rate:
    return rate._replace(note=" · ".join(filter(None, (why, rate.note))), era=era)


def _span(text: str) -> tuple[date, date]:
    match = _SEEN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is neither a day, a month nor a year")
    year = int(match["year"])
    if match["month"] is None:
        return date(year, 1, 1), date(year, 12, 31)
    month = int(match["month"])
    if match["day"] is None:
        return date(year, month, 1), date(year, month, monthrange(year, month)[1])
    return date(year, month, int(match["day"])), date(year, month, int(match["day"]))
