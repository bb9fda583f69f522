"""The output of `sageaudit check` for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from sageaudit.cli.views.check.lines import line_groups
from sageaudit.output.terminal.layout import indented
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.workflows.check.comparison import FileCheck, compare_jobs

_UNWRAPPED_INDENTS = {"fix": 6, "address": 4}
"""The indents of lines to copy, which are not wrapped."""
_INDENTS = {"file": 0, "job": 0, "text": 2, "finding": 2, "detail": 4}


def show(file_check: FileCheck, console: Console) -> None:
    """Prints a file that could be checked or was removed, with a blank line between groups."""
    if file_check.checked is None:
        console.print(Text(f"{for_terminal(file_check.name)} was removed", "bold"))
        return
    is_base_known = file_check.is_compared and file_check.base_error is None
    earlier_jobs = [job.before for job in compare_jobs(file_check)] if is_base_known else []
    for number, group in enumerate(line_groups(file_check.checked, earlier_jobs)):
        if number:
            console.print()
        for line in group:
            text = Text.assemble(
                (line.prefix, line.prefix_style), (for_terminal(line.text), line.style)
            )
            if line.role in _UNWRAPPED_INDENTS:
                margin = Text(" " * _UNWRAPPED_INDENTS[line.role])
                console.print(margin.append_text(text), soft_wrap=True)
            else:
                console.print(indented(text, _INDENTS[line.role]))
    if file_check.base_error:
        console.print(indented(Text(for_terminal(file_check.base_error), "yellow"), 2))
