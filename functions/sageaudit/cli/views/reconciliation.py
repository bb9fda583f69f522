"""A reconciliation for people and for scripts: rows, sums, areas, and how things are attributed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sageaudit.adapters.billing.cost_explorer import USD_PER_REQUEST
from sageaudit.domain.reconcile.reconcile import Place, Reconciliation, Row, Side, percent
from sageaudit.domain.reconcile.usage_type import JOBS
from sageaudit.text.money import usd
from sageaudit.text.untrusted import middle, terminal
from sageaudit.text.words import capitalised, number

_MICRO, _CENTI = Decimal("0.000001"), Decimal("0.01")
_SHOWN = 20
_NAME = 40
_SHORT = {"hours": "h", "GB-months": "GB-mo"}
_TITLES = {
    Place.MATCHED: "Matched",
    Place.ONLY_IN_AWS: "Only in AWS",
    Place.ONLY_IN_HISTORY: "Only in the history",
    Place.NOT_COMPARABLE: "Not comparable by usage type",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A reconciliation and what it is of."""

    result: Reconciliation
    month: str
    account: str
    source: str
    requests: int
    ongoing: bool


def document(found: Found) -> dict[str, Any]:
    """What --output json prints; keys are always present and only ever added."""
    result = found.result
    jobs = result.jobs() if result.by_job else None
    return {
        "schema": 1,
        "month": found.month,
        "account": found.account,
        "source": found.source,
        "by_job": result.by_job,
        "requests": found.requests,
        "requests_usd": found.requests * USD_PER_REQUEST,
        "estimated": result.spend.estimated,
        "totals": _totals(result),
        "jobs": {place.value: count for place, count in jobs.items()} if jobs else None,
        "areas": [
            {"area": area.name, "usd": _micro(area.usd), "percent": _centi(area.percent)}
            for area in result.areas
        ],
        "rows": [_row(row) for row in result.rows],
        "excluded": [
            {"kind": one.kind, "lines": one.lines, "usd": _micro(one.usd)}
            for one in result.spend.excluded
        ],
        "left_out": {
            "rollups": result.audited.rollups,
            "unauditable_jobs": result.audited.unauditable,
            "prepaid_or_free_lines": result.audited.unpaid_lines,
            "unpriced_lines": result.unpriced_lines,
        },
        "notes": list(notes(found)),
    }


def _totals(result: Reconciliation) -> dict[str, Decimal | None]:
    """AWS's parts add up to `aws_usd`, the history's to `history_usd`."""
    whole = result.aws_usd()
    return {
        "aws_usd": _micro(whole),
        "matched_aws_usd": _micro(result.aws_usd(Place.MATCHED)),
        "matched_aws_percent": _centi(percent(result.aws_usd(Place.MATCHED), whole)),
        "only_in_aws_usd": _micro(result.aws_usd(Place.ONLY_IN_AWS)),
        "history_usd": _micro(result.history_usd()),
        "matched_history_usd": _micro(result.history_usd(Place.MATCHED)),
        "only_in_history_usd": _micro(result.history_usd(Place.ONLY_IN_HISTORY)),
        "not_comparable_usd": _micro(result.history_usd(Place.NOT_COMPARABLE)),
        "outside_audits_usd": _micro(result.outside_usd),
        "outside_audits_percent": _centi(percent(result.outside_usd, whole)),
        "jobs_only_in_aws_usd": _micro(result.jobs_only_in_aws_usd),
        "jobs_only_in_aws_percent": _centi(percent(result.jobs_only_in_aws_usd, whole)),
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "usage": row.usage,
        "region": row.region,
        "job": row.job,
        "area": row.area,
        "place": row.place.value,
        "unit": next((side.unit for side in (row.aws, row.history) if side), None),
        "aws_quantity": _micro(row.aws.quantity if row.aws else None),
        "history_quantity": _micro(row.history.quantity if row.history else None),
        "quantity_difference": _micro(row.quantity_difference),
        "quantity_percent": _centi(row.quantity_percent),
        "aws_usd": _micro(row.aws.usd if row.aws else None),
        "history_usd": _micro(row.history.usd if row.history else None),
        "usd_difference": _micro(row.usd_difference),
        "usd_percent": _centi(row.usd_percent),
        "jobs": row.jobs,
        "jobs_across_months": row.crossing,
    }


def notes(found: Found) -> Iterator[str]:
    """How things are attributed, and what is in no sum: one sentence each."""
    result, audited = found.result, found.result.audited
    yield (
        "compare quantities first: the free tier and private rates change AWS's dollars, and what "
        "a savings plan covers is shown at its on-demand price"
    )
    across = len({line.job for line in audited.lines if line.crosses})
    yield (
        "compute and warm pools count in the month of the job's end (UTC), volumes in each month "
        "that they were kept; AWS may meter otherwise: "
        f"{_count(across, 'job')} ran across a month's end"
    )
    if not result.spend.lines:
        yield f"{found.source} has no SageMaker usage of account {found.account} in {found.month}"
    elif result.by_job:
        yield "jobs are compared by resource id, in lower case as in their ARN"
    else:
        yield "usage types are compared by region, kind of job and instance type"
    if found.ongoing or result.spend.estimated:
        yield "AWS's figures of this month are not final, and lag about a day"
    for one in result.spend.excluded:
        lines = "" if one.lines is None else f"{_count(one.lines, 'line')}, "
        yield f"left out of AWS's side, as it is no usage: {one.kind} ({lines}{usd(one.usd)})"
    for count, thing in (
        (audited.rollups, "roll-up of a tuning job, whose children count themselves"),
        (audited.unauditable, "job that could not be audited"),
        (audited.unpaid_lines, "line of prepaid or free capacity"),
    ):
        if count:
            yield f"left out of the history's side: {count} x {thing}"
    if result.unpriced_lines:
        unknown = _count(result.unpriced_lines, "line")
        yield f"{unknown} of the history without quantity or price: in no sum"


def render(found: Found, console: Console) -> None:
    """Prints sums, rows by place, areas and notes."""
    result = found.result
    against = terminal(f"the history against {found.source}")
    console.print(Text(f"SageMaker in {found.month}, account {found.account}: {against}", "bold"))
    for line in _summary(result):
        console.print(Text(line))
    for place, title in _TITLES.items():
        rows = [
            row for row in result.of(place) if place is not Place.ONLY_IN_AWS or row.area == JOBS
        ]
        if rows:
            console.print()
            console.print(Text(title, "bold"))
            console.print(Padding(_table(rows, result), (0, 0, 0, 2)))
    if result.areas:
        console.print()
        console.print(Text("What AWS billed", "bold"))
        console.print(Padding(_areas(result), (0, 0, 0, 2)))
    console.print()
    for note in notes(found):
        console.print(Text(capitalised(terminal(note)), "dim"))


def _summary(result: Reconciliation) -> Iterator[str]:
    whole = result.aws_usd()
    parts = (
        (result.aws_usd(Place.MATCHED), "matched"),
        (result.jobs_only_in_aws_usd, "of jobs that the history does not have"),
        (result.outside_usd, "that no audit covers"),
    )
    said = [f"{usd(amount)} {text}{_of(amount, whole)}" for amount, text in parts]
    yield f"AWS {usd(whole)}: {', '.join(said)}"
    yield (
        f"History {usd(result.history_usd())}: {usd(result.history_usd(Place.MATCHED))} matched, "
        f"{usd(result.history_usd(Place.ONLY_IN_HISTORY))} only here, "
        f"{usd(result.history_usd(Place.NOT_COMPARABLE))} not comparable"
    )
    if result.by_job:
        jobs = result.jobs()
        total = sum(jobs.values())
        yield "Jobs: " + ", ".join(
            f"{count} {place.value.replace('_', ' ').replace('aws', 'AWS')}"
            f"{_of(Decimal(count), Decimal(total))}"
            for place, count in jobs.items()
        )


def _of(part: Decimal, whole: Decimal) -> str:
    share = percent(part, whole)
    return "" if share is None else f" ({share:.1f}%)"


def _table(rows: list[Row], result: Reconciliation) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for word in ("Usage", "Job" if result.by_job else "Region"):
        table.add_column(word, overflow="fold")
    both = all(row.aws and row.history for row in rows)
    for word in ("AWS", "History", "Diff") * 2 if both else ("Quantity", "USD"):
        table.add_column(word, justify="right", no_wrap=True)
    for row in rows[:_SHOWN]:
        place = (row.job or "-").rpartition("/")[2] if result.by_job else row.region or "-"
        table.add_row(
            Text(terminal(row.usage)),
            Text(middle(terminal(place), _NAME)),
            *(_compared(row) if both else _alone(row)),
        )
    if len(rows) > _SHOWN:
        table.add_row(Text(f"+{len(rows) - _SHOWN} more: --output json has all", "dim"))
    return table


def _areas(result: Reconciliation) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    for _ in range(2):
        table.add_column(justify="right")
    for area in result.areas:
        said = "what audits cover" if area.name == JOBS else "no audit covers this"
        share = "" if area.percent is None else f"{area.percent:.1f}%"
        table.add_row(Text(area.name), usd(area.usd), share, Text(said, "dim"))
    return table


def _compared(row: Row) -> tuple[str, ...]:
    return (
        _used(row.aws),
        _used(row.history),
        _signed(row.quantity_percent),
        usd(row.aws.usd if row.aws else None),
        usd(row.history.usd if row.history else None),
        _signed(row.usd_percent),
    )


def _alone(row: Row) -> tuple[str, ...]:
    side = row.aws or row.history
    return _used(side), usd(side.usd if side else None)


def _used(side: Side | None) -> str:
    if side is None or side.quantity is None:
        return "unknown"
    unit = _SHORT.get(side.unit, terminal(side.unit))
    return f"{number(side.quantity, places=4)} {unit}".strip()


def _signed(share: Decimal | None) -> str:
    return "-" if share is None else f"{share:+.1f}%"


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _micro(value: Decimal | None) -> Decimal | None:
    return None if value is None else value.quantize(_MICRO)


def _centi(value: Decimal | None) -> Decimal | None:
    return None if value is None else value.quantize(_CENTI)
