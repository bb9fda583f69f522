"""Prints the findings of an audit: the fixes, the evidence, and the fixes as code."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FixDocument, is_standing
from sageaudit.domain.bill.finding import Bucket, Severity
from sageaudit.output.terminal.layout import SEVERITY_STYLES, indented, print_heading
from sageaudit.output.text.finding import FindingParts, step_parts
from sageaudit.output.text.fix_code import Dialect, fix_text
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import assignment_line, old_value_text


def print_fixes(findings: Sequence[FindingParts], console: Console) -> None:
    """Prints what to change for each finding that has an amount of its own."""
    fixable = [finding for finding in findings if finding.alternatives and finding.has_own_amount]
    if fixable:
        print_heading(console, "What to change")
    for finding in fixable:
        console.print(indented(Text(for_terminal(finding.rule), "cyan"), 2))
        _print_alternatives(finding, console)


def print_findings(
    findings: Sequence[FindingParts], repeated: str | None, console: Console
) -> None:
    """Prints the findings. `print_fixes` has printed the fixes of those with their own amount.

    `repeated` is a sentence about findings that were reported for an earlier run.
    """
    if findings or repeated:
        print_heading(console, "Findings")
    for position, finding in enumerate(findings):
        if position:
            console.print()
        show_finding(finding, console, with_fix=not finding.has_own_amount)
    if repeated:
        if findings:
            console.print()
        console.print(indented(Text(for_terminal(repeated), "dim"), 2))


def show_finding(finding: FindingParts, console: Console, *, with_fix: bool = True) -> None:
    """Prints a finding. If it is not counted, prints only its summary and the reason."""
    style = (
        "dim" if finding.not_counted_because else SEVERITY_STYLES[Severity(finding.severity).rank]
    )
    dollars_text = f"  {finding.dollars}" if finding.dollars else ""
    # the "x" keeps the leading spaces, which `for_terminal` would strip
    title = for_terminal(f"x{dollars_text}  {finding.rule} ({finding.id}, {finding.confidence})")[
        1:
    ]
    console.print(indented(Text.assemble((finding.severity.upper(), style), title), 2))
    console.print(indented(Text(for_terminal(finding.summary)), 4))
    if finding.not_counted_because:
        console.print(indented(Text(for_terminal(finding.not_counted_because), "dim"), 4))
        return
    if finding.caveat:
        caveat = Text.assemble(("Caveat: ", "yellow"), for_terminal(finding.caveat))
        console.print(indented(caveat, 4))
    if with_fix:
        _print_alternatives(finding, console)


def _print_alternatives(finding: FindingParts, console: Console) -> None:
    for heading, parameters in finding.alternatives:
        paragraph, *items = step_parts(for_terminal(heading))
        console.print(indented(Text(paragraph, "bold"), 4))
        for item in items:
            console.print(indented(Text(f"- {item}", "bold"), 6))
        for parameter in parameters:
            _print_parameter(parameter, console)


def _print_parameter(parameter: FixDocument, console: Console) -> None:
    line = Text.assemble(
        "      ",
        (for_terminal(assignment_line(parameter)), "green"),
        (f"  # {for_terminal(old_value_text(parameter))}", "dim"),
    )
    console.print(line, soft_wrap=True)


def show_code(document: AuditDocument, console: Console, dialect: Dialect) -> None:
    """Prints each fix as code, unless its finding is exempt or covered by another one.

    No indents or line breaks are added to the code.
    """
    findings = [
        finding for finding in document["findings"] if is_standing(finding) and finding["fix"]
    ]
    console.print()
    console.print(Text(f"Fixes as {dialect}" if findings else "No fix to print", "bold"))
    for finding in findings:
        console.print()
        is_counted = Bucket(finding["bucket"]).is_counted
        trial_note = "" if is_counted else ", a possible saving: not in the totals"
        title = f"{finding['rule']} ({finding['id']}{trial_note})"
        console.print(Text(for_terminal(title), "cyan"))
        for line in fix_text(document["job"]["kind"], finding["fix"], dialect).split("\n"):
            code = line.lstrip(" ")
            margin = " " * (len(line) - len(code))
            console.print(Text(margin + for_terminal(code)), soft_wrap=True)
