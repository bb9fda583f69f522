"""`sageaudit scan`: audits the jobs of an account, and ranks where its dollars went."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import click
from rich.text import Text

from sageaudit.adapters.aws.accounts import home_region, open_session
from sageaudit.adapters.aws.pace import Pace, Stopped, Threads
from sageaudit.adapters.history import opened as histories
from sageaudit.cli import options
from sageaudit.cli.asking_aws import OTHER_ACCOUNTS, Interruption, OtherAccounts, list_live
from sageaudit.cli.messages import echo_json, may_ask, say
from sageaudit.cli.views import coverage as coverage_view
from sageaudit.cli.views import ranking as ranking_view
from sageaudit.cli.views import scan as view
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.sweep import Period
from sageaudit.errors import BadUsage, NoHistory
from sageaudit.exits import Exit, gravest
from sageaudit.output.terminal.layout import console_for
from sageaudit.queries.window import DAY_FORMS, METRICS, window_of_days
from sageaudit.workflows.scan import coverage as billed
from sageaudit.workflows.scan.accounts import THREADS, scanned_regions
from sageaudit.workflows.scan.lanes import Result
from sageaudit.workflows.scan.run import ScanRun, ScanScope
from sageaudit.workflows.scan.tally import ScanCost, scan_cost

_ASK_ABOVE_USD = Decimal(5)
"""A scan that costs more is asked about, where somebody can answer."""
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
    help=f"First day on which a job ended, in UTC: {DAY_FORMS}; by default 30d, of recordings all"
    " days.",
)
@click.option(
    "--until",
    help="Last day on which a job ended; by default today, or the end of --since 2026-08.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=options.EnumChoice(JobKind),
    help="Kind of job to audit; may be repeated. By default all kinds.",
)
@click.option(
    "--region",
    "regions",
    multiple=True,
    help="AWS region to scan; may be repeated. By default that of your AWS settings.",
)
@click.option("--all-regions", is_flag=True, help="Scan every region of SageMaker.")
@click.option(
    "--limit", type=options.ROWS, help="Audit at most so many jobs: those that ended last."
)
@click.option("--again", is_flag=True, help="Audit also the jobs whose audits are final.")
@click.option("--dry-run", is_flag=True, help="Print what would be audited and what that costs.")
@click.option("--yes", is_flag=True, help="Do not ask before a scan that costs over $5.")
@click.option(
    "--recordings",
    type=click.Path(path_type=Path, exists=True),
    help="Folder of recorded jobs to audit instead of an account, with all folders below it.",
)
@OTHER_ACCOUNTS
@click.option(
    "--coverage",
    is_flag=True,
    help="Compare with the SageMaker bill in Cost Explorer, at $0.01 a request.",
)
@options.HISTORY
@options.PROFILE
@options.POLICY
@options.PRINTED
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
    others: OtherAccounts,
    coverage: bool,
    history: Path | None,
    profile: str | None,
    policy: Policy,
    printed: options.Printed,
) -> Exit:
    """Audits all jobs of the last 30 days and ranks their dollars.

    Reads only, with your own credentials, and keeps the audits in a file on this machine: the next
    scan asks AWS only about jobs that are new. Ctrl-C keeps what is done. It first prints what it
    costs: about a cent for 200 jobs of one host.
    """
    if all_regions and regions:
        raise BadUsage("give either --region or --all-regions")
    others.check()
    if recordings:
        _check_needs_no_aws(profile, coverage, some=bool(regions or all_regions or others))
    now = datetime.now(UTC)
    days = _days(since, until, now, all_of_them=recordings is not None)
    session = None if recordings else open_session(profile, None)
    named = [] if session is None else scanned_regions(session, regions, every=all_regions)
    asked = ScanScope(
        days, kinds or tuple(JobKind), limit, again, policy, tuple(named), all_regions
    )
    with (
        Interruption(say) as interruption,
        _open(history, dry_run=dry_run) as opened,
        Threads(THREADS) as workers,
    ):
        pace = Pace(time.monotonic, interruption.sleep)
        home = home_region(session, named, every=all_regions)
        run, names = ScanRun(opened.history, asked, workers, say), dict[str, str | None]()
        try:
            if recordings:
                run.list_recordings(recordings)
            else:
                names = list_live(run, session, others, home, pace, interruption)
            interruption.sleep(0)  # raises Stopped, if that came while the last page was read
        except Stopped:
            say("interrupted before the first audit")
            return Exit.INTERRUPTED
        cost, bill = scan_cost([] if recordings else run.to_audit()), None
        if coverage:
            bill = billed.billed(session, home, names)
            say(coverage_view.cost_line(bill))
        if dry_run:
            _show_plan(run, cost, printed)
            return run.tally.exit
        if not recordings:
            say(view.listed_line(run.lanes, cost))
            say(view.cost_line(cost))
        if cost.usd + (bill.usd if bill else 0) > _ASK_ABOVE_USD and not yes and may_ask():
            with interruption.question():
                click.confirm("Scan?", abort=True, err=True)
        with view.progress(run.tally, run.jobs, say) as draw:
            run.run(lambda: interruption.wished, draw)
        bill = None if interruption.wished else bill
        _show(run, run.period(now.date()), bill, pace.metrics_requested, printed)
        _say_how_to_go_on(run)
        say(f"the audits are kept in {opened.words}")
        return gravest({run.tally.exit, *([Exit.INTERRUPTED] if interruption.wished else [])})


def _days(
    since: str | None, until: str | None, now: datetime, *, all_of_them: bool
) -> Period | None:
    """The days to audit, by default the last 30; None for all, as recordings have by default."""
    if since is None and all_of_them:
        if until is not None:
            raise BadUsage("--until of recordings needs --since: give the first day, too")
        return None
    return window_of_days("30d" if since is None else since, until, now, METRICS).period(now.date())


def _check_needs_no_aws(profile: str | None, coverage: bool, *, some: bool) -> None:
    if profile or some:
        raise BadUsage("--recordings needs no AWS: leave out regions, accounts and --profile")
    if coverage:
        raise BadUsage("--coverage needs an account: recordings have no bill")


def _open(history: Path | None, *, dry_run: bool) -> histories.HistorySource:
    """The history; a dry run makes no file."""
    try:
        return histories.open_history(history, None, None, None, create=not dry_run, warn=say)
    except NoHistory:
        if not dry_run:
            raise
        return histories.in_memory("no history yet")


def _show_plan(run: ScanRun, cost: ScanCost, printed: options.Printed) -> None:
    if printed.json:
        echo_json({"schema": 1, **view.plan(run.lanes, cost)})
    else:
        console = console_for()
        for line in view.plan_lines(run.lanes, cost):
            console.print(Text(line))


def _show(
    run: ScanRun,
    period: Period,
    bill: billed.BilledAccounts | None,
    metrics: int,
    printed: options.Printed,
) -> None:
    ranked, statuses = run.ranking(period), run.accounts(period)
    covered = billed.Covered()
    if bill is not None:
        covered = billed.read(bill, run.history, run.places, run.asked.regions, period)
        run.tally.codes.add(coverage_view.say_refusal(covered))
    if printed.json:
        echo_json(
            {
                "schema": 1,
                "scan": view.document(run.tally, run.lanes, run.left, metrics),
                "coverage": coverage_view.document(covered),
                "ranking": ranking_view.document(ranked),
                "accounts": view.accounts_document(statuses),
            }
        )
        return
    console = console_for(no_color=printed.no_color)
    coverage_view.show(covered, console)
    ranking_view.show(ranked, console)
    view.show_accounts(statuses, console)
    view.show(run.tally, run.left, metrics, console)


def _say_how_to_go_on(run: ScanRun) -> None:
    """After a scan that did not come to all jobs."""
    missed = run.left + run.tally.results[Result.REFUSED] + run.tally.results[Result.NOT_ASKED]
    if missed:
        say(
            f"{missed:,} of {run.jobs:,} jobs are not audited: run the same command again, and it"
            " goes on from there"
        )
