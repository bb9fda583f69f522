"""Reads the contents of a report from a history."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.advice.advice import Decision, sort_by_amount
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope, SumRow, Sums, add_sums, group_rows, sum_rows
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.describe import parse
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.sweep import Period
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.domain.usage.packing import unpack
from sageaudit.errors import JobNotFound, MalformedData
from sageaudit.output.html.contents import (
    MAX_DETAILED_JOBS,
    MAX_LISTED_JOBS,
    AccountReport,
    ColumnSums,
    JobReport,
    PreviousPeriod,
    RuleExplanation,
    family_sums,
    rank_key,
)
from sageaudit.output.html.job_table import tag_title
from sageaudit.ports import History
from sageaudit.queries.answer import RECOMMENDATION_FIELDS, read_family_recommendations
from sageaudit.queries.changes import (
    changed_families,
    find_changes,
    is_covered_before,
    window_before,
)
from sageaudit.queries.columns import GROUPABLE
from sageaudit.queries.lists import HistoryLists, audits_of_period
from sageaudit.queries.names import covered_days_text
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, Window, make_window
from sageaudit.rules import catalogue
from sageaudit.rules.page_sections import page_sections
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import read_audit, read_guides
from sageaudit.workflows.top_changes import top_changes

_PAGE_FIELDS = frozenset(
    {
        *("key", "job", "kind", "status", "account", "region", "family", "owner", "ended_at"),
        *("rollup", "total_usd", "avoidable_usd", "lost_usd", "sums", "costliest_rule", "judged"),
        *("never_started", "tags", "image", "duration_s", "waiting_s", "instance_s", "storage_usd"),
        *("warm_pool_usd", "spot_saved_usd", "purchase", "instance_type", "instance_count"),
        "recommendations",
    }
)
"""The fields of summaries that the page shows or reads."""
ProgressWrapper = Callable[[Iterable[Any], str, str], Iterable[Any]]


def _without_progress(rows: Iterable[Any], word: str, activity: str) -> Iterable[Any]:
    del word, activity
    return rows


class ReportSource(Struct, frozen=True):
    """Where a report's data comes from.

    `with_progress` wraps rows to show how many were read. `max_runs` limits the runs of a family
    from which recommendations are derived; None for all.
    """

    history: History
    types: Mapping[str, InstanceType]
    with_progress: ProgressWrapper = _without_progress
    max_runs: int | None = None


def make_account_report(
    source: ReportSource,
    period: Period,
    account: str | None,
    now: datetime,
    decisions: Sequence[Decision] = (),
) -> AccountReport:
    """Returns the report of one account, or of all accounts if `account` is None.

    Raises JobNotFound if no job ended in the period.
    """
    summaries, omitted_count = read_report_summaries(source, period, account)
    if not summaries:
        account_text = f" of account {account}" if account else ""
        window = make_window(period.since, period.until + ONE_DAY)
        raise JobNotFound(
            f"the history has no audit{account_text} of {period.since} to {period.until}:"
            f" {covered_days_text(source.history, window)}"
        )
    return assemble_account_report(
        source, period, account, summaries, omitted_count, now, decisions
    )


def make_job_report(source: ReportSource, summary: AuditSummary) -> JobReport:
    """Returns the report of one run, with its guides.

    Raises JobNotFound if the run's audit cannot be read.
    """
    report = read_job_report(source, summary)
    if report is None:
        raise JobNotFound(f"the stored audit of {summary.job} cannot be read: audit it again")
    guides = read_guides(source.history, report.document, source.types)
    return replace(report, guides=guides, rules=explain_rules())


def explain_rules() -> dict[str, RuleExplanation]:
    """Returns the explanation of each rule, by its name."""
    explanations = {}
    for rule in catalogue.load():
        sections = page_sections(rule.page)
        explanations[rule.info.name] = RuleExplanation(
            rule.title, sections["What it checks"], sections["When it is wrong"]
        )
    return explanations


def read_report_summaries(
    source: ReportSource, period: Period, account: str | None
) -> tuple[list[AuditSummary], int]:
    """Returns the most wasteful audits of jobs that ended in the period, and how many were left
    out.

    It returns at most as many audits as a page lists.
    """
    history = source.history
    sums = history.daily_sums(Scope.ACCOUNT, period.since, period.until)
    accounts: set[str | None] = {account} if account else {row.account for row in sums}
    lists = (
        audits_of_period(history, period, name, fields=_PAGE_FIELDS) for name in accounts or {None}
    )
    count = 0

    def counted_summaries() -> Iterator[AuditSummary]:
        nonlocal count
        for summary in source.with_progress(chain.from_iterable(lists), "audit", "reading"):
            count += 1
            yield summary

    listed = heapq.nsmallest(MAX_LISTED_JOBS, counted_summaries(), key=rank_key)
    return listed, count - len(listed)


def assemble_account_report(
    source: ReportSource,
    period: Period,
    account: str | None,
    summaries: Sequence[AuditSummary],
    omitted_count: int,
    now: datetime,
    decisions: Sequence[Decision] = (),
) -> AccountReport:
    """Returns the report of a period. Its sums are the history's daily sums.

    The report ends with the period, but not after today, or the history's newest day if that is
    later, since clocks differ.
    """
    question = Question.with_filters(
        make_window(period.since, period.until + ONE_DAY), account=account
    )
    lists = HistoryLists(source.history, question.window)
    earlier_lists = (
        lists.in_window(window_before(lists.window)) if is_covered_before(lists, question) else None
    )
    account_sums = [*lists.daily_sums(Scope.ACCOUNT, account=account)]
    today = now.astimezone(UTC).date()
    newest_day = max((row.day for row in account_sums), default=today)
    accounts = sorted({row.account for row in account_sums})
    only_account = account or (accounts[0] if len(accounts) == 1 else None)
    until = min(period.until, max(today, newest_day))
    recent_window = make_window(until + ONE_DAY - timedelta(LOOK_BACK_DAYS), until + ONE_DAY)
    recommendations_at = now if until == today else recent_window.until
    recommendations_by_family = read_family_recommendations(
        replace(lists.in_window(recent_window), fields=RECOMMENDATION_FIELDS),
        Question.with_filters(recent_window, account=account),
        decisions,
        recommendations_at,
        most_runs=source.max_runs,
    )
    sums_by_column = [*_sums_by(lists, earlier_lists, account)]
    if not omitted_count:
        sums_by_column += _sums_by_tag(
            source, summaries, earlier_lists.window if earlier_lists else None, account
        )
    period_before = None
    if earlier_lists is not None:
        period_before = PreviousPeriod(
            earlier_lists.window.first_day,
            earlier_lists.window.last_day,
            sum_rows(earlier_lists.daily_sums(Scope.ACCOUNT, account=account)),
            changed_families(find_changes(lists, question, GROUPABLE["family"], today=today)),
        )
    recommendations = sort_by_amount(
        (row for _, rows in recommendations_by_family for row in rows), recommendations_at
    )
    details = _Details(source, summaries)
    details.read_first()
    families = family_sums(sums_by_column).sums
    total = sum_rows(account_sums)
    changes = top_changes(details.read_document, summaries, families, recommendations, total)
    for change in changes:
        details.read_job(change.example.summary_index)  # each card has a link to it
    return AccountReport(
        scope=f"Account {only_account}" if only_account else f"{len(accounts)} accounts",
        since=period.since,
        until=until,
        total=total,
        days=group_rows(account_sums, lambda row: row.day),
        column_sums=sums_by_column,
        summaries=summaries,
        recommendations=recommendations,
        recommendations_at=recommendations_at,
        top_changes=changes,
        details=details.readable(),
        previous_period=period_before,
        omitted_jobs=omitted_count,
        unreadable_items=len(source.history.unreadable_items()),
        rules=explain_rules(),
    )


def _sums_by(
    lists: HistoryLists, earlier_lists: HistoryLists | None, account: str | None
) -> Iterator[ColumnSums]:
    # Sums by account and region are left out if there is only one.
    for column, scope, name in _COLUMNS:
        sums, earlier_sums = (
            group_rows(part.daily_sums(scope, account=account), name) if part else None
            for part in (lists, earlier_lists)
        )
        if sums and (scope is not Scope.ACCOUNT or len(sums) > 1):
            yield ColumnSums(column, sums, earlier_sums)


def _sums_by_tag(
    source: ReportSource,
    summaries: Sequence[AuditSummary],
    earlier_window: Window | None,
    account: str | None,
) -> Iterator[ColumnSums]:
    # Daily sums of tags lack the jobs without the tag, so the jobs are added up. Earlier sums
    # are None unless all jobs of the earlier days were read.
    names = sorted({name for summary in summaries for name in summary.tags})
    earlier_summaries, omitted_count = list[AuditSummary](), 1
    if names and earlier_window:
        days = Period(earlier_window.first_day, earlier_window.last_day)
        earlier_summaries, omitted_count = read_report_summaries(source, days, account)
    for name in names:
        yield ColumnSums(
            tag_title(name),
            _sums_of_tag(summaries, name),
            None if omitted_count else _sums_of_tag(earlier_summaries, name),
        )


def _sums_of_tag(summaries: Sequence[AuditSummary], name: str) -> dict[str | None, Sums]:
    parts: dict[str | None, list[Sums]] = defaultdict(list)
    for summary in summaries:
        parts[summary.tags.get(name)].append(summary.sums)
    return {value: add_sums(sums) for value, sums in parts.items()}


_COLUMNS: tuple[tuple[str, Scope, Callable[[SumRow], str | None]], ...] = (
    ("Family", Scope.FAMILY, lambda row: row.name),
    ("Owner", Scope.OWNER, lambda row: row.name),
    ("Instance type", Scope.TYPE, lambda row: row.name),
    ("Account", Scope.ACCOUNT, lambda row: row.account),
    ("Region", Scope.ACCOUNT, lambda row: row.region),
)


class _Details(Struct, frozen=True):
    """The jobs of a report in detail. A cached None is an audit that cannot be read."""

    source: ReportSource
    summaries: Sequence[AuditSummary]
    report_by_index: dict[int, JobReport | None] = field(default_factory=dict)

    def read_job(self, index: int) -> None:
        """Reads a job's report."""
        if index not in self.report_by_index:
            self.report_by_index[index] = read_job_report(self.source, self.summaries[index])

    def read_document(self, index: int) -> AuditDocument | None:
        """Returns the job's audit; None if it cannot be read."""
        if index not in self.report_by_index:
            return read_audit(self.source.history, self.summaries[index].key)
        job = self.report_by_index[index]
        return job.document if job else None

    def read_first(self) -> None:
        """Reads the first MAX_DETAILED_JOBS jobs."""
        indexes = range(min(MAX_DETAILED_JOBS, len(self.summaries)))
        for index in self.source.with_progress(indexes, "job", "reading in detail"):
            self.read_job(index)

    def readable(self) -> dict[int, JobReport]:
        """Returns the jobs that were read and could be, by index."""
        return {index: job for index, job in sorted(self.report_by_index.items()) if job}


def read_job_report(source: ReportSource, summary: AuditSummary) -> JobReport | None:
    """Returns a job's newest audit with its series; None if the audit cannot be read."""
    document = read_audit(source.history, summary.key)
    if document is None:
        return None
    return JobReport(document, _usage(source, summary))


def _usage(source: ReportSource, summary: AuditSummary) -> Measurements | None:
    """Returns the run's series; None if they have expired (after 90 days) or cannot be read."""
    try:
        detail = source.history.detail(summary.key)
        if detail is None or not detail.series:
            return None
        job = parse(detail.describe, detail.tags, account=summary.account, region=summary.region)
        return unpack(detail.series, as_of(job, job.ended_at or summary.ended_at), source.types)
    except MalformedData:
        return None
