"""An audit on the terminal: the job, its costs, the findings, and what could not be checked.

All texts of the document pass through `terminal`, which removes control characters; none is read as
rich markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from sageaudit.cli.views import findings, tables
from sageaudit.domain.audit.document import AuditDocument, NotApplicableDocument, lost_up_to
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.bill_facts import NOT_IN_IT
from sageaudit.domain.job.duration import duration
from sageaudit.text.headline import headline, still_runs
from sageaudit.text.idle_capacity import IDLE_LABEL, idle_sentence
from sageaudit.text.message import pool_note, ran_on
from sageaudit.text.money_notes import money_notes
from sageaudit.text.untrusted import terminal
from sageaudit.text.words import capitalised, counted, time_of

_BY_POLICY = "policy"
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
        f"owner {job['owner'] or 'not known'}, {_family(job['family'])}",
        _when(document),
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


def _family(name: str) -> str:
    """A family's name; of a tuning job, whose family is its ARN, the job name only."""
    _, tuning, job = name.partition(":hyper-parameter-tuning-job/")
    return f"family tuning job {job}" if tuning else f"family {name}"


def _when(document: AuditDocument) -> str | None:
    job = document["job"]
    start, end = time_of(job["started_at"]), time_of(job["ended_at"])
    if start is None:
        return f"ended {end:%Y-%m-%d %H:%M} UTC, never started" if end else None
    if end is None:
        return f"started {start:%Y-%m-%d %H:%M} UTC, not ended"
    seconds = Decimal(int((end - start).total_seconds()))
    day = "" if end.date() == start.date() else f"{end:%Y-%m-%d} "
    return f"{start:%Y-%m-%d %H:%M} to {day}{end:%H:%M} UTC ({duration(seconds)})"


def _news_style(document: AuditDocument) -> str:
    wasted = (document["avoidable_usd"] or 0) + (lost_up_to(document) or 0)
    whole = "bold green" if document["judged"] == Judged.YES else "bold yellow"
    return "bold red" if wasted else whole


def _not_judged(document: AuditDocument, console: Console) -> None:
    missing = document["audit"]["coverage"]["missing"]
    rules = [f"{unknown['rule']}: {unknown['reason']}" for unknown in document["unknown"]]
    if still_runs(document):
        # the headline has said that nothing is judged yet
        missing, rules = [], []
    if rules or missing:
        _title(console, "Could not be checked")
    for sentence in _grouped(rules):
        _line(console, sentence, indent=2)
    for sentence in _grouped(missing):
        _line(console, f"metrics: {sentence}", indent=2)
    if document["not_applicable"] or document["clear"]:
        console.print()
    if document["not_applicable"]:
        _line(console, _not_applicable(document["not_applicable"]), "dim")
    if document["clear"]:
        _line(console, f"Clear: {', '.join(document['clear'])}", "dim")


def _not_applicable(rules: list[NotApplicableDocument]) -> str:
    """Names the rules that the policy excludes, and counts those that do not apply to the job."""
    excluded = [
        f"{rule['rule']}: {rule['reason']}" for rule in rules if _BY_POLICY in rule["reason"]
    ]
    others = len(rules) - len(excluded)
    counted_rules = [f"{counted(others, 'rule')} (--output json shows why)"] if others else []
    return f"Not applicable: {'; '.join([*_grouped(excluded), *counted_rules])}"


def _grouped(sentences: Iterable[str]) -> Iterable[str]:
    """Groups metrics or rules by their reason, as `a, b: reason`."""
    by_reason: dict[str, list[str]] = {}
    for sentence in sentences:
        metric, colon, reason = sentence.partition(": ")
        by_reason.setdefault(reason or metric, []).extend([metric] if colon else [])
    for reason, metrics in by_reason.items():
        yield f"{', '.join(metrics)}: {reason}" if metrics else reason


def _part(console: Console, title: str, part: RenderableType | None) -> None:
    if part is not None:
        _title(console, title)
        console.print(Padding(part, (0, 0, 0, 2), expand=False))


def _title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, "bold"))


def _line(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    console.print(Padding(Text(terminal(text), style), (0, 0, 0, indent), expand=False))
