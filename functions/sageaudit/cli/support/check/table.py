"""What `sageaudit check` found, on the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from sageaudit.cli.support.check.document import CheckedFile
from sageaudit.cli.support.check.words import (
    cost_sentence,
    fix_lines,
    history_sentence,
    saving_words,
    summed_up,
)
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import counted

_STYLES = ("dim", "cyan", "bold yellow", "bold red")
"""By `Severity.rank`, the least severe first."""
_NAME = 60
_UNKNOWN_SHOWN = 5


def show(document: CheckedFile, console: Console) -> None:
    """Prints one file: how many findings, then each job with its cost, history and findings."""
    console.print(Text(terminal(middle(document["file"], _NAME)), "bold"))
    _line(console, summed_up(document), "bold")
    many = counted(sum(not job["trial"] for job in document["jobs"]), "job")
    _line(console, f"{document['form_said']}, {many}")
    for job in document["jobs"]:
        console.print()
        _job(job, console)
    for sentence in document["not_checked"]:
        _line(console, sentence, "dim")


def _job(job: dict[str, Any], console: Console) -> None:
    console.print(Text(terminal(middle(job["name"] or job["label"], _NAME)), "bold"))
    kind = "training jobs" if job["trial"] else f"{job['kind']} job"
    parts = (kind, job["instances"], job["region"] or "region unknown")
    _line(console, ", ".join(part for part in parts if part))
    if job["name"] and job["label"] != f"{job['kind']} job":
        _line(console, job["label"], "dim")
    if job["note"]:
        _line(console, job["note"], "dim")
    if job["unreadable"]:
        _line(console, f"Only compared with AWS's API: {job['unreadable']}", "yellow")
    else:
        _line(console, cost_sentence(job["cost"], job["kind"]))
        if sentence := history_sentence(job["history"]):
            _line(console, sentence)
    for note in job["notes"]:
        _line(console, note, "yellow")
    for row in job["findings"]:
        console.print()
        _finding(row, console)
    _not_known(job, console)


def _finding(row: dict[str, Any], console: Console) -> None:
    aside = row["not_counted"]
    style = "dim" if aside else _STYLES[Severity(row["severity"]).rank]
    card = row["id"] or "AWS's API"
    place = f", line {row['line']}" if row["line"] else ""
    dollars = saving_words(row)
    title = f"  {terminal(row['rule'])} ({card}{place}){f'  {dollars}' if dollars else ''}"
    console.print(_block(Text.assemble((row["severity"].upper(), style), title), 2))
    console.print(_block(Text(terminal(row["summary"])), 4))
    if aside:
        console.print(_block(Text(terminal(f"Not counted: {aside}"), "dim"), 4))
        return
    if row["caution"]:
        caveat = Text.assemble(("Caveat: ", "yellow"), terminal(row["caution"]))
        console.print(_block(caveat, 4))
    if row["source"] == "rules" and row["said_of"]:
        said = f"{row['said_of']}, an earlier run of the family, was told the same."
        console.print(_block(Text(terminal(said), "dim"), 4))
    for line in fix_lines(row):
        console.print(Text.assemble("      ", (terminal(line), "green")), soft_wrap=True)


def _not_known(job: dict[str, Any], console: Console) -> None:
    """What keeps the cost or a rule from an answer; --output json has all of it."""
    reasons = [row["reason"] for row in job["unknown"]] + [job["cost"]["why_not_known"] or ""]
    rows = [
        row for row in job["not_known"] if any(f"{row['path']} " in reason for reason in reasons)
    ]
    if not rows:
        return
    console.print()
    for row in rows[:_UNKNOWN_SHOWN]:
        _line(console, f"Not known yet: {row['path']} ({row['why']})", "dim")
    if len(rows) > _UNKNOWN_SHOWN:
        _line(console, f"Not known yet: {len(rows) - _UNKNOWN_SHOWN} more values", "dim")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(_block(Text(terminal(text), style), 2))


def _block(text: Text, indent: int) -> Padding:
    return Padding(text, (0, 0, 0, indent), expand=False)
