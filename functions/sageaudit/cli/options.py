"""Options that several commands take, each with one name and one help text."""

from __future__ import annotations

from pathlib import Path

import click

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import is_account_id
from sageaudit.errors import BadUsage

_FILE = click.Path(path_type=Path)
ROWS = click.IntRange(1, 1_000_000)
"""More rows than anybody reads; --all has no limit."""

KIND = click.option(
    "--kind",
    type=click.Choice([kind.value for kind in JobKind]),
    help="Kind of the job; needed only where jobs of two kinds share NAME.",
)
JOB_REGION = click.option(
    "--region", help="AWS region of the job; by default that of the ARN or of your AWS settings."
)
TABLE_REGION = click.option(
    "--region", help="AWS region of the table; by default that of your AWS settings."
)
PROFILE = click.option("--profile", help="AWS profile to take credentials from.")
ACCOUNTS = click.option(
    "--accounts",
    metavar="FILE",
    type=_FILE,
    help="File with the accounts to ask: one account id a line, comments after #.",
)
ORGANIZATION = click.option(
    "--organization",
    is_flag=True,
    help="Ask all active accounts of your organization; needs credentials of its management"
    " account or of a delegated administrator.",
)
ROLE = click.option(
    "--role",
    metavar="NAME",
    help="Role to assume in each account except your own; its name, with its path if it has one.",
)
EXTERNAL_ID = click.option(
    "--external-id", metavar="TEXT", help="External id that the role's trust policy wants."
)
HISTORY = click.option(
    "--history",
    metavar="FILE",
    type=_FILE,
    help="File that holds the history; by default the one in your data folder.",
)
TABLE = click.option(
    "--table", metavar="NAME", help="DynamoDB table that holds the history, in place of a file."
)
RECORDINGS = click.option(
    "--recording",
    "recordings",
    multiple=True,
    type=_FILE,
    help="Recorded job: a Describe* response as the AWS CLI prints it, or a recording."
    " May be repeated.",
)
RECORDING = click.option(
    "--recording",
    "path",
    type=_FILE,
    help="Recorded job: a Describe* response as the AWS CLI prints it, or a recording.",
)
RECORDINGS_FOR_TABLE = click.option(
    "--recording",
    "recordings",
    multiple=True,
    type=_FILE,
    help="Recorded job to use instead of the history; may be repeated. --since is then ignored.",
)
POLICY = click.option(
    "--policy",
    "policy_path",
    type=_FILE,
    help="Policy file (TOML) to apply; by default the policy of a new installation.",
)
OUTPUT = click.option(
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Format: table for people, json for scripts.",
)
NO_COLOR = click.option("--no-color", is_flag=True, help="Print without colours (or NO_COLOR=1).")


def account_id(text: str, option: str) -> str:
    """Returns `text`. Raises BadUsage, naming `option`, unless it is an account id."""
    if not is_account_id(text):
        raise BadUsage(f"{option} {text} is not an account id, which has 12 digits")
    return text
