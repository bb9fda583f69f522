"""`sageaudit account`: findings that need all runs of an account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.console import Console

from sageaudit.cli import clock, options, query_options
from sageaudit.cli.completion import complete_names
from sageaudit.cli.query_options import HistoryChoice
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.finding_document import finding_document, other_outcomes
from sageaudit.domain.audit.record import UNKNOWN_NAME
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import JobNotFound
from sageaudit.output.terminal.findings import show_finding
from sageaudit.output.terminal.layout import print_line
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
@click.argument("account", shell_complete=complete_names("account"))
@query_options.since_option(formats_text=DAY_FORMATS)
@query_options.HISTORY_OPTIONS
@options.POLICY_OPTION
@options.PRINT_OPTIONS
def account(
    account: str,
    since: str,
    history_choice: HistoryChoice,
    policy: Policy,
    print_options: options.PrintOptions,
) -> None:
    """Audits all runs of an account together.

    Finds runs without an owner, and instance hours steady enough for a Savings Plan (needs
    [commitment] in the policy). ACCOUNT has 12 digits, or is `unknown` for recordings that name no
    account. It only reads.
    """
    now = clock.utc_now()
    period = parse_whole_days(since, None, now).period(now.date())
    days = (period.until - period.since).days + 1
    if account != UNKNOWN_NAME:
        options.check_account_id(account, "ACCOUNT")
    with history_choice.open() as source:
        summaries = list(audits_of_period(source.history, period, account))
    runs = [summary for summary in summaries if summary.is_comparable]
    if not runs:
        raise JobNotFound(f"no audited run of account {account} ended in these days")
    audit = audit_account(runs, days, policy.for_job(account, "", {}), catalogue.ruleset())
    print_options.print_document(_document(account, days, runs, audit), _show)


def _document(
    account: str,
    days: int,
    runs: Sequence[AuditSummary],
    audit: AccountAudit,
) -> dict[str, Any]:
    judged_counts = Counter(run.judged for run in runs)
    return {
        "schema": 1,
        "account": account,
        "days": days,
        "runs": len(runs),
        "runs_judged": {
            **{
                answer.value: judged_counts[answer]
                for answer in (Judged.YES, Judged.PARTLY, Judged.NO)
            },
            "unknown": judged_counts[None],
        },
        "runs_at_estimated_rates": sum(run.estimated for run in runs),
        "runs_with_incomplete_bills": sum(run.incomplete for run in runs),
        "runs_with_upper_bounds": sum(run.sums.upper_bounds for run in runs),
        "findings": [finding_document(finding) for finding in audit.findings],
        **other_outcomes(audit.outcomes),
    }


def _show(document: dict[str, Any], console: Console) -> None:
    runs, days = count_text(document["runs"], "run"), count_text(document["days"], "day")
    print_line(console, f"Account {document['account']}: {runs} in {days}", "bold")
    for line in _uncertainty_lines(document):
        print_line(console, line, "yellow")
    for finding in document["findings"]:
        console.print()
        show_finding(make_finding_parts(finding), console)
    console.print()
    for row in (*document["unknown"], *document["not_applicable"]):
        print_line(console, f"{row['rule']}: {row['reason']}", "dim")
    for name in document["clear"]:
        print_line(console, f"{name}: clear", "dim")


def _uncertainty_lines(document: dict[str, Any]) -> Iterator[str]:
    labels = {
        "no": "could not be judged",
        "partly": "could be judged in part",
        "unknown": "audited by an old version, which did not record this",
    }
    judged_counts = document["runs_judged"]
    if parts := [
        f"{count_text(judged_counts[answer], 'run')} {label}"
        for answer, label in labels.items()
        if judged_counts[answer]
    ]:
        yield f"{', '.join(parts)}."
    if count := document["runs_at_estimated_rates"]:
        runs = count_text(count, "run")
        yield f"{runs} billed at an estimated rate: sums with them are estimates."
    if count := document["runs_with_incomplete_bills"]:
        runs = count_text(count, "run")
        yield f"{runs} with an incomplete bill: sums with them are lower bounds."
    if count := document["runs_with_upper_bounds"]:
        runs = count_text(count, "spot run")
        yield f"{runs} without billable seconds: sums with them are upper bounds."
