"""Where the dollars of a period went: sums of all audits, ranked by what could have been saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, stands
from sageaudit.domain.audit.record import Head, JobKey
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums, grouped

SHOWN = 10
"""Names of each scope in a ranking."""
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class RankedName:
    """A family, owner or instance type. `name` is None for audits without one.

    `account` and `region` are those of a family; None of owners and types, which span them.
    """

    name: str | None
    account: str | None
    region: str | None
    sums: Sums


@dataclass(frozen=True, slots=True)
class FamilyFix:
    """The finding to look at first in one run of a family, with its fix."""

    job: str
    ended_at: datetime
    finding: FindingDocument


@dataclass(frozen=True, slots=True)
class RankedFamily:
    """A family with the fix of its dearest run; None where no finding has one."""

    family: RankedName
    fix: FamilyFix | None


@dataclass(frozen=True, slots=True)
class RankedNames:
    """The first names of a scope in order, and how many there are in all."""

    shown: tuple[RankedName, ...]
    names: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The audits of jobs that ended from `since` to `until` (UTC, both included).

    The sums of families, owners, types and of the total are of the same audits: each adds up to
    `total`. Of rules, only those with a finding are ranked.
    """

    since: date
    until: date
    total: Sums
    families: tuple[RankedFamily, ...]
    family_count: int
    owners: RankedNames
    types: RankedNames
    rules: tuple[tuple[str, RuleSums], ...]


def ranking(
    rows: Callable[[Scope], Iterable[SumRow]],
    since: date,
    until: date,
    fix_of: Callable[[RankedName], FamilyFix | None],
    shown: int = SHOWN,
) -> Ranking:
    """Ranks the daily sums that `rows` reads for a scope; `fix_of` is asked for shown families."""
    families = _ranked(
        RankedName(name, account, region, sums)
        for (account, region, name), sums in grouped(
            rows(Scope.FAMILY), lambda row: (row.account, row.region, row.name)
        ).items()
    )
    total = sum((family.sums for family in families), Sums())
    return Ranking(
        since=since,
        until=until,
        total=total,
        families=tuple(RankedFamily(family, fix_of(family)) for family in families[:shown]),
        family_count=len(families),
        owners=_names(rows(Scope.OWNER), shown),
        types=_names(rows(Scope.TYPE), shown),
        rules=tuple(ranked_rules(total)),
    )


def ranked_rules(sums: Sums) -> list[tuple[str, RuleSums]]:
    """The rules with findings, the most avoidable and lost dollars first."""

    def order(row: tuple[str, RuleSums]) -> tuple[Any, ...]:
        name, rule = row
        return -rule.waste_usd, -rule.possible_usd, -rule.findings, name

    return sorted(sums.rules.items(), key=order)


def family_fix(
    sums: Sums, heads: Iterable[Head], audit_of: Callable[[JobKey], AuditDocument | None]
) -> FamilyFix | None:
    """The family's rule with the most dollars, and its finding in the run where it has the most.

    `heads` are runs of one family, newest first; of equal runs the newest is read. Avoidable and
    lost dollars come before possible ones. None where no such finding can be read.
    """
    runs = [head for head in heads if not head.rollup]
    for rule, _ in ranked_rules(sums):
        having = [head for head in runs if rule in head.sums.rules]
        dearest = max(having, key=lambda head: _worth(head, rule), default=None)
        written = audit_of(dearest.key) if dearest else None
        for finding in written["findings"] if written else ():
            if dearest and finding["rule"] == rule and stands(finding):
                return FamilyFix(dearest.name, dearest.ended_at, finding)
    return None


def _worth(head: Head, rule: str) -> tuple[Decimal, Decimal]:
    return head.sums.rules[rule].waste_usd, head.sums.rules[rule].possible_usd


def _names(rows: Iterable[SumRow], shown: int) -> RankedNames:
    of_name = grouped(rows, lambda row: row.name)
    names = _ranked(RankedName(name, None, None, sums) for name, sums in of_name.items())
    return RankedNames(tuple(names[:shown]), len(names))


def _ranked(names: Iterable[RankedName]) -> list[RankedName]:
    return sorted((name for name in names if name.sums != Sums()), key=_order)


def _order(ranked: RankedName) -> tuple[Any, ...]:
    """Avoidable and lost dollars first, then the cost; names make the order one."""
    sums = ranked.sums
    names = (ranked.name or "", ranked.account or "", ranked.region or "")
    return -sums.waste_usd, -sums.total_usd, -sums.possible_usd, names
