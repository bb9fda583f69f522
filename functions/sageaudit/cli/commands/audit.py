"""`sageaudit audit`: audits jobs from recordings or from a live account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.sqlite.history import SqliteHistory
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
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.terminal.render import render, show_code, show_guides
from sageaudit.output.text.fix_code import Dialect
from sageaudit.ports import History
from sageaudit.workflows.audit.stored import read_guides
from sageaudit.workflows.recordings.run import audit_recordings

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
@options.RECORDINGS
@options.history_option("History file to judge with and to record in; made if it does not exist.")
@options.JOB
@options.OUTPUT
@options.fail_on_option("the job")
@options.FIX_AS
@options.GUIDES
@options.NO_COLOR
def audit(
    jobs: tuple[str, ...],
    recordings: tuple[Path, ...],
    history: Path | None,
    target: JobOptions,
    output: str,
    fail_on: Severity | None,
    fix_as: Dialect | None,
    guides: bool,
    no_color: bool,
) -> Exit:
    """Shows what a job cost, what was avoidable, and what to change.

    A run is compared with the earlier runs of its family that --history has; without them it is
    judged alone. --output json prints one line for each job. Reads only, with your own
    credentials; nothing is written anywhere but to the file of --history.
    """
    if not jobs and not recordings:
        raise click.UsageError("name a job, or give a file with --recording")
    if fix_as and output == "json":
        raise click.UsageError(
            "--fix-as cannot be used with --output json, which has every fix already"
        )
    show = _json if output == "json" else _table(make_console(no_color=no_color), fix_as)
    lasts = history is not None

    with _open_history(history) as opened:

        def show_one(audited: AuditDocument) -> Exit:
            show(
                audited, read_guides(opened, audited, packaged.instance_types()) if guides else None
            )
            return _gate(audited, fail_on)

        audits = audit_recordings(recordings, target.policy, opened, is_history_persistent=lasts)
        tasks = [partial(_next_recorded_audit, audits) for _ in recordings]
        if jobs:
            from sageaudit.workflows import live  # noqa: PLC0415 - it needs boto3

            account = live.LiveAccount(
                target.profile, target.region, opened, is_persistent=lasts, warn=print_message
            )
            tasks += [partial(account.audit, job, target.kind, target.policy) for job in jobs]
        return worst_exit(show_result(task, show_one) for task in tasks)


@contextmanager
def _open_history(history: Path | None) -> Iterator[History]:
    """The history to audit with, which records new audits too; without a file, in memory."""
    if history is None:
        yield SqliteHistory()
        return
    with histories.open_history(
        history, None, None, None, create=True, warn=print_message
    ) as source:
        yield source.history
        print_message(f"the audits are kept in {source.location_text}")


def _next_recorded_audit(audits: Iterator[AuditDocument | BadRecording]) -> AuditDocument:
    audited = next(audits)
    if isinstance(audited, BadRecording):
        raise audited
    return audited


def _gate(audited: AuditDocument, fail_on: Severity | None) -> Exit:
    counted = (one["severity"] for one in audited["findings"] if one["exempt"] is None)
    known = audited["judged"] != Judged.NO and audited["avoidable_usd"] is not None
    return options.exit_code(audited["job"]["name"], counted, fail_on, could_judge=known)


OptionalGuides = Sequence[GuideDocument] | None
"""None where they are not asked for."""


def _json(audited: AuditDocument, guides: OptionalGuides) -> None:
    print_json(audited if guides is None else {**audited, "guides": guides})


def _table(
    console: Console, fix_as: Dialect | None
) -> Callable[[AuditDocument, OptionalGuides], None]:
    shown = 0

    def show(audited: AuditDocument, guides: OptionalGuides) -> None:
        nonlocal shown
        if shown:
            console.rule(style="dim")
        shown += 1
        render(audited, console)
        if guides is not None:
            show_guides(guides, console)
        if fix_as:
            show_code(audited, console, fix_as)

    return show
