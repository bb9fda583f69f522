"""`sageaudit scan`: audits the jobs of an account, and ranks where its dollars went."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from sageaudit.adapters.aws.pace import Pace, Stopped
from sageaudit.adapters.files import policy_file
from sageaudit.adapters.in_memory.history import MemoryHistory
from sageaudit.adapters.threads import Threads
from sageaudit.cli import options
from sageaudit.cli.exits import Exit, exit_of, gravest
from sageaudit.cli.messages import echo_json, say
from sageaudit.cli.sources import histories, periods, recorded_lanes, scanned_account
from sageaudit.cli.sources.interruption import Interruption
from sageaudit.cli.sources.scan_cost import ScanCost, scan_cost
from sageaudit.cli.sources.scan_run import ScanRun, period_of
from sageaudit.cli.sources.scan_tally import ScanTally
from sageaudit.cli.sources.scanned_account import lanes_of
from sageaudit.cli.sources.session import open_session
from sageaudit.cli.views import ranking as ranking_view
from sageaudit.cli.views import scan as view
from sageaudit.cli.views.layout import console_for
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.listed import Listed, Period, chosen, newest
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording, BadUsage, NoCredentials, NoHistory
from sageaudit.listing import Refusal, list_jobs
from sageaudit.ports import History, Workers
from sageaudit.scanning import Lane, Result

_ASK_ABOVE_USD = Decimal(5)
"""A scan that costs more is asked about, where somebody can answer."""
_EPILOG = """\b
Examples:
  sageaudit scan
  sageaudit scan --since 7d --region eu-west-1 --region us-east-1
  sageaudit scan --all-regions --dry-run
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
    type=click.IntRange(min=1),
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
    history: Path | None,
    profile: str | None,
    policy_path: Path | None,
    output: str,
    no_color: bool,
) -> int:
    """Audits all jobs of the last 30 days, and ranks where the dollars went.

    Reads only, with your own credentials, and keeps the audits in a file on this machine: the next
    scan asks AWS only about jobs that are new. Ctrl-C keeps what is done. It first prints what it
    costs: about a cent for 200 jobs of one host.
    """
    if all_regions and regions:
        raise BadUsage("give either --region or --all-regions")
    if recordings and (regions or all_regions or profile):
        raise BadUsage("--recordings needs no AWS: leave out regions and --profile")
    today = datetime.now(UTC).date()
    asked = _Asked(
        None if recordings and not since else periods.period(since or "30d", until, today),
        tuple(map(JobKind, kinds)) or tuple(JobKind),
        limit,
        again,
        policy_file.load(policy_path) if policy_path else Policy(),
    )
    session = None if recordings else open_session(profile, None)
    named = [] if session is None else scanned_account.regions(session, regions, every=all_regions)
    with (
        _open(history, dry_run=dry_run) as opened,
        Interruption(say) as interruption,
        Threads(scanned_account.THREADS) as workers,
    ):
        pace = Pace(time.monotonic, interruption.sleep)
        begun = _Begun(opened.history, asked, workers, ScanTally())
        try:
            if recordings:
                lanes = begun.lanes_of_recordings(recordings)
            else:
                lanes = begun.lanes_of_account(session, named, pace, some=all_regions)
        except Stopped:
            lanes = []
        if interruption.wished:
            say("interrupted before the first audit")
            return int(Exit.INTERRUPTED)
        run = ScanRun(opened.history, lanes, begun.tally)
        cost = scan_cost([] if recordings else run.to_audit())
        if dry_run:
            _show_plan(run, cost, output)
            return int(run.tally.exit)
        if not recordings:
            say(view.listed_line(run.lanes, cost))
            say(view.cost_line(cost))
        if cost.usd > _ASK_ABOVE_USD and not yes and view.may_ask():
            with interruption.question():
                click.confirm("Scan?", abort=True, err=True)
        with view.progress(run.tally, run.jobs, say) as draw:
            run.run(workers, interruption, draw)
        _show(run, asked.period or period_of(lanes, today), pace, output, no_color=no_color)
        _say_how_to_go_on(run, opened.name)
        return int(gravest({run.tally.exit, *([Exit.INTERRUPTED] if interruption.wished else [])}))


def _open(history: Path | None, *, dry_run: bool) -> histories.HistorySource:
    """The history; a dry run makes no file."""
    try:
        return histories.open_history(history, None, None, None, create=not dry_run)
    except NoHistory:
        if not dry_run:
            raise
        return histories.HistorySource(MemoryHistory(), "no history yet")


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which jobs are audited, and how. `period` is None for all days."""

    period: Period | None
    kinds: tuple[JobKind, ...]
    limit: int | None
    again: bool
    policy: Policy

    def of(self, jobs: Iterable[Listed]) -> list[Listed]:
        """At most `limit` jobs, those that ended last."""
        return [*jobs] if self.limit is None else newest([*jobs], self.limit)


@dataclass(frozen=True, slots=True)
class _Begun:
    """What the lanes of a scan are made with."""

    history: History
    asked: _Asked
    workers: Workers
    tally: ScanTally

    def lanes_of_recordings(self, folder: Path) -> list[Lane]:
        """The recorded jobs; a file that cannot be read is said and counted."""

        def refused(error: BadRecording) -> None:
            say(str(error))
            self.tally.refuse("a file is not a recording", exit_of(error))

        found, asked = recorded_lanes.recorded_jobs(folder, refused), self.asked
        jobs = [job for job in found.jobs if job.ref.kind in asked.kinds]
        if asked.period is not None:
            jobs = chosen(jobs, asked.period, asked.kinds)
        deps = found.dependencies(self.history, asked.policy)
        lanes = lanes_of(asked.of(jobs), deps, again=asked.again)
        return [replace(lane, as_of=found.as_of) for lane in lanes]

    def lanes_of_account(
        self, session: Any, regions: Sequence[str], pace: Pace, *, some: bool
    ) -> list[Lane]:
        """The listed jobs; what cannot be listed is said and counted.

        `some`: the account need not have all of these regions. Raises NoCredentials where no
        region accepts the credentials.
        """
        asked, account = self.asked, scanned_account.ScannedAccount(session, pace)
        assert asked.period is not None  # noqa: S101 - only recordings have none
        say(view.listing_line(regions, asked.period))
        listing = list_jobs(account.lists, regions, asked.kinds, asked.period, self.workers)
        closed = {refusal.region for refusal in listing.refusals if _no_credentials(refusal)}
        for refusal in listing.refusals:
            if closed == set(regions) and _no_credentials(refusal):
                raise refusal.error
            if not (some and refusal.region in closed):
                say(str(refusal.error))
                self.tally.refuse(str(refusal.error), exit_of(refusal.error))
        if some and closed:
            say(f"not enabled for this account: {', '.join(sorted(closed))}")
        deps = account.dependencies(self.history, asked.policy)
        return lanes_of(asked.of(listing.jobs), deps, again=asked.again)


def _no_credentials(refusal: Refusal) -> bool:
    """A region that is not enabled refuses credentials that are good elsewhere."""
    return isinstance(refusal.error, NoCredentials)


def _show_plan(run: ScanRun, cost: ScanCost, output: str) -> None:
    if output == "json":
        echo_json({"schema": 1, **view.plan(run.lanes, cost)})
    else:
        console = console_for()
        for line in view.plan_lines(run.lanes, cost):
            console.print(Text(line))


def _show(run: ScanRun, period: Period, pace: Pace, output: str, *, no_color: bool) -> None:
    ranked = run.ranking(period)
    if output == "json":
        found = view.document(run.tally, run.lanes, run.left, pace.metrics_requested)
        echo_json({"schema": 1, "scan": found, "ranking": ranking_view.document(ranked)})
        return
    console = console_for(no_color=no_color)
    ranking_view.show(ranked, console)
    view.show(run.tally, run.left, pace.metrics_requested, console)


def _say_how_to_go_on(run: ScanRun, history: str) -> None:
    """After a scan that did not come to all jobs."""
    missed = run.left + run.tally.results[Result.REFUSED] + run.tally.results[Result.NOT_ASKED]
    if missed:
        say(
            f"{missed:,} of {run.jobs:,} jobs are not audited: run the same command again, and it"
            f" goes on from there; the audits so far are kept in {history}"
        )
