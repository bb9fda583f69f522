"""The findings of an audit on the terminal, largest saving first, each with its fix to paste."""

from __future__ import annotations

from decimal import Decimal

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument
from sageaudit.domain.bill.finding import Bucket, Severity
from sageaudit.output.text.facts import unsaid
from sageaudit.output.text.finding_order import in_order, set_aside
from sageaudit.output.text.saving import counted_dollars, effect
from sageaudit.output.text.sparkline import plain_facts, sparklines
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import assignment, before, label, value

_FACT = 240
_STYLES = ("dim", "cyan", "bold yellow", "bold red")
"""By `Severity.rank`, the least severe first."""


def show(document: AuditDocument, console: Console) -> None:
    """Prints the findings: those counted in the totals first, by saving.

    Advice that an earlier run of the family was told is only named, in one line.
    """
    findings = in_order(document["findings"])
    told = [finding for finding in findings if not finding.get("said_of")]
    for position, finding in enumerate(told):
        if position:
            console.print()
        _show(finding, console, document["bill"]["total_usd"])
    if said := [finding for finding in findings if finding.get("said_of")]:
        rules = ", ".join(finding["rule"] for finding in said)
        line = f"As for {said[0]['said_of']}, an earlier run of the family: {rules}"
        if told:
            console.print()
        console.print(_block(Text(terminal(line), "dim"), 2))


def _show(finding: FindingDocument, console: Console, whole_usd: Decimal | None) -> None:
    aside = set_aside(finding)
    style = "dim" if aside else _STYLES[Severity(finding["severity"]).rank]
    console.print(
        _block(Text.assemble((finding["severity"].upper(), style), _title(finding, whole_usd)), 2)
    )
    console.print(_block(Text(terminal(finding["summary"])), 4))
    if aside:
        console.print(_block(Text(terminal(aside), "dim"), 4))
        return
    if finding["evidence"]:
        facts = [
            f"{label(key)} {middle(value(key, fact), _FACT)}"
            for key, fact in unsaid(finding["summary"], plain_facts(finding["evidence"]))
        ]
        console.print(_block(Text(terminal("; ".join(facts)), "dim"), 4))
        ascii_only = console.options.ascii_only
        for line in sparklines(finding["evidence"], console.width - 4, ascii_only=ascii_only):
            console.print(_block(Text(terminal(line), "dim"), 4))
    if finding["caution"]:
        console.print(
            _block(Text.assemble(("Caveat: ", "yellow"), terminal(finding["caution"])), 4)
        )
    _fixes(finding, console, whole_usd)


def _title(finding: FindingDocument, whole_usd: Decimal | None) -> str:
    said = None if set_aside(finding) else counted_dollars(finding, whole_usd)
    dollars = f"  {said}" if said else ""
    card = f"{finding['id']}, {finding['confidence']}"
    return terminal(f"x{dollars}  {finding['rule']} ({card})")[1:]


def _fixes(finding: FindingDocument, console: Console, whole_usd: Decimal | None) -> None:
    ways = [way for way in (finding["fix"], *finding["alternatives"]) if way]
    for position, way in enumerate(ways):
        title = "Or" if position else "Fix"
        if not position and (saves := effect(finding, whole_usd)) and not _lost(finding):
            title = f"Fix, {saves}"
        console.print(_block(Text(f"{title}:", "bold"), 4))
        for fix in way:
            _fix(fix, console)


def _lost(finding: FindingDocument) -> bool:
    return Bucket(finding["bucket"]) is Bucket.LOST


def _fix(fix: FixDocument, console: Console) -> None:
    """Prints a line to paste without line breaks: only the terminal may wrap it."""
    line = Text.assemble(
        "      ",
        (terminal(assignment(fix)), "green"),
        (f"  # {terminal(before(fix))}", "dim"),
    )
    console.print(line, soft_wrap=True)


def _block(text: Text, indent: int) -> Padding:
    return Padding(text, (0, 0, 0, indent), expand=False)
