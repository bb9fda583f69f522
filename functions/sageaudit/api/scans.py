"""Scans of an account or of a folder of recordings, from Python."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

from sageaudit.adapters.aws.pace import Pace
from sageaudit.api.audits import policy_of
from sageaudit.api.histories import word_of
from sageaudit.cli.support.account.accounts import open_session
from sageaudit.cli.support.history import histories
from sageaudit.cli.support.scan.interruption import Interruption
from sageaudit.cli.support.scan.scan_run import Asked, ScanRun
from sageaudit.cli.support.scan.scan_tally import usd_of
from sageaudit.cli.support.scan.scanned_accounts import THREADS, ScannedAccount, scanned_regions
from sageaudit.cli.support.scan.threads import Threads
from sageaudit.domain.audit.ranking import Ranking
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage
from sageaudit.queries.window import METRICS, window_of_days
from sageaudit.workflows.scan.run import Result

_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan did. The audits themselves are in the `history`, a file.

    `jobs`: listed jobs by what became of them (audited, known, running, gone, refused, not_asked).
    `refused` and `not_judged`: jobs by the reason. `cost_usd`: what CloudWatch charges for the
    `metrics_requested`. `ranking`: where the dollars of the scanned jobs' days went.
    """

    history: Path
    jobs: Mapping[str, int]
    refused: Mapping[str, int]
    not_judged: Mapping[str, int]
    metrics_requested: int
    cost_usd: Decimal
    ranking: Ranking

    @property
    def complete(self) -> bool:
        """Whether every listed job that has ended was audited, now or before."""
        return not (self.refused or self.jobs[Result.REFUSED] or self.jobs[Result.NOT_ASKED])

    @property
    def total_usd(self) -> Decimal:
        """What the jobs cost, of those whose cost is known."""
        return self.ranking.total.total_usd

    @property
    def avoidable_usd(self) -> Decimal:
        """What other settings would have saved."""
        return self.ranking.total.avoidable_usd

    @property
    def lost_usd(self) -> Decimal:
        """What was paid for work without a result."""
        return self.ranking.total.lost_usd


def scan(
    since: str | None = None,
    until: str | None = None,
    *,
    recordings: _Path | None = None,
    history: _Path | None = None,
    kinds: str | Iterable[str] = (),
    regions: str | Iterable[str] = (),
    all_regions: bool = False,
    limit: int | None = None,
    again: bool = False,
    profile: str | None = None,
    policy: _Path | None = None,
) -> Scan:
    """Audits the jobs of an account that ended in the last 30 days, and keeps the audits.

    Reads only, with the credentials of `profile`. `since` and `until` are days such as `30d` or
    `2026-11-01`; `recordings` is a folder of recorded jobs to audit instead, by default of all
    days; `history` is the file, by default the one that commands use. `again` audits also jobs
    whose audits are final. An interruption loses nothing that was audited. A job that fails does
    not stop the others: look at `Scan.refused`. Raises a SageauditError where nothing could begin.
    """
    _check(recordings, profile, named=bool(regions), all_regions=all_regions)
    now = datetime.now(UTC)
    today = now.date()
    days = None
    if since or not recordings:
        days = window_of_days(since or "30d", until, now, METRICS).period(today)
    wanted = tuple(word_of(JobKind, kind, "kinds") for kind in _each(kinds)) or tuple(JobKind)
    session = None if recordings is not None else open_session(profile, None)
    named = scanned_regions(session, _each(regions), every=all_regions) if session else ()
    asked = Asked(days, wanted, limit, again, policy_of(policy), tuple(named), all_regions)
    file = None if history is None else Path(history)
    interruption = Interruption(lambda _: None)  # not entered: Ctrl-C stays the caller's
    with (
        histories.open_history(file, None, None, None, create=True) as opened,
        Threads(THREADS) as workers,
    ):
        pace = Pace(time.monotonic, interruption.sleep)
        run = ScanRun(opened.history, asked, workers, quiet=True)
        if recordings is not None:
            run.list_recordings(Path(recordings))
        else:
            run.list_account(ScannedAccount(session, pace))
        run.run(interruption, lambda: None)
        tally = run.tally
        return Scan(
            history=Path(opened.name),
            jobs=MappingProxyType({str(one.value): tally.results[one] for one in Result}),
            refused=MappingProxyType(dict(tally.refused)),
            not_judged=MappingProxyType(dict(tally.not_judged)),
            metrics_requested=pace.metrics_requested,
            cost_usd=usd_of(pace.metrics_requested),
            ranking=run.ranking(run.period(today)),
        )


def _check(
    recordings: _Path | None, profile: str | None, *, named: bool, all_regions: bool
) -> None:
    """Raises BadUsage for arguments that exclude each other, and for a folder that is not there."""
    if recordings is not None and (named or all_regions or profile):
        raise BadUsage("recordings need no AWS: leave out regions, all_regions and profile")
    if all_regions and named:
        raise BadUsage("give either regions or all_regions")
    if recordings is not None and not Path(recordings).exists():
        raise BadUsage(f"recordings={str(recordings)!r} does not exist")


def _each(names: str | Iterable[str]) -> tuple[str, ...]:
    """The names; one text is one name."""
    return (names,) if isinstance(names, str) else tuple(names)
