"""An audit on the terminal: the job, its costs, the findings, and what could not be checked."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sageaudit.domain.alert.audit_figures import counted_findings
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.document import AuditDocument, PhaseDocument
from sageaudit.domain.audit.finding_document import FixDocument, is_standing
from sageaudit.domain.bill.finding import Bucket, Severity
from sageaudit.domain.guides import GuideDocument
from sageaudit.domain.job.job import duration_text
from sageaudit.output.terminal.layout import (
    SEVERITY_STYLES,
    indented,
    plain_table,
    print_heading,
    print_line,
)
from sageaudit.output.text import notes
from sageaudit.output.text.amounts import IDLE_LABEL, document_amounts, idle_sentence
from sageaudit.output.text.finding import FindingParts, finding_parts
from sageaudit.output.text.fix_code import Dialect, fix_text
from sageaudit.output.text.headline import headline
from sageaudit.output.text.money import Figure
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.output.text.words import (
    GUIDES_TITLE,
    NO_GUIDES_TEXT,
    assignment_line,
    capitalised,
    old_value_text,
)
from sageaudit.structs import replace

_REASONS = "--output json shows why"
_STATUS_STYLES = {"Completed": "green", "Failed": "bold red", "Stopped": "yellow"}
_PHASES = 24
_CHILDREN = 20
_BAR = {"narrow": 12, "wide": 32}
_WIDE = 100
_ROOMY = 80
_NAME = 40
_CHILD_COLUMNS = ("Job", "Status", "Spend", "Avoidable", "Lost", "Top finding")
_MONEY = {"Spend", "Avoidable", "Lost"}
_SPARE = {"Status", "Lost"}
"""Columns left out on a narrow terminal."""


def render(document: AuditDocument, console: Console) -> None:
    """Prints the whole audit."""
    _head(document, console)
    if document["unauditable"] is not None:
        print_line(console, f"Could not be audited: {document['unauditable']}", "bold yellow")
        return
    _news(document, console)
    _part(console, "Phases", _phases(document, console))
    _part(console, "Bill", _bill(document))
    for note in notes.money_notes(document):
        print_line(console, capitalised(note), "dim", indent=2)
    _part(console, "Where the money went", _waterfall(document, console))
    _part(console, notes.children_title(document), _children(document, console))
    if document["findings"]:
        print_heading(console, "Findings")
        _findings(document, console)
    _print_unjudged(document, console)


def _head(document: AuditDocument, console: Console) -> None:
    job = document["job"]
    status = (for_terminal(job["status"]), _STATUS_STYLES.get(job["status"], "bold"))
    name = (for_terminal(job["name"]), "bold")
    console.print(Text.assemble(name, f"  {job['kind']} job, ", status))
    place = ", ".join(
        part for part in (notes.instances_text(job), notes.account_region_text(job)) if part
    )
    for words in filter(None, (place, notes.owner_family_text(job), notes.times_text(job))):
        print_line(console, words)


def _news(document: AuditDocument, console: Console) -> None:
    wasted = (document["avoidable_usd"] or 0) + (document["lost_up_to_usd"] or 0)
    style = "bold green" if document["judged"] == Judged.YES else "bold yellow"
    console.print()
    print_line(console, capitalised(headline(document)), "bold red" if wasted else style)
    for sentence in document["not_judged"]:
        print_line(console, sentence, "yellow", indent=2)
    if note := notes.pool_note(document):
        print_line(console, note, indent=2)
    if idle := idle_sentence(document):
        console.print()
        print_line(console, f"{IDLE_LABEL}: {idle}", "yellow")


def _print_unjudged(document: AuditDocument, console: Console) -> None:
    if sentences := notes.unchecked_lines(document):
        print_heading(console, "Could not be checked")
    for sentence in sentences:
        print_line(console, sentence, indent=2)
    if document["not_applicable"] or document["clear"]:
        console.print()
    if document["not_applicable"]:
        print_line(console, notes.not_applicable_text(document["not_applicable"], _REASONS), "dim")
    if document["clear"]:
        print_line(console, f"Clear: {', '.join(document['clear'])}", "dim")


def _part(console: Console, title: str, part: RenderableType | None) -> None:
    if part is not None:
        print_heading(console, title)
        console.print(indented(part, 2))


def _phases(document: AuditDocument, console: Console) -> Group | None:
    """One bar per phase, in order of time; phases that are not billed have a lighter bar."""
    rows = document["phases"]
    if not rows:
        return None
    longest = max(row["seconds"] or Decimal(0) for row in rows)
    table = _grid("left", "right", "left", "right")
    for row in rows[:_PHASES]:
        cost = notes.phase_cost_text(row, document["bill"])
        table.add_row(
            Text(for_terminal(row["name"])),
            duration_text(row["seconds"]),
            _phase_bar(row, longest, console),
            Text(cost, "" if row["billed"] and document["bill"]["basis"] != "prepaid" else "dim"),
        )
    _count_rest(table, len(rows) - _PHASES)
    return Group(table, *map(for_terminal, notes.phase_notes(rows)))


def _bill(document: AuditDocument) -> Group | None:
    """The bill's lines; below them each line's usage type, price and note."""
    if not document["bill"]["lines"]:
        return None
    cells = [
        tuple(map(for_terminal, notes.bill_line_cells(one))) for one in document["bill"]["lines"]
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_footer=True)
    footers = {"Item": "total", "USD": str(document_amounts(document).spend)}
    for word in ("Item", "Quantity", "Rate", "USD"):
        table.add_column(
            word,
            footers.get(word, ""),
            justify="left" if word == "Item" else "right",
            overflow="fold" if word == "Item" else "ellipsis",
            header_style="dim",
            footer_style="bold",
        )
    for *amounts, _ in cells:
        table.add_row(*map(Text, amounts))
    details = (Text(f"{item}: {source}", "dim") for item, *_, source in cells if source)
    return Group(table, *details)


def _waterfall(document: AuditDocument, console: Console) -> Table | None:
    """The slices of the bill with their bars, then the three totals."""
    slices, found = document["waterfall"], document_amounts(document)
    if not slices or (len(slices) == 1 and not found.possible.usd):
        return None
    largest = max(abs(part["usd"]) for part in slices)
    estimated = bool(document["bill"]["estimated"])
    table = _grid("left", "left", "right")
    for part in slices:
        bar = _full(console) * _cells(abs(part["usd"]), largest, console)
        style = "green" if part["slice"] == "rest" else "red"
        rest = replace(found.spend, usd=part["usd"])
        cost = str(rest if part["slice"] == "rest" else Figure(part["usd"], estimated=estimated))
        table.add_row(Text(for_terminal(part["slice"])), Text(bar, style), cost)
    for word, figure in zip(("avoidable", "lost", "possible"), found[1:4], strict=True):
        note = Text("worth a trial" if word == "possible" else "", "dim")
        if figure.usd is None or figure.upper_end:
            table.add_row(Text(f"= {word}", "bold"), note, Text(str(figure), "bold"))
    return table


def _children(document: AuditDocument, console: Console) -> Table | None:
    """The jobs of a roll-up, the most avoidable and lost dollars first."""
    audits: Sequence[AuditDocument] = document["children"] or ()
    if not audits:
        return None
    ranked = sorted(audits, key=lambda audit: document_amounts(audit).waste.usd or 0, reverse=True)
    rows = [_child(audit) for audit in ranked[:_CHILDREN]]
    narrow = console.width < _ROOMY
    shown = [column for column in _CHILD_COLUMNS if not (narrow and column in _SPARE)]
    table = plain_table(*shown, right=_MONEY, unbroken=_MONEY)
    for row in rows:
        table.add_row(*(Text(row[column]) for column in shown))
    _count_rest(table, len(ranked) - _CHILDREN)
    return table


def _child(audit: AuditDocument) -> dict[str, str]:
    top, found = counted_findings(audit["findings"]), document_amounts(audit)
    return {
        "Job": cut_middle(for_terminal(audit["job"]["name"]), _NAME),
        "Status": for_terminal(audit["job"]["status"]),
        "Spend": str(found.spend),
        "Avoidable": str(found.avoidable),
        "Lost": str(found.lost),
        "Top finding": for_terminal(top[0]["rule"]) if top else "-",
    }


def _count_rest(table: Table, hidden: int) -> None:
    if hidden > 0:
        table.add_row(Text(f"+{hidden} more", "dim"))


def _grid(*sides: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for side in sides:
        table.add_column(justify="right" if side == "right" else "left", overflow="fold")
    return table


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


def _findings(document: AuditDocument, console: Console) -> None:
    """Prints the findings: those counted in the totals first, by saving."""
    findings, repeated = finding_parts(document)
    for position, finding in enumerate(findings):
        if position:
            console.print()
        show_finding(finding, console)
    if repeated:
        if findings:
            console.print()
        console.print(indented(Text(for_terminal(repeated), "dim"), 2))


def show_finding(finding: FindingParts, console: Console) -> None:
    """Prints one; of a finding that is set aside no more than the summary and the reason."""
    style = (
        "dim" if finding.not_counted_because else SEVERITY_STYLES[Severity(finding.severity).rank]
    )
    dollars = f"  {finding.dollars}" if finding.dollars else ""
    card = for_terminal(f"x{dollars}  {finding.rule} ({finding.id}, {finding.confidence})")[1:]
    console.print(indented(Text.assemble((finding.severity.upper(), style), card), 2))
    console.print(indented(Text(for_terminal(finding.summary)), 4))
    if finding.not_counted_because:
        console.print(indented(Text(for_terminal(finding.not_counted_because), "dim"), 4))
        return
    if finding.caveat:
        caveat = Text.assemble(("Caveat: ", "yellow"), for_terminal(finding.caveat))
        console.print(indented(caveat, 4))
    for title, way in finding.alternatives:
        console.print(indented(Text(for_terminal(title), "bold"), 4))
        for fix in way:
            _show_fix(fix, console)


def _show_fix(fix: FixDocument, console: Console) -> None:
    """Prints a line to paste without line breaks: only the terminal may wrap it."""
    pasted = Text.assemble(
        "      ",
        (for_terminal(assignment_line(fix)), "green"),
        (f"  # {for_terminal(old_value_text(fix))}", "dim"),
    )
    console.print(pasted, soft_wrap=True)


def show_code(document: AuditDocument, console: Console, dialect: Dialect) -> None:
    """Prints the fix of each finding in force, at the left margin and without line breaks."""
    fixed = [finding for finding in document["findings"] if is_standing(finding) and finding["fix"]]
    console.print()
    console.print(Text(f"Fixes as {dialect}" if fixed else "No fix to print", "bold"))
    for finding in fixed:
        console.print()
        counted = Bucket(finding["bucket"]).is_counted
        trial = "" if counted else ", a possible saving: not in the totals"
        console.print(Text(for_terminal(f"{finding['rule']} ({finding['id']}{trial})"), "cyan"))
        for row in fix_text(document["job"]["kind"], finding["fix"], dialect).split("\n"):
            words = row.lstrip(" ")
            margin = " " * (len(row) - len(words))
            console.print(Text(margin + for_terminal(words)), soft_wrap=True)


def show_guides(guides: Sequence[GuideDocument], console: Console) -> None:
    """Prints them; only the terminal may wrap an address."""
    print_heading(console, GUIDES_TITLE)
    if not guides:
        print_line(console, NO_GUIDES_TEXT, "dim", indent=2)
    for position, guide in enumerate(guides):
        if position:
            console.print()
        print_line(console, guide["name"], "cyan", indent=2)
        print_line(console, guide["says"], indent=4)
        console.print(Text(f"    {for_terminal(guide['source'])}", "dim"), soft_wrap=True)
