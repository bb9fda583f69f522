"""Reads the contents of a report from a history."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain, islice
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.advice.advice import Decision, FamilyRecommendation, State, sort_by_amount
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.ranking import FamilyFix, rule_fix
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Scope, SumRow, Sums, add_sums, group_rows, sum_rows
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.describe import parse
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.sweep import Period
from sageaudit.domain.usage.measure import unpack
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.errors import BadHistory, JobNotFound, MalformedData
from sageaudit.output.html.contents import (
    MAX_DETAILED_JOBS,
    MAX_LISTED_JOBS,
    AccountReport,
    JobReport,
    PeriodBefore,
    SumsBy,
    TopChange,
    rank_key,
)
from sageaudit.output.html.job_table import tag_title
from sageaudit.ports import History
from sageaudit.queries.answer import recommendations_by_family
from sageaudit.queries.changes import (
    changed_families,
    find_changes,
    is_covered_before,
    window_before,
)
from sageaudit.queries.columns import GROUPABLE
from sageaudit.queries.lists import HistoryLists, audits_of_period, sort_key
from sageaudit.queries.names import covered_days_text
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, Window, make_window
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import read_audit, read_guides

ProgressWrapper = Callable[[Iterable[Any], str, str], Iterable[Any]]


def _without_progress(rows: Iterable[Any], word: str, doing: str) -> Iterable[Any]:
    del word, doing
    return rows


class ReportSource(Struct, frozen=True):
    """What a report is read from. `with_progress` shows a person how many rows have been read.

    `max_runs`: how many of a family's newest runs its recommendations rest on; None for all.
    """

    history: History
    types: Mapping[str, InstanceType]
    with_progress: ProgressWrapper = _without_progress
    max_runs: int | None = None


def make_account_report(
    source: ReportSource,
    period: Period,
    account: str | None,
    today: date,
    decisions: Sequence[Decision] = (),
) -> AccountReport:
    """Returns the report of one or all accounts. Raises JobNotFound if no job ended in it."""
    heads, left_out = read_report_summaries(source, period, account)
    if not heads:
        whose = f" of account {account}" if account else ""
        window = make_window(period.since, period.until + ONE_DAY)
        raise JobNotFound(
            f"the history has no audit{whose} of {period.since} to {period.until}:"
            f" {covered_days_text(source.history, window)}"
        )
    return assemble_account_report(source, period, account, heads, left_out, today, decisions)


def make_job_report(source: ReportSource, head: AuditSummary) -> JobReport:
    """The report of one run, with its guides. Raises JobNotFound if its audit cannot be read."""
    report = read_job_report(source, head)
    if report is None:
        raise JobNotFound(f"the stored audit of {head.job} cannot be read: audit it again")
    return replace(report, guides=read_guides(source.history, report.document, source.types))


def read_report_summaries(
    source: ReportSource, period: Period, account: str | None
) -> tuple[list[AuditSummary], int]:
    """Returns the newest audits of the jobs that ended in the period, in the order of a report.

    Returns at most as many as a page lists, and the number of the others. Reads them by account and
    month, which is one query instead of one for each day.
    """
    history = source.history
    sums = history.daily_sums(Scope.ACCOUNT, period.since, period.until)
    accounts: set[str | None] = {account} if account else {row.account for row in sums}
    lists = (audits_of_period(history, period, name) for name in accounts or {None})
    count = 0

    def heads() -> Iterator[AuditSummary]:
        nonlocal count
        for head in source.with_progress(chain.from_iterable(lists), "audit", "reading"):
            count += 1
            yield head

    first = heapq.nsmallest(MAX_LISTED_JOBS, heads(), key=rank_key)
    return first, count - len(first)


def assemble_account_report(
    source: ReportSource,
    period: Period,
    account: str | None,
    summaries: Sequence[AuditSummary],
    omitted_count: int,
    today: date,
    decisions: Sequence[Decision] = (),
) -> AccountReport:
    """Returns the report of a period; its sums are the history's daily sums.

    It ends today at the latest, unless the history has a later day, since clocks differ.
    """
    question = Question.with_filters(
        make_window(period.since, period.until + ONE_DAY), account=account
    )
    lists = HistoryLists(source.history, question.window)
    before = (
        lists.in_window(window_before(lists.window)) if is_covered_before(lists, question) else None
    )
    of_accounts = [*lists.daily_sums(Scope.ACCOUNT, account=account)]
    last = max((row.day for row in of_accounts), default=today)
    accounts = sorted({row.account for row in of_accounts})
    named = account or (accounts[0] if len(accounts) == 1 else None)
    until = min(period.until, max(today, last))
    recent = make_window(until + ONE_DAY - timedelta(LOOK_BACK_DAYS), until + ONE_DAY)
    advised = recommendations_by_family(
        lists.in_window(recent),
        Question.with_filters(recent, account=account),
        decisions,
        recent.until,
        most_runs=source.max_runs,
    )
    by = [*_sums_by(lists, before, account)]
    if not omitted_count:
        by += _sums_by_tag(source, summaries, before.window if before else None, account)
    days_before = None
    if before is not None:
        days_before = PeriodBefore(
            before.window.first_day,
            before.window.last_day,
            sum_rows(before.daily_sums(Scope.ACCOUNT, account=account)),
            changed_families(find_changes(lists, question, GROUPABLE["family"], today=today)),
        )
    advised_first = sort_by_amount((row for _, rows in advised for row in rows), recent.until)
    details = _Details(source, summaries)
    families = next(sums_by.sums for sums_by in by if sums_by.column == "Family")
    return AccountReport(
        scope=f"Account {named}" if named else f"{len(accounts)} accounts",
        since=period.since,
        until=until,
        total=sum_rows(of_accounts),
        days=group_rows(of_accounts, lambda row: row.day),
        by=by,
        summaries=summaries,
        recommendations=advised_first,
        top_changes=[*islice(_top_changes(details, families, advised_first), _MAX_TOP_CHANGES)],
        details=details.read_all(),
        period_before=days_before,
        left_out=omitted_count,
    )


def _sums_by(
    lists: HistoryLists, before: HistoryLists | None, account: str | None
) -> Iterator[SumsBy]:
    """The sums by each column that has several values, and by family, owner and type."""
    for column, scope, name in _COLUMNS:
        sums, sums_before = (
            group_rows(part.daily_sums(scope, account=account), name) if part else None
            for part in (lists, before)
        )
        if sums and (scope is not Scope.ACCOUNT or len(sums) > 1):
            yield SumsBy(column, sums, sums_before)


def _sums_by_tag(
    source: ReportSource, heads: Sequence[AuditSummary], before: Window | None, account: str | None
) -> Iterator[SumsBy]:
    """The sums by each cost tag, added up from the jobs, since a history has no daily sums of tags.
    The earlier sums are None unless all jobs of those days were read.
    """
    names = sorted({name for head in heads for name in head.tags})
    heads_before, left_out = list[AuditSummary](), 1
    if names and before:
        days = Period(before.first_day, before.last_day)
        heads_before, left_out = read_report_summaries(source, days, account)
    for name in names:
        yield SumsBy(
            tag_title(name),
            _sums_of_tag(heads, name),
            None if left_out else _sums_of_tag(heads_before, name),
        )


def _sums_of_tag(heads: Sequence[AuditSummary], name: str) -> dict[str | None, Sums]:
    parts: dict[str | None, list[Sums]] = defaultdict(list)
    for head in heads:
        parts[head.tags.get(name)].append(head.sums)
    return {value: add_sums(sums) for value, sums in parts.items()}


_COLUMNS: tuple[tuple[str, Scope, Callable[[SumRow], str | None]], ...] = (
    ("Family", Scope.FAMILY, lambda row: row.name),
    ("Owner", Scope.OWNER, lambda row: row.name),
    ("Instance type", Scope.TYPE, lambda row: row.name),
    ("Account", Scope.ACCOUNT, lambda row: row.account),
    ("Region", Scope.ACCOUNT, lambda row: row.region),
)
_MAX_TOP_CHANGES = 3


class _Details(Struct, frozen=True):
    """The jobs of a report in detail, each read once."""

    source: ReportSource
    heads: Sequence[AuditSummary]
    read: dict[int, JobReport | None] = field(default_factory=dict)

    def read_job(self, index: int) -> JobReport | None:
        """The job at this index; None if its audit cannot be read."""
        if index not in self.read:
            self.read[index] = read_job_report(self.source, self.heads[index])
        return self.read[index]

    def read_all(self) -> dict[int, JobReport]:
        """The first jobs of the report, and those that were read before."""
        first = range(min(MAX_DETAILED_JOBS, len(self.heads)))
        for at in self.source.with_progress(first, "job", "reading in detail"):
            self.read_job(at)
        return {at: job for at, job in sorted(self.read.items()) if job}


def _top_changes(
    details: _Details,
    families: Mapping[str | None, Sums],
    recommendations: Sequence[FamilyRecommendation],
) -> Iterator[TopChange]:
    """Each family's most expensive rule that is open and not fixed, the largest amount first.

    Without `recommendations`, as for old recordings, a rule need not be open.
    """
    runs: dict[str, list[int]] = defaultdict(list)
    for at, head in enumerate(details.heads):
        runs[head.family].append(at)
    open_values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for recommendation in recommendations:
        if recommendation.state is State.OPEN:
            open_values[recommendation.family, recommendation.rule].add(recommendation.new)
    ranked = sorted(
        (-usd.waste_usd, -usd.possible_usd, name, rule)
        for name, sums in families.items()
        for rule, usd in sums.rules.items()
        if name and (usd.waste_usd or usd.possible_usd)
    )
    reported: set[str] = set()
    for *_, name, rule in ranked:
        values = open_values.get((name, rule), set()) if recommendations else None
        if name not in reported and (change := _change(details, name, rule, runs[name], values)):
            reported.add(name)
            yield change


def _change(
    details: _Details, family: str, rule: str, runs: Sequence[int], values: Container[str] | None
) -> TopChange | None:
    """A rule's fix for a family, from the run with the rule's largest amount.

    Only runs whose recommendation is one of these `values` are used; all runs if it is None.
    """
    places = {details.heads[at].key: at for at in runs}
    newest = sorted((details.heads[at] for at in runs), key=sort_key, reverse=True)

    def audit_of(key: JobKey) -> AuditDocument | None:
        job = details.read_job(places[key])
        return job.document if job else None

    fix = rule_fix(
        rule, (head for head in newest if _has_recommendation(head, rule, values)), audit_of
    )
    if fix is None or _is_fixed(fix, newest):
        return None
    at = next(at for at in runs if details.heads[at].job == fix.job)
    return TopChange(family, fix, at)


def _is_fixed(fix: FamilyFix, newest: Iterable[AuditSummary]) -> bool:
    """Whether the newest judged runs that did not fail lack the finding, and all others have it.

    An intermittent finding is not fixed by a clean run, nor is a loss of failed runs.
    """
    if Bucket(fix.finding["bucket"]) is Bucket.LOST:
        return False
    judged = [
        head
        for head in newest
        if head.judged is Judged.YES and head.status != "Failed" and not head.rollup
    ]
    have = [fix.finding["rule"] in head.sums.rules for head in judged]
    clean = have.index(True) if True in have else len(have)
    return clean > 0 and judged[0].ended_at > fix.ended_at and all(have[clean:])


def _has_recommendation(head: AuditSummary, rule: str, values: Container[str] | None) -> bool:
    advised = head.recommendations or ()
    return values is None or any(item.rule == rule and item.new in values for item in advised)


def read_job_report(source: ReportSource, head: AuditSummary) -> JobReport | None:
    """A job's newest audit with its series; None if the audit cannot be read."""
    document = read_audit(source.history, head.key)
    if document is None:
        return None
    return JobReport(document, _usage(source, head))


def _usage(source: ReportSource, head: AuditSummary) -> Measurements | None:
    """The stored series; None after 90 days, or if they cannot be read."""
    try:
        detail = source.history.detail(head.key)
        if detail is None or not detail.series:
            return None
        job = parse(detail.describe, detail.tags, account=head.account, region=head.region)
        return unpack(detail.series, as_of(job, job.ended_at or head.ended_at), source.types)
    except (BadHistory, MalformedData):
        return None
