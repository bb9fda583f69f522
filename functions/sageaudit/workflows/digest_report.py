"""Stores the report of the last 30 days, to which the digest has a link."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from sageaudit import __version__
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.sweep import Period
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.page import page
from sageaudit.output.text.digest import DigestReport
from sageaudit.output.text.links import Link
from sageaudit.ports import ReportStore
from sageaudit.workflows.report import ReportSource, assemble_account_report, read_report_summaries

REPORT_DAYS = 30


def store_report(
    source: ReportSource,
    store: ReportStore,
    last_day: date,
    decisions: Sequence[Decision],
    now: datetime,
) -> DigestReport:
    """Stores the report of the last 30 days, and returns the link to it. Raises AwsError."""
    period = Period(last_day - timedelta(days=REPORT_DAYS - 1), last_day)
    summaries, omitted_count = read_report_summaries(source, period, None)
    contents = assemble_account_report(
        source, period, None, summaries, omitted_count, now, decisions
    )
    text = page(
        account_title(contents), account_body(contents), generated_at=now, version=__version__
    )
    url = store.put(f"{last_day}.html", "".join(text))
    return DigestReport(Link(f"Report of {REPORT_DAYS} days", url))
