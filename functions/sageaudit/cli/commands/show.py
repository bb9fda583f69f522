"""`sageaudit show`: one job's audit from the history."""

from __future__ import annotations

import click

from sageaudit.adapters.prices import packaged
from sageaudit.cli import asking, options
from sageaudit.cli.asking import HistoryChoice
from sageaudit.cli.messages import print_json
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.terminal.render import render, show_code, show_guides
from sageaudit.output.text.fix_code import Dialect
from sageaudit.output.text.words import count_text
from sageaudit.ports import History
from sageaudit.queries.names import JobQuery, find_job
from sageaudit.workflows.audit.stored import read_audit, read_guides

_EPILOG = """\b
Examples:
  sageaudit show my-training-job
  sageaudit show arn:aws:sagemaker:eu-west-1:111122223333:training-job/my-job --version 1"""


@click.command(epilog=_EPILOG)
@click.argument("job", metavar="ARN|NAME")
@click.option(
    "--version", type=click.IntRange(min=1), help="Version to show; by default the newest."
)
@options.KIND_OPTION
@asking.ACCOUNT_OPTION
@asking.REGION_OPTION
@asking.HISTORY_OPTIONS
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
    where: HistoryChoice,
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
    wanted = JobQuery(job, kind, account, region)
    if job.startswith("arn:") and wanted.name == job:
        raise BadUsage(f"{job} is not the ARN of a SageMaker job that is audited")
    with where.open() as opened:
        head = find_job(opened.history, wanted)
        audited = _audit(opened.history, head, version)
        found = read_guides(opened.history, audited, packaged.instance_types()) if guides else None
    if output == "json":
        print_json(audited if found is None else {**audited, "guides": found})
        return
    console = make_console(no_color=no_color)
    render(audited, console)
    if found is not None:
        show_guides(found, console)
    if fix_as:
        show_code(audited, console, fix_as)


def _audit(history: History, head: AuditSummary, version: int | None) -> AuditDocument:
    audited = read_audit(history, head.key, version)
    if audited is None and version in {None, *range(1, head.version + 1)}:
        raise JobNotFound(f"the stored audit of {head.job} cannot be read: audit it again")
    if audited is None:
        raise JobNotFound(
            f"{head.job} has no version {version}: it has {count_text(head.version, 'version')}"
        )
    return audited
