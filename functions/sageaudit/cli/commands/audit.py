"""`sageaudit audit`: audits jobs from recordings or from a live account."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from sageaudit.adapters.files import policy_file
from sageaudit.cli import options
from sageaudit.cli.exits import Exit, exit_of, gravest
from sageaudit.cli.messages import echo_json, say
from sageaudit.cli.support.account import live
from sageaudit.cli.support.history import histories
from sageaudit.cli.support.recordings.recorded_audits import audit_recordings
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording, HistoryFileError, SageauditError
from sageaudit.output.fixes.dialects import DIALECTS, Dialect
from sageaudit.output.terminal.findings import show_code
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.terminal.render import render
from sageaudit.ports import History

_EPILOG = """\b
Examples:
  sageaudit audit --recording job.json
  sageaudit audit --recording job.json --fix-as sdk-v3
  sageaudit audit my-training-job --region eu-west-1
  sageaudit audit my-training-job --history history.db
  sageaudit audit arn:aws:sagemaker:eu-west-1:111122223333:training-job/my-job --output json"""


@click.command(epilog=_EPILOG)
@click.argument("jobs", nargs=-1, metavar="[ARN|NAME]...")
@options.RECORDINGS
@click.option(
    "--history",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="History file to judge with and to record in; made if it does not exist.",
)
@click.option(
    "--table",
    metavar="NAME",
    help="DynamoDB table with earlier runs to judge with; nothing is recorded in it.",
)
@options.KIND
@options.JOB_REGION
@options.PROFILE
@options.POLICY
@options.OUTPUT
@click.option(
    "--fail-on",
    type=click.Choice([severity.value for severity in reversed(Severity)]),
    help="Exit with code 10 if a finding has this severity or a higher one, with 11 if none has"
    " and the job could not be judged.",
)
@click.option(
    "--fix-as",
    type=click.Choice(DIALECTS),
    help="Print each fix below the report, as code for the API, an SDK, boto3 or Terraform.",
)
@options.NO_COLOR
def audit(
    jobs: tuple[str, ...],
    recordings: tuple[Path, ...],
    history: Path | None,
    table: str | None,
    kind: str | None,
    region: str | None,
    profile: str | None,
    policy_path: Path | None,
    output: str,
    fail_on: str | None,
    fix_as: Dialect | None,
    no_color: bool,
) -> int:
    """Shows what a job cost, what was avoidable, and what to change.

    A run is compared with the earlier runs of its family that --history or --table has; without
    them it is judged alone. --output json prints one line for each job. Reads only, with your own
    credentials; nothing is written anywhere but to the file of --history.
    """
    if not jobs and not recordings:
        raise click.UsageError("name a job, or give a file with --recording")
    if fix_as and output == "json":
        raise click.UsageError(
            "--fix-as cannot be used with --output json, which has every fix already"
        )
    policy = policy_file.load(policy_path) if policy_path else Policy()
    show = _json if output == "json" else _table(console_for(no_color=no_color), fix_as)
    wanted = JobKind(kind) if kind else None
    with _opened(history, table, profile, region) as opened:
        audits = audit_recordings(recordings, policy, opened)
        account = live.Account(profile, region, opened) if jobs else None
        tasks: list[Callable[[], AuditDocument]] = [
            *(lambda: _recorded(next(audits)) for _ in recordings),
            *(lambda job=job: account.audit(job, wanted, policy) for job in jobs if account),
        ]
        return int(gravest(_run(task, show, fail_on) for task in tasks))


@contextmanager
def _opened(
    history: Path | None, table: str | None, profile: str | None, region: str | None
) -> Iterator[History | None]:
    """The history to audit with: new audits are recorded in a file, but beside a table."""
    if history is None and table is None:
        yield None
        return
    with histories.open_history(history, table, profile, region, create=True) as source:
        yield source.history if table is None else histories.BesideTable(source.history)


def _recorded(audited: AuditDocument | BadRecording) -> AuditDocument:
    if isinstance(audited, BadRecording):
        raise audited
    return audited


def _run(
    task: Callable[[], AuditDocument], show: Callable[[AuditDocument], None], fail_on: str | None
) -> Exit:
    """Shows one job's result as soon as it is known; a failure does not stop the other jobs."""
    try:
        audited = task()
    except HistoryFileError:
        raise  # it holds for every job
    except SageauditError as error:
        say(str(error))
        return exit_of(error)
    show(audited)
    return _gate(audited, fail_on) if fail_on else Exit.DONE


def _gate(audited: AuditDocument, fail_on: str) -> Exit:
    """A job that could not be judged does not pass: no finding is no proof then."""
    if _fails(audited, fail_on):
        return Exit.FINDINGS
    if audited["judged"] == Judged.NO or audited["avoidable_usd"] is None:
        say(f"{audited['job']['name']}: could not be judged, so --fail-on does not pass it")
        return Exit.NOT_JUDGED
    return Exit.DONE


def _fails(audited: AuditDocument, severity: str) -> bool:
    least = Severity(severity).rank
    return any(
        Severity(finding["severity"]).rank >= least and finding["exempt"] is None
        for finding in audited["findings"]
    )


def _json(audited: AuditDocument) -> None:
    echo_json(audited)


def _table(console: Console, fix_as: Dialect | None) -> Callable[[AuditDocument], None]:
    shown = 0

    def show(audited: AuditDocument) -> None:
        nonlocal shown
        if shown:
            console.rule(style="dim")
        shown += 1
        render(audited, console)
        if fix_as:
            show_code(audited, console, fix_as)

    return show
