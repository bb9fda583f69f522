"""A row of sums: what is known of the jobs of a family, an owner, a week, ..."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.sums import Sums
from sageaudit.queries.columns import SUMMED
from sageaudit.queries.question import Sort

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The sums of the jobs with the same values of one or two columns, which come first.

    Counts are of jobs, without roll-ups. An amount is None where none of it is known. `judged_usd`:
    the spend on jobs that could be judged. `top_rule`: the rule with the most avoidable and lost
    dollars. The fields from `first_day` on are those of a day, a week or a month; an amount
    `before` is that of the period before, None where the history does not cover it.
    """

    family: str | None = None
    owner: str | None = None
    account: str | None = None
    region: str | None = None
    kind: str | None = None
    instance_type: str | None = None
    purchase: str | None = None
    status: str | None = None
    rule: str | None = None
    instance_count: int | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    period: str | None = None
    jobs: int
    failed: int
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
    first_day: date | None = None
    last_day: date | None = None
    days: int | None = None
    """Its days, while it lasts those so far."""
    over: bool | None = None
    """False while the period lasts: it is then compared with as many days of the one before."""
    projected_usd: Decimal | None = None
    """The spend of a period that lasts, if each day left costs what the days so far did."""
    total_before_usd: Decimal | None = None
    total_change_percent: Decimal | None = None
    waste_before_usd: Decimal | None = None
    waste_change_percent: Decimal | None = None

    @property
    def waste_percent(self) -> Decimal | None:
        """Which part of the spend is avoidable or lost."""
        return _share(self.waste_usd, self.total_usd)

    @property
    def failed_percent(self) -> Decimal | None:
        """Which part of the jobs failed."""
        return _share(Decimal(self.failed), Decimal(self.jobs))


def total_of(sums: Sums, **more: Any) -> Total:
    """The amounts of sums. Unknown: nothing is priced, or nothing could be judged."""
    avoidable_usd, lost_usd = sums.known_avoidable_usd, sums.known_lost_usd
    priced = sums.known_total_usd is not None
    unknown = not sums.waste_usd and (avoidable_usd is None or lost_usd is None)
    return Total(
        jobs=sums.jobs,
        failed=sums.failed,
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
        **more,
    )


_ADDED = (
    *("jobs", "failed", "total_usd", "judged_usd", "avoidable_usd", "lost_usd", "lost_up_to_usd"),
    *("waste_usd", "possible_usd", "idle_usd", "unauditable", "not_judged", "partly_judged"),
    *("unpriced", "incomplete", "estimated"),
)


def together(rows: Iterable[Total]) -> Total:
    """All rows as one; an amount is None where no row knows it. At least one row."""
    each = [*rows]
    known = {
        name: [value for row in each if (value := getattr(row, name)) is not None]
        for name in _ADDED
    }
    added: dict[str, Any] = {name: sum(of) if of else None for name, of in known.items()}
    return Total(**added, top_rule=None)


def _share(part: Decimal | None, whole: Decimal | None) -> Decimal | None:
    return None if part is None or not whole else 100 * part / whole


def percent(usd: Decimal | None, before_usd: Decimal | None) -> Decimal | None:
    """How much more it is than before; None where either is not known, or there was nothing."""
    return None if usd is None or not before_usd else 100 * (usd - before_usd) / before_usd


def ranked(totals: Iterable[Total], sort: Sort) -> list[Total]:
    """In the order of their periods, the largest waste first in each; else by the amount asked."""
    in_time = sort is Sort.NEWEST
    amount = (Sort.WASTE if in_time else sort).field

    def order(of: Total) -> tuple[object, ...]:
        day = (in_time and of.first_day) or date.min
        names = (*(column.of(of) for column in SUMMED.values()), *of.tags.values())
        first: Decimal = getattr(of, amount) or _ZERO
        return day, -first, -(of.total_usd or _ZERO), *(str(name or "") for name in names)

    return sorted(totals, key=order)
