"""The lines of a checked file as each output lays them out: terminal, Markdown, GitHub."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from sageaudit.cli.support.check.document import CheckedFile
from sageaudit.cli.support.check.lines import CheckLine, finding_lines, groups
from sageaudit.output.text.untrusted import middle, terminal

_INDENTS = {"file": 0, "job": 0, "text": 2, "finding": 2, "detail": 4}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-!|<>~@:&])")
_LEVELS = {"high": "error", "medium": "warning", "low": "notice", "info": "notice"}
_LONGEST = 600
_LONGEST_MESSAGE = 3000
_LONGEST_TITLE = 200


def show(document: CheckedFile, console: Console) -> None:
    """Prints a file on the terminal, with a blank line between groups."""
    for number, group in enumerate(groups(document)):
        if number:
            console.print()
        for line in group:
            text = Text.assemble((line.lead, line.lead_style), (terminal(line.text), line.style))
            if line.role == "fix":  # a line to copy is not broken
                console.print(Text("      ").append_text(text), soft_wrap=True)
            else:
                indent = (0, 0, 0, _INDENTS[line.role])
                console.print(Padding(text, indent, expand=False))


def markdown(document: CheckedFile) -> str:
    """A file for a comment on a pull request: paragraphs, and each finding with its parts."""
    return "\n\n".join(
        ("\n" if group[0].role == "finding" else "\n\n").join(map(_markdown, group))
        for group in groups(document)
    )


def _markdown(line: CheckLine) -> str:
    text = middle(terminal(line.text), _LONGEST)
    lead = f"**{line.lead.strip()}** " if line.lead else ""
    if line.role == "fix":
        code = text.replace("`", chr(0x2CB))  # no backtick ends the code
        return f"  - `{code}`"
    before = {"file": "### SageMaker cost check: ", "finding": "- ", "detail": "  - "}.get(
        line.role, ""
    )
    around = "**" if line.role == "job" else ""
    escaped = _SPECIAL.sub(r"\\\1", text)
    return f"{before}{lead}{around}{escaped}{around}"


def github(document: CheckedFile) -> str:
    """A command of a GitHub Actions workflow for each finding that counts.

    Source: GitHub's page on workflow commands, and actions/toolkit, which escapes the same
    characters: `%`, CR and LF in the message, and `:` and `,` too in properties.
    """
    return "\n".join(
        _annotation(document["file"], job["name"] or job["label"], row)
        for job in document["jobs"]
        for row in job["findings"]
        if row["not_counted"] is None
    )


def _annotation(file: str, job: str, row: dict[str, Any]) -> str:
    title, *details = finding_lines(row)
    message = "\n".join(
        middle(terminal(f"{line.lead}{line.text}"), _LONGEST_MESSAGE) for line in details
    )
    properties = {
        "file": terminal(file) if file != "standard input" else "",
        "line": str(row["line"] or ""),
        "title": middle(terminal(f"{title.text}: {job}"), _LONGEST_TITLE),
    }
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{_LEVELS[row['severity']]} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
