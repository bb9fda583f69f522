"""Runs the lanes of a scan into a history, and ranks the history's sums of their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import islice

from sageaudit.cli.exits import exit_of
from sageaudit.cli.support.scan.interruption import Interruption
from sageaudit.cli.support.scan.scan_tally import AccountStatus, ScanTally
from sageaudit.domain.audit.ranking import FamilyFix, RankedName, Ranking, family_fix, ranking
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.sums import Scope, SumRow, grouped
from sageaudit.domain.job.listed import Listed, Period
from sageaudit.errors import HistoryFileError
from sageaudit.ports import History, Workers
from sageaudit.workflows.scan.run import Lane, scan, to_audit

_FAMILY_RUNS = 500
"""Runs of a family among which the dearest is looked for, newest first."""


@dataclass
class ScanRun:
    """One scan of some lanes. `tally` counts while it runs."""

    history: History
    lanes: Sequence[Lane]
    tally: ScanTally = field(default_factory=ScanTally)
    statuses: Mapping[str, AccountStatus] = field(default_factory=dict)
    """Of each account, where several are scanned."""

    @property
    def jobs(self) -> int:
        """All listed jobs, those that still run included."""
        return sum(len(lane.jobs) for lane in self.lanes)

    @property
    def places(self) -> list[tuple[str, str]]:
        """The accounts and regions with jobs."""
        return sorted({(lane.account, lane.region) for lane in self.lanes})

    @property
    def left(self) -> int:
        """Jobs that it did not come to."""
        return self.jobs - self.tally.done

    def to_audit(self) -> Iterator[Listed]:
        """The jobs that AWS would be asked about now."""
        now = datetime.now(UTC)
        return (job for lane in self.lanes for job in to_audit(lane, now))

    def run(self, workers: Workers, interruption: Interruption, draw: Callable[[], None]) -> None:
        """Audits and records until all is done, or Ctrl-C, or the history takes no more."""
        outcomes = scan(
            self.lanes,
            workers,
            clock=lambda: datetime.now(UTC),
            stopped=lambda: interruption.wished,
        )
        try:
            for outcome in outcomes:
                self.tally.add(outcome)
                if (status := self.statuses.get(outcome.lane.account)) is not None:
                    status.tally.add(outcome)
                draw()
        except HistoryFileError as error:
            self.tally.refuse(str(error), exit_of(error))
        finally:
            outcomes.close()

    def ranking(self, period: Period) -> Ranking:
        """The history's sums of the scanned accounts and regions in the period."""
        return ranking(self._rows(period), period.since, period.until, self._fix_of(period))

    def accounts(self, period: Period) -> list[AccountStatus]:
        """What became of each account, with the history's sums: they add up to the ranking's."""
        rows = self._rows(period)(Scope.ACCOUNT) if self.statuses else ()
        for account, sums in grouped(rows, lambda row: row.account).items():
            if (status := self.statuses.get(account)) is not None:
                status.sums = sums
        return [*self.statuses.values()]

    def _rows(self, period: Period) -> Callable[[Scope], Iterator[SumRow]]:
        places = self.places

        def rows(scope: Scope) -> Iterator[SumRow]:
            for account, region in places:
                yield from self.history.sums(
                    scope, period.since, period.until, account=account, region=region
                )

        return rows

    def _fix_of(self, period: Period) -> Callable[[RankedName], FamilyFix | None]:
        def fix(family: RankedName) -> FamilyFix | None:
            if family.name is None:
                return None
            query = RunQuery.of_family(family.account or "", family.region or "", family.name)
            heads = self.history.runs(query, before=period.created_before, page_size=_FAMILY_RUNS)
            newest = islice(heads, _FAMILY_RUNS)
            in_period = (head for head in newest if head.ended_at.date() >= period.since)
            return family_fix(in_period, self.history.audit)

        return fix


def period_of(lanes: Sequence[Lane], today: date) -> Period:
    """The days in which the jobs of these lanes ended; today without any."""
    days = [job.last_at.astimezone(UTC).date() for lane in lanes for job in lane.jobs]
    return Period(min(days, default=today), max(days, default=today))
