"""`sageaudit doctor`: checks what the other commands need, and prints the IAM policy for it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict
from rich.console import Console
from rich.text import Text

from sageaudit.cli import options
from sageaudit.cli.asking_aws import OTHER_ACCOUNTS, OtherAccounts
from sageaudit.cli.messages import print_message
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit, worst_exit
from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.doctor import permissions
from sageaudit.workflows.doctor.checks import Check, CheckState
from sageaudit.workflows.doctor.permissions import (
    COVERAGE,
    FROM_HISTORY,
    MEMBERS_OPTION,
    ORGANIZATION,
    ROLE,
    STACK_OPTION,
    TABLE,
)
from sageaudit.workflows.doctor.run import DoctorScope, check_all

_WORDS = {CheckState.OK: "ok", CheckState.FAILED: "failed", CheckState.NOT_CHECKED: "not checked"}
_NAMED = 4
_STYLES = {CheckState.OK: "green", CheckState.FAILED: "bold red", CheckState.NOT_CHECKED: "yellow"}
_EPILOG = """\b
Examples:
  sageaudit doctor
  sageaudit doctor scan --organization --role sageaudit-read
  sageaudit doctor history --table NAME --region eu-west-1
  sageaudit doctor --stack SageAudit --members
  sageaudit doctor --policy scan audit > policy.json"""


@click.command(epilog=_EPILOG)
@click.argument("commands", nargs=-1, metavar="[COMMAND]...")
@click.option(
    "--policy",
    is_flag=True,
    help="Print the least IAM policy for the commands as JSON, and check nothing.",
)
@options.HISTORY_OPTION
@options.TABLE_OPTION
@OTHER_ACCOUNTS
@click.option("--coverage", is_flag=True, help="Check also what `scan --coverage` needs.")
@click.option(
    "--stack",
    metavar="NAME",
    help="Check also a deployed stack: dead letters, who gets alarms, the last sweep.",
)
@click.option(
    "--members",
    is_flag=True,
    help="Check also each other account that the stack audits: its role, and whether events come.",
)
@click.option("--region", help="AWS region to ask; by default that of your AWS settings.")
@options.PROFILE
@options.PRINT_OPTIONS
def doctor(
    commands: tuple[str, ...],
    policy: bool,
    history: Path | None,
    table: str | None,
    others: OtherAccounts,
    coverage: bool,
    stack: str | None,
    members: bool,
    region: str | None,
    profile: str | None,
    printed: options.PrintOptions,
) -> Exit:
    """Checks credentials, permissions, prices and history.

    For the commands that you name, by default for all that only read. Each permission is checked by
    a call that reads nothing of worth. Exits with 0 only if all of it works.
    """
    for name in commands:
        if name not in permissions.ALL_COMMANDS:
            raise BadUsage(f"there is no command {name}: `sageaudit --help` lists them")
    given = {
        TABLE: table,
        ROLE: others.role,
        ORGANIZATION: others.organization,
        COVERAGE: coverage,
    }
    given |= (
        {STACK_OPTION: stack, MEMBERS_OPTION: members, FROM_HISTORY: history is not None}
        if policy
        else {}
    )
    names = commands or permissions.READ_ONLY_COMMANDS
    asked = permissions.actions_of_commands(names, [name for name, value in given.items() if value])
    if policy:
        _print_policy(asked, permissions.PolicyScope(region, table, others.role, stack))
        return Exit.DONE
    others.check_consistency()
    if members and stack is None:
        raise BadUsage("--members needs the stack that audits them: --stack NAME")
    checked = DoctorScope(
        actions=asked,
        profile=profile,
        region=region,
        history=history,
        table=table,
        list_accounts=others.list_accounts if others else None,
        stack=stack,
        check_members=members,
    )
    checks = [*check_all(checked, datetime.now(UTC), print_message)]
    printed.print_document(checks, _show, _document)
    return worst_exit(check.code for check in checks)


def _print_policy(actions: Sequence[str], scope: permissions.PolicyScope) -> None:
    if not actions:
        raise BadUsage(
            "these commands call nothing of AWS; with --table NAME they read a table, and the"
            " policy allows that"
        )
    click.echo(json.dumps(permissions.make_policy(actions, scope), indent=2))


def _document(checks: Sequence[Check]) -> dict[str, Any]:
    """The checks as JSON; `exit_code` is None for one that did not fail."""
    rows = [
        {
            **{name: value for name, value in asdict(check).items() if name != "code"},
            "exit_code": int(check.code) if check.state is CheckState.FAILED else None,
        }
        for check in checks
    ]
    counts = Counter(check.state for check in checks)
    return {
        "schema": 1,
        "ok": not counts[CheckState.FAILED],
        "counts": {state.value: counts[state] for state in CheckState},
        "checks": rows,
    }


def _show(checks: Sequence[Check], console: Console) -> None:
    """Prints the counts, then the state, the name and what was found, and what to do next.

    Checks that found the same, as of many accounts, are one row each time: of those that failed,
    each is named.
    """
    table = plain_table("", " ", unbroken={""})
    table.show_header = False
    alike: dict[tuple[CheckState, str, str | None], list[str]] = {}
    for check in checks:
        alike.setdefault((check.state, check.found, check.next), []).append(check.name)
    for (state, what, remedy), names in alike.items():
        found = Text(f"{for_terminal(_names(names, state))}: {for_terminal(what)}")
        if remedy:
            found.append(f"\n-> {for_terminal(remedy)}", "dim")
        table.add_row(Text(_WORDS[state], _STYLES[state]), found)
    counts = Counter(check.state for check in checks)
    parts = [f"{counts[state]} {_WORDS[state]}" for state in CheckState if counts[state]]
    console.print(Text(f"{count_text(len(checks), 'check')}: {', '.join(parts)}", "bold"))
    console.print(table)


def _names(names: Sequence[str], state: CheckState) -> str:
    """All of them; of many that did not fail, some."""
    if state is CheckState.FAILED or len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMED - 1])} and {len(names) - _NAMED + 1} more"
