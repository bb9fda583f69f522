"""`sageaudit audit`: audits jobs from recordings or from a live account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.deferred import DeferredHistory
from sageaudit.adapters.prices import packaged
from sageaudit.cli import options
from sageaudit.cli.messages import print_json, print_message, show_result
from sageaudit.cli.options import JobOptions
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.guides import GuideDocument
from sageaudit.errors import BadRecording
from sageaudit.exits import Exit, worst_exit
from sageaudit.output.terminal.findings import show_code
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.terminal.render import render, show_guides
from sageaudit.output.text.fix_code import Dialect
from sageaudit.ports import History
from sageaudit.workflows.audit.stored import read_guides
from sageaudit.workflows.recordings.run import audit_recordings, recorded_files

_EPILOG = """\b
Examples:
  sageaudit audit --recording job.json
  sageaudit audit --recording job.json --fix-as sdk-v3
  sageaudit audit --recording job.json --guides
  sageaudit audit my-training-job --region eu-west-1
  sageaudit audit my-training-job --history history.db
  sageaudit audit arn:aws:sagemaker:eu-west-1:111122223333:training-job/my-job --output json"""


@click.command(epilog=_EPILOG)
@click.argument("jobs", nargs=-1, metavar="[ARN|NAME]...")
@options.RECORDINGS_OPTION
@options.history_option(
    "History file with earlier runs, to which the audits are added; created if it does not exist."
)
@options.JOB_OPTIONS
@options.OUTPUT_OPTION
@options.fail_on_option("the job")
@options.FIX_AS_OPTION
@options.GUIDES_OPTION
@options.NO_COLOR_OPTION
def audit(
    jobs: tuple[str, ...],
    recordings: tuple[Path, ...],
    history: Path | None,
    job_options: JobOptions,
    output: str,
    fail_on: Severity | None,
    fix_as: Dialect | None,
    guides: bool,
    no_color: bool,
) -> Exit:
    """Shows what a job cost, what was avoidable, and what to change.

    A run is compared with the earlier runs of its family in --history; without them it is judged
    alone. --output json prints one line for each job. It only reads from AWS, with your own
    credentials, and writes only to the file of --history.
    """
    if not jobs and not recordings:
        raise click.UsageError("name a job, or give a file with --recording")
    if fix_as and output == "json":
        raise click.UsageError(
            "--fix-as cannot be used with --output json, which has every fix already"
        )
    show = (
        _print_json
        if output == "json"
        else _make_table_printer(make_console(no_color=no_color), fix_as)
    )
    is_persistent = history is not None

    audit_count = 0
    with _open_history(history) as (open_history, location_text):

        def show_audit(audited: AuditDocument) -> Exit:
            nonlocal audit_count
            audit_count += 1
            show(
                audited,
                read_guides(open_history, audited, packaged.instance_types()) if guides else None,
            )
            return _exit_code(audited, fail_on)

        parts = recorded_files(recordings, is_history_persistent=is_persistent)
        audits = audit_recordings(
            parts, job_options.policy, open_history, is_history_persistent=is_persistent
        )
        tasks = [partial(_next_recorded_audit, audits) for _ in parts]
        if jobs:
            from sageaudit.workflows import live  # noqa: PLC0415 - it needs boto3

            account = live.LiveAccount(
                job_options.profile,
                job_options.region,
                open_history,
                is_persistent=is_persistent,
                warn=print_message,
            )
            tasks += [
                partial(account.audit, job, job_options.kind, job_options.policy) for job in jobs
            ]
        code = worst_exit(show_result(task, show_audit) for task in tasks)
        if audit_count and location_text:
            print_message(f"the audits are saved in {location_text}")
        return code


@contextmanager
def _open_history(history: Path | None) -> Iterator[tuple[History, str | None]]:
    # Yields the history and where it is kept. Without a file, it is in memory.
    if history is None:
        yield DeferredHistory(), None
        return
    with histories.open_history(
        history, None, None, None, create=True, warn=print_message
    ) as source:
        yield source.history, source.location_text


def _next_recorded_audit(audits: Iterator[AuditDocument | BadRecording]) -> AuditDocument:
    audited = next(audits)
    if isinstance(audited, BadRecording):
        raise audited
    return audited


def _exit_code(audited: AuditDocument, fail_on: Severity | None) -> Exit:
    severities = (
        finding["severity"] for finding in audited["findings"] if finding["exempt"] is None
    )
    could_judge = audited["judged"] != Judged.NO and audited["avoidable_usd"] is not None
    return options.exit_code(audited["job"]["name"], severities, fail_on, could_judge=could_judge)


OptionalGuides = Sequence[GuideDocument] | None
"""The guides to print; None without --guides."""


def _print_json(audited: AuditDocument, guides: OptionalGuides) -> None:
    print_json(audited if guides is None else {**audited, "guides": guides})


def _make_table_printer(
    console: Console, fix_as: Dialect | None
) -> Callable[[AuditDocument, OptionalGuides], None]:
    printed_count = 0

    def show(audited: AuditDocument, guides: OptionalGuides) -> None:
        nonlocal printed_count
        if printed_count:
            console.rule(style="dim")
        printed_count += 1
        render(audited, console)
        if guides is not None:
            show_guides(guides, console)
        if fix_as:
            show_code(audited, console, fix_as)

    return show
