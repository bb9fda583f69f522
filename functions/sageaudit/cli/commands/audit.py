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
from sageaudit.cli.support.history.beside_table import BesideTable
from sageaudit.cli.support.recordings import recorded_run
from sageaudit.cli.support.recordings.kept_recordings import KeptFile, KeptRecordings
from sageaudit.cli.support.recordings.recorded_audit import of_recording, of_set
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import HistoryFileError, SageauditError
from sageaudit.output.fixes.dialects import DIALECTS, Dialect
from sageaudit.output.terminal.findings import show_code
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.terminal.render import render
from sageaudit.ports import History
from sageaudit.workflows.audit.judge import Child

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
    with _told(history, table, profile, region) as told:
        account = live.Account(profile, region, told) if jobs else None
        of_path = _recordings(recordings, policy, told)
        tasks: list[Callable[[], AuditDocument]] = [
            *(lambda path=path: of_path(path) for path in recordings),
            *(lambda job=job: account.audit(job, wanted, policy) for job in jobs if account),
        ]
        return int(gravest(_run(task, show, fail_on) for task in tasks))


@contextmanager
def _told(
    history: Path | None, table: str | None, profile: str | None, region: str | None
) -> Iterator[History | None]:
    """The history to audit with: new audits are recorded in a file, but beside a table."""
    if history is None and table is None:
        yield None
        return
    with histories.open_history(history, table, profile, region, create=True) as source:
        yield source.history if table is None else BesideTable(source.history)


def _recordings(
    paths: tuple[Path, ...], policy: Policy, history: History | None
) -> Callable[[Path], AuditDocument]:
    """What audits one of these files, by the others and by the history."""
    if history is None:
        beside = recorded_run.RecordedRuns(paths)
        return lambda path: of_recording(path, policy, beside)
    kept = KeptRecordings(paths, history, policy)
    return lambda path: _of_kept(kept.of(path), policy)


def _of_kept(kept: KeptFile, policy: Policy) -> AuditDocument:
    documents = [run.done.document for run in kept.runs]
    if not kept.is_set:
        return documents[0]
    if kept.tuning is not None:
        return document(kept.tuning.done.audit, documents)
    children = [Child(run.done.document, run.done.audit.job.final_metrics) for run in kept.runs]
    return of_set(None, children, policy, max(run.as_of for run in kept.runs))


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
