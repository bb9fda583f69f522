"""Whether an audit is told, and as what; pure. docs/messages.md has the rule as a table.

A family has one message a day, unless a later one is worse. A run that was told is told again only
to correct what was said of it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.alert.news import IdleHours, News, Said
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.usage.work_share import Unit

TIMES = 10
"""How many times as much as was told today is told the same day."""
CHANGED_USD = Decimal(1)
CHANGED_HOURS = Decimal(1)
CHANGED_SHARE = Decimal("0.1")
"""A figure that was told is corrected when it changed by $1 (or an hour) and by a tenth. Metrics
that come late move figures by a few percent, and nobody decides otherwise for that; a tenth is what
a reader may have acted on. Our choice."""
_UNKNOWN_FROM = Severity.MEDIUM
"""From this severity a finding whose dollars are not known is told. Our choice."""


class Why(enum.Enum):
    """Why a family has a further message on one day."""

    WORSE = "a worse severity"
    TEN_TIMES = "ten times as much"
    IDLE = "idle hours, which were not told yet"


@dataclass(frozen=True, slots=True)
class Floors:
    """From what on a message is sent: a family's USD over 30 days; a run's idle hours.

    Idle hours count by their list value, or where they have none, by their number.
    """

    usd: Decimal
    idle_usd: Decimal
    idle_hours: Mapping[Unit, Decimal]


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a message. `idle`: it is about idle hours. `after` is the most that was told today.

    `corrects` is what it corrects; then there is no `why`.
    """

    idle: bool = False
    nth: int = 1
    why: Why | None = None
    after: Said | None = None
    corrects: Said | None = None


@dataclass(frozen=True, slots=True)
class Silent:
    """Send none, for this reason."""

    reason: str


def decide(
    news: News,
    *,
    last: Said | None,
    today: Sequence[Said],
    accepted_usd: Decimal,
    floors: Floors,
    family_usd: Callable[[], Decimal],
) -> Tell | Silent:
    """What to do about the audit of a run that has not been told in this version.

    `last`: what was told of this run. `today`: what was told of its family this day.
    `accepted_usd`: dollars that a policy or tag accepts since. `family_usd`: the avoidable and lost
    dollars of the family over 30 days, with this run's; asked only where the answer needs it.
    """
    if last is not None:
        return _correction(news, last, accepted_usd, floors)
    today = [said for said in today if said.news.stands]
    idle = news.idle is not None and reaches_idle_floor(news.idle, floors)
    if not today:
        return _first(news, floors, family_usd, idle=idle)
    money = _worse_money(news, today, floors) if news.of_money else None
    if money is not None:
        return Tell(nth=len(today) + 1, why=money, after=most(today))
    told_idle = [said for said in today if said.news.idle]
    if news.idle is not None and idle:
        if not told_idle:
            return Tell(idle=True, nth=len(today) + 1, why=Why.IDLE, after=most(today))
        if all(_ten_times_idle(news.idle, said.news.idle, floors) for said in told_idle):
            after = max(told_idle, key=lambda said: said.news.idle.hours if said.news.idle else 0)
            return Tell(idle=True, nth=len(today) + 1, why=Why.TEN_TIMES, after=after)
    return Silent("the family already had a message today, and this is no worse")


def reaches_idle_floor(idle: IdleHours, floors: Floors) -> bool:
    """By the list value where there is one, else by hours."""
    if idle.usd is not None:
        return idle.usd >= floors.idle_usd
    return idle.hours >= floors.idle_hours[idle.unit]


def most(told: Sequence[Said]) -> Said:
    """The message with the most dollars at stake, the severest of these."""
    return max(told, key=lambda said: (said.news.at_stake_usd, said.news.severity.rank))


def _unknown(news: News) -> bool:
    """Dollars that are not known are not none: a severe finding is told without."""
    return news.usd is None and not news.perhaps_usd and news.severity.rank >= _UNKNOWN_FROM.rank


def _first(
    news: News, floors: Floors, family_usd: Callable[[], Decimal], *, idle: bool
) -> Tell | Silent:
    """The family's first message of the day."""
    reason = "no finding worth a message"
    if news.of_money:
        if _unknown(news):
            return Tell()
        sum_usd = family_usd()
        if sum_usd >= floors.usd:
            return Tell()
        sums = f"family's avoidable and lost cost over 30 days, ${sum_usd:,.2f},"
        reason = f"{sums} is under the floor of ${floors.usd:,.2f}"
    return Tell(idle=True) if idle else Silent(reason)


def _worse_money(news: News, today: Sequence[Said], floors: Floors) -> Why | None:
    """Each further message has to reach the floor by itself: its family did that already.

    A message about idle hours silences no severity above low. Dollars that were not told, or not
    known, count as the floor.
    """
    if news.at_stake_usd < floors.usd and not _unknown(news):
        return None
    lowest = Severity.LOW
    worst = max((max(said.news.severity, lowest, key=_rank) for said in today), key=_rank)
    if news.severity.rank > worst.rank:
        return Why.WORSE
    certain = max(said.news.usd or floors.usd for said in today)
    at_stake = max(said.news.at_stake_usd or floors.usd for said in today)
    more = (news.usd or Decimal(0)) >= TIMES * certain or news.at_stake_usd >= TIMES * at_stake
    return Why.TEN_TIMES if more else None


def _rank(severity: Severity) -> int:
    return severity.rank


def _ten_times_idle(idle: IdleHours, told: IdleHours | None, floors: Floors) -> bool:
    """By list value where both have one, else by hours; against the floor where units differ."""
    if told is None:
        return True
    if idle.usd is not None and told.usd is not None:
        return idle.usd >= TIMES * told.usd
    same = idle.unit == told.unit
    return idle.hours >= TIMES * (told.hours if same else floors.idle_hours[idle.unit])


def _correction(news: News, last: Said, accepted_usd: Decimal, floors: Floors) -> Tell | Silent:
    before = last.news
    first_dollars = news.of_money and not before.of_money
    too_few = first_dollars and news.at_stake_usd < floors.usd and not _unknown(news)
    if too_few or not matters(news, before):
        return Silent(f"version {last.version} was told, and what changed since does not matter")
    fell_usd = (before.usd or Decimal(0)) - (news.usd or Decimal(0))
    known = before.usd is not None and news.usd is not None
    if known and Decimal(0) < fell_usd <= accepted_usd + CHANGED_USD:
        return Silent("the figure that was told stands; a policy or tag accepts it now")
    return Tell(idle=not (before.of_money or news.of_money), corrects=last)


def matters(news: News, before: News) -> bool:
    """Whether a figure that was told changed enough to be corrected."""
    if not before.of_money and not news.of_money:
        return _idle_changed(news.idle, before.idle)
    if (news.usd is None) != (before.usd is None):
        return True
    if news.of_money and before.of_money and news.severity.rank > before.severity.rank:
        return True
    certain = _changed(news.usd or Decimal(0), before.usd or Decimal(0), CHANGED_USD)
    return certain or _changed(news.perhaps_usd, before.perhaps_usd, CHANGED_USD)


def _idle_changed(idle: IdleHours | None, before: IdleHours | None) -> bool:
    if idle is None or before is None or idle.unit != before.unit:
        return before is not None
    return _changed(idle.hours, before.hours, CHANGED_HOURS)


def _changed(now: Decimal, before: Decimal, least: Decimal) -> bool:
    return abs(now - before) >= max(least, CHANGED_SHARE * before)
