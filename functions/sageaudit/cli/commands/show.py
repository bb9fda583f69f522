"""`sageaudit show`: one job's audit from the history."""

from __future__ import annotations

import click

from sageaudit.adapters.prices import packaged
from sageaudit.cli import asking, options
from sageaudit.cli.asking import HistoryOptions
from sageaudit.cli.messages import echo_json
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.terminal.render import render, show_code, show_guides
from sageaudit.output.text.fix_code import Dialect
from sageaudit.output.text.words import counted
from sageaudit.ports import History
from sageaudit.queries.names import Wanted, find
from sageaudit.workflows.audit.stored import read_guides, whole_audit

_EPILOG = """\b
Examples:
  sageaudit show my-training-job
  sageaudit show arn:aws:sagemaker:eu-west-1:111122223333:training-job/my-job --version 1"""


@click.command(epilog=_EPILOG)
@click.argument("job", metavar="ARN|NAME")
@click.option(
    "--version", type=click.IntRange(min=1), help="Version to show; by default the newest."
)
@options.KIND
@asking.ACCOUNT
@asking.REGION
@asking.WHERE
@options.OUTPUT
@options.FIX_AS
@options.GUIDES
@options.NO_COLOR
def show(
    job: str,
    version: int | None,
    kind: JobKind | None,
    account: str | None,
    region: str | None,
    where: HistoryOptions,
    output: str,
    fix_as: Dialect | None,
    guides: bool,
    no_color: bool,
) -> None:
    """Shows one job's audit from the history.

    Of several runs with the same ARN it is the newest. A job is found whatever its age; by
    a name that a list cut, among those of the last year.
    """
    if fix_as and output == "json":
        raise BadUsage("--fix-as cannot be used with --output json, which has every fix already")
    wanted = Wanted(job, kind, account, region)
    if job.startswith("arn:") and wanted.name == job:
        raise BadUsage(f"{job} is not the ARN of a SageMaker job that is audited")
    with where.open() as opened:
        head = find(opened.history, wanted)
        audited = _audit(opened.history, head, version)
        found = read_guides(opened.history, audited, packaged.types()) if guides else None
    if output == "json":
        echo_json(audited if found is None else {**audited, "guides": found})
        return
    console = console_for(no_color=no_color)
    render(audited, console)
    if found is not None:
        show_guides(found, console)
    if fix_as:
        show_code(audited, console, fix_as)


def _audit(history: History, head: AuditSummary, version: int | None) -> AuditDocument:
    audited = whole_audit(history, head.key, version)
    if audited is None and version in {None, *range(1, head.version + 1)}:
        raise JobNotFound(f"the stored audit of {head.job} cannot be read: audit it again")
    if audited is None:
        raise JobNotFound(
            f"{head.job} has no version {version}: it has {counted(head.version, 'version')}"
        )
    return audited
