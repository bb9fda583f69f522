"""Reads from a history, or from a recording, what a report is made of."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from pathlib import Path

from sageaudit.adapters.files import recording
from sageaudit.adapters.prices import packaged
from sageaudit.cli.support.history.progress import with_progress
from sageaudit.cli.support.recordings.recorded_jobs import run_of
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import Scope, SumRow, grouped, total
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.listed import Period
from sageaudit.domain.job.phases import so_far
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.series_codec import unpack
from sageaudit.errors import BadHistory, Malformed
from sageaudit.output.html.contents import (
    DETAILED,
    LISTED,
    AccountReport,
    ChartLimit,
    JobReport,
    by_rank,
)
from sageaudit.ports import History
from sageaudit.queries.lists import heads_of_period
from sageaudit.rules import catalogue
from sageaudit.rules.card import Threshold
from sageaudit.workflows.audit.whole_audit import whole_audit

_UNITS = {
    "percent of all GPUs": Metric.GPU,
    "percent of one GPU": Metric.GPU,
    "percent of all vCPUs": Metric.CPU,
    "percent of GPU memory": Metric.GPU_MEMORY,
    "percent of memory": Metric.MEMORY,
}
"""Units of thresholds that are a line in the chart of a metric."""


def heads_of(history: History, period: Period, account: str | None) -> tuple[list[Head], int]:
    """The newest audits of the jobs that ended in the period, in the order of a report.

    Of more than a page lists, those that come first, and how many others there are. They are read
    by account and month, which is one query where the days of a month are hundreds.
    """
    sums = history.sums(Scope.ACCOUNT, period.since, period.until)
    accounts: set[str | None] = {account} if account else {row.account for row in sums}
    lists = (heads_of_period(history, period, one) for one in accounts or {None})
    count = 0

    def heads() -> Iterator[Head]:
        nonlocal count
        for head in with_progress(chain.from_iterable(lists), "audit", "reading"):
            count += 1
            yield head

    first = heapq.nsmallest(LISTED, heads(), key=by_rank)
    return first, count - len(first)


def account_report(
    history: History,
    period: Period,
    account: str | None,
    heads: Sequence[Head],
    left_out: int,
    today: date,
) -> AccountReport:
    """The report of a period; its sums are the history's daily sums.

    It ends today at the latest, unless the history has a later day: clocks differ.
    """

    def rows(scope: Scope) -> list[SumRow]:
        return list(history.sums(scope, period.since, period.until, account=account))

    of_accounts = rows(Scope.ACCOUNT)
    last = max((row.day for row in of_accounts), default=today)
    accounts = sorted({row.account for row in of_accounts})
    named = account or (accounts[0] if len(accounts) == 1 else None)
    return AccountReport(
        scope=f"Account {named}" if named else f"{len(accounts)} accounts",
        since=period.since,
        until=min(period.until, max(today, last)),
        total=total(of_accounts),
        days=grouped(of_accounts, lambda row: row.day),
        families=grouped(rows(Scope.FAMILY), _name),
        owners=grouped(rows(Scope.OWNER), _name),
        types=grouped(rows(Scope.TYPE), _name),
        heads=heads,
        details=[job_report(history, head) for head in heads[:DETAILED]],
        left_out=left_out,
    )


def _name(row: SumRow) -> str | None:
    return row.name


def job_report(history: History, head: Head) -> JobReport | None:
    """A job's newest audit with its series; None where the audit cannot be read."""
    document = whole_audit(history, head.key)
    if document is None:
        return None
    return JobReport(document, _usage(history, head), _limits(document))


def _usage(history: History, head: Head) -> Measurements | None:
    """The kept series; None after their 90 days, and where they cannot be read."""
    try:
        detail = history.detail(head.key)
        if detail is None or not detail.series:
            return None
        job = parse(detail.describe, detail.tags, account=head.account, region=head.region)
        return unpack(detail.series, so_far(job, job.ended_at or head.ended_at), packaged.types())
    except (BadHistory, Malformed):
        return None


def recorded_report(path: Path, document: AuditDocument) -> JobReport:
    """The report of the one job in a recording. Raises BadRecording."""
    recorded = recording.read(path)
    if not isinstance(recorded, recording.Recording):
        return JobReport(document, None)
    return JobReport(document, run_of(recorded).usage, _limits(document))


def _limits(document: AuditDocument) -> Mapping[Metric, Sequence[ChartLimit]]:
    """The default thresholds of the rules with a finding, by the metric that they are about."""
    found = {one["rule"] for one in document["findings"]}
    limits: dict[Metric, list[ChartLimit]] = {}
    for rule in catalogue.ruleset().rules:
        if rule.name.name in found:
            for threshold in rule.thresholds:
                metric = _UNITS.get(threshold.unit)
                if metric is not None and 0 < threshold.value < 100:  # noqa: PLR2004 - percents
                    limits.setdefault(metric, []).append(_limit(rule.name.name, threshold))
    return limits


def _limit(rule: str, threshold: Threshold) -> ChartLimit:
    words = threshold.key.replace("_", " ")
    return ChartLimit(rule, f"{rule} ({words})", threshold.value)
