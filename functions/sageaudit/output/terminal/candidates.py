"""Prints `what-if`: the current bill, the run's needs, and which types fit or do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.domain.job.job import duration_text
from sageaudit.domain.resize.candidate import Constraint
from sageaudit.output.terminal.layout import FittedColumn, fit_table, print_heading, print_line
from sageaudit.output.text.amounts import Uncertainty, spend_figure
from sageaudit.output.text.money import Figure, format_signed_usd, percent_text
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import capitalised, count_text, format_number, group_by_reason

_MAX_CANDIDATES = 15
_MAX_UNPRICED = 6
_HOUR_S = Decimal(3600)
_COLUMNS_NOTE = "Takes, Costs and Saves assume the longest run time, which is counted."
_NEED_LABELS = {
    "vcpu": "vCPU",
    "memory_gib": "GiB of memory",
    "gpus": "GPU",
    "gpu_memory_gib": "GiB of GPU memory",
}

_ESTIMATE_NOTE = (
    "about: at an estimated rate, EC2's rate times the factor of the instance family. A saving on "
    "such a type is only possible, because SageMaker may not offer it in this region."
)
_RATE_NOTE = (
    "Some types have no known rate for the job's day, or no rate of your own: price_note in "
    "--output json says how each is priced."
)

CandidateRow = Mapping[str, Any]


def show(document: Mapping[str, Any], console: Console) -> None:
    """Prints the cheapest types that fit the run, and why the other types do not fit."""
    _print_header(document, console)
    if document["impossible"]:
        print_line(console, capitalised(f"{document['impossible']}."), "bold yellow")
        return
    rows = document["candidates"]
    fitting = [row for row in rows if row["fits"]]
    unpriced = [str(row["type"]) for row in rows if row["feasible_unpriced"]]
    refused = [row for row in rows if not row["fits"] and not row["feasible_unpriced"]]
    cheapest = fitting[:_MAX_CANDIDATES]
    console.print()
    if cheapest:
        reasons = list(dict.fromkeys(str(row["assumption"]) for row in cheapest))
        console.print(_candidates_table(cheapest, document["current"], reasons, console))
        if len(fitting) > len(cheapest):
            others = len(fitting) - len(cheapest)
            print_line(console, f"+{others} more expensive types that fit: --output json", "dim")
        console.print()
        for position, reason in enumerate(reasons, start=1):
            print_line(console, f"{position}  {reason}", "dim")
        if any(row["estimated"] for row in cheapest):
            print_line(console, _ESTIMATE_NOTE, "dim")
        if any(row["price_note"] and not row["estimated"] for row in cheapest):
            print_line(console, _RATE_NOTE, "dim")
        print_line(console, _COLUMNS_NOTE, "dim")
    else:
        print_line(console, _nothing_fits_text(refused, unpriced), "bold")
    if unpriced:
        omitted = len(unpriced) - _MAX_UNPRICED
        more_text = f" +{omitted}" if omitted > 0 else ""
        names_text = ", ".join(unpriced[:_MAX_UNPRICED])
        print_line(console, f"Fits, but has no known price: {names_text}{more_text}", "yellow")
    if refused:
        print_heading(console, f"Does not fit: {count_text(len(refused), 'type')}")
        console.print(Padding(_refusals_table(refused), (0, 0, 0, 2)))


def _nothing_fits_text(refused_rows: list[CandidateRow], unpriced_types: list[str]) -> str:
    if any(row["constraint"] == Constraint.NOT_RECORDED.value for row in refused_rows):
        return "Cannot tell whether another type fits: not all of its use was recorded."
    if unpriced_types:
        return "No other type with a known price fits this run."
    return "No other type fits this run."


def _print_header(document: Mapping[str, Any], console: Console) -> None:
    job, current = document["job"], document["current"]
    console.print(
        Text.assemble((for_terminal(job["name"]), "bold"), f"  {job['kind']} job, {job['region']}")
    )
    billed_s = None if current["hours"] is None else current["hours"] * _HOUR_S
    instances = current["instances"] or "no instances"
    gaps = [missing for missing in current["missing"] if missing not in current["estimated"]]
    doubts = Uncertainty(
        is_lower_bound=bool({*gaps} - {UPPER_BOUND}),
        is_upper_bound=current["basis"] == "upper_bound",
        estimated=bool(current["estimated"]),
    )
    cost = spend_figure(current["usd"], doubts)
    print_line(console, f"It ran on {instances}: {duration_text(billed_s)} billed, {cost}")
    for note in (*current["estimated"], *(f"Bill incomplete: {gap}" for gap in gaps)):
        print_line(console, note, "yellow")
    needs = document["needs"]
    if needs:
        print_line(console, f"Needs: {_needs_text(needs, document['headroom_percent'])}")
        unknown = (
            (_NEED_LABELS[key].removeprefix("GiB of "), reason)
            for key, reason in needs["unknown"].items()
        )
        for reason, names in group_by_reason(unknown).items():
            print_line(console, f"Not recorded: {', '.join(names)} ({reason})", "yellow")
    for note in document["notes"]:
        print_line(console, note, "yellow")


def _needs_text(needs: Mapping[str, Any], headroom_percent: Decimal) -> str:
    peaks = [_need_text(needs, key) for key in ("vcpu", "memory_gib") if needs[key]]
    texts = []
    if peaks:
        texts.append(f"{', '.join(peaks)} (P99.5 plus {format_number(headroom_percent)}%)")
    if needs["gpu_memory_gib"]:
        texts.append(f"{_need_text(needs, 'gpu_memory_gib')} (P99.5)")
    if needs["gpus"]:
        texts.append(f"{_need_text(needs, 'gpus')} at work on average while it was active")
    busy_percent = needs["gpu_busy_percent"]
    if busy_percent is not None:
        texts.append(f"GPU busy for {format_number(busy_percent, places=0)}% of its active time")
    return "; ".join(texts) or "nothing is known"


def _need_text(needs: Mapping[str, Any], key: str) -> str:
    return f"{format_number(needs[key], places=1)} {_NEED_LABELS[key]}"


_AMOUNT_TITLES = ("Takes", "Costs", "Difference", "At best")
_COLUMNS = tuple(
    FittedColumn(title, title, title not in {"Type", "GPU"}, 0)
    for title in ("Type", "vCPU", "GiB", "GPU", *_AMOUNT_TITLES, "Why")
)
_DROP_ORDER = ("GPU", "GiB", "vCPU", "At best", "Takes")
"""A narrow terminal omits these columns, the first one first."""


def _candidates_table(
    rows: Iterable[CandidateRow], current: Mapping[str, Any], reasons: list[str], console: Console
) -> Table:
    row_cells = [
        (
            for_terminal(row["type"]),
            str(row["vcpu"]),
            format_number(row["memory_gib"]),
            f"{row['gpus']} x {row['gpu']}" if row["gpus"] else "-",
            _run_time_factor_text(row),
            str(Figure(row["usd"], estimated=row["estimated"])),
            _saving_text(row, current),
            _best_saving_text(row, current),
            str(reasons.index(str(row["assumption"])) + 1),
        )
        for row in rows
    ]
    return fit_table(_COLUMNS, row_cells, _DROP_ORDER, console.width)


def _run_time_factor_text(row: CandidateRow) -> str:
    times = row["times_as_long"]
    return "the same" if times == 1 else f"{times:.2f} x"


def _saving_text(row: CandidateRow, current: Mapping[str, Any]) -> Text:
    saving = row["saving_usd"]
    text = _difference_text(saving, row, current)
    if saving is None or saving <= 0:
        return Text(text, "dim")
    share_text = f" ({percent_text(saving, current['usd'])})" if current["usd"] else ""
    return Text(f"{text}{share_text}", "" if row["estimated"] else "green")


def _best_saving_text(row: CandidateRow, current: Mapping[str, Any]) -> Text:
    range_usd = row["saving_range_usd"]
    return Text(_difference_text(range_usd[1], row, current) if range_usd else "-", "dim")


def _difference_text(
    saving_usd: Decimal | None, row: CandidateRow, current: Mapping[str, Any]
) -> str:
    if saving_usd is None:
        return str(Figure(None))
    is_estimate = row["estimated"] or current["estimated"]
    qualifier = SpendQualifier.ABOUT if is_estimate else SpendQualifier.EXACT
    return format_signed_usd(-saving_usd, qualifier)


def _refusals_table(refused_rows: list[CandidateRow]) -> Table:
    counts = Counter(str(row["constraint"]) for row in refused_rows)
    cheapest_by_constraint = {str(row["constraint"]): row for row in reversed(refused_rows)}
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    for constraint, count in counts.most_common():
        reason = str(cheapest_by_constraint[constraint]["reason"]).removeprefix(f"{constraint}: ")
        example_text = f"{cheapest_by_constraint[constraint]['type']}: {reason}"
        table.add_row(str(count), constraint, Text(for_terminal(example_text), "dim"))
    return table
