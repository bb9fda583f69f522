"""`sageaudit account`: findings that need all runs of an account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.console import Console

from sageaudit.cli import asking, options
from sageaudit.cli.asking import HistoryChoice
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.finding_document import finding_document, other_outcomes
from sageaudit.domain.audit.record import UNKNOWN_NAME
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import JobNotFound
from sageaudit.output.terminal.layout import print_line
from sageaudit.output.terminal.render import show_finding
from sageaudit.output.text.finding import make_finding_parts
from sageaudit.output.text.words import count_text
from sageaudit.queries.lists import audits_of_period
from sageaudit.queries.window import DAY_FORMATS, parse_whole_days
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import AccountAudit, audit_account

_EPILOG = """\b
Examples:
  sageaudit account 111122223333 --since 30d
  sageaudit account 111122223333 --table sageaudit-history
  sageaudit account unknown --history recorded.db"""


@click.command(epilog=_EPILOG)
@click.argument("account")
@asking.since_option(forms=DAY_FORMATS)
@asking.HISTORY_OPTIONS
@options.POLICY
@options.PRINT_OPTIONS
def account(
    account: str,
    since: str,
    where: HistoryChoice,
    policy: Policy,
    printed: options.PrintOptions,
) -> None:
    """Audits all runs of an account together.

    Finds runs without an owner, and instance hours steady enough for a Savings Plan (needs
    [commitment] in the policy). ACCOUNT has 12 digits, or is `unknown` for recordings that name no
    account. Reads only.
    """
    now = asking.utc_now()
    period = parse_whole_days(since, None, now).period(now.date())
    days = (period.until - period.since).days + 1
    asked = account if account == UNKNOWN_NAME else options.check_account_id(account, "ACCOUNT")
    with where.open() as source:
        heads = list(audits_of_period(source.history, period, asked))
    runs = [head for head in heads if head.is_comparable]
    if not runs:
        raise JobNotFound(f"no audited run of account {account} was found")
    audit = audit_account(runs, days, policy.for_job(account, "", {}), catalogue.ruleset())
    printed.print_document(_document(account, days, runs, audit), _show)


def _document(
    account: str,
    days: int,
    runs: Sequence[AuditSummary],
    audit: AccountAudit,
) -> dict[str, Any]:
    judged = Counter(run.judged for run in runs)
    return {
        "schema": 1,
        "account": account,
        "days": days,
        "runs": len(runs),
        "runs_judged": {
            **{how.value: judged[how] for how in (Judged.YES, Judged.PARTLY, Judged.NO)},
            "unknown": judged[None],
        },
        "runs_at_estimated_rates": sum(run.estimated for run in runs),
        "runs_with_incomplete_bills": sum(run.incomplete for run in runs),
        "runs_with_upper_bounds": sum(run.sums.upper_bounds for run in runs),
        "findings": [finding_document(finding) for finding in audit.findings],
        **other_outcomes(audit.outcomes),
    }


def _show(document: dict[str, Any], console: Console) -> None:
    """Prints the findings with their fixes, then the other rules with their outcomes."""
    runs, days = count_text(document["runs"], "run"), count_text(document["days"], "day")
    print_line(console, f"Account {document['account']}: {runs} in {days}", "bold")
    for doubt in _doubts(document):
        print_line(console, doubt, "yellow")
    for finding in document["findings"]:
        console.print()
        show_finding(make_finding_parts(finding), console)
    console.print()
    for row in (*document["unknown"], *document["not_applicable"]):
        print_line(console, f"{row['rule']}: {row['reason']}", "dim")
    for name in document["clear"]:
        print_line(console, f"{name}: clear", "dim")


def _doubts(document: dict[str, Any]) -> Iterator[str]:
    """What to know of sums over these runs."""
    words = {
        "no": "could not be judged",
        "partly": "could be judged in part",
        "unknown": "audited before audits said so",
    }
    judged = document["runs_judged"]
    if parts := [f"{count_text(judged[how], 'run')} {words[how]}" for how in words if judged[how]]:
        yield f"{', '.join(parts)}."
    if count := document["runs_at_estimated_rates"]:
        runs = count_text(count, "run")
        yield f"{runs} billed at an estimated rate: sums that contain them are estimates."
    if count := document["runs_with_incomplete_bills"]:
        runs = count_text(count, "run")
        yield f"{runs} with an incomplete bill: sums that contain them are at least that much."
    if count := document["runs_with_upper_bounds"]:
        runs = count_text(count, "spot run")
        yield f"{runs} without billable seconds: sums that contain them are at most that much."
