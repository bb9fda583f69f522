"""How much of the SageMaker bill was audited, on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import asdict
from rich.console import Console

from sageaudit.adapters.billing.cost_explorer import USD_PER_REQUEST
from sageaudit.cli.messages import print_message
from sageaudit.domain.money import format_usd
from sageaudit.domain.reconcile.coverage import Coverage
from sageaudit.exits import Exit, exit_for
from sageaudit.output.terminal.layout import plain_table, print_line
from sageaudit.output.text.headline import coverage_headline
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.scan.coverage import BilledAccounts, CoverageResult

_MAX_ROWS = 10
_MAX_NAME_WIDTH = 44
_ALL_PERCENT = 100
_NOTE = (
    "Bill: Cost Explorer's unblended cost of usage, before credits, Savings Plans and taxes; it may"
    " be 24 hours late. Audited: list prices of the jobs that ended in these days."
)


def cost_line(bill: BilledAccounts) -> str:
    """Returns the line with the cost of reading the AWS bill."""
    requests = count_text(bill.min_requests, "Cost Explorer request")
    return (
        f"--coverage takes {requests} or more at ${USD_PER_REQUEST} each: about"
        f" {format_usd(bill.cost_usd)}"
    )


def report_refusal(coverage_result: CoverageResult) -> Exit:
    """Prints why the AWS bill could not be read, if it could not. Returns the exit code."""
    if coverage_result.refusal is None:
        return Exit.DONE
    print_message(f"the SageMaker bill is not known: {coverage_result.refusal}")
    return exit_for(coverage_result.refusal)


def document(result: CoverageResult) -> dict[str, Any] | None:
    """Returns the coverage as JSON; None if no bill was read."""
    coverage = result.coverage
    if coverage is None:
        return None
    return {
        "since": coverage.since.isoformat(),
        "until": coverage.until.isoformat(),
        "bill_usd": coverage.bill_usd,
        "audited_usd": coverage.audited_usd,
        "audited_percent": coverage.percent,
        "jobs": [asdict(row) for row in coverage.covered_usage],
        "outside": [asdict(row) for row in coverage.uncovered_usage],
        "accounts": [asdict(row) for row in coverage.accounts],
        "requests": result.requests,
        "requests_usd": result.requests * USD_PER_REQUEST,
    }


def show(result: CoverageResult, console: Console) -> None:
    """Prints the headline, the audited usage, and the rest of the AWS bill by usage type."""
    coverage = result.coverage
    if coverage is None:
        return
    print_line(console, coverage_headline(coverage), "bold")
    if coverage.percent is not None and coverage.percent > _ALL_PERCENT:
        print_line(
            console,
            "More than the bill: its last day is not complete, or the dollars of jobs that began"
            " before these days are in the bill of earlier days.",
        )
    if coverage.covered_usage or coverage.uncovered_usage:
        _show_usage(list(_rows(coverage)), console)
    print_line(console, _NOTE, "dim")
    console.print()


def _show_usage(rows: Sequence[tuple[str, str, str]], console: Console) -> None:
    money = ("Bill", "Audited")
    table = plain_table("Usage", *money, right=money, unbroken=money)
    for name, *amounts in rows:
        table.add_row(cut_middle(for_terminal(name), _MAX_NAME_WIDTH), *amounts)
    console.print(table)


def _rows(coverage: Coverage) -> Iterator[tuple[str, str, str]]:
    # The bill's largest rows come first; --output json has all of them.
    for row in coverage.covered_usage[:_MAX_ROWS]:
        yield row.usage_type, format_usd(row.bill_usd), format_usd(row.audited_usd)
    for uncovered in coverage.uncovered_usage[:_MAX_ROWS]:
        yield uncovered.name, format_usd(uncovered.usd), "not audited"
    if more_count := len(coverage.covered_usage[_MAX_ROWS:]) + len(
        coverage.uncovered_usage[_MAX_ROWS:]
    ):
        yield f"+{more_count} more: --output json", "", ""
