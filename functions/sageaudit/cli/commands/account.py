"""`sageaudit account`: what no single job shows: owners, and hours steady enough to commit to."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.auditing import AccountAudit, audit_account
from sageaudit.cli import options
from sageaudit.cli.exits import Exit
from sageaudit.cli.sources import stored
from sageaudit.domain.audit.document import (
    clear_names,
    finding_document,
    not_applicable_documents,
    unknown_documents,
)
from sageaudit.domain.audit.record import Head, earlier_run
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.rules import catalogue
from sageaudit.text.untrusted import terminal
from sageaudit.text.words import assignment, counted

_EPILOG = """\b
Examples:
  sageaudit account 111122223333 --table sageaudit-history --since 30d
  sageaudit account unknown --recording a.json --recording b.json"""


@click.command(epilog=_EPILOG)
@click.argument("account")
@options.SINCE
@options.TABLE
@click.option(
    "--recording",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Recorded jobs instead of the history, of the account that they name, or unknown.",
)
@click.option(
    "--policy", "policy_path", type=click.Path(path_type=Path), help="A policy.toml to judge by."
)
@options.TABLE_REGION
@options.PROFILE
@options.OUTPUT
@options.NO_COLOR
def account(
    account: str,
    since: str,
    table: str | None,
    recordings: tuple[Path, ...],
    policy_path: Path | None,
    region: str | None,
    profile: str | None,
    output: str,
    no_color: bool,
) -> int:
    """Judges ACCOUNT (12 digits) by its audited runs: their owners, and hours steady enough for a
    Savings Plan (set [commitment] in the policy). Reads only.
    """
    if bool(table) == bool(recordings):
        raise BadUsage("say where the runs are: --table, or --recording")
    policy = policy_file.load(policy_path) if policy_path else Policy()
    days = stored.days_of(since)
    heads = _of_table(account, days, table, profile, region) if table else _recorded(recordings)
    runs = [run for head in heads if head.account == account and (run := earlier_run(head))]
    if not runs:
        others = ", ".join(sorted({head.account for head in heads} - {account}))
        perhaps = f", only of {others}" if others else ""
        raise JobNotFound(f"there is no audited run of account {account} there{perhaps}")
    if recordings:
        days = max((runs[0].ended_at - runs[-1].ended_at).days + 1, 1)
    done = audit_account(runs, days, policy.for_job(account, "", {}), catalogue.ruleset())
    if output == "json":
        click.echo(to_json(_document(account, days, len(runs), done)))
    else:
        _render(account, days, len(runs), done, Console(no_color=no_color or None))
    return int(Exit.DONE)


def _of_table(
    account: str, days: int, table: str, profile: str | None, region: str | None
) -> list[Head]:
    if not re.fullmatch(r"\d{12}", account):
        raise BadUsage(f"{account} is not an account: 12 digits")
    today = datetime.now(UTC).date()
    since = today - timedelta(days=days)
    history = stored.of_table(table, profile, region)
    return list(stored.account_heads(history, account, since, today))


def _recorded(recordings: tuple[Path, ...]) -> list[Head]:
    _, heads = stored.of_recordings(recordings)
    return sorted(heads, key=lambda head: head.ended_at, reverse=True)


def _document(account: str, days: int, runs: int, done: AccountAudit) -> dict[str, object]:
    return {
        "account": account,
        "days": days,
        "runs": runs,
        "findings": [finding_document(finding) for finding in done.findings],
        "unknown": unknown_documents(done.outcomes),
        "not_applicable": not_applicable_documents(done.outcomes),
        "clear": clear_names(done.outcomes),
    }


def _render(account: str, days: int, runs: int, done: AccountAudit, console: Console) -> None:
    console.print(
        Text(f"Account {account}: {counted(runs, 'run')} in {counted(days, 'day')}", "bold")
    )
    for finding in map(finding_document, done.findings):
        console.print()
        console.print(Text(f"{finding['rule']} ({finding['severity']})", "bold"))
        console.print(Text(terminal(finding["summary"])))
        for line in map(assignment, finding["fix"]):
            console.print(Text(f"  {terminal(line)}"))
        if finding["caution"]:
            console.print(Text(terminal(finding["caution"]), "dim"))
    said = [
        *(f"{one['rule']}: {one['reason']}" for one in unknown_documents(done.outcomes)),
        *(f"{one['rule']}: {one['reason']}" for one in not_applicable_documents(done.outcomes)),
        *(f"{name}: clear" for name in clear_names(done.outcomes)),
    ]
    for line in said:
        console.print(Text(terminal(line), "dim"))
