"""The findings of `sageaudit check` in a file, as lines, and the layout of each output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.guides import GuideDocument
from sageaudit.output.terminal.layout import SEVERITY_STYLES, indented
from sageaudit.output.text.check_text import cost_text, fix_text, history_text, saving_text
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.output.text.words import GUIDES_TITLE, NO_GUIDES_TEXT, count_text
from sageaudit.workflows.check.document import CheckedFile

_MAX_NAME_WIDTH = 60
_MAX_UNKNOWN = 5
LineRole = Literal["file", "job", "text", "finding", "detail", "fix", "address"]


class CheckLine(Struct, frozen=True):
    """A line of the output. `prefix` is its first words, which have their own style.

    A line with the role `detail` or `fix` belongs to the finding before it.
    """

    role: LineRole
    text: str
    style: str = ""
    prefix: str = ""
    prefix_style: str = ""


def line_groups(document: CheckedFile) -> Iterator[list[CheckLine]]:
    """Yields the lines about the file, then about each job, its findings and what is unknown."""
    jobs = count_text(sum(not job["trial"] for job in document["jobs"]), "job")
    yield [
        CheckLine("file", cut_middle(document["file"], _MAX_NAME_WIDTH), "bold"),
        CheckLine("text", _summary(document), "bold"),
        CheckLine("text", f"{document['form_text']}, {jobs}"),
    ]
    for job in document["jobs"]:
        yield [*_job(job)]
        for row in job["findings"]:
            yield [*finding_lines(row)]
        if unknown := [*_unknown(job)]:
            yield unknown
        if "guides" in job:
            yield from _guides(job["guides"])
    if document["not_checked"]:
        yield [CheckLine("text", sentence, "dim") for sentence in document["not_checked"]]


def _job(job: dict[str, Any]) -> Iterator[CheckLine]:
    yield CheckLine("job", cut_middle(job["name"] or job["label"], _MAX_NAME_WIDTH), "bold")
    kind = "training jobs" if job["trial"] else f"{job['kind']} job"
    parts = (kind, job["instances"], job["region"] or "region unknown")
    yield CheckLine("text", ", ".join(part for part in parts if part))
    if job["name"] and job["label"] != f"{job['kind']} job":
        yield CheckLine("text", job["label"], "dim")
    if job["note"]:
        yield CheckLine("text", job["note"], "dim")
    if job["unreadable"]:
        yield CheckLine("text", f"Only compared with AWS's API: {job['unreadable']}", "yellow")
    else:
        yield CheckLine("text", cost_text(job["cost"], job["kind"]))
        if job["history"]:
            yield CheckLine("text", history_text(job["history"]))
    for note in job["notes"]:
        yield CheckLine("text", note, "yellow")


def _guides(guides: list[GuideDocument]) -> Iterator[list[CheckLine]]:
    empty = [] if guides else [CheckLine("detail", NO_GUIDES_TEXT, "dim")]
    yield [CheckLine("text", GUIDES_TITLE, "bold"), *empty]
    for guide in guides:
        yield [
            CheckLine("text", guide["name"], "cyan"),
            CheckLine("detail", guide["says"]),
            CheckLine("address", guide["source"], "dim"),
        ]


def _unknown(job: dict[str, Any]) -> Iterator[CheckLine]:
    # Unknown values are listed only if they prevent a cost or a rule's result. The list may be cut;
    # --output json has all of them.
    reasons = [row["reason"] for row in job["unknown"]] + [job["cost"]["why_not_known"] or ""]
    rows = [
        row for row in job["not_known"] if any(f"{row['path']} " in reason for reason in reasons)
    ]
    for row in rows[:_MAX_UNKNOWN]:
        yield CheckLine("text", f"Not known yet: {row['path']} ({row['why']})", "dim")
    if len(rows) > _MAX_UNKNOWN:
        rest_text = f"Not known yet: {len(rows) - _MAX_UNKNOWN} more values"
        yield CheckLine("text", rest_text, "dim")


def finding_lines(row: dict[str, Any]) -> Iterator[CheckLine]:
    """Yields a finding's rule and dollars, its sentence, and each parameter to change."""
    not_counted_reason, severity = row["not_counted"], row["severity"]
    rule_id = row["id"] or "AWS's API"
    line_text = f", line {row['line']}" if row["line"] else ""
    dollars_text = f"  {saving}" if (saving := saving_text(row)) else ""
    yield CheckLine(
        "finding",
        f"{row['rule']} ({rule_id}{line_text}){dollars_text}",
        prefix=f"{severity.upper()}  ",
        prefix_style="dim" if not_counted_reason else SEVERITY_STYLES[Severity(severity).rank],
    )
    yield CheckLine("detail", row["summary"])
    if not_counted_reason:
        yield CheckLine("detail", f"Not counted: {not_counted_reason}", "dim")
        return
    if row["caution"]:
        yield CheckLine("detail", row["caution"], prefix="Caveat: ", prefix_style="yellow")
    if row["source"] == "rules" and row["reported_for_run"]:
        repeat_text = (
            f"{row['reported_for_run']}, an earlier run of the family, had the same finding."
        )
        yield CheckLine("detail", repeat_text, "dim")
    for fix in row["fix"]:
        yield CheckLine("fix", fix_text(fix, row["source"]), "green")


def _summary(document: CheckedFile) -> str:
    if not document["jobs"]:
        return "Nothing to check: there is no SageMaker job in it."
    counts = Counter(
        row["severity"]
        for job in document["jobs"]
        for row in job["findings"]
        if row["not_counted"] is None
    )
    if not counts:
        return "No findings."
    parts = [f"{counts[word]} {word}" for word in map(str, Severity) if counts[word]]
    return f"{count_text(counts.total(), 'finding')}: {', '.join(parts)}."


_UNWRAPPED_INDENTS = {"fix": 6, "address": 4}
"""The indents of lines to copy, which are not wrapped."""
_INDENTS = {"file": 0, "job": 0, "text": 2, "finding": 2, "detail": 4}
_LEVELS = {"high": "error", "medium": "warning", "low": "notice", "info": "notice"}
_MAX_MESSAGE_LENGTH = 3000
_MAX_TITLE_LENGTH = 200


def show(document: CheckedFile, console: Console) -> None:
    """Prints a file on the terminal, with a blank line between groups."""
    for number, group in enumerate(line_groups(document)):
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


def github_annotations(document: CheckedFile) -> str:
    """Returns a GitHub Actions workflow command for each finding that counts.

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
        cut_middle(for_terminal(f"{line.prefix}{line.text}"), _MAX_MESSAGE_LENGTH)
        for line in details
    )
    properties = {
        "file": for_terminal(file) if file != "standard input" else "",
        "line": str(row["line"] or ""),
        "title": cut_middle(for_terminal(f"{title.text}: {job}"), _MAX_TITLE_LENGTH),
    }
    properties_text = ",".join(
        f"{name}={_escape_message(value).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
        if value
    )
    return f"::{_LEVELS[row['severity']]} {properties_text}::{_escape_message(message)}"


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
