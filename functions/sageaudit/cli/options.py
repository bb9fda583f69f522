"""Options that several commands take, with one wording."""

from __future__ import annotations

import click

from sageaudit.domain.job.kinds import JobKind

KIND = click.option(
    "--kind",
    type=click.Choice([kind.value for kind in JobKind]),
    help="What kind of job NAME is, where two kinds share it.",
)
JOB_REGION = click.option(
    "--region", help="AWS region; an ARN's own by default, else your AWS settings'."
)
TABLE_REGION = click.option("--region", help="The table's region; by default your AWS settings'.")
PROFILE = click.option("--profile", help="AWS profile.")
TABLE = click.option("--table", help="The DynamoDB table of the history.")
SINCE = click.option(
    "--since", default="30d", show_default=True, help="How many days back, such as 30d."
)
OUTPUT = click.option(
    "--output", type=click.Choice(["table", "json"]), default="table", show_default=True
)
NO_COLOR = click.option("--no-color", is_flag=True, help="No colours; NO_COLOR does the same.")
