"""The tables of an audit on the terminal; each function returns None without rows to show."""

from __future__ import annotations

from decimal import Decimal

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from sageaudit.domain.audit.document import (
    AuditDocument,
    BillDocument,
    LineDocument,
    PhaseDocument,
    gaps,
)
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.job.duration import duration
from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.estimate import about, about_usd, is_estimate
from sageaudit.output.text.headline import whole_cost
from sageaudit.output.text.money import rate, rough_low, usd
from sageaudit.output.text.notice import counted_findings
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import PRICES, number

_PHASES, _CHILDREN = 24, 20
_BAR = {"narrow": 12, "wide": 32}
_WIDE = 100
_ROOMY = 80
_NAME = 40
_COLUMNS = ("Job", "Status", "Bill", "Avoidable", "Lost", "Top finding")
_MONEY = {"Bill", "Avoidable", "Lost"}
_SPARE = {"Status": "Completed", "Lost": "$0.00"}
"""Columns left out on a narrow terminal, or when every row has this value."""


def phases(document: AuditDocument, console: Console) -> Table | None:
    """One bar per phase, in order of time; phases that are not billed have a lighter bar."""
    rows = document["phases"]
    if not rows:
        return None
    longest = max((row["seconds"] or Decimal(0) for row in rows), default=Decimal(0))
    table = _grid("left", "right", "left", "right")
    for row in rows[:_PHASES]:
        table.add_row(
            Text(terminal(row["name"])),
            duration(row["seconds"]),
            _phase_bar(row, longest, console),
            _phase_cost(row, document["bill"]),
        )
    if len(rows) > _PHASES:
        table.add_row(Text(f"+{len(rows) - _PHASES} more", "dim"))
    return table


def bill(document: AuditDocument) -> Group | None:
    """The bill's lines; below them each line's usage type, price and note."""
    lines = document["bill"]["lines"]
    if not lines:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_footer=True)
    total = whole_cost(document["bill"]) or usd(None)
    table.add_column("Item", "total", overflow="fold", header_style="dim", footer_style="bold")
    for word, footer in (("Quantity", ""), ("Rate", ""), ("USD", total)):
        table.add_column(word, footer, justify="right", header_style="dim", footer_style="bold")
    for line in lines:
        table.add_row(
            Text(_item(line)),
            _quantity(line),
            _rate(line),
            about_usd(line["usd"], estimated=is_estimate(line)),
        )
    return Group(table, *(Text(detail, "dim") for line in lines for detail in _details(line)))


def waterfall(document: AuditDocument, console: Console) -> Table | None:
    """The slices of the bill with their bars, then the three totals."""
    slices = document["waterfall"]
    if not slices or (len(slices) == 1 and not document["possible_usd"]):
        return None
    largest = max(abs(part["usd"]) for part in slices)
    estimated = bool(document["bill"]["estimated"])
    table = _grid("left", "left", "right")
    for part in slices:
        bar = _full(console) * _cells(abs(part["usd"]), largest, console)
        style = "green" if part["slice"] == "rest" else "red"
        table.add_row(
            Text(terminal(part["slice"])),
            Text(bar, style),
            about_usd(part["usd"], estimated=estimated),
        )
    totals = {
        "avoidable": document["avoidable_usd"],
        "lost": document["lost_usd"],
        "possible": document["possible_usd"],
    }
    for word, amount in totals.items():
        note = Text("worth a trial" if word == "possible" else "", "dim")
        if amount is None or amount or (word == "lost" and document["lost_up_to_usd"]):
            figure = _total(document, word, amount)
            table.add_row(Text(f"= {word}", "bold"), note, Text(figure, "bold"))
    return table


def children(document: AuditDocument, console: Console) -> Table | None:
    """A tuning job's training jobs, the most avoidable and lost dollars first."""
    audits = document["children"]
    if not audits:
        return None
    ranked = sorted(audits, key=_wasted, reverse=True)
    rows = [_child(audit) for audit in ranked[:_CHILDREN]]
    roomy = console.width >= _ROOMY
    shown = [
        column
        for column in _COLUMNS
        if column not in _SPARE or (roomy and any(row[column] != _SPARE[column] for row in rows))
    ]
    table = plain_table(*shown, right=_MONEY, unbroken=_MONEY)
    for row in rows:
        table.add_row(*(Text(row[column]) for column in shown))
    if len(ranked) > _CHILDREN:
        table.add_row(Text(f"+{len(ranked) - _CHILDREN} more", "dim"))
    return table


def _child(audit: AuditDocument) -> dict[str, str]:
    top = counted_findings(audit)
    return {
        "Job": middle(terminal(audit["job"]["name"]), _NAME),
        "Status": terminal(audit["job"]["status"]),
        "Bill": _bill_of(audit["bill"]),
        "Avoidable": avoidable(audit),
        "Lost": lost(audit),
        "Top finding": terminal(top[0]["rule"]) if top else "-",
    }


def avoidable(audit: AuditDocument) -> str:
    """The avoidable dollars; "not judged" where nothing could judge them."""
    if audit["avoidable_usd"] is None and audit["judged"] == Judged.NO:
        return "not judged"
    return about_usd(audit["avoidable_usd"], estimated=bool(audit["bill"]["estimated"]))


def _bill_of(bill: BillDocument) -> str:
    """`about $2.00` at an estimated rate, `$2.00 or more` where a part of the bill is missing."""
    shown = about_usd(bill["total_usd"], estimated=bool(bill["estimated"]))
    short = bill["total_usd"] is not None and gaps(bill) and bill["basis"] != "upper_bound"
    return f"{shown} or more" if short else shown


def lost(audit: AuditDocument) -> str:
    """The lost dollars; `up to $41.00` where how much of them is lost is not known."""
    certain, most = audit["lost_usd"], audit["lost_up_to_usd"]
    estimated = bool(audit["bill"]["estimated"])
    if most and most > (certain or 0):
        return f"up to {about_usd(most, estimated=estimated)}"
    return about_usd(certain, estimated=estimated)


def _total(document: AuditDocument, word: str, amount: Decimal | None) -> str:
    if word == "avoidable":
        return avoidable(document)
    return lost(document) if word == "lost" else rough_low(amount)


def _grid(*sides: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for side in sides:
        table.add_column(justify="right" if side == "right" else "left", overflow="fold")
    return table


def _phase_cost(row: PhaseDocument, bill: BillDocument) -> Text:
    if not row["billed"]:
        return Text("not billed", "dim")
    if bill["basis"] == "prepaid":
        return Text("prepaid", "dim")
    return Text(about_usd(row["usd"], estimated=bool(bill["estimated"])))


def _phase_bar(row: PhaseDocument, longest: Decimal, console: Console) -> Text:
    width = _cells(row["seconds"] or Decimal(0), longest, console)
    if row["billed"]:
        return Text(_full(console) * width, "cyan")
    return Text(("." if console.options.ascii_only else "░") * width, "dim")


def _full(console: Console) -> str:
    return "#" if console.options.ascii_only else "█"


def _cells(part: Decimal, whole: Decimal, console: Console) -> int:
    """At least one cell for any positive amount."""
    room = _BAR["wide" if console.width >= _WIDE else "narrow"]
    if whole <= 0 or part <= 0:
        return 0
    return max(1, int((part / whole * room).to_integral_value()))


def _details(line: LineDocument) -> list[str]:
    price = None
    if line["price_as_of"]:
        source = f" ({line['price_source']})" if line["price_source"] else ""
        price = f"{PRICES[line['price_kind'] or 'list']} of {line['price_as_of']}{source}"
    parts = [part for part in (line["usage_type"], price, line["note"]) if part]
    return [f"{_item(line)}: {terminal(', '.join(parts))}"] if parts else []


def _item(line: LineDocument) -> str:
    """`warm pool`."""
    return terminal(line["item"].replace("_", " "))


def _quantity(line: LineDocument) -> Text:
    if line["quantity"] is None:
        return Text("unknown")
    return Text(f"{number(line['quantity'], places=4)} {terminal(line['unit'])}")


def _rate(line: LineDocument) -> str:
    """The rate, or "-" for a line that has dollars but no rate: a sum over several jobs."""
    if line["rate_usd"] is None and line["usd"] is not None:
        return "-"
    return about(rate(line["rate_usd"]), estimated=is_estimate(line))


def _wasted(audit: AuditDocument) -> Decimal:
    return (audit["avoidable_usd"] or Decimal(0)) + (audit["lost_usd"] or Decimal(0))
