"""A month of history compared with AWS's bill, on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sageaudit.domain.audit.finding_document import round_usd
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.money import format_usd
from sageaudit.domain.prices.price_list import spot_note
from sageaudit.domain.reconcile.lines import JOBS
from sageaudit.domain.reconcile.reconcile import (
    Presence,
    Reconciliation,
    UsageRow,
    UsageTotals,
    percent,
)
from sageaudit.output.terminal.layout import plain_table, signed_percent
from sageaudit.output.text.money import about_text
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.output.text.words import capitalised, count_text, format_number

_PERCENT_STEP = Decimal("0.01")
_ROLL_UPS = " or ".join(kind.spec.label for kind in JobKind if kind.spec.rollup)
MAX_ROWS = 20
"""The most rows of one table."""
_MAX_NAME_WIDTH = 40
_UNIT_ABBREVIATIONS = {"hours": "h", "GB-months": "GB-mo"}
_TITLES = {
    Presence.MATCHED: "Matched",
    Presence.ONLY_IN_AWS: "Only in AWS",
    Presence.ONLY_IN_HISTORY: "Only in the history",
    Presence.NOT_COMPARABLE: "Not comparable: the usage type is not known",
}


class ReconciledMonth(Struct, frozen=True):
    """A reconciliation, with its month, account and source."""

    result: Reconciliation
    month: str
    account: str
    source: str
    is_ongoing: bool


def document(reconciled: ReconciledMonth) -> dict[str, Any]:
    """Returns the document of --output json. Keys are always present and never removed."""
    result = reconciled.result
    return {
        "schema": 1,
        "month": reconciled.month,
        "account": reconciled.account,
        "source": reconciled.source,
        "totals": _totals(result),
        "jobs": {presence.value: count for presence, count in result.count_jobs().items()},
        "rows": [_row(row) for row in result.rows],
        "excluded": [
            {"kind": excluded.kind, "lines": excluded.line_count, "usd": round_usd(excluded.usd)}
            for excluded in result.spend.excluded
        ],
        "excluded_audits": {
            "rollups": result.audited.rollups,
            "unauditable_jobs": result.audited.unauditable_jobs,
            "running_jobs": result.audited.running_jobs,
            "prepaid_or_free_lines": result.audited.unpaid_lines,
            "unpriced_lines": result.unpriced_lines,
        },
        "estimated_lines": result.audited.estimated_lines,
        "managed_spot_usage_types": list(result.spend.managed_spot),
        "notes": list(note_sentences(reconciled)),
    }


def _totals(result: Reconciliation) -> dict[str, Decimal | None]:
    # AWS's parts add up to `aws_usd`, the history's parts to `history_usd`.
    total_usd, outside_usd = result.aws_usd(), result.aws_usd(jobs_only=False)
    missing_usd = result.aws_usd(Presence.ONLY_IN_AWS, jobs_only=True)
    return {
        "aws_usd": round_usd(total_usd),
        "matched_aws_usd": round_usd(result.aws_usd(Presence.MATCHED)),
        "matched_aws_percent": _round_percent(percent(result.aws_usd(Presence.MATCHED), total_usd)),
        "only_in_aws_usd": round_usd(result.aws_usd(Presence.ONLY_IN_AWS)),
        "history_usd": round_usd(result.history_usd()),
        "matched_history_usd": round_usd(result.history_usd(Presence.MATCHED)),
        "only_in_history_usd": round_usd(result.history_usd(Presence.ONLY_IN_HISTORY)),
        "not_comparable_usd": round_usd(result.history_usd(Presence.NOT_COMPARABLE)),
        "outside_audits_usd": round_usd(outside_usd),
        "outside_audits_percent": _round_percent(percent(outside_usd, total_usd)),
        "jobs_only_in_aws_usd": round_usd(missing_usd),
        "jobs_only_in_aws_percent": _round_percent(percent(missing_usd, total_usd)),
        "estimated_history_usd": round_usd(result.audited.estimated_usd),
    }


def _row(row: UsageRow) -> dict[str, Any]:
    return {
        "usage": row.usage,
        "region": row.region,
        "job": row.job,
        "area": row.area,
        "place": row.presence.value,
        "unit": row.aws.unit if row.aws.line_count else row.history.unit,
        "aws_quantity": round_usd(row.aws.quantity),
        "history_quantity": round_usd(row.history.quantity),
        "quantity_difference": round_usd(row.quantity_difference),
        "quantity_percent": _round_percent(row.quantity_percent),
        "aws_usd": round_usd(row.aws.usd),
        "history_usd": round_usd(row.history.usd),
        "usd_difference": round_usd(row.usd_difference),
        "usd_percent": _round_percent(row.usd_percent),
        "jobs": int(row.history.line_count > 0),
        "jobs_across_months": int(row.crosses_month),
        "history_estimated": row.is_estimated,
    }


def note_sentences(reconciled: ReconciledMonth) -> Iterator[str]:
    """Yields sentences on how lines are assigned to months and what is left out."""
    result, audited = reconciled.result, reconciled.result.audited
    yield (
        "compare quantities first: the free tier and private rates change AWS's dollars, and usage "
        "covered by a savings plan is shown at its on-demand price"
    )
    count = len({line.job for line in audited.lines if line.crosses_month})
    yield (
        "compute and warm pools count in the month of the job's end (UTC), volumes in each month "
        "in which they existed; AWS may assign them differently: "
        f"{count_text(count, 'job')} ran across the end of a month"
    )
    if not result.spend.lines:
        usage = f"no SageMaker usage of account {reconciled.account} in {reconciled.month}"
        yield f"{reconciled.source} has {usage}"
    if reconciled.is_ongoing:
        yield "AWS's figures for this month are not final and about a day old"
    for excluded in result.spend.excluded:
        amount = f"{count_text(excluded.line_count, 'line')}, {format_usd(excluded.usd)}"
        yield f"left out of AWS's side because it is not usage: {excluded.kind} ({amount})"
    for count, description in (
        (audited.rollups, f"{_ROLL_UPS}, whose jobs are counted themselves"),
        (audited.unauditable_jobs, "job that could not be audited"),
        (audited.running_jobs, "job that still ran when it was audited"),
        (audited.unpaid_lines, "line of prepaid or free capacity"),
    ):
        if count:
            yield f"left out of the history's side: {count} x {description}"
    if result.unnamed_usd:
        yield (
            f"{format_usd(result.unnamed_usd)} of AWS's usage of jobs names no job: it is compared"
            " with none, and counts as missing in the history"
        )
    if result.unpriced_lines:
        unknown = count_text(result.unpriced_lines, "line")
        yield f"{unknown} of the history without quantity or price: not in any sum"
    yield from _uncertainty_notes(result)


def _uncertainty_notes(result: Reconciliation) -> Iterator[str]:
    if count := result.audited.estimated_lines:
        lines_text, amount = count_text(count, "line"), format_usd(result.audited.estimated_usd)
        yield (
            f"{lines_text} of the history at an estimated rate, {amount} in all: "
            "compare the quantities, not the dollars"
        )
    yield from map(spot_note, result.spend.managed_spot)


def show(reconciled: ReconciledMonth, console: Console) -> None:
    """Prints the totals, the matched and the unmatched lines as tables, and the notes."""
    result = reconciled.result
    sources_text = f"history compared with {reconciled.source}"
    title = f"SageMaker in {reconciled.month}, account {reconciled.account}: {sources_text}"
    console.print(Text(for_terminal(title), "bold"))
    for line in _summary(result):
        console.print(Text(line))
    for presence, title in _TITLES.items():
        table = _table(result, presence)
        if table.row_count:
            console.print()
            console.print(Text(title, "bold"))
            console.print(Padding(table, (0, 0, 0, 2)))
    console.print()
    for note in note_sentences(reconciled):
        console.print(Text(capitalised(for_terminal(note)), "dim"))


def _summary(result: Reconciliation) -> Iterator[str]:
    total_usd = result.aws_usd()
    parts = (
        (result.aws_usd(Presence.MATCHED), "matched"),
        (result.aws_usd(Presence.ONLY_IN_AWS, jobs_only=True), "of jobs missing in the history"),
        (result.aws_usd(jobs_only=False), "not covered by audits"),
    )
    share_texts = [
        f"{format_usd(amount)} {text}{_share(amount, total_usd)}" for amount, text in parts
    ]
    yield f"AWS {format_usd(total_usd)}: {', '.join(share_texts)}"
    matched_text = format_usd(result.history_usd(Presence.MATCHED))
    history = about_text(
        format_usd(result.history_usd()), estimated=result.audited.estimated_lines > 0
    )
    yield (
        f"History {history}: {matched_text} matched, "
        f"{format_usd(result.history_usd(Presence.ONLY_IN_HISTORY))} only in the history, "
        f"{format_usd(result.history_usd(Presence.NOT_COMPARABLE))} not comparable"
    )
    jobs = result.count_jobs()
    total = sum(jobs.values())
    yield "Jobs: " + ", ".join(
        f"{count} {presence.value.replace('_', ' ').replace('aws', 'AWS')}"
        f"{_share(Decimal(count), Decimal(total))}"
        for presence, count in jobs.items()
    )


def _share(part: Decimal, total_usd: Decimal) -> str:
    share = percent(part, total_usd)
    return "" if share is None else f" ({share:.1f}%)"


def _table(result: Reconciliation, presence: Presence) -> Table:
    # Usage that no audit covers is only in the sums.
    rows = [
        row
        for row in result.rows_by_presence[presence]
        if row.area == JOBS or row.history.line_count
    ]
    amount_columns: tuple[str, ...] = ("Quantity", "USD")
    if presence is Presence.MATCHED:
        amount_columns = ("AWS", "History", "Diff") * 2
    table = plain_table(
        "Usage", "Job", *amount_columns, right=amount_columns, unbroken=amount_columns
    )
    for row in rows[:MAX_ROWS]:
        job_name = (row.job or "-").rpartition("/")[2]
        aws_cells: tuple[str, ...] = (_quantity_text(row.aws), format_usd(row.aws.usd))
        history_cells: tuple[str, ...] = (_quantity_text(row.history), _history_usd(row))
        cells = aws_cells if row.aws.line_count else history_cells
        if presence is Presence.MATCHED:
            quantities = (aws_cells[0], history_cells[0], signed_percent(row.quantity_percent))
            cells = (*quantities, aws_cells[1], history_cells[1], signed_percent(row.usd_percent))
        table.add_row(
            Text(for_terminal(row.usage)),
            Text(cut_middle(for_terminal(job_name), _MAX_NAME_WIDTH)),
            *cells,
        )
    unlisted_rows = result.spend.unlisted.rows if presence is Presence.ONLY_IN_AWS else 0
    if more_rows := max(len(rows) - MAX_ROWS, 0) + unlisted_rows:
        table.add_row(Text(f"+{more_rows} more: --output json shows all", "dim"))
    return table


def _history_usd(row: UsageRow) -> str:
    amount = row.history.usd
    return about_text(format_usd(amount), estimated=row.is_estimated and amount is not None)


def _quantity_text(side: UsageTotals) -> str:
    if side.quantity is None:
        return "unknown"
    unit = _UNIT_ABBREVIATIONS.get(side.unit, for_terminal(side.unit))
    return f"{format_number(side.quantity, places=4)} {unit}".strip()


def _round_percent(value: Decimal | None) -> Decimal | None:
    return None if value is None else value.quantize(_PERCENT_STEP)
