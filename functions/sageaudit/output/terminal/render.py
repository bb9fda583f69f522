"""Prints an audit: the job, what to change, the findings, the bill, and what was not checked."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sageaudit.domain.alert.audit_figures import counted_findings
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.document import AuditDocument, PhaseDocument
from sageaudit.domain.guides import GuideDocument
from sageaudit.domain.job.job import duration_text
from sageaudit.output.terminal.findings import print_findings, print_fixes
from sageaudit.output.terminal.layout import (
    indented,
    plain_table,
    print_heading,
    print_line,
)
from sageaudit.output.text import notes
from sageaudit.output.text.amounts import IDLE_LABEL, document_amounts, idle_sentence
from sageaudit.output.text.finding import finding_parts
from sageaudit.output.text.headline import headline
from sageaudit.output.text.money import Figure
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.output.text.words import (
    GUIDES_TITLE,
    NO_GUIDES_TEXT,
    capitalised,
)
from sageaudit.structs import replace

_REASONS_HINT = "--output json shows why"
_STATUS_STYLES = {"Completed": "green", "Failed": "bold red", "Stopped": "yellow"}
_MAX_PHASES = 24
_MAX_CHILDREN = 20
_BAR_WIDTH = {"narrow": 12, "wide": 32}
_WIDE_BARS_MIN_WIDTH = 100
_ALL_COLUMNS_MIN_WIDTH = 80
_MAX_NAME_LENGTH = 40
_CHILD_COLUMNS = ("Job", "Status", "Spend", "Avoidable", "Lost", "Top finding")
_AMOUNT_COLUMNS = {"Spend", "Avoidable", "Lost"}
_WIDE_ONLY_COLUMNS = {"Status", "Lost"}
"""A narrow terminal omits these columns."""


def render(document: AuditDocument, console: Console) -> None:
    """Prints the whole audit, the most useful part first: what was wasted, and the fix."""
    _print_header(document, console)
    if document["unauditable"] is not None:
        print_line(console, f"Could not be audited: {document['unauditable']}", "bold yellow")
        return
    _print_headline(document, console)
    findings, repeated = finding_parts(document)
    print_fixes(findings, console)
    if idle := idle_sentence(document):
        console.print()
        print_line(console, f"{IDLE_LABEL}: {idle}", "yellow")
    print_findings(findings, repeated, console)
    _print_section(console, "Phases", _phases(document, console))
    _print_section(console, "Bill", _bill(document))
    _print_section(console, "Where the money went", _waterfall(document, console))
    _print_section(console, notes.children_title(document), _children(document, console))
    _print_unjudged(document, console)


def _print_header(document: AuditDocument, console: Console) -> None:
    job = document["job"]
    status = (for_terminal(job["status"]), _STATUS_STYLES.get(job["status"], "bold"))
    name = (for_terminal(job["name"]), "bold")
    if document["unauditable"] is None:
        console.print(Text.assemble(name, f"  {job['kind']} job, ", status))
    else:
        console.print(Text.assemble(name, f"  {job['kind']} job"))
    instances = notes.instances_text(job)
    instances_line = ", ".join(filter(None, (instances, notes.account_region_text(job))))
    lines = (instances_line, notes.owner_family_text(job), notes.times_text(document))
    for line in filter(None, lines):
        print_line(console, line)


def _print_headline(document: AuditDocument, console: Console) -> None:
    wasted_usd = (document["avoidable_usd"] or 0) + (document["lost_up_to_usd"] or 0)
    style = "bold green" if document["judged"] == Judged.YES else "bold yellow"
    console.print()
    print_line(console, capitalised(headline(document)), "bold red" if wasted_usd else style)
    for sentence in document["not_judged"]:
        print_line(console, sentence, "yellow", indent=2)
    if note := notes.pool_note(document):
        print_line(console, note, indent=2)


def _print_unjudged(document: AuditDocument, console: Console) -> None:
    if sentences := notes.unchecked_lines(document):
        print_heading(console, "Could not be checked")
    for sentence in sentences:
        print_line(console, sentence, indent=2)
    if document["not_applicable"] or document["clear"]:
        console.print()
    if document["not_applicable"]:
        text = notes.not_applicable_text(document["not_applicable"], _REASONS_HINT)
        print_line(console, text, "dim")
    if document["clear"]:
        print_line(console, f"Checked, nothing found: {', '.join(document['clear'])}", "dim")


def _print_section(console: Console, title: str, content: RenderableType | None) -> None:
    if content is not None:
        print_heading(console, title)
        console.print(indented(content, 2))


def _phases(document: AuditDocument, console: Console) -> Group | None:
    rows = document["phases"]
    if not rows:
        return None
    longest = max(row["seconds"] or Decimal(0) for row in rows)
    table = _grid("left", "right", "left", "right")
    for row in rows[:_MAX_PHASES]:
        cost_text = notes.phase_cost_text(row, document["bill"])
        table.add_row(
            Text(for_terminal(row["name"])),
            duration_text(row["seconds"]),
            _phase_bar(row, longest, console),
            Text(
                cost_text, "" if row["billed"] and document["bill"]["basis"] != "prepaid" else "dim"
            ),
        )
    _add_omitted_row(table, len(rows) - _MAX_PHASES)
    return Group(table, *map(for_terminal, notes.phase_notes(rows)))


def _bill(document: AuditDocument) -> Group | None:
    lines, money_notes = document["bill"]["lines"], notes.money_notes(document)
    notes_below = [Text(for_terminal(capitalised(note)), "dim") for note in money_notes]
    if not lines:
        return Group(*notes_below) if notes_below else None
    cells = [tuple(map(for_terminal, notes.bill_line_cells(line))) for line in lines]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_footer=True)
    footers = {"Item": "total", "USD": str(document_amounts(document).spend)}
    for title in ("Item", "Quantity", "Rate", "USD"):
        table.add_column(
            title,
            footers.get(title, ""),
            justify="left" if title == "Item" else "right",
            overflow="fold" if title == "Item" else "ellipsis",
            header_style="dim",
            footer_style="bold",
        )
    for *amounts, _ in cells:
        table.add_row(*map(Text, amounts))
    details = (Text(f"{item}: {source}", "dim") for item, *_, source in cells if source)
    return Group(table, *details, *notes_below)


def _waterfall(document: AuditDocument, console: Console) -> Table | None:
    slices, amounts = document["waterfall"], document_amounts(document)
    if not slices or (len(slices) == 1 and not amounts.possible.usd):
        return None
    largest_usd = max(abs(part["usd"]) for part in slices)
    estimated = bool(document["bill"]["estimated"])
    table = _grid("left", "left", "right")
    for part in slices:
        bar = _full_block(console) * _bar_length(abs(part["usd"]), largest_usd, console)
        is_rest = part["slice"] == "rest"
        needed = replace(amounts.spend, usd=part["usd"])
        cost = str(needed if is_rest else Figure(part["usd"], estimated=estimated))
        style = "green" if is_rest else "red"
        title = "needed" if is_rest else for_terminal(part["slice"])
        table.add_row(Text(title), Text(bar, style), cost)
    titles = ("Total avoidable", "Total lost", "Possible (worth a trial)")
    for title, figure in zip(titles, amounts[1:4], strict=True):
        if figure.usd is None or figure.upper_end:
            table.add_row(Text(title, "bold"), "", Text(str(figure), "bold"))
    return table


def _children(document: AuditDocument, console: Console) -> Table | None:
    audits: Sequence[AuditDocument] = document["children"] or ()
    if not audits:
        return None
    ranked = sorted(audits, key=lambda audit: document_amounts(audit).waste.usd or 0, reverse=True)
    rows = [_child_cells(audit) for audit in ranked[:_MAX_CHILDREN]]
    is_narrow = console.width < _ALL_COLUMNS_MIN_WIDTH
    columns = [
        column for column in _CHILD_COLUMNS if not (is_narrow and column in _WIDE_ONLY_COLUMNS)
    ]
    table = plain_table(*columns, right=_AMOUNT_COLUMNS, unbroken=_AMOUNT_COLUMNS)
    for row in rows:
        table.add_row(*(Text(row[column]) for column in columns))
    _add_omitted_row(table, len(ranked) - _MAX_CHILDREN)
    return table


def _child_cells(audit: AuditDocument) -> dict[str, str]:
    findings, amounts = counted_findings(audit["findings"]), document_amounts(audit)
    return {
        "Job": cut_middle(for_terminal(audit["job"]["name"]), _MAX_NAME_LENGTH),
        "Status": for_terminal(audit["job"]["status"]),
        "Spend": str(amounts.spend),
        "Avoidable": str(amounts.avoidable),
        "Lost": str(amounts.lost),
        "Top finding": for_terminal(findings[0]["rule"]) if findings else "-",
    }


def _add_omitted_row(table: Table, omitted: int) -> None:
    if omitted > 0:
        table.add_row(Text(f"+{omitted} more", "dim"))


def _grid(*sides: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for side in sides:
        table.add_column(justify="right" if side == "right" else "left", overflow="fold")
    return table


def _phase_bar(row: PhaseDocument, longest: Decimal, console: Console) -> Text:
    length = _bar_length(row["seconds"] or Decimal(0), longest, console)
    if row["billed"]:
        return Text(_full_block(console) * length, "cyan")
    return Text(("." if console.options.ascii_only else "░") * length, "dim")


def _full_block(console: Console) -> str:
    return "#" if console.options.ascii_only else "█"


def _bar_length(value: Decimal, longest: Decimal, console: Console) -> int:
    max_length = _BAR_WIDTH["wide" if console.width >= _WIDE_BARS_MIN_WIDTH else "narrow"]
    if longest <= 0 or value <= 0:
        return 0
    return max(1, int((value / longest * max_length).to_integral_value()))


def show_guides(guides: Sequence[GuideDocument], console: Console) -> None:
    """Prints the guides. Only the terminal may wrap their addresses."""
    print_heading(console, GUIDES_TITLE)
    if not guides:
        print_line(console, NO_GUIDES_TEXT, "dim", indent=2)
    for position, guide in enumerate(guides):
        if position:
            console.print()
        print_line(console, guide["name"], "cyan", indent=2)
        print_line(console, guide["says"], indent=4)
        console.print(Text(f"    {for_terminal(guide['source'])}", "dim"), soft_wrap=True)
