"""`sageaudit reconcile`: compares a month of the history with what AWS billed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click

from sageaudit.adapters.aws.accounts import identity, open_session
from sageaudit.adapters.billing import cost_report
from sageaudit.adapters.history import opened as histories
from sageaudit.cli import options
from sageaudit.cli.messages import print_message
from sageaudit.cli.views import reconciliation
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import FINISHED
from sageaudit.domain.moments import parse_day
from sageaudit.domain.reconcile.lines import AuditedMonth, lines_from_audit
from sageaudit.domain.reconcile.reconcile import reconcile as compare
from sageaudit.domain.sweep import Period
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.ports import History
from sageaudit.queries.lists import audits_of_period
from sageaudit.workflows.audit.stored import read_audit

_EPILOG = """\b
Examples:
  sageaudit reconcile --month 2026-10 --cur report.csv.gz --table sageaudit-history
  sageaudit reconcile --month 2026-10 --cur report.csv.gz --account 111122223333"""


@click.command(epilog=_EPILOG)
@click.option("--month", "month_text", required=True, help="Month to compare, as YYYY-MM, in UTC.")
@options.HISTORY_OPTION
@options.TABLE_OPTION
@click.option("--account", help="Account to compare (12 digits); by default your own.")
@click.option(
    "--cur",
    "report",
    type=click.Path(path_type=Path),
    required=True,
    help="Cost and usage report to compare with: CSV (also in gzip or ZIP) or Parquet, or a folder"
    " with its files.",
)
@options.TABLE_REGION_OPTION
@options.PROFILE_OPTION
@options.PRINT_OPTIONS
def reconcile(
    month_text: str,
    history: Path | None,
    table: str | None,
    account: str | None,
    report: Path,
    region: str | None,
    profile: str | None,
    print_options: options.PrintOptions,
) -> None:
    """Compares a month of the history with AWS's bill, job by job.

    Quantities are compared first, then dollars. `scan --coverage` and `report --coverage` compare
    by usage type, without a cost report. It only reads.
    """
    today = datetime.now(UTC).date()
    first_day = _month(month_text, today)
    if account is not None:
        account = options.check_account_id(account, "--account")
    with histories.open_history(history, table, profile, region, warn=print_message) as source:
        if account is None:
            session = source.session or open_session(profile, region)
            account = identity(session, session.region_name).account
        audited = read_month(source.history, account, first_day)
        listed_jobs = None if print_options.is_json else {line.job for line in audited.lines}
        spend = cost_report.read_spend(
            report, month_text, account, listed_jobs, most_expensive=reconciliation.MAX_ROWS
        )
    if not audited.jobs and not audited.lines:
        raise JobNotFound(
            f"the history in {source.name} has no job of account {account} in {month_text}"
        )
    reconciled = reconciliation.ReconciledMonth(
        compare(spend, audited),
        month=month_text,
        account=account,
        source=report.name,
        is_ongoing=first_day == today.replace(day=1),
    )
    print_options.print_document(reconciled, reconciliation.show, reconciliation.document)


def read_month(history: History, account: str, first_day: date) -> AuditedMonth:
    """Returns the bill lines of an account's month.

    These are the lines of jobs that ended in the month. Of jobs that ended in the next month, they
    are the storage lines of this month.
    """
    month, next_month = f"{first_day:%Y-%m}", (first_day + timedelta(days=31)).replace(day=1)
    period = Period(first_day, (next_month + timedelta(days=31)).replace(day=1) - timedelta(days=1))
    summaries, later_summaries = [], []
    for summary in audits_of_period(history, period, account):
        if summary.ended_at.date() < next_month:
            summaries.append(summary)
        elif summary.key.created_at.date() < next_month:
            later_summaries.append(summary)
    documents = (
        read_audit(history, summary.key, summary.version)
        for summary in (*summaries, *later_summaries)
        if _has_bill(summary)
    )
    lines = [
        line for document in documents if document for line in lines_from_audit(document, month)
    ]
    audited = [summary for summary in summaries if not summary.rollup]
    unauditable = sum(summary.unauditable is not None for summary in audited)
    jobs = sum(_has_bill(summary) for summary in summaries)
    return AuditedMonth(
        tuple(line for line in lines if line.is_metered),
        jobs=jobs,
        rollups=len(summaries) - len(audited),
        unauditable_jobs=unauditable,
        running_jobs=len(audited) - unauditable - jobs,
        unpaid_lines=sum(not line.is_metered for line in lines),
    )


def _has_bill(summary: AuditSummary) -> bool:
    """Returns True if the audit has lines to compare with AWS's.

    A roll-up repeats its training jobs' lines. A running job's lines end at its audit, but AWS's do
    not.
    """
    return not summary.rollup and summary.unauditable is None and summary.status in FINISHED


def _month(text: str, today: date) -> date:
    try:
        first_day = parse_day(f"{text}-01")
    except ValueError:
        raise BadUsage(f"--month {text} is not a month: write YYYY-MM, such as 2026-10") from None
    if first_day > today:
        raise BadUsage(f"--month {text} has not begun: it is {today:%Y-%m} (UTC)")
    return first_day
