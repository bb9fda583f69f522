"""How much of the SageMaker bill was audited, on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import asdict
from rich.console import Console

from sageaudit.adapters.billing.cost_explorer import USD_PER_REQUEST
from sageaudit.cli.messages import print_message
from sageaudit.domain.reconcile.coverage import Coverage
from sageaudit.exits import Exit, exit_for
from sageaudit.output.terminal.layout import plain_table, print_line
from sageaudit.output.text.headline import coverage_headline
from sageaudit.output.text.money import format_usd
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.scan.coverage import BilledAccounts, CoverageResult

_SHOWN = 10
_NAME = 44
_WHOLE = 100
_NOTE = (
    "Bill: Cost Explorer's unblended cost of usage, before credits, Savings Plans and taxes;"
    " it may be 24 hours late. Audited: list prices of the jobs that ended in these days."
)


def cost_line(asked: BilledAccounts) -> str:
    """What reading the bill costs, before it is read."""
    requests = count_text(asked.min_requests, "Cost Explorer request")
    return (
        f"--coverage takes {requests} or more at ${USD_PER_REQUEST} each: about"
        f" {format_usd(asked.cost_usd)}"
    )


def report_refusal(coverage_result: CoverageResult) -> Exit:
    """Says why the bill is not known, if it was refused, and returns the code of that."""
    if coverage_result.refusal is None:
        return Exit.DONE
    print_message(f"the SageMaker bill is not known: {coverage_result.refusal}")
    return exit_for(coverage_result.refusal)


def document(found: CoverageResult) -> dict[str, Any] | None:
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
        "jobs": [asdict(row) for row in covered.covered_usage],
        "outside": [asdict(row) for row in covered.uncovered_usage],
        "accounts": [asdict(row) for row in covered.accounts],
        "requests": found.requests,
        "requests_usd": found.requests * USD_PER_REQUEST,
    }


def show(found: CoverageResult, console: Console) -> None:
    """Prints the headline, then what is audited and what is outside, by usage type."""
    covered = found.coverage
    if covered is None:
        return
    print_line(console, coverage_headline(covered), "bold")
    if covered.percent is not None and covered.percent > _WHOLE:
        print_line(
            console,
            "More than the bill: its last day is not complete, or the dollars of jobs that began"
            " before these days are in the bill of earlier days.",
        )
    if covered.covered_usage or covered.uncovered_usage:
        _show_usage(list(_rows(covered)), console)
    print_line(console, _NOTE, "dim")
    console.print()


def _show_usage(rows: Sequence[tuple[str, str, str]], console: Console) -> None:
    money = ("Bill", "Audited")
    table = plain_table("Usage", *money, right=money, unbroken=money)
    for name, *amounts in rows:
        table.add_row(cut_middle(for_terminal(name), _NAME), *amounts)
    console.print(table)


def _rows(covered: Coverage) -> Iterator[tuple[str, str, str]]:
    """The largest; --output json has all of them."""
    for row in covered.covered_usage[:_SHOWN]:
        yield row.usage_type, format_usd(row.bill_usd), format_usd(row.audited_usd)
    for outside in covered.uncovered_usage[:_SHOWN]:
        yield outside.name, format_usd(outside.usd), "not audited"
    if more := len(covered.covered_usage[_SHOWN:]) + len(covered.uncovered_usage[_SHOWN:]):
        yield f"+{more} more: --output json", "", ""
