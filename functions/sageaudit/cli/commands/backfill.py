"""`sageaudit backfill`: fills a deployed table with audits of jobs that ended before it."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.aws.pace import RateLimiter, ScanStopped
from sageaudit.adapters.history.opened import open_history
from sageaudit.adapters.threads import DaemonThreads
from sageaudit.cli import options
from sageaudit.cli.account_options import (
    OTHER_ACCOUNTS_OPTIONS,
    OtherAccounts,
    list_live_jobs,
)
from sageaudit.cli.interruption import Interruption
from sageaudit.cli.messages import can_ask, print_message
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.sweep import ListedJob, Period, sort_for_audit
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit, worst_exit
from sageaudit.output.text.words import count_text
from sageaudit.ports import History
from sageaudit.queries.window import DAY_FORMATS, FIRST_MOMENT, METRIC_RETENTION, parse_whole_days
from sageaudit.rules import catalogue
from sageaudit.workflows.backfill import (
    BackfillStack,
    BackfillStatus,
    SendProgress,
    copy_audits,
    copy_estimate_line,
    cost_estimate_line,
    counts_line,
    find_stack,
    iterate_oldest_first,
    job_statuses,
    metrics_warning,
    send_events,
)
from sageaudit.workflows.doctor.permissions import DEFAULT_STACK
from sageaudit.workflows.scan.accounts import THREADS
from sageaudit.workflows.scan.run import ScanRun, ScanScope

_PROGRESS_EVERY_S = 60.0
_EPILOG = """\b
Examples:
  sageaudit backfill --since 90d --dry-run
  sageaudit backfill --since 2026-08 --stack SageAudit --region eu-west-1 --per-minute 60
  sageaudit backfill --since 90d --organization --role sageaudit-read
  sageaudit backfill --from-history history.db"""


@click.command(epilog=_EPILOG)
@click.option(
    "--since",
    help=f"Audit jobs that ended on or after this day (UTC): {DAY_FORMATS}; by default all days of"
    " a file.",
)
@click.option(
    "--from-history",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Copy the audits of a scan's history into the table, without calls to SageMaker.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done and what it costs.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--per-minute",
    metavar="JOBS",
    type=click.IntRange(1, 6_000),
    default=20,
    show_default=True,
    help="Jobs to send per minute; no more are sent while this many wait in the queue.",
)
@click.option(
    "--stack", metavar="NAME", default=DEFAULT_STACK, show_default=True, help="Stack to fill."
)
@OTHER_ACCOUNTS_OPTIONS
@options.region_option("AWS region of the stack; by default that of your AWS settings.")
@options.PROFILE_OPTION
def backfill(
    since: str | None,
    file: Path | None,
    dry_run: bool,
    yes: bool,
    per_minute: int,
    stack: str,
    other_accounts: OtherAccounts,
    region: str | None,
    profile: str | None,
) -> Exit:
    """Adds audits of jobs that ended before a deployment to its table.

    Lists the jobs, and sends those without an audit to the stack's queue, slowly enough that
    today's jobs are not delayed. No messages are sent about them. It can be stopped at any time;
    run it again to continue.
    """
    if since is None and file is None:
        raise BadUsage("give --since, such as --since 90d, or --from-history FILE")
    other_accounts.check_consistency()
    if file is not None and other_accounts:
        raise BadUsage("--from-history reads no account: leave out --account and --organization")
    now = datetime.now(UTC)
    period = Period(FIRST_MOMENT.date(), now.date())
    if since is not None:
        retention = None if file else METRIC_RETENTION
        period = parse_whole_days(since, None, now, retention).period(now.date())
    session = open_session(profile, region)
    with Interruption(print_message) as interruption:
        run = _Backfill(interruption, dry_run=dry_run, assume_yes=yes, per_minute=per_minute)
        try:
            if file is not None:
                return run.copy_from_file(file, find_stack(session, stack), period)
            if line := metrics_warning(period, now):
                print_message(line)
            return run.send_from_accounts(
                session, other_accounts, find_stack(session, stack), period
            )
        except ScanStopped:
            print_message("interrupted: run the same command again to continue")
            return Exit.INTERRUPTED


class _Backfill:
    def __init__(
        self, interruption: Interruption, *, dry_run: bool, assume_yes: bool, per_minute: int
    ) -> None:
        self._interruption = interruption
        self._dry_run, self._yes, self._per_minute = dry_run, assume_yes, per_minute
        self._printed_at = time.monotonic()

    def send_from_accounts(
        self, session: Any, other_accounts: OtherAccounts, stack: BackfillStack, period: Period
    ) -> Exit:
        """Lists the jobs, asks for confirmation, and sends them. Raises ScanStopped or AwsError."""
        counts = Counter[BackfillStatus]()
        missing = list[ListedJob]()
        with DaemonThreads(THREADS) as workers:
            scope = ScanScope(period, tuple(JobKind), None, False, Policy(), tuple(stack.regions))
            scan_run = ScanRun(stack.deployment.history, scope, workers, print_message)
            account_count = len({account for account, _ in stack.deployment.account_regions})
            if not other_accounts and account_count > 1:
                print_message(
                    f"this lists only your account, of {account_count} in the stack: --account adds"
                    " others"
                )
            pace = RateLimiter(time.monotonic, self._interruption.sleep)
            list_live_jobs(
                scan_run, session, other_accounts, session.region_name, pace, self._interruption
            )
            jobs = sort_for_audit(job for lane in scan_run.lanes for job in lane.jobs)
            for job, status in job_statuses(jobs, stack.deployment, workers, datetime.now(UTC)):
                counts[status] += 1
                if status is BackfillStatus.MISSING:
                    missing.append(job)
                self._raise_if_stopped()
        print_message(counts_line(counts))
        if not missing:
            print_message("nothing to send")
            return scan_run.tally.exit_code
        print_message(cost_estimate_line(len(missing), self._per_minute))
        if self._dry_run:
            return scan_run.tally.exit_code
        self._confirm(f"Send {count_text(len(missing), 'job')}?")
        return worst_exit({scan_run.tally.exit_code, self._send(missing, stack)})

    def _send(self, jobs: list[ListedJob], stack: BackfillStack) -> Exit:
        progress = SendProgress()
        progress_updates = send_events(
            jobs, stack.queue, per_minute=self._per_minute, sleep=self._interruption.sleep
        )
        try:
            for progress in progress_updates:
                waiting_text = f"; waiting for {progress.queued_before:,} messages in the queue"
                self._print_progress(
                    f"{progress.sent_count:,} of {count_text(len(jobs), 'job')} sent"
                    f"{waiting_text if progress.queued_before else ''}"
                )
        finally:
            print_message(
                f"{progress.sent_count:,} of {count_text(len(jobs), 'job')} sent to"
                f" {stack.queue.name}"
            )
        for reason, count in Counter(progress.refusals).items():
            print_message(f"{count:,} refused by SQS ({reason}): run the same command again")
        print_message(
            f"`{stack.history_location.command('top')}` shows their audits as they are finished"
        )
        return Exit.UNAVAILABLE if progress.refusals else Exit.DONE

    def copy_from_file(self, path: Path, stack: BackfillStack, period: Period) -> Exit:
        """Asks for confirmation, and copies the audits of a history's file.

        Raises ScanStopped, AwsError or HistoryFileError.
        """
        with open_history(path, None, None, None, warn=print_message) as source:
            jobs, rulesets = 0, Counter[bool]()
            for summary in iterate_oldest_first(source.history, period):
                jobs += 1
                rulesets[summary.ruleset == catalogue.ruleset().version] += 1
                self._raise_if_stopped()
            print_message(f"{count_text(jobs, 'audit')} in {path}")
            if rulesets[False]:
                print_message(
                    f"{rulesets[False]:,} of them are of another version of the rules, and are"
                    " copied unchanged: `sageaudit scan --again` audits them again"
                )
            if not jobs:
                return Exit.DONE
            print_message(copy_estimate_line(jobs))
            if self._dry_run:
                return Exit.DONE
            self._confirm(f"Write {count_text(jobs, 'audit')} into {stack.table}?")
            return self._copy(source.history, stack, period, jobs)

    def _copy(self, source: History, stack: BackfillStack, period: Period, jobs: int) -> Exit:
        counts = Counter[BackfillStatus]()
        summaries = iterate_oldest_first(source, period)
        try:
            for _, status in copy_audits(
                summaries, source, stack.deployment, lambda: datetime.now(UTC)
            ):
                counts[status] += 1
                self._print_progress(f"{counts.total():,} of {jobs:,} read")
                self._raise_if_stopped()
        finally:
            print_message(counts_line(counts, done_label=f"written to {stack.table}"))
        return Exit.DONE

    def _confirm(self, question: str) -> None:
        """Raises Abort for a no, and BadUsage if nobody can answer."""
        if self._yes:
            return
        if not can_ask():
            raise BadUsage("nobody can answer without a terminal: give --yes or --dry-run")
        with self._interruption.during_question():
            click.confirm(question, abort=True, err=True)

    def _raise_if_stopped(self) -> None:
        """Raises ScanStopped after Ctrl-C."""
        self._interruption.sleep(0)

    def _print_progress(self, line: str) -> None:
        if time.monotonic() - self._printed_at >= _PROGRESS_EVERY_S:
            self._printed_at = time.monotonic()
            print_message(line)
