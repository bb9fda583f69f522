"""The audited dollars beside the SageMaker bill, on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rich.console import Console

from sageaudit.adapters.billing.cost_explorer import USD_PER_REQUEST
from sageaudit.cli.support.scan.billed import BilledAccounts, Covered
from sageaudit.domain.reconcile.coverage import Coverage
from sageaudit.output.terminal.layout import line, plain_table
from sageaudit.output.text.money import Figure, usd
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import counted

_SHOWN = 10
_NAME = 44
_WHOLE = 100
_NOTE = (
    "Bill: Cost Explorer's unblended cost of usage, before credits, Savings Plans and taxes;"
    " it may be 24 hours late. Audited: list prices of the jobs that ended in these days."
)


def cost_line(asked: BilledAccounts) -> str:
    """What reading the bill costs, before it is read."""
    requests = counted(asked.least_requests, "Cost Explorer request")
    return f"--coverage takes {requests} or more at ${USD_PER_REQUEST} each: about {usd(asked.usd)}"


def document(found: Covered) -> dict[str, Any] | None:
    """The coverage as JSON; None where no bill was read."""
    covered = found.coverage
    if covered is None:
        return None
    return {
        "since": covered.since.isoformat(),
        "until": covered.until.isoformat(),
        "bill_usd": covered.bill_usd,
        "audited_usd": covered.audited_usd,
        "audited_percent": covered.percent,
        "jobs": [asdict(row) for row in covered.jobs],
        "outside": [asdict(row) for row in covered.outside],
        "accounts": [asdict(row) for row in covered.accounts],
        "requests": found.requests,
        "requests_usd": found.requests * USD_PER_REQUEST,
    }


def show(found: Covered, console: Console) -> None:
    """Prints the headline, then what is audited and what is outside, by usage type."""
    covered = found.coverage
    if covered is None:
        return
    line(console, headline(covered), "bold")
    if covered.percent is not None and covered.percent > _WHOLE:
        line(
            console,
            "More than the bill: its last day is not complete, or the dollars of jobs that began"
            " before these days are in the bill of earlier days.",
        )
    if covered.jobs or covered.outside:
        _show_table("Usage", list(_rows(covered)), console)
    if len(covered.accounts) > 1:
        console.print()
        ranked = sorted(covered.accounts, key=lambda one: (-(one.bill_usd or 0), one.account))
        rows = [
            (row.account, str(Figure(row.bill_usd, absent="not known")), usd(row.audited_usd))
            for row in ranked
        ]
        _show_table("Account", rows, console)
    line(console, _NOTE, "dim")
    console.print()


def _show_table(title: str, rows: Sequence[tuple[str, str, str]], console: Console) -> None:
    money = ("Bill", "Audited")
    table = plain_table(title, *money, right=money, unbroken=money)
    for name, *amounts in rows:
        table.add_row(middle(terminal(name), _NAME), *amounts)
    console.print(table)


def headline(covered: Coverage) -> str:
    """One sentence: how much of the bill was audited."""
    days = f"{covered.since}..{covered.until}"
    if covered.percent is None:
        return f"AWS shows no SageMaker bill of {days}; {usd(covered.audited_usd)} was audited"
    bill = f"{usd(covered.bill_usd)} SageMaker bill of {days}"
    return f"{usd(covered.audited_usd)} of the {bill} was audited ({_share(covered.percent)})"


def _share(percent: Decimal) -> str:
    if 0 < percent < 1:
        return "under 1%"
    if _WHOLE - 1 < percent < _WHOLE:
        return "over 99%"
    return f"{percent:.0f}%"


def _rows(covered: Coverage) -> Iterator[tuple[str, str, str]]:
    for row in covered.jobs[:_SHOWN]:
        yield row.usage, usd(row.bill_usd), usd(row.audited_usd)
    rest = covered.jobs[_SHOWN:]
    if rest:
        bill = sum((row.bill_usd for row in rest), Decimal(0))
        audited = sum((row.audited_usd for row in rest), Decimal(0))
        yield f"{counted(len(rest), 'usage type')} of jobs more", usd(bill), usd(audited)
    for outside in covered.outside[:_SHOWN]:
        yield outside.name, usd(outside.usd), "not audited"
    left = covered.outside[_SHOWN:]
    if left:
        amount = sum((row.usd for row in left), Decimal(0))
        yield f"{counted(len(left), 'usage type')} more", usd(amount), "not audited"
