"""`sageaudit reconcile`: a month of the history against what AWS billed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from sageaudit.adapters.aws.clients import aws_errors, client
from sageaudit.adapters.billing import cost_report
from sageaudit.adapters.billing.cost_explorer import (
    FEWEST_REQUESTS,
    MOST_REQUESTS,
    REGION,
    USD_PER_REQUEST,
    CostExplorer,
)
from sageaudit.adapters.dynamo.history import DynamoHistory
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.cli import options
from sageaudit.cli.exits import Exit
from sageaudit.cli.sources.session import session_of_table
from sageaudit.cli.views import reconciliation
from sageaudit.domain.audit.record import Head
from sageaudit.domain.reconcile.audited_lines import Audited, AuditedLine, lines_of
from sageaudit.domain.reconcile.reconcile import reconcile as compared
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.ports import History

_MONTH = re.compile(r"(\d{4})-(\d{2})\Z")
_EPILOG = """\b
Examples:
  sageaudit reconcile --month 2026-10 --table sageaudit-history
  sageaudit reconcile --month 2026-10 --table sageaudit-history --cur report.csv.gz"""


@click.command(epilog=_EPILOG)
@click.option("--month", "month_text", required=True, help="The month to compare, YYYY-MM, in UTC.")
@click.option("--table", required=True, help="The DynamoDB table of the history.")
@click.option("--account", help="The account to compare, 12 digits; your own by default.")
@click.option(
    "--cur",
    "report",
    type=click.Path(path_type=Path),
    help="Compare job by job with this cost and usage report: CSV, CSV.gz or Parquet.",
)
@options.TABLE_REGION
@options.PROFILE
@click.option("--yes", is_flag=True, help="Pay for the Cost Explorer requests without asking.")
@options.OUTPUT
@options.NO_COLOR
def reconcile(
    month_text: str,
    table: str,
    account: str | None,
    report: Path | None,
    region: str | None,
    profile: str | None,
    yes: bool,
    output: str,
    no_color: bool,
) -> int:
    """Holds a month of the history against AWS's bill: quantities first, then dollars.

    Without --cur it asks Cost Explorer, whose requests cost money, by usage type. Reads only.
    """
    today = datetime.now(UTC).date()
    first_day = _month(month_text, today)
    if account is not None and not re.fullmatch(r"\d{12}", account):
        raise BadUsage(f"--account {account} is not an account: 12 digits")
    session = session_of_table(table, profile, region)
    if report is None:
        _agree_to_pay(yes=yes)
    account = account or _own_account(session)
    history = DynamoHistory(client(session, "dynamodb"), table)
    spend = None if report is None else cost_report.read(report, month_text, account)
    audited = month_of(history, account, first_day)
    if not audited.jobs and not audited.lines:
        raise JobNotFound(f"the history in {table} has no job of account {account} in {month_text}")
    asked = CostExplorer(client(session, "ce", REGION))
    if spend is None:
        spend = asked.month(account, first_day, today)
    found = reconciliation.Found(
        compared(spend, audited, by_job=report is not None),
        month=month_text,
        account=account,
        source="Cost Explorer" if report is None else report.name,
        requests=asked.requests,
        ongoing=first_day == today.replace(day=1),
    )
    if output == "json":
        click.echo(to_json(reconciliation.document(found)))
    else:
        reconciliation.render(found, Console(no_color=no_color or None))
    return int(Exit.DONE)


def month_of(history: History, account: str, first_day: date) -> Audited:
    """The month's lines: its own jobs', and the volumes of jobs that ended a month later."""
    month, after = f"{first_day:%Y-%m}", _next(first_day)
    lines: list[AuditedLine] = []
    jobs = rollups = unauditable = 0
    for head in history.by_account(account, month):
        rollups += head.rollup
        unauditable += not head.rollup and head.unauditable is not None
        if _has_bill(head):
            jobs += 1
            lines += _lines(history, head, month)
    for head in history.by_account(account, f"{after:%Y-%m}"):
        if _has_bill(head) and head.key.created_at.date() < after:
            lines += _lines(history, head, month)
    return Audited(
        tuple(line for line in lines if line.paid),
        jobs=jobs,
        rollups=rollups,
        unauditable=unauditable,
        unpaid_lines=sum(not line.paid for line in lines),
    )


def _has_bill(head: Head) -> bool:
    """A roll-up repeats its children; what could not be audited has nothing to compare."""
    return not head.rollup and head.unauditable is None


def _lines(history: History, head: Head, month: str) -> Iterator[AuditedLine]:
    document = history.audit(head.key, head.version)
    if document is not None:
        yield from lines_of(document, month)


def _month(text: str, today: date) -> date:
    match = _MONTH.match(text)
    try:
        first_day = date(int(match[1]), int(match[2]), 1) if match else None
    except ValueError:
        first_day = None
    if first_day is None:
        raise BadUsage(f"--month {text} is not a month: YYYY-MM, such as 2026-10")
    if first_day > today:
        raise BadUsage(f"--month {text} has not begun: it is {today:%Y-%m} (UTC)")
    return first_day


def _next(first_day: date) -> date:
    year, month = divmod(first_day.year * 12 + first_day.month, 12)
    return date(year, month + 1, 1)


def _agree_to_pay(*, yes: bool) -> None:
    """Says the price on stderr. Raises BadUsage where nobody can be asked, Abort on a no."""
    least, most = FEWEST_REQUESTS * USD_PER_REQUEST, MOST_REQUESTS * USD_PER_REQUEST
    price = (
        f"This takes {FEWEST_REQUESTS} or more Cost Explorer requests at ${USD_PER_REQUEST} each: "
        f"${least} or more, ${most} at most."
    )
    click.echo(price, err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadUsage("nobody is there to agree to that: give --yes, or a report with --cur")
    click.confirm("Go on?", abort=True, err=True)


def _own_account(session: Any) -> str:
    with aws_errors("sts"):
        return str(client(session, "sts").get_caller_identity()["Account"])
