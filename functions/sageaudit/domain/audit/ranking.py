"""Ranks the families, owners, types and rules of a period by their avoidable and lost dollars."""

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
"""The default number of names that a ranking shows for each scope."""


class RankedName(Struct, frozen=True):
    """A family, owner or instance type.

    `name`: None for audits without such a name. `account_regions`: each account and region in which
    the name has audits.
    """

    name: str | None
    account_regions: tuple[tuple[str, str], ...]
    sums: Sums


class FamilyFix(Struct, frozen=True):
    """The finding to check first in a family, with the run that has it."""

    key: JobKey
    job: str
    ended_at: datetime
    finding: FindingDocument


class RankedFamily(Struct, frozen=True):
    """A family with the finding to check first, which is None if no finding can be read."""

    family: RankedName
    fix: FamilyFix | None


class RankedNames(Struct, frozen=True):
    """The first names of a ranking, and the number of all names."""

    shown_names: tuple[RankedName, ...]
    name_count: int


class Ranking(Struct, frozen=True):
    """The ranked sums of audits of jobs that ended from `since` to `until` (UTC, both included).

    Only rules with a finding are ranked.
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
    shown_count: int = NAMES_SHOWN,
) -> Ranking:
    """Returns the names and rules of a period with their sums, the most wasteful first.

    `read_rows`: returns the daily sums of a scope from `since` to `until`, both included. The two
    days are only copied to the ranking. `find_fix`: returns a family's finding to check first;
    called for each shown family. `shown_count`: the number of names to show.
    """
    families = _rank_names(read_rows(Scope.FAMILY))
    total = sum((family.sums for family in families), Sums())
    return Ranking(
        since=since,
        until=until,
        total=total,
        families=tuple(RankedFamily(family, find_fix(family)) for family in families[:shown_count]),
        family_count=len(families),
        owners=_names(read_rows(Scope.OWNER), shown_count),
        types=_names(read_rows(Scope.TYPE), shown_count),
        rules=tuple(ranked_rules(total)),
    )


def ranked_rules(sums: Sums) -> list[tuple[str, RuleSums]]:
    """Returns the rules with findings, the most avoidable and lost dollars first."""

    def order(row: tuple[str, RuleSums]) -> tuple[Any, ...]:
        name, rule = row
        return -rule.waste_usd, -rule.possible_usd, -rule.findings, name

    return sorted(sums.rules.items(), key=order)


def family_fix(
    sums: Sums,
    summaries: Iterable[AuditSummary],
    read_audit: Callable[[JobKey], AuditDocument | None],
) -> FamilyFix | None:
    """Returns the family's finding to check first; None if no finding can be read.

    The rule with the most avoidable and lost dollars comes first. If its finding cannot be read,
    the next rule's finding counts.
    """
    runs = [*summaries]
    fixes = (rule_fix(rule, runs, read_audit) for rule, _ in ranked_rules(sums))
    return next(filter(None, fixes), None)


def rule_fix(
    rule: str,
    summaries: Iterable[AuditSummary],
    read_audit: Callable[[JobKey], AuditDocument | None],
) -> FamilyFix | None:
    """Returns the rule's finding in the run with the most dollars; None if it cannot be read.

    `summaries`: runs of one family, newest first.
    """
    runs = [run for run in summaries if rule in run.sums.rules and not run.rollup]
    largest = max(runs, key=lambda run: _rule_amounts(run, rule), default=None)
    document = read_audit(largest.key) if largest else None
    for finding in document["findings"] if document else ():
        if largest and finding["rule"] == rule and is_standing(finding):
            return FamilyFix(largest.key, largest.job, largest.ended_at, finding)
    return None


def _rule_amounts(summary: AuditSummary, rule: str) -> tuple[Decimal, Decimal]:
    return summary.sums.rules[rule].waste_usd, summary.sums.rules[rule].possible_usd


def _names(rows: Iterable[SumRow], shown_count: int) -> RankedNames:
    names = _rank_names(rows)
    return RankedNames(tuple(names[:shown_count]), len(names))


def _rank_names(rows: Iterable[SumRow]) -> list[RankedName]:
    all_rows = [*rows]
    places: dict[str | None, set[tuple[str, str]]] = defaultdict(set)
    for row in all_rows:
        places[row.name].add((row.account, row.region))
    sums_by_name = group_rows(all_rows, lambda row: row.name).items()
    names = (RankedName(name, tuple(sorted(places[name])), sums) for name, sums in sums_by_name)
    return sorted((name for name in names if name.sums != Sums()), key=_order)


def _order(ranked_name: RankedName) -> tuple[Any, ...]:
    sums = ranked_name.sums
    return -sums.waste_usd, -sums.total_usd, -sums.possible_usd, ranked_name.name or ""
