"""`sageaudit show`: one job's audit from the history."""

from __future__ import annotations

import click

from sageaudit.adapters.prices import packaged
from sageaudit.cli import options, query_options
from sageaudit.cli.completion import complete_jobs
from sageaudit.cli.messages import print_json
from sageaudit.cli.query_options import HistoryChoice
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.findings import show_code
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.terminal.render import render, show_guides
from sageaudit.output.text.fix_code import Dialect
from sageaudit.queries.names import JobQuery, find_job
from sageaudit.workflows.audit.stored import read_guides, require_audit

_EPILOG = """\b
Examples:
  sageaudit show my-training-job
  sageaudit show arn:aws:sagemaker:eu-west-1:111122223333:training-job/my-job --version 1"""


@click.command(epilog=_EPILOG)
@click.argument("job", metavar="ARN|NAME", shell_complete=complete_jobs)
@click.option(
    "--version", type=click.IntRange(min=1), help="Version to show; by default the newest."
)
@options.KIND_OPTION
@query_options.ACCOUNT_OPTION
@query_options.REGION_OPTION
@query_options.HISTORY_OPTIONS
@options.OUTPUT_OPTION
@options.FIX_AS_OPTION
@options.GUIDES_OPTION
@options.NO_COLOR_OPTION
def show(
    job: str,
    version: int | None,
    kind: JobKind | None,
    account: str | None,
    region: str | None,
    history_choice: HistoryChoice,
    output: str,
    fix_as: Dialect | None,
    guides: bool,
    no_color: bool,
) -> None:
    """Shows one job's audit from the history.

    If several runs have the same ARN, it shows the newest. Jobs of any age are found; a name that a
    list shortened finds only jobs of the last year.
    """
    if fix_as and output == "json":
        raise BadUsage("--fix-as cannot be used with --output json, which has every fix already")
    query = JobQuery(job, kind, account, region)
    with history_choice.open() as source:
        summary = find_job(source.history, query)
        audited = require_audit(source.history, summary, version)
        guide_documents = (
            read_guides(source.history, audited, packaged.instance_types()) if guides else None
        )
    if output == "json":
        print_json(audited if guide_documents is None else {**audited, "guides": guide_documents})
        return
    console = make_console(no_color=no_color)
    render(audited, console)
    if guide_documents is not None:
        show_guides(guide_documents, console)
    if fix_as:
        show_code(audited, console, fix_as)
