"""Which of the known prices was in force on a job's day.

AWS does not publish when a price changed; only the days on which a price was read are known. On a
day between two different prices the rate is ambiguous: the newer is used and both are shown.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Era, PriceKind, Rate

SAME_WITHIN = Decimal("0.002")
"""AWS rounds one price differently in different products; the largest difference was 0.18%."""
_SEEN = re.compile(r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2}))?)?")


@dataclass(frozen=True, slots=True)
class KnownRate:
    """A price, and the first and last day on which it was in force; `as_of` is their text.

    `vague`: it was read at some time between those days; another price may hold on a given day.
    `kind`, `estimated` and `unlisted` as in Rate.
    """

    usd: Decimal
    first: date
    last: date
    as_of: str
    source: str
    note: str | None = None
    vague: bool = False
    kind: PriceKind = "list"
    estimated: str | None = None
    unlisted: str | None = None

    @classmethod
    def seen(cls, usd: Decimal, when: str, source: str, note: str | None = None) -> KnownRate:
        """A price read on a day, in a month or year, or in a span of them such as `2021/2022`.

        Raises ValueError for another form of `when`.
        """
        start, _, end = when.partition("/")
        vague = bool(end) or "-" not in start
        return cls(usd, _span(start)[0], _span(end or start)[1], when, source, note, vague)


def rate_on(known: Sequence[KnownRate], day: date | None) -> Rate | None:
    """The rate in force on `day`; the newest rate without a day. None when no rate is known."""
    if not known:
        return None
    newest = max(known, key=lambda rate: (rate.last, rate.first))
    if day is None:
        return _rate(newest)
    in_force = [rate for rate in known if rate.first <= day <= rate.last and not rate.vague]
    if in_force:
        of_day = max(in_force, key=lambda rate: (rate.last, rate.first))
        return _rate(of_day, era="today" if of_day is newest else "past")
    earlier = (rate for rate in known if rate.last < day or (rate.vague and rate.first <= day))
    before = max(earlier, key=lambda rate: rate.last, default=None)
    later = (rate for rate in known if rate.first > day)
    after = min(later, key=lambda rate: rate.first, default=None)
    if after is None:
        return _rate(newest)
    if before is None:
        note = f"the earliest known price, of {after.as_of}, for {day}"
        return _rate(after, note, era="before_known" if after is newest else "past")
    if abs(after.usd - before.usd) <= SAME_WITHIN * after.usd:
        return _rate(after, era="today" if after is newest else "past")
    both = f"${before.usd} ({before.as_of}) and ${after.usd} ({after.as_of})"
    note = f"ambiguous: {day} lies between two known prices, {both}"
    return _rate(after, note, before.usd, era="ambiguous" if after is newest else "past")


def day_of(job: Job, now: datetime) -> date:
    """The day (UTC) whose prices apply to a job: its start, else its creation, else `now`."""
    moment = job.started_at or job.created_at or now
    return moment.astimezone(UTC).date() if moment.tzinfo else moment.date()


def _rate(
    known: KnownRate,
    note: str | None = None,
    other_usd: Decimal | None = None,
    era: Era = "today",
) -> Rate:
    notes = " · ".join(filter(None, (note, known.note))) or None
    return Rate(
        known.usd,
        known.as_of,
        known.source,
        notes,
        known.kind,
        other_usd,
        era,
        estimated=known.estimated,
        unlisted=known.unlisted,
    )


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
