"""`sageaudit scan`: audits the jobs of an account, and ranks what cost and wasted most."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import click
from rich.text import Text

from sageaudit.adapters.aws.accounts import home_region, open_session
from sageaudit.adapters.aws.pace import RateLimiter, ScanStopped
from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.threads import DaemonThreads
from sageaudit.cli import options
from sageaudit.cli.account_options import (
    OTHER_ACCOUNTS_OPTIONS,
    OtherAccounts,
    list_live_jobs,
)
from sageaudit.cli.interruption import Interruption
from sageaudit.cli.messages import can_ask, print_json, print_message
from sageaudit.cli.views import coverage as coverage_view
from sageaudit.cli.views import ranking as ranking_view
from sageaudit.cli.views import scan as view
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.sweep import Period
from sageaudit.errors import BadUsage, NoHistory
from sageaudit.exits import Exit, worst_exit
from sageaudit.output.terminal.layout import make_console
from sageaudit.queries.window import DAY_FORMATS, METRIC_RETENTION, parse_whole_days
from sageaudit.workflows.scan import coverage as billed
from sageaudit.workflows.scan.accounts import THREADS, regions_to_scan
from sageaudit.workflows.scan.lanes import ScanResult
from sageaudit.workflows.scan.run import ScanRun, ScanScope
from sageaudit.workflows.scan.tally import ScanCost, scan_cost

_ASK_ABOVE_USD = Decimal(5)
"""A scan that costs more asks for confirmation, if a person can answer."""
_EPILOG = """\b
Examples:
  sageaudit scan
  sageaudit scan --since 7d --region eu-west-1 --region us-east-1
  sageaudit scan --all-regions --dry-run
  sageaudit scan --organization --role sageaudit-read
  sageaudit scan --recordings folder --history history.db"""


@click.command(epilog=_EPILOG)
@click.option(
    "--since",
    help=f"Audit jobs that ended on or after this day (UTC): {DAY_FORMATS}; by default 30d, or with"
    " --recordings all days.",
)
@click.option(
    "--until",
    help="Audit jobs that ended on or before this day; by default today, or the last day of the"
    " week or month that --since names.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=options.EnumChoice(JobKind),
    help="Kind of job to audit; may be repeated. By default all kinds.",
)
@options.region_option(
    "AWS region to scan; may be repeated. By default that of your AWS settings.",
    "--region",
    "regions",
    multiple=True,
)
@click.option("--all-regions", is_flag=True, help="Scan every region of SageMaker.")
@click.option(
    "--limit", type=options.ROW_COUNT, help="Audit at most this many jobs: those that ended last."
)
@click.option("--again", is_flag=True, help="Also audit jobs whose audits are final.")
@click.option("--dry-run", is_flag=True, help="Print what would be audited and what that costs.")
@click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation of a scan that costs over $5."
)
@click.option(
    "--recordings",
    type=click.Path(path_type=Path, exists=True),
    help="Folder of recorded jobs to audit instead of an account, with its subfolders.",
)
@OTHER_ACCOUNTS_OPTIONS
@click.option(
    "--coverage",
    is_flag=True,
    help="Compare with the SageMaker bill in Cost Explorer, at $0.01 a request.",
)
@options.HISTORY_OPTION
@options.PROFILE_OPTION
@options.POLICY_OPTION
@options.PRINT_OPTIONS
def scan(
    since: str | None,
    until: str | None,
    kinds: tuple[JobKind, ...],
    regions: tuple[str, ...],
    all_regions: bool,
    limit: int | None,
    again: bool,
    dry_run: bool,
    yes: bool,
    recordings: Path | None,
    other_accounts: OtherAccounts,
    coverage: bool,
    history: Path | None,
    profile: str | None,
    policy: Policy,
    print_options: options.PrintOptions,
) -> Exit:
    """Audits all jobs of the last 30 days, and ranks cost and waste.

    It only reads from AWS, with your own credentials, and saves the audits in a file on this
    machine: the next scan audits only new jobs. Ctrl-C keeps finished audits. It first prints its
    own cost: about $0.01 for 200 jobs with one host each.
    """
    if all_regions and regions:
        raise BadUsage("give either --region or --all-regions")
    other_accounts.check_consistency()
    if recordings:
        _check_needs_no_aws(
            profile, coverage, has_aws_options=bool(regions or all_regions or other_accounts)
        )
    now = datetime.now(UTC)
    period = _days(since, until, now, default_all=recordings is not None)
    session = None if recordings else open_session(profile, None)
    region_names = (
        [] if session is None else regions_to_scan(session, regions, all_regions=all_regions)
    )
    scope = ScanScope(
        period, kinds or tuple(JobKind), limit, again, policy, tuple(region_names), all_regions
    )
    with (
        Interruption(print_message) as interruption,
        _open_history(history, dry_run=dry_run) as source,
        DaemonThreads(THREADS) as workers,
    ):
        rate_limiter = RateLimiter(time.monotonic, interruption.sleep)
        home_region_name = home_region(session, region_names, all_regions=all_regions)
        run = ScanRun(source.history, scope, workers, print_message)
        account_names = dict[str, str | None]()
        try:
            if recordings:
                run.list_recordings(recordings)
            else:
                account_names = list_live_jobs(
                    run, session, other_accounts, home_region_name, rate_limiter, interruption
                )
            # raises ScanStopped if Ctrl-C was pressed while the last page was read
            interruption.sleep(0)
        except ScanStopped:
            print_message("interrupted before the first audit")
            return Exit.INTERRUPTED
        cost, bill = scan_cost([] if recordings else run.jobs_to_audit()), None
        if coverage:
            bill = billed.billed_accounts(session, home_region_name, account_names)
            print_message(coverage_view.cost_line(bill))
        if dry_run:
            _show_plan(run, cost, print_options)
            return run.tally.exit_code
        if not recordings:
            print_message(view.listed_line(run.lanes, cost))
            print_message(view.cost_line(cost))
        if cost.usd + (bill.cost_usd if bill else 0) > _ASK_ABOVE_USD and not yes and can_ask():
            with interruption.during_question():
                click.confirm("Scan?", abort=True, err=True)
        with view.show_progress(run.tally, run.job_count, print_message) as draw_progress:
            run.audit_all(lambda: interruption.is_requested, draw_progress)
        bill = None if interruption.is_requested else bill
        _show(run, run.period(now.date()), bill, rate_limiter.metrics_requested, print_options)
        _explain_how_to_resume(run)
        print_message(f"the audits are saved in {source.location_text}")
        return worst_exit(
            {run.tally.exit_code, *([Exit.INTERRUPTED] if interruption.is_requested else [])}
        )


def _days(
    since: str | None, until: str | None, now: datetime, *, default_all: bool
) -> Period | None:
    # By default, returns the last 30 days. None means all days, the default of recordings.
    if since is None and default_all:
        if until is not None:
            raise BadUsage("--until with --recordings needs --since too")
        return None
    return parse_whole_days("30d" if since is None else since, until, now, METRIC_RETENTION).period(
        now.date()
    )


def _check_needs_no_aws(profile: str | None, coverage: bool, *, has_aws_options: bool) -> None:
    if profile or has_aws_options:
        raise BadUsage("--recordings does not use AWS: leave out regions, accounts and --profile")
    if coverage:
        raise BadUsage("--coverage needs an account: recordings have no bill")


def _open_history(history: Path | None, *, dry_run: bool) -> histories.HistorySource:
    # A dry run creates no file.
    try:
        return histories.open_history(
            history, None, None, None, create=not dry_run, warn=print_message
        )
    except NoHistory:
        if not dry_run:
            raise
        return histories.open_in_memory("no history yet")


def _show_plan(run: ScanRun, cost: ScanCost, print_options: options.PrintOptions) -> None:
    if print_options.is_json:
        print_json({"schema": 1, **view.plan_document(run.lanes, cost)})
    else:
        console = make_console()
        for line in view.plan_lines(run.lanes, cost):
            console.print(Text(line))


def _show(
    run: ScanRun,
    period: Period,
    bill: billed.BilledAccounts | None,
    metrics: int,
    print_options: options.PrintOptions,
) -> None:
    ranking, statuses = run.ranking(period), run.accounts(period)
    coverage_result = billed.CoverageResult()
    if bill is not None:
        coverage_result = billed.read_coverage(
            bill, run.history, run.account_regions, run.scope.regions, period
        )
        run.tally.codes.add(coverage_view.report_refusal(coverage_result))
    if print_options.is_json:
        print_json(
            {
                "schema": 1,
                "scan": view.document(run.tally, run.lanes, run.remaining, metrics),
                "coverage": coverage_view.document(coverage_result),
                "ranking": ranking_view.document(ranking),
                "accounts": view.accounts_document(statuses),
            }
        )
        return
    console = make_console(no_color=print_options.no_color)
    coverage_view.show(coverage_result, console)
    ranking_view.show(ranking, console)
    view.show_accounts(statuses, console)
    view.show(run.tally, run.remaining, metrics, console)


def _explain_how_to_resume(run: ScanRun) -> None:
    count = (
        run.remaining
        + run.tally.results[ScanResult.REFUSED]
        + run.tally.results[ScanResult.NOT_ASKED]
    )
    if count:
        print_message(
            f"{count:,} of {run.job_count:,} jobs are not audited: run the same command again to"
            " continue"
        )
