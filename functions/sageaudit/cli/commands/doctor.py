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

from sageaudit.adapters.history.dynamo.table_writes import TableWrites
from sageaudit.cli import options
from sageaudit.cli.account_options import OTHER_ACCOUNTS_OPTIONS, OtherAccounts
from sageaudit.cli.messages import print_message
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit, worst_exit
from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.doctor import permissions
from sageaudit.workflows.doctor.checks import Check, CheckState
from sageaudit.workflows.doctor.deployment import (
    DEFAULT_QUALIFIER,
    DEPLOYMENT_POLICIES,
    deployment_grants,
    make_deployment_policy,
)
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

_STATE_LABELS = {
    CheckState.OK: "ok",
    CheckState.FAILED: "failed",
    CheckState.NOT_CHECKED: "not checked",
}
_MAX_NAMES = 4
_STATE_STYLES = {
    CheckState.OK: "green",
    CheckState.FAILED: "bold red",
    CheckState.NOT_CHECKED: "yellow",
}
_EPILOG = """\b
Examples:
  sageaudit doctor
  sageaudit doctor scan --organization --role sageaudit-read
  sageaudit doctor history --table NAME --region eu-west-1
  sageaudit doctor --stack SageAudit --members
  sageaudit doctor --policy scan audit > policy.json
  sageaudit doctor --policy deploy --region eu-west-1"""


@click.command(epilog=_EPILOG)
@click.argument("commands", nargs=-1, metavar="[COMMAND]...")
@click.option(
    "--policy",
    is_flag=True,
    help="Print the minimal IAM policy for the commands as JSON, and check nothing. Two more names:"
    " deploy is the policy of who runs `make deploy`, execution that of CloudFormation's role.",
)
@click.option(
    "--qualifier",
    metavar="NAME",
    default=DEFAULT_QUALIFIER,
    help="With --policy deploy or execution: the qualifier of the CDK bootstrap, if cdk.json has"
    " another one.",
)
@options.HISTORY_OPTION
@options.TABLE_OPTION
@OTHER_ACCOUNTS_OPTIONS
@click.option("--coverage", is_flag=True, help="Also check what `scan --coverage` needs.")
@click.option(
    "--stack",
    metavar="NAME",
    help="Also check a deployed stack: dead letters, who gets alarms, and the last sweep,"
    " which looks for jobs whose events were lost.",
)
@click.option(
    "--members",
    is_flag=True,
    help="Also check each other account that the stack audits: its role, and whether its events"
    " arrive.",
)
@options.region_option("AWS region to check; by default that of your AWS settings.")
@options.PROFILE_OPTION
@options.PRINT_OPTIONS
def doctor(
    commands: tuple[str, ...],
    policy: bool,
    qualifier: str,
    history: Path | None,
    table: str | None,
    other_accounts: OtherAccounts,
    coverage: bool,
    stack: str | None,
    members: bool,
    region: str | None,
    profile: str | None,
    print_options: options.PrintOptions,
) -> Exit:
    """Checks credentials, permissions, prices and history.

    It checks what the commands need that you name; by default all commands that only read from AWS.
    Each permission is checked by a harmless call. It exits with 0 only if everything works.
    """
    policy_scope = permissions.PolicyScope(region, table, other_accounts.role, stack)
    if {*commands} & {*DEPLOYMENT_POLICIES}:
        if not policy:
            raise BadUsage("deploy and execution can only be printed: add --policy")
        _print_deployment_policy(commands, policy_scope, qualifier, has_members=members)
        return Exit.DONE
    for name in commands:
        if name not in permissions.ALL_COMMANDS:
            raise BadUsage(f"there is no command {name}: `sageaudit --help` lists them")
    used_options = {
        TABLE: table,
        ROLE: other_accounts.role,
        ORGANIZATION: other_accounts.organization,
        COVERAGE: coverage,
    }
    used_options |= (
        {STACK_OPTION: stack, MEMBERS_OPTION: members, FROM_HISTORY: history is not None}
        if policy
        else {}
    )
    names = commands or permissions.READ_ONLY_COMMANDS
    used_names = [name for name, value in used_options.items() if value]
    actions = permissions.actions_of_commands(names, used_names)
    if policy:
        _print_policy(actions, policy_scope, permissions.writes_of_commands(names, used_names))
        return Exit.DONE
    other_accounts.check_consistency()
    if members and stack is None:
        raise BadUsage("--members needs the stack that audits them: --stack NAME")
    scope = DoctorScope(
        actions=actions,
        profile=profile,
        region=region,
        history=history,
        table=table,
        list_accounts=other_accounts.list_accounts if other_accounts else None,
        stack=stack,
        check_members=members,
    )
    checks = [*check_all(scope, datetime.now(UTC), print_message)]
    print_options.print_document(checks, _show, _document)
    return worst_exit(check.code for check in checks)


def _print_policy(
    actions: Sequence[str], scope: permissions.PolicyScope, writes: Sequence[TableWrites]
) -> None:
    if not actions:
        raise BadUsage(
            "these commands do not call AWS; with --table NAME they read a table, and need a policy"
            " for that"
        )
    click.echo(json.dumps(permissions.make_policy(actions, scope, writes), indent=2))


def _print_deployment_policy(
    names: Sequence[str], scope: permissions.PolicyScope, qualifier: str, *, has_members: bool
) -> None:
    if len(names) > 1:
        raise BadUsage("deploy and execution are for different identities: print each one alone")
    grants = deployment_grants(names[0], has_members=has_members)
    click.echo(json.dumps(make_deployment_policy(grants, scope, qualifier), indent=2))


def _document(checks: Sequence[Check]) -> dict[str, Any]:
    # `exit_code` is None for a check that did not fail.
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
    """Checks with the same result, such as those of many accounts, share a row."""
    table = plain_table("", " ", unbroken={""})
    table.show_header = False
    names_by_result: dict[tuple[CheckState, str, str | None], list[str]] = {}
    for check in checks:
        names_by_result.setdefault((check.state, check.found, check.next), []).append(check.name)
    for (state, result_text, remedy), names in names_by_result.items():
        result = Text(f"{for_terminal(_names(names, state))}: {for_terminal(result_text)}")
        if remedy:
            result.append(f"\n-> {for_terminal(remedy)}", "dim")
        table.add_row(Text(_STATE_LABELS[state], _STATE_STYLES[state]), result)
    counts = Counter(check.state for check in checks)
    parts = [f"{counts[state]} {_STATE_LABELS[state]}" for state in CheckState if counts[state]]
    console.print(Text(f"{count_text(len(checks), 'check')}: {', '.join(parts)}", "bold"))
    console.print(table)


def _names(names: Sequence[str], state: CheckState) -> str:
    # Of many checks that did not fail, only the first ones are named.
    if state is CheckState.FAILED or len(names) <= _MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MAX_NAMES - 1])} and {len(names) - _MAX_NAMES + 1} more"
