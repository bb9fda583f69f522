"""Where the dollars of a period went: sums of all audits, ranked by what could have been saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, is_standing
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums, group_rows

NAMES_SHOWN = 10
"""Names of each scope in a ranking."""


class RankedName(Struct, frozen=True):
    """A family, owner or instance type. `name` is None for audits without one.

    `places`: each account and region that it has audits in.
    """

    name: str | None
    account_regions: tuple[tuple[str, str], ...]
    sums: Sums


class FamilyFix(Struct, frozen=True):
    """The finding to look at first in one run of a family, with its fix."""

    job: str
    ended_at: datetime
    finding: FindingDocument


class RankedFamily(Struct, frozen=True):
    """A family with the fix of its dearest run; None where no finding has one."""

    family: RankedName
    fix: FamilyFix | None


class RankedNames(Struct, frozen=True):
    """The first names of a scope in order, and how many there are in all."""

    shown: tuple[RankedName, ...]
    name_count: int


class Ranking(Struct, frozen=True):
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
    read_rows: Callable[[Scope], Iterable[SumRow]],
    since: date,
    until: date,
    find_fix: Callable[[RankedName], FamilyFix | None],
    shown: int = NAMES_SHOWN,
) -> Ranking:
    """Ranks the daily sums that `rows` reads for a scope; `fix_of` is asked for shown families."""
    families = _rank_names(read_rows(Scope.FAMILY))
    total = sum((family.sums for family in families), Sums())
    return Ranking(
        since=since,
        until=until,
        total=total,
        families=tuple(RankedFamily(family, find_fix(family)) for family in families[:shown]),
        family_count=len(families),
        owners=_names(read_rows(Scope.OWNER), shown),
        types=_names(read_rows(Scope.TYPE), shown),
        rules=tuple(ranked_rules(total)),
    )


def ranked_rules(sums: Sums) -> list[tuple[str, RuleSums]]:
    """The rules with findings, the most avoidable and lost dollars first."""

    def order(row: tuple[str, RuleSums]) -> tuple[Any, ...]:
        name, rule = row
        return -rule.waste_usd, -rule.possible_usd, -rule.findings, name

    return sorted(sums.rules.items(), key=order)


def family_fix(
    sums: Sums,
    summaries: Iterable[AuditSummary],
    read_audit: Callable[[JobKey], AuditDocument | None],
) -> FamilyFix | None:
    """The family's rule with the most dollars, and its finding in the run where it has the most.

    Avoidable and lost dollars come before possible ones. None where no finding can be read.
    """
    runs = [*summaries]
    fixes = (rule_fix(rule, runs, read_audit) for rule, _ in ranked_rules(sums))
    return next(filter(None, fixes), None)


def rule_fix(
    rule: str,
    summaries: Iterable[AuditSummary],
    read_audit: Callable[[JobKey], AuditDocument | None],
) -> FamilyFix | None:
    """The rule's finding in the run where it has the most dollars; None where it cannot be read.

    `heads` are runs of one family, newest first; of equal runs the newest is read.
    """
    having = [head for head in summaries if rule in head.sums.rules and not head.rollup]
    dearest = max(having, key=lambda head: _rule_amounts(head, rule), default=None)
    written = read_audit(dearest.key) if dearest else None
    for finding in written["findings"] if written else ():
        if dearest and finding["rule"] == rule and is_standing(finding):
            return FamilyFix(dearest.job, dearest.ended_at, finding)
    return None


def _rule_amounts(summary: AuditSummary, rule: str) -> tuple[Decimal, Decimal]:
    return summary.sums.rules[rule].waste_usd, summary.sums.rules[rule].possible_usd


def _names(rows: Iterable[SumRow], shown: int) -> RankedNames:
    names = _rank_names(rows)
    return RankedNames(tuple(names[:shown]), len(names))


def _rank_names(rows: Iterable[SumRow]) -> list[RankedName]:
    known = [*rows]
    places: dict[str | None, set[tuple[str, str]]] = defaultdict(set)
    for row in known:
        places[row.name].add((row.account, row.region))
    of_names = group_rows(known, lambda row: row.name).items()
    names = (RankedName(name, tuple(sorted(places[name])), sums) for name, sums in of_names)
    return sorted((name for name in names if name.sums != Sums()), key=_order)


def _order(ranked: RankedName) -> tuple[Any, ...]:
    """Avoidable and lost dollars first, then the cost; names make the order one."""
    sums = ranked.sums
    return -sums.waste_usd, -sums.total_usd, -sums.possible_usd, ranked.name or ""
