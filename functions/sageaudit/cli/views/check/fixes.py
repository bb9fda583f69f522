"""The fixes that `sageaudit check --write` would write into a file, as a diff."""

from __future__ import annotations

import difflib

from rich.console import Console
from rich.text import Text

from sageaudit.cli.views.check.lines import findings_summary
from sageaudit.output.terminal.layout import indented
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.workflows.check.comparison import counted_findings
from sageaudit.workflows.check_write import FixPlan

_STYLES = {"-": "red", "+": "green", "@": "cyan"}
_CONTEXT_LINES = 2


def show_fixes(plan: FixPlan, console: Console) -> None:
    """Prints the changed lines of a file, and why other findings are not fixed."""
    console.print()
    name = str(plan.file.path)
    lines = difflib.unified_diff(
        plan.before.splitlines(),
        plan.after.splitlines(),
        fromfile=name,
        tofile=f"{name} with the fixes",
        lineterm="",
        n=_CONTEXT_LINES,
    )
    for line in lines:
        console.print(Text(_harmless(line), _STYLES.get(line[:1], "")), soft_wrap=True)
    if not plan.fixes:
        console.print(Text("No fix can be written into the file.", "bold"))
    for fix in plan.skipped:
        text = f"Not written: {fix.finding['rule']} ({fix.skipped_because})"
        console.print(indented(Text(for_terminal(text), "dim"), 2))


def _harmless(line: str) -> str:
    """Returns a line that keeps its indentation."""
    sign, rest = line[:1], line[1:].expandtabs(4)
    return f"{sign}{' ' * (len(rest) - len(rest.lstrip()))}{for_terminal(rest)}"


def remaining_findings_text(plan: FixPlan) -> str:
    """Returns the findings that the changed file still has, by severity."""
    rows = [row for job in plan.checked["jobs"] for row in counted_findings(job)]
    return f"Remaining: {findings_summary(rows)}" if rows else "No findings remain."
