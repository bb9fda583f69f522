"""`sageaudit scan`: audits the jobs of an account, and ranks where its dollars went."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from sageaudit.adapters.aws.pace import Pace, Stopped
from sageaudit.adapters.files import policy_file
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import options
from sageaudit.cli.exits import Exit, exit_of, gravest
from sageaudit.cli.messages import echo_json, say
from sageaudit.cli.support.account.accounts import (
    AccountList,
    account_list,
    home_region,
    open_session,
    role_to_assume,
)
from sageaudit.cli.support.history import histories
from sageaudit.cli.support.scan import accounts_view, billed, view
from sageaudit.cli.support.scan import coverage as coverage_view
from sageaudit.cli.support.scan import ranking as ranking_view
from sageaudit.cli.support.scan.interruption import Interruption
from sageaudit.cli.support.scan.scan_lanes import Asked, LaneMaker, Places
from sageaudit.cli.support.scan.scan_run import ScanRun, period_of
from sageaudit.cli.support.scan.scan_tally import ScanCost, ScanTally, scan_cost
from sageaudit.cli.support.scan.scanned_accounts import (
    THREADS,
    ScannedAccount,
    ScannedAccounts,
    scanned_regions,
)
from sageaudit.cli.support.scan.threads import Threads
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.listed import Period
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage, NoHistory
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.text.words import counted
from sageaudit.queries.window import METRICS, window_of_days
from sageaudit.workflows.scan.run import Lane, Result

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
    help="First day on which a job ended, in UTC, as 30d or 2026-11-01; by default 30d, of"
    " recordings all days.",
)
@click.option("--until", help="Last day on which a job ended; by default today.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([kind.value for kind in JobKind]),
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
    "--limit",
    type=options.ROWS,
    help="Audit at most so many jobs: those that ended last.",
)
@click.option("--again", is_flag=True, help="Audit also the jobs whose audits are final.")
@click.option("--dry-run", is_flag=True, help="Print what would be audited and what that costs.")
@click.option("--yes", is_flag=True, help="Do not ask before a scan that costs over $5.")
@click.option(
    "--recordings",
    type=click.Path(path_type=Path, exists=True),
    help="Folder of recorded jobs to audit instead of an account, with all folders below it.",
)
@options.ACCOUNTS
@options.ORGANIZATION
@options.ROLE
@options.EXTERNAL_ID
@click.option(
    "--coverage",
    is_flag=True,
    help="Compare with the SageMaker bill in Cost Explorer, at $0.01 a request.",
)
@options.HISTORY
@options.PROFILE
@options.POLICY
@options.OUTPUT
@options.NO_COLOR
def scan(
    since: str | None,
    until: str | None,
    kinds: tuple[str, ...],
    regions: tuple[str, ...],
    all_regions: bool,
    limit: int | None,
    again: bool,
    dry_run: bool,
    yes: bool,
    recordings: Path | None,
    accounts: Path | None,
    organization: bool,
    role: str | None,
    external_id: str | None,
    coverage: bool,
    history: Path | None,
    profile: str | None,
    policy_path: Path | None,
    output: str,
    no_color: bool,
) -> int:
    """Audits all jobs of the last 30 days and ranks their dollars.

    Reads only, with your own credentials, and keeps the audits in a file on this machine: the next
    scan asks AWS only about jobs that are new. Ctrl-C keeps what is done. It first prints what it
    costs: about a cent for 200 jobs of one host.
    """
    if all_regions and regions:
        raise BadUsage("give either --region or --all-regions")
    assumed = role_to_assume(accounts, role, external_id, organized=organization)
    many = accounts is not None or organization
    if recordings:
        _check_needs_no_aws(profile, coverage, some=bool(regions or all_regions or many))
    now = datetime.now(UTC)
    today = now.date()
    asked = Asked(
        _days(since, until, now, all_of_them=recordings is not None),
        tuple(map(JobKind, kinds)) or tuple(JobKind),
        limit,
        again,
        policy_file.load(policy_path) if policy_path else Policy(),
    )
    session = None if recordings else open_session(profile, None)
    named = [] if session is None else scanned_regions(session, regions, every=all_regions)
    with (
        _open(history, dry_run=dry_run) as opened,
        Interruption(say) as interruption,
        Threads(THREADS) as workers,
    ):
        pace = Pace(time.monotonic, interruption.sleep)
        places = Places(tuple(named), some=all_regions)
        home = home_region(session, named, every=all_regions)
        maker = LaneMaker(opened.history, asked, places, workers, ScanTally())
        try:
            if recordings:
                lanes, whose = maker.of_recordings(recordings), None
            elif many:
                listed = account_list(session, home, accounts, assumed)
                lanes, whose = _of_accounts(maker, session, listed, home, pace, interruption)
            else:
                say(view.listing_line(named, asked.days))
                lanes = maker.of_account(ScannedAccount(session, pace))
                whose = partial(billed.of_one, session, home)
            interruption.sleep(0)  # raises Stopped, if that came while the last page was read
        except Stopped:
            say("interrupted before the first audit")
            return int(Exit.INTERRUPTED)
        run = ScanRun(opened.history, lanes, maker.tally, maker.statuses)
        cost = scan_cost([] if recordings else run.to_audit())
        billing = _Billing(whose() if coverage and whose else None, places, interruption)
        if dry_run:
            _show_plan(run, cost, output)
            return int(run.tally.exit)
        if not recordings:
            say(view.listed_line(run.lanes, cost))
            say(view.cost_line(cost))
        if cost.usd + billing.usd > _ASK_ABOVE_USD and not yes and view.may_ask():
            with interruption.question():
                click.confirm("Scan?", abort=True, err=True)
        with view.progress(run.tally, run.jobs, say) as draw:
            run.run(workers, interruption, draw)
        period = asked.period or period_of(lanes, today)
        _show(run, period, billing, pace, output, no_color=no_color)
        _say_how_to_go_on(run, opened.name)
        return int(gravest({run.tally.exit, *([Exit.INTERRUPTED] if interruption.wished else [])}))


def _of_accounts(
    maker: LaneMaker,
    session: Any,
    listed: AccountList,
    home: str,
    pace: Pace,
    interruption: Interruption,
) -> tuple[list[Lane], Callable[[], billed.BilledAccounts]]:
    """The jobs of several accounts, and whose bill is compared; what refuses is said."""
    several = ScannedAccounts(session, listed, home, pace)
    where = view.listing_line(maker.places.regions, maker.asked.days)
    say(f"{where}, {counted(len(several), 'account')}")
    lanes = maker.of_accounts(several, lambda: interruption.wished)
    return lanes, partial(billed.of_several, several, home)


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
        return histories.open_history(history, None, None, None, create=not dry_run)
    except NoHistory:
        if not dry_run:
            raise
        return histories.HistorySource(SqliteHistory(), "no history yet")


def _show_plan(run: ScanRun, cost: ScanCost, output: str) -> None:
    if output == "json":
        echo_json({"schema": 1, **view.plan(run.lanes, cost)})
    else:
        console = console_for()
        for line in view.plan_lines(run.lanes, cost):
            console.print(Text(line))


@dataclass(frozen=True, slots=True)
class _Billing:
    """Whose bill is compared, if any, and where jobs were listed."""

    accounts: billed.BilledAccounts | None
    places: Places
    interruption: Interruption

    def __post_init__(self) -> None:
        """Says what reading it costs."""
        if self.accounts is not None:
            say(coverage_view.cost_line(self.accounts))

    @property
    def usd(self) -> Decimal:
        """What reading it costs."""
        return self.accounts.usd if self.accounts else Decimal(0)

    def covered(self, run: ScanRun, period: Period, audited_usd: Decimal) -> billed.Covered:
        """The bill beside the audits; an account that refuses is said, and sets the exit code."""
        if self.accounts is None or self.interruption.wished:
            return billed.Covered(None, 0)
        scanned = billed.Scanned(period, self.places.regions, run.places)
        bill = billed.read(self.accounts, period, self.places.regions[0])
        for account, error in bill.refused.items():
            say(f"the SageMaker bill of {account} is not known: {error}")
            run.tally.codes.add(exit_of(error))
        return billed.covered(bill, run.history, scanned, self.accounts.accounts, audited_usd)


def _show(
    run: ScanRun, period: Period, billing: _Billing, pace: Pace, output: str, *, no_color: bool
) -> None:
    ranked, statuses = run.ranking(period), run.accounts(period)
    covered = billing.covered(run, period, ranked.total.total_usd)
    if output == "json":
        found = view.document(run.tally, run.lanes, run.left, pace.metrics_requested)
        echo_json(
            {
                "schema": 1,
                "scan": found,
                "coverage": coverage_view.document(covered),
                "ranking": ranking_view.document(ranked),
                "accounts": accounts_view.document(statuses),
            }
        )
        return
    console = console_for(no_color=no_color)
    coverage_view.show(covered, console)
    ranking_view.show(ranked, console)
    accounts_view.show(statuses, console)
    view.show(run.tally, run.left, pace.metrics_requested, console)


def _say_how_to_go_on(run: ScanRun, history: str) -> None:
    """After a scan that did not come to all jobs."""
    missed = run.left + run.tally.results[Result.REFUSED] + run.tally.results[Result.NOT_ASKED]
    if missed:
        say(
            f"{missed:,} of {run.jobs:,} jobs are not audited: run the same command again, and it"
            f" goes on from there; the audits so far are kept in {history}"
        )
