"""Families, owners, rules and periods, from daily sums alone: no audit is read."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Self

from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums, grouped
from sageaudit.errors import BadUsage
from sageaudit.queries.lists import Lists
from sageaudit.queries.question import Sort

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class SumsFilter:
    """Which daily sums to add up; None leaves out none."""

    account: str | None = None
    region: str | None = None
    family: str | None = None
    owner: str | None = None

    @property
    def scope(self) -> Scope:
        """The sums in which the filter finds its rows."""
        if self.family is not None:
            return Scope.FAMILY
        return Scope.ACCOUNT if self.owner is None else Scope.OWNER

    def within(self, scope: Scope) -> Self:
        """The same filter for sums of one scope.

        Raises BadUsage for a family and an owner, or for one that is not the scope's: each sum is
        kept by family or by owner, so the other cannot be told from it.
        """
        other = self.family if scope is Scope.OWNER else self.owner
        if other is None or scope is Scope.ACCOUNT:
            return self
        raise BadUsage(
            "sums are kept by family and by owner, not by both: leave out one,"
            " or list the jobs with `sageaudit history`"
        )


ALL = SumsFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The sums of a family, an owner or a period. An amount is None where none of it is known.

    Counts are of jobs, without roll-ups. `judged_usd`: the spend on those that could be judged.
    `top_rule`: the rule with the most avoidable and lost dollars.
    """

    family: str | None = None
    account: str | None = None
    region: str | None = None
    owner: str | None = None
    period: str | None = None
    first_day: date | None = None
    last_day: date | None = None
    jobs: int
    total_usd: Decimal | None
    judged_usd: Decimal | None
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    lost_up_to_usd: Decimal | None
    waste_usd: Decimal | None
    possible_usd: Decimal | None
    idle_usd: Decimal | None
    top_rule: str | None
    unauditable: int
    not_judged: int
    partly_judged: int
    unpriced: int
    incomplete: int
    estimated: int
    waste_before_usd: Decimal | None = None
    """Of a period: the same days of the period before it, so far as it has come itself."""
    change_usd: Decimal | None = None
    change_percent: Decimal | None = None
    over: bool | None = None
    """Of a period: False while it lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTotal:
    """The standing findings of one rule, with their shares in USD."""

    rule: str
    findings: int
    avoidable_usd: Decimal
    lost_usd: Decimal
    waste_usd: Decimal
    possible_usd: Decimal
    estimated: bool
    """Whether any of the sums rests on an estimated rate."""


class TrendPeriod(enum.StrEnum):
    """What a trend is cut into: weeks from Monday, or months; by days in UTC."""

    WEEK = "week"
    MONTH = "month"

    def first_day(self, day: date) -> date:
        """The first day of the period that a day is in."""
        if self is TrendPeriod.WEEK:
            return day - timedelta(days=day.weekday())
        return day.replace(day=1)

    def before(self, first_day: date) -> date:
        """The first day of the period before."""
        return self.first_day(first_day - timedelta(days=1))

    def label(self, first_day: date) -> str:
        """`2026-W47` or `2026-11`."""
        if self is TrendPeriod.MONTH:
            return f"{first_day:%Y-%m}"
        year, week, _ = first_day.isocalendar()
        return f"{year}-W{week:02d}"


def families(lists: Lists, of: SumsFilter = ALL) -> list[Total]:
    """Each family of each account and region, the dearest by avoidable and lost dollars first.

    Raises BadUsage for a filter by owner.
    """
    rows = _rows(lists, of, Scope.FAMILY)
    groups = grouped(rows, lambda row: (row.name, row.account, row.region))
    return ranked(
        replace(total_of(sums), family=family, account=account, region=region)
        for (family, account, region), sums in groups.items()
    )


def owners(lists: Lists, of: SumsFilter = ALL) -> list[Total]:
    """Each owner over all accounts and regions; None: the jobs without an owner.

    Raises BadUsage for a filter by family.
    """
    rows = _rows(lists, of, Scope.OWNER)
    groups = grouped(rows, lambda row: row.name)
    return ranked(replace(total_of(sums), owner=owner) for owner, sums in groups.items())


def rules(lists: Lists, of: SumsFilter = ALL) -> list[RuleTotal]:
    """Each rule with findings, the dearest first."""
    rows = _rows(lists, of, of.scope)
    together = sum((row.sums for row in rows), Sums())
    return [
        RuleTotal(
            rule=name,
            findings=rule.findings,
            avoidable_usd=rule.avoidable_usd,
            lost_usd=rule.lost_usd,
            waste_usd=rule.waste_usd,
            possible_usd=rule.possible_usd,
            estimated=bool(together.estimated),
        )
        for name, rule in ranked_rules(together)
    ]


def trend(
    lists: Lists,
    period: TrendPeriod,
    of: SumsFilter = ALL,
    *,
    today: date,
    rule: str | None = None,
) -> list[Total]:
    """Each period from the window's first day to its last, also those without jobs, in order.

    The first period is whole. With `rule`, the amounts are that rule's, and `jobs` its findings.
    """
    first = period.first_day(lists.window.first_day)
    last = min(lists.window.last_day, today)
    begin = datetime.combine(period.before(first), time(), UTC)
    wide = replace(lists, window=replace(lists.window, since=begin))
    rows = _rows(wide, of, of.scope)
    days = grouped(rows, lambda row: row.day)
    if rule is not None:
        days = {day: _of_rule(sums, rule) for day, sums in days.items()}
    totals = []
    while first <= last:
        totals.append(_period(days, period, first, last))
        first = _next(period, first)
    return totals


def total_of(sums: Sums) -> Total:
    """The amounts of sums. Unknown: nothing is priced, or nothing could be judged."""
    avoidable_usd, lost_usd = sums.known_avoidable_usd, sums.known_lost_usd
    priced = sums.known_total_usd is not None
    unknown = not sums.waste_usd and (avoidable_usd is None or lost_usd is None)
    return Total(
        jobs=sums.jobs,
        total_usd=sums.known_total_usd,
        judged_usd=sums.judged_usd if priced else None,
        avoidable_usd=avoidable_usd,
        lost_usd=lost_usd,
        lost_up_to_usd=sums.lost_up_to_usd if sums.lost_up_to_usd or priced else None,
        waste_usd=None if unknown else sums.waste_usd,
        possible_usd=sums.possible_usd if sums.possible_usd or priced else None,
        idle_usd=sums.idle_usd if sums.idle_usd or not sums.idle_unpriced else None,
        top_rule=next((name for name, _ in ranked_rules(sums)), None),
        unauditable=sums.unauditable,
        not_judged=sums.not_judged,
        partly_judged=sums.partly_judged,
        unpriced=sums.unpriced,
        incomplete=sums.incomplete,
        estimated=sums.estimated,
    )


def ranked(totals: Iterable[Total], sort: Sort = Sort.WASTE) -> list[Total]:
    """The largest amount first, then the largest bill, then by name and place."""

    def order(of: Total) -> tuple[Decimal, Decimal, str, str, str]:
        name = of.family or of.owner or ""
        usd, total_usd = _usd(of, sort), of.total_usd or _ZERO
        return -usd, -total_usd, name, of.account or "", of.region or ""

    return sorted(totals, key=order)


def _usd(of: Total, sort: Sort) -> Decimal:
    usd: Decimal | None = getattr(of, f"{sort.value}_usd")
    return usd or _ZERO


def _rows(lists: Lists, of: SumsFilter, scope: Scope) -> Iterator[SumRow]:
    of = of.within(scope)
    name = of.owner if scope is Scope.OWNER else of.family
    return lists.sums(scope, account=of.account, region=of.region, name=name)


def _of_rule(sums: Sums, rule: str) -> Sums:
    of = sums.rules.get(rule, RuleSums())
    return Sums(
        jobs=of.findings,
        avoidable_usd=of.avoidable_usd,
        lost_usd=of.lost_usd,
        lost_up_to_usd=of.lost_usd,
        possible_usd=of.possible_usd,
        rules={rule: of},
    )


def _period(days: dict[date, Sums], period: TrendPeriod, first: date, last: date) -> Total:
    """One period with its change; while it lasts, against as many days of the one before."""
    end = _next(period, first) - timedelta(days=1)
    shown = min(end, last)
    before = period.before(first)
    same = first - timedelta(days=1)
    if shown < end:
        same = min(same, before + (shown - first))
    total = total_of(_between(days, first, shown))
    usd, usd_before = total.waste_usd, total_of(_between(days, before, same)).waste_usd
    change_usd = None if usd is None or usd_before is None else usd - usd_before
    return replace(
        total,
        period=period.label(first),
        first_day=first,
        last_day=end,
        waste_before_usd=usd_before,
        change_usd=change_usd,
        change_percent=_percent(change_usd, usd_before),
        over=shown == end,
    )


def _percent(change_usd: Decimal | None, before_usd: Decimal | None) -> Decimal | None:
    return 100 * change_usd / before_usd if before_usd and change_usd is not None else None


def _between(days: dict[date, Sums], first: date, last: date) -> Sums:
    return sum((sums for day, sums in days.items() if first <= day <= last), Sums())


def _next(period: TrendPeriod, first: date) -> date:
    return period.first_day(first + timedelta(days=32 if period is TrendPeriod.MONTH else 7))
