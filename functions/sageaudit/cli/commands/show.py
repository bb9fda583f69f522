"""`sageaudit show`: one job's audit from the history, or its versions."""

from __future__ import annotations

from types import SimpleNamespace

import click

from sageaudit.cli import options
from sageaudit.cli.messages import echo_json
from sageaudit.cli.support.history import asking, formats, lists
from sageaudit.cli.support.history.asking import HistoryOptions
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Head
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.output.fixes.dialects import Dialect
from sageaudit.output.terminal.findings import show_code
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.terminal.render import render
from sageaudit.output.text.amounts import of_document
from sageaudit.output.text.words import counted
from sageaudit.ports import History
from sageaudit.queries.lists import ReadCounts
from sageaudit.queries.lookup import Wanted, find
from sageaudit.workflows.audit.whole_audit import whole_audit

_EPILOG = """\b
Examples:
  sageaudit show my-training-job
  sageaudit show my-training-job --versions
  sageaudit show arn:aws:sagemaker:eu-west-1:111122223333:training-job/my-job --version 1"""


@click.command(epilog=_EPILOG)
@click.argument("job", metavar="ARN|NAME")
@click.option(
    "--version", type=click.IntRange(min=1), help="Version to show; by default the newest."
)
@click.option("--versions", is_flag=True, help="List all versions instead.")
@options.KIND
@asking.ACCOUNT
@asking.REGION
@asking.WHERE
@options.OUTPUT
@options.FIX_AS
@options.NO_COLOR
def show(
    job: str,
    version: int | None,
    versions: bool,
    kind: JobKind | None,
    account: str | None,
    region: str | None,
    where: HistoryOptions,
    output: str,
    fix_as: Dialect | None,
    no_color: bool,
) -> None:
    """Shows one job's audit from the history.

    Of several runs with the same ARN it is the newest. A job is found whatever its age.
    """
    if versions and (version or fix_as):
        raise BadUsage("--versions lists all versions: leave out --version and --fix-as")
    if fix_as and output == "json":
        raise BadUsage("--fix-as cannot be used with --output json, which has every fix already")
    wanted = Wanted(job, kind, account, region)
    if job.startswith("arn:") and wanted.name == job:
        raise BadUsage(f"{job} is not the ARN of a SageMaker job that is audited")
    with where.open() as opened:
        head = find(opened.history, wanted)
        if versions:
            _list(opened.history, head, output, no_color=no_color)
            return
        audited = _audit(opened.history, head, version)
    if output == "json":
        echo_json(audited)
        return
    console = console_for(no_color=no_color)
    render(audited, console)
    if fix_as:
        show_code(audited, console, fix_as)


def _audit(history: History, head: Head, version: int | None) -> AuditDocument:
    audited = whole_audit(history, head.key, version)
    if audited is None and version in {None, *range(1, head.version + 1)}:
        raise JobNotFound(f"the stored audit of {head.name} cannot be read: audit it again")
    if audited is None:
        raise JobNotFound(
            f"{head.name} has no version {version}: it has {counted(head.version, 'version')}"
        )
    return audited


def _list(history: History, head: Head, output: str, *, no_color: bool) -> None:
    documents = (whole_audit(history, head.key, version) for version in range(head.version, 0, -1))
    rows = [_version(document) for document in documents if document is not None]
    layout, console = lists.VERSIONS, console_for(no_color=no_color)
    tail = asking.tail(ReadCounts(len(rows)))
    formats.write(rows, layout, layout.chosen(output, None), output, console, tail)


def _version(document: AuditDocument) -> SimpleNamespace:
    """A row of `lists.VERSIONS`."""
    return SimpleNamespace(
        version=document["audit"]["version"],
        settled=document["audit"]["settled"],
        total_usd=document["bill"]["total_usd"],
        avoidable_usd=document["avoidable_usd"],
        lost_usd=document["lost_usd"],
        possible_usd=document["possible_usd"],
        judged=document["judged"],
        findings=len(document["findings"]),
        ruleset=document["audit"]["ruleset"],
        policy=document["audit"]["policy"],
        amounts=of_document(document),
    )
