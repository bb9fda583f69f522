"""An account's audit on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from sageaudit.domain.audit.finding_document import (
    clear_names,
    finding_document,
    not_applicable_documents,
    unknown_documents,
)
from sageaudit.domain.audit.judgement import Judged
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import assignment, counted
from sageaudit.workflows.audit.judge import AccountAudit


@dataclass(frozen=True, slots=True)
class AuditedAccount:
    """An account's audit, and the number of runs and days it covers."""

    account: str
    days: int
    runs: int
    audit: AccountAudit
    judged: Mapping[Judged | None, int]
    """Runs by how much of each was judged; None: audited before audits said so."""
    estimated: int = 0
    """Runs whose dollars rest on an estimated rate."""
    incomplete: int = 0
    """Runs whose total lacks a part."""


def document(audited: AuditedAccount) -> dict[str, object]:
    """The document that --output json prints; keys are always present and never removed."""
    outcomes = audited.audit.outcomes
    return {
        "schema": 1,
        "account": audited.account,
        "days": audited.days,
        "runs": audited.runs,
        "runs_judged": {
            "yes": audited.judged.get(Judged.YES, 0),
            "partly": audited.judged.get(Judged.PARTLY, 0),
            "no": audited.judged.get(Judged.NO, 0),
            "unknown": audited.judged.get(None, 0),
        },
        "runs_at_estimated_rates": audited.estimated,
        "runs_with_incomplete_bills": audited.incomplete,
        "findings": [finding_document(finding) for finding in audited.audit.findings],
        "unknown": unknown_documents(outcomes),
        "not_applicable": not_applicable_documents(outcomes),
        "clear": clear_names(outcomes),
    }


def show(audited: AuditedAccount, console: Console) -> None:
    """Prints the findings with their fixes, then the other rules with their outcomes."""
    runs, days = counted(audited.runs, "run"), counted(audited.days, "day")
    console.print(Text(f"Account {audited.account}: {runs} in {days}", "bold"))
    if unjudged := _not_judged(audited.judged):
        console.print(Text(f"{unjudged}.", "yellow"))
    for line in _doubts(audited):
        console.print(Text(line, "yellow"))
    for finding in map(finding_document, audited.audit.findings):
        console.print()
        console.print(Text(f"{finding['rule']} ({finding['severity']})", "bold"))
        console.print(Text(terminal(finding["summary"])))
        for line in map(assignment, finding["fix"]):
            console.print(Text(f"  {terminal(line)}"))
        if finding["caution"]:
            console.print(Text(terminal(finding["caution"]), "dim"))
    for line in _without_finding(audited.audit):
        console.print(Text(terminal(line), "dim"))


def _not_judged(judged: Mapping[Judged | None, int]) -> str:
    """The runs whose avoidable dollars are not, or not wholly, known; empty without any."""
    words = {
        Judged.NO: "could not be judged",
        Judged.PARTLY: "could be judged in part",
        None: "audited before audits said so",
    }
    parts = (f"{counted(n, 'run')} {words[how]}" for how in words if (n := judged.get(how, 0)))
    return ", ".join(parts)


def _doubts(audited: AuditedAccount) -> Iterator[str]:
    """What to know of sums over these runs."""
    if audited.estimated:
        runs = counted(audited.estimated, "run")
        yield f"{runs} billed at an estimated rate: sums that contain them are estimates."
    if audited.incomplete:
        runs = counted(audited.incomplete, "run")
        yield f"{runs} with an incomplete bill: sums that contain them are at least that much."


def _without_finding(audit: AccountAudit) -> Iterator[str]:
    for unknown in unknown_documents(audit.outcomes):
        yield f"{unknown['rule']}: {unknown['reason']}"
    for not_applicable in not_applicable_documents(audit.outcomes):
        yield f"{not_applicable['rule']}: {not_applicable['reason']}"
    for name in clear_names(audit.outcomes):
        yield f"{name}: clear"
