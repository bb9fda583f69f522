"""`sageaudit backfill`: fills a deployed table with audits of jobs that ended before it."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.aws.pace import DaemonThreads, RateLimiter, ScanStopped
from sageaudit.adapters.history.opened import open_history
from sageaudit.cli import options
from sageaudit.cli.asking_aws import OTHER_ACCOUNTS, Interruption, OtherAccounts, list_live_jobs
from sageaudit.cli.messages import may_ask, print_message
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
    help=f"First day on which a job ended, in UTC: {DAY_FORMATS}; of a file by default all days.",
)
@click.option(
    "--from-history",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the audits of a scan's history into the table; SageMaker is not asked.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done and what it costs.")
@click.option("--yes", is_flag=True, help="Do not ask before it begins.")
@click.option(
    "--per-minute",
    metavar="JOBS",
    type=click.IntRange(1, 6_000),
    default=20,
    show_default=True,
    help="Jobs to send a minute; also the most that may wait in the queue before more are sent.",
)
@click.option(
    "--stack", metavar="NAME", default=DEFAULT_STACK, show_default=True, help="Stack to fill."
)
@OTHER_ACCOUNTS
@click.option("--region", help="AWS region of the stack; by default that of your AWS settings.")
@options.PROFILE
def backfill(
    since: str | None,
    file: Path | None,
    dry_run: bool,
    yes: bool,
    per_minute: int,
    stack: str,
    others: OtherAccounts,
    region: str | None,
    profile: str | None,
) -> Exit:
    """Fills a deployed table with audits of jobs that ended before it.

    Lists the jobs, and sends those without an audit to the stack's queue, slowly enough for those
    of today. Nobody gets a message about them. Stopped at any time, the same command goes on.
    """
    if since is None and file is None:
        raise BadUsage("how far back? give --since 90d, or --from-history FILE")
    others.check_consistency()
    if file is not None and others:
        raise BadUsage("--from-history asks no account: leave out --account and --organization")
    now = datetime.now(UTC)
    kept = None if file else METRIC_RETENTION
    asked = parse_whole_days(since, None, now, kept).period(now.date()) if since else None
    period = asked or Period(FIRST_MOMENT.date(), now.date())
    session = open_session(profile, region)
    with Interruption(print_message) as interruption:
        run = _Backfill(interruption, dry_run=dry_run, assume_yes=yes, per_minute=per_minute)
        try:
            if file is not None:
                return run.copy_from_file(file, find_stack(session, stack), period)
            if line := metrics_warning(period, now):
                print_message(line)
            return run.send_from_accounts(session, others, find_stack(session, stack), period)
        except ScanStopped:
            print_message("interrupted: run the same command again, and it goes on from there")
            return Exit.INTERRUPTED


class _Backfill:
    """One call of the command."""

    def __init__(
        self, interruption: Interruption, *, dry_run: bool, assume_yes: bool, per_minute: int
    ) -> None:
        self._interruption = interruption
        self._dry_run, self._yes, self._per_minute = dry_run, assume_yes, per_minute
        self._said_at = time.monotonic()

    def send_from_accounts(
        self, session: Any, others: OtherAccounts, stack: BackfillStack, period: Period
    ) -> Exit:
        """Lists, asks and sends. Raises Stopped, or AwsError."""
        found = Counter[BackfillStatus]()
        missing = list[ListedJob]()
        with DaemonThreads(THREADS) as workers:
            asked = ScanScope(period, tuple(JobKind), None, False, Policy(), tuple(stack.regions))
            listed = ScanRun(stack.deployment.history, asked, workers, print_message)
            audited = len({account for account, _ in stack.deployment.account_regions})
            if not others and audited > 1:
                print_message(
                    f"of {audited} accounts of the stack this lists yours: --account names more"
                )
            pace = RateLimiter(time.monotonic, self._interruption.sleep)
            list_live_jobs(listed, session, others, session.region_name, pace, self._interruption)
            jobs = sort_for_audit(job for lane in listed.lanes for job in lane.jobs)
            for job, standing in job_statuses(jobs, stack.deployment, workers, datetime.now(UTC)):
                found[standing] += 1
                if standing is BackfillStatus.MISSING:
                    missing.append(job)
                self._raise_if_stopped()
        print_message(counts_line(found))
        if not missing:
            print_message("nothing to send")
            return listed.tally.exit_code
        print_message(cost_estimate_line(len(missing), self._per_minute))
        if self._dry_run:
            return listed.tally.exit_code
        self._confirm(f"Send {count_text(len(missing), 'job')}?")
        return worst_exit({listed.tally.exit_code, self._send(missing, stack)})

    def _send(self, jobs: list[ListedJob], stack: BackfillStack) -> Exit:
        done = SendProgress()
        sending = send_events(
            jobs, stack.queue, per_minute=self._per_minute, sleep=self._interruption.sleep
        )
        try:
            for done in sending:
                waits = f"; waiting for {done.queued_before:,} messages in the queue"
                self._progress(
                    f"{done.sent:,} of {count_text(len(jobs), 'job')} sent"
                    f"{waits if done.queued_before else ''}"
                )
        finally:
            print_message(
                f"{done.sent:,} of {count_text(len(jobs), 'job')} sent to {stack.queue.name}"
            )
        for reason, times in Counter(done.refusals).items():
            print_message(f"{times:,} not taken by SQS ({reason}): run the same command again")
        print_message(
            f"`{stack.history_location.command('top')}` shows their audits as they are made"
        )
        return Exit.UNAVAILABLE if done.refusals else Exit.DONE

    def copy_from_file(self, path: Path, stack: BackfillStack, period: Period) -> Exit:
        """Reads, asks and writes. Raises Stopped, AwsError, or HistoryFileError."""
        with open_history(path, None, None, None, warn=print_message) as source:
            jobs, rulesets = 0, Counter[bool]()
            for head in iterate_oldest_first(source.history, period):
                jobs += 1
                rulesets[head.ruleset == catalogue.ruleset().version] += 1
                self._raise_if_stopped()
            print_message(f"{count_text(jobs, 'audit')} in {path}")
            if rulesets[False]:
                print_message(
                    f"{rulesets[False]:,} of them were made by rules of another version, and are"
                    " written as they are: `sageaudit scan --again` makes them anew"
                )
            if not jobs:
                return Exit.DONE
            print_message(copy_estimate_line(jobs))
            if self._dry_run:
                return Exit.DONE
            self._confirm(f"Write {count_text(jobs, 'audit')} into {stack.table}?")
            return self._bring(source.history, stack, period, jobs)

    def _bring(self, source: History, stack: BackfillStack, period: Period, jobs: int) -> Exit:
        found = Counter[BackfillStatus]()
        heads = iterate_oldest_first(source, period)
        try:
            for _, standing in copy_audits(
                heads, source, stack.deployment, lambda: datetime.now(UTC)
            ):
                found[standing] += 1
                self._progress(f"{found.total():,} of {jobs:,} looked at")
                self._raise_if_stopped()
        finally:
            print_message(counts_line(found, done_label=f"written to {stack.table}"))
        return Exit.DONE

    def _confirm(self, question: str) -> None:
        """Raises Abort for a no, and BadUsage where nobody can answer."""
        if self._yes:
            return
        if not may_ask():
            raise BadUsage("nobody is there to answer: give --yes, or --dry-run")
        with self._interruption.during_question():
            click.confirm(question, abort=True, err=True)

    def _raise_if_stopped(self) -> None:
        """Raises Stopped after Ctrl-C."""
        self._interruption.sleep(0)

    def _progress(self, line: str) -> None:
        if time.monotonic() - self._said_at >= _PROGRESS_EVERY_S:
            self._said_at = time.monotonic()
            print_message(line)
