"""`sageaudit doctor`: checks what the other commands need, and prints the IAM policy for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from sageaudit.cli import options
from sageaudit.cli.asking_aws import OTHER_ACCOUNTS, OtherAccounts
from sageaudit.cli.messages import say
from sageaudit.cli.views import doctor as view
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit, gravest
from sageaudit.workflows.doctor import permissions
from sageaudit.workflows.doctor.permissions import (
    COVERAGE,
    FROM_HISTORY,
    OF_MEMBERS,
    OF_STACK,
    ORGANIZATION,
    ROLE,
    TABLE,
)
from sageaudit.workflows.doctor.run import DoctorScope, check_all

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
@options.HISTORY
@options.TABLE
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
@options.PRINTED
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
    printed: options.Printed,
) -> Exit:
    """Checks credentials, permissions, prices and history.

    For the commands that you name, by default for all that only read. Each permission is checked by
    a call that reads nothing of worth. Exits with 0 only if all of it works.
    """
    for name in commands:
        if name not in permissions.EVERY:
            raise BadUsage(f"there is no command {name}: `sageaudit --help` lists them")
    given = {TABLE: table, ROLE: others.role, ORGANIZATION: others.organization, COVERAGE: coverage}
    given |= (
        {OF_STACK: stack, OF_MEMBERS: members, FROM_HISTORY: history is not None} if policy else {}
    )
    names = commands or permissions.COMMANDS
    asked = permissions.actions(names, [name for name, value in given.items() if value])
    if policy:
        _print_policy(asked, permissions.PolicyScope(region, table, others.role, stack))
        return Exit.DONE
    others.check()
    if members and stack is None:
        raise BadUsage("--members needs the stack that audits them: --stack NAME")
    checked = DoctorScope(
        actions=asked,
        profile=profile,
        region=region,
        history=history,
        table=table,
        list_accounts=others.listed if others else None,
        stack=stack,
        members=members,
    )
    checks = [*check_all(checked, datetime.now(UTC), say)]
    printed.show(checks, view.show, view.document)
    return gravest(check.code for check in checks)


def _print_policy(asked: Sequence[str], where: permissions.PolicyScope) -> None:
    if not asked:
        raise BadUsage(
            "these commands call nothing of AWS; with --table NAME they read a table, and the"
            " policy allows that"
        )
    click.echo(json.dumps(permissions.policy(asked, where), indent=2))
