"""Finds what to change first: equal changes of many families together, most dollars first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice

from msgspec import Struct

from sageaudit.domain.advice.advice import FamilyRecommendation, State
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.ranking import FamilyFix, rule_fix
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.html.contents import MAX_CARD_FAMILIES, FamilyChange, TopChange
from sageaudit.output.text.words import setting_text
from sageaudit.queries.lists import sort_key

_MAX_CARDS = 3


class _Families(Struct, frozen=True):
    """The families of a report.

    `sums`: by family. `indexes`: those of a family's runs in `summaries`. `open_values`: the
    recommended values that are open, by family and rule; None without recommendations, where each
    rule counts as open. `read_document`: returns the audit of a run by its index in `summaries`;
    None if it cannot be read.
    """

    sums: Mapping[str | None, Sums]
    summaries: Sequence[AuditSummary]
    indexes: Mapping[str, Sequence[int]]
    open_values: Mapping[tuple[str, str], Container[str]] | None
    read_document: Callable[[int], AuditDocument | None]

    def changes(
        self, order: Callable[[RuleSums], Decimal], *, is_counted: bool
    ) -> Iterator[FamilyChange]:
        """Yields each family's open rule with the most dollars of one kind, largest amount first.

        `order` returns these dollars. Rules without such dollars and fixed rules are left out.
        """
        ranked = sorted(
            (-order(rule_sums), name, rule)
            for name, sums in self.sums.items()
            for rule, rule_sums in sums.rules.items()
            if name and order(rule_sums) > 0
        )
        families_with_change: set[str] = set()
        for _, name, rule in ranked:
            if name in families_with_change or not (change := self._change(name, rule)):
                continue
            if Bucket(change.fix.finding["bucket"]).is_counted is is_counted:
                families_with_change.add(name)
                yield change

    def _change(self, family: str, rule: str) -> FamilyChange | None:
        """Returns the change that a rule recommends; None if the rule has no fix or is fixed."""
        indexes = self.indexes.get(family, ())
        index_by_key = {self.summaries[index].key: index for index in indexes}
        newest = sorted((self.summaries[index] for index in indexes), key=sort_key, reverse=True)
        open_values = None if self.open_values is None else self.open_values.get((family, rule), ())

        def read_document(key: JobKey) -> AuditDocument | None:
            return self.read_document(index_by_key[key])

        runs = (run for run in newest if _has_recommendation(run, rule, open_values))
        fix = rule_fix(rule, runs, read_document)
        if fix is None or _is_fixed(fix, newest):
            return None
        return FamilyChange(family, fix, index_by_key[fix.key])


def top_changes(
    read_document: Callable[[int], AuditDocument | None],
    summaries: Sequence[AuditSummary],
    families: Mapping[str | None, Sums],
    recommendations: Sequence[FamilyRecommendation],
    total: Sums,
) -> list[TopChange]:
    """Returns up to three changes, the one with the most dollars first.

    Changes with avoidable or lost dollars come first. One with possible dollars has a place if the
    total of these is more than what is counted, or if a place is left. The two kinds are never
    added.

    `read_document`: returns the audit of a run by its index in `summaries`. `families`: the sums by
    family. `total`: the sums of all jobs.
    """
    indexes: dict[str, list[int]] = defaultdict(list)
    for index, summary in enumerate(summaries):
        indexes[summary.family].append(index)
    open_values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for recommendation in _relevant_recommendations(recommendations):
        open_values[recommendation.family, recommendation.rule].add(recommendation.new)
    candidates = _Families(
        families, summaries, indexes, open_values if recommendations else None, read_document
    )
    counted = _grouped(candidates, lambda sums: sums.waste_usd, is_counted=True)
    has_more_possible = total.possible_usd > total.waste_usd
    if has_more_possible or len(counted) < _MAX_CARDS:
        possible = _grouped(candidates, lambda sums: sums.possible_usd, is_counted=False)
        kept = _MAX_CARDS - bool(possible and has_more_possible)
        return [*counted[:kept], *possible][:_MAX_CARDS]
    return counted[:_MAX_CARDS]


def _relevant_recommendations(
    recommendations: Sequence[FamilyRecommendation],
) -> Sequence[FamilyRecommendation]:
    """Returns the open recommendations or, if a past period has none, those not seen for long."""
    return [item for item in recommendations if item.state is State.OPEN] or [
        item for item in recommendations if item.state is State.CLOSED and not item.comparison
    ]


def _grouped(
    families: _Families, order: Callable[[RuleSums], Decimal], *, is_counted: bool
) -> list[TopChange]:
    """Returns the changes of at most MAX_CARD_FAMILIES families, equal ones together."""
    groups: dict[Hashable, list[FamilyChange]] = defaultdict(list)
    for change in islice(families.changes(order, is_counted=is_counted), MAX_CARD_FAMILIES):
        groups[_key(change, families.summaries[change.summary_index].kind)].append(change)

    def group_usd(changes: Sequence[FamilyChange]) -> Decimal:
        usd = (
            order(families.sums[change.family].rules[change.fix.finding["rule"]])
            for change in changes
        )
        return sum(usd, Decimal(0))

    ranked = sorted(groups.values(), key=group_usd, reverse=True)
    return [TopChange(tuple(changes)) for changes in ranked]


def _key(change: FamilyChange, kind: str) -> Hashable:
    """Returns a key that is equal for equal changes. Without a parameter, no two are equal."""
    finding = change.fix.finding
    if not finding["fix"]:
        return change.family
    parameters = tuple(
        (parameter["parameter"], setting_text(parameter["old"]), setting_text(parameter["new"]))
        for parameter in finding["fix"]
    )
    return kind, finding["bucket"], parameters


def _is_fixed(fix: FamilyFix, newest_runs: Iterable[AuditSummary]) -> bool:
    """Returns True if the newest judged runs lack the finding, and all older judged runs have it.

    Failed runs are left out. A clean run does not fix an intermittent finding or a loss of failed
    runs.
    """
    if Bucket(fix.finding["bucket"]) is Bucket.LOST:
        return False
    judged = [
        summary
        for summary in newest_runs
        if summary.judged is Judged.YES and summary.status != "Failed" and not summary.rollup
    ]
    has_finding_by_run = [fix.finding["rule"] in summary.sums.rules for summary in judged]
    clean_run_count = (
        has_finding_by_run.index(True) if True in has_finding_by_run else len(has_finding_by_run)
    )
    return (
        clean_run_count > 0
        and judged[0].ended_at > fix.ended_at
        and all(has_finding_by_run[clean_run_count:])
    )


def _has_recommendation(
    summary: AuditSummary, rule: str, open_values: Container[str] | None
) -> bool:
    recommendations = summary.recommendations or ()
    return open_values is None or any(
        item.rule == rule and item.new in open_values for item in recommendations
    )
