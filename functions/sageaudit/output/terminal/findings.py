"""The findings of an audit on the terminal, largest saving first, each with its fix to paste."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FixDocument, stands
from sageaudit.domain.bill.finding import Bucket, Severity
from sageaudit.output.text.finding import FindingParts, findings_of
from sageaudit.output.text.fix_code import Dialect, fix_text
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import assignment, before

_STYLES = ("dim", "cyan", "bold yellow", "bold red")
"""By `Severity.rank`, the least severe first."""


def show(document: AuditDocument, console: Console) -> None:
    """Prints the findings: those counted in the totals first, by saving."""
    findings, repeated = findings_of(document)
    for position, finding in enumerate(findings):
        if position:
            console.print()
        show_finding(finding, console)
    if repeated:
        if findings:
            console.print()
        console.print(_block(Text(terminal(repeated), "dim"), 2))


def show_finding(finding: FindingParts, console: Console) -> None:
    """Prints one; of a finding that is set aside no more than the summary and the reason."""
    style = "dim" if finding.set_aside else _STYLES[Severity(finding.severity).rank]
    dollars = f"  {finding.dollars}" if finding.dollars else ""
    card = terminal(f"x{dollars}  {finding.rule} ({finding.id}, {finding.confidence})")[1:]
    console.print(_block(Text.assemble((finding.severity.upper(), style), card), 2))
    console.print(_block(Text(terminal(finding.summary)), 4))
    if finding.set_aside:
        console.print(_block(Text(terminal(finding.set_aside), "dim"), 4))
        return
    if finding.caveat:
        caveat = Text.assemble(("Caveat: ", "yellow"), terminal(finding.caveat))
        console.print(_block(caveat, 4))
    for title, way in finding.ways:
        console.print(_block(Text(terminal(title), "bold"), 4))
        for fix in way:
            _show_fix(fix, console)


def _show_fix(fix: FixDocument, console: Console) -> None:
    """Prints a line to paste without line breaks: only the terminal may wrap it."""
    line = Text.assemble(
        "      ", (terminal(assignment(fix)), "green"), (f"  # {terminal(before(fix))}", "dim")
    )
    console.print(line, soft_wrap=True)


def _block(text: Text, indent: int) -> Padding:
    return Padding(text, (0, 0, 0, indent), expand=False)


def show_code(document: AuditDocument, console: Console, dialect: Dialect) -> None:
    """Prints the fix of each finding in force, at the left margin and without line breaks."""
    fixed = [finding for finding in document["findings"] if stands(finding) and finding["fix"]]
    console.print()
    console.print(Text(f"Fixes as {dialect}" if fixed else "No fix to print", "bold"))
    for finding in fixed:
        console.print()
        counted = Bucket(finding["bucket"]).counted
        trial = "" if counted else ", a possible saving: not in the totals"
        console.print(Text(terminal(f"{finding['rule']} ({finding['id']}{trial})"), "cyan"))
        for line in fix_text(document["job"]["kind"], finding["fix"], dialect).split("\n"):
            words = line.lstrip(" ")
            margin = " " * (len(line) - len(words))
            console.print(Text(margin + terminal(words)), soft_wrap=True)
