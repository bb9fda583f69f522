"""An audit on the terminal: the job, its costs, the findings, and what could not be checked.

All texts of the document pass through `terminal`, which removes control characters; none is read as
rich markup.
"""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.bill_facts import NOT_IN_IT
from sageaudit.output.terminal import findings, tables
from sageaudit.output.text.headline import headline
from sageaudit.output.text.idle_capacity import IDLE_LABEL, idle_sentence
from sageaudit.output.text.job_words import family_words, when
from sageaudit.output.text.message import pool_note, ran_on
from sageaudit.output.text.money_notes import money_notes
from sageaudit.output.text.unchecked import not_applicable, unchecked
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import capitalised

_REASONS = "--output json shows why"
_STATUS_STYLES = {"Completed": "green", "Failed": "bold red", "Stopped": "yellow"}


def render(document: AuditDocument, console: Console) -> None:
    """Prints the whole audit."""
    _head(document, console)
    if document["unauditable"] is not None:
        _line(console, f"Could not be audited: {document['unauditable']}", "bold yellow")
        return
    _part(console, "Phases", tables.phases(document, console))
    _part(console, "Bill", tables.bill(document))
    for note in (*money_notes(document), *(n for n in document["bill"]["notes"] if n == NOT_IN_IT)):
        _line(console, capitalised(note), "dim", indent=2)
    _part(console, "Where the money went", tables.waterfall(document, console))
    _part(console, "Jobs of this tuning job", tables.children(document, console))
    if document["findings"]:
        _title(console, "Findings")
        findings.show(document, console)
    _not_judged(document, console)


def _head(document: AuditDocument, console: Console) -> None:
    job = document["job"]
    status = _STATUS_STYLES.get(job["status"], "bold")
    console.print(
        Text.assemble(
            (terminal(job["name"]), "bold"),
            f"  {job['kind']} job, ",
            (terminal(job["status"]), status),
        )
    )
    where = f"account {job['account'] or 'unknown'}, {job['region'] or 'region unknown'}"
    for line in (
        ", ".join(part for part in (ran_on(job), where) if part),
        f"owner {job['owner'] or 'not known'}, family {family_words(job['family'])}",
        when(job),
    ):
        if line:
            _line(console, line)
    if document["unauditable"] is None:
        console.print()
        _line(console, capitalised(headline(document)), _news_style(document))
        for sentence in document["not_judged"]:
            _line(console, sentence, "yellow", indent=2)
        if note := pool_note(document):
            _line(console, note, indent=2)
        if idle := idle_sentence(document):
            console.print()
            _line(console, f"{IDLE_LABEL}: {idle}", "yellow")


def _news_style(document: AuditDocument) -> str:
    wasted = (document["avoidable_usd"] or 0) + (document["lost_up_to_usd"] or 0)
    whole = "bold green" if document["judged"] == Judged.YES else "bold yellow"
    return "bold red" if wasted else whole


def _not_judged(document: AuditDocument, console: Console) -> None:
    if sentences := unchecked(document):
        _title(console, "Could not be checked")
    for sentence in sentences:
        _line(console, sentence, indent=2)
    if document["not_applicable"] or document["clear"]:
        console.print()
    if document["not_applicable"]:
        _line(console, not_applicable(document["not_applicable"], _REASONS), "dim")
    if document["clear"]:
        _line(console, f"Clear: {', '.join(document['clear'])}", "dim")


def _part(console: Console, title: str, part: RenderableType | None) -> None:
    if part is not None:
        _title(console, title)
        console.print(Padding(part, (0, 0, 0, 2), expand=False))


def _title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, "bold"))


def _line(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    console.print(Padding(Text(terminal(text), style), (0, 0, 0, indent), expand=False))
