"""Counts what became of the jobs of a scan; of the jobs themselves it keeps nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

from sageaudit.adapters.aws.pace import DESCRIBES_A_SECOND
from sageaudit.cli.exits import Exit, exit_of, gravest
from sageaudit.cli.support.scan.interruption import Interruption
from sageaudit.cli.support.scan.scanned_accounts import AccountStatus
from sageaudit.domain.audit.ranking import FamilyFix, RankedName, Ranking, family_fix, ranking
from sageaudit.domain.audit.sums import Scope, SumRow, Sums, grouped
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.listed import Listed, Period
from sageaudit.errors import HistoryFileError, SageauditError
from sageaudit.ports import History, Workers
from sageaudit.workflows.scan.run import Lane, Outcome, Result, scan, to_audit

_MOST_REASONS = 100
"""Reasons that are counted on their own: they come from a few fixed sentences with figures."""
_OTHERS = "(other reasons)"
_FIGURE = re.compile(r"\d[\d,.]*(?<=\d)")


@dataclass
class ScanTally:
    """`sums` are of all jobs with an audit, those that were known before included.

    They are what a progress bar shows: the ranking reads the history's own sums.
    """

    results: Counter[Result] = field(default_factory=Counter)
    sums: Sums = field(default_factory=Sums)
    not_judged: Counter[str] = field(default_factory=Counter)
    """Jobs by the reason why not all of them was judged; figures in a reason are the first's."""
    refused: Counter[str] = field(default_factory=Counter)
    """Jobs by the error that kept them from being audited."""
    codes: set[Exit] = field(default_factory=set)
    _shown: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Jobs of which it is known what became of them."""
        return self.results.total()

    def add(self, outcome: Outcome) -> None:
        """Counts one job; one that was known and is audited again, as known."""
        if not outcome.known_before:
            self.results[outcome.result] += 1
            if outcome.sums is not None:
                self.sums += outcome.sums
            for reason in outcome.not_judged:
                self.not_judged[self._alike(reason)] += 1
        if outcome.error is not None:
            self.refuse(str(outcome.error), exit_of(outcome.error))

    def refuse(self, reason: str, code: Exit) -> None:
        """Counts something that failed, with its exit code."""
        known = reason in self.refused or len(self.refused) < _MOST_REASONS
        self.refused[reason if known else _OTHERS] += 1
        self.codes.add(code)

    def take(self, other: ScanTally, error: SageauditError | None) -> None:
        """Counts what could not be listed of one account, `error` where that is all of it."""
        for reason, count in other.refused.items():
            known = reason in self.refused or len(self.refused) < _MOST_REASONS
            self.refused[reason if known else _OTHERS] += count
        self.codes |= {*other.codes, *([exit_of(error)] if error else [])}

    @property
    def exit(self) -> Exit:
        """The gravest of what failed."""
        return gravest(self.codes)

    def _alike(self, reason: str) -> str:
        """The first reason that differs from this one by its figures only."""
        pattern = _FIGURE.sub("#", reason)
        if pattern not in self._shown and len(self._shown) >= _MOST_REASONS:
            return _OTHERS
        return self._shown.setdefault(pattern, reason)


USD_PER_METRIC = Decimal("0.01") / 1000
"""GetMetricData: $0.01 per 1,000 metrics requested; not in the free tier.

Sources: re:Post, knowledge-center/cloudwatch-getmetricdata-api (no free tier);
support.site24x7.com, aws-cloudwatch-metrics-cost-calculation (the price).
"""
METRICS_A_HOST = 5
"""CPU, memory, disk, GPU and GPU memory; a host without GPUs has three."""


@dataclass(frozen=True, slots=True)
class ScanCost:
    """What auditing these jobs costs. The number of hosts is known after Describe: one is assumed.

    List*, Describe*, ListTags and GetProducts cost nothing.
    """

    jobs: int
    metrics: int
    least_s: float
    """AWS's rates allow no less."""

    @property
    def usd(self) -> Decimal:
        """For the metrics requested."""
        return usd_of(self.metrics)


def scan_cost(jobs: Iterable[Listed]) -> ScanCost:
    """The cost of asking AWS about these jobs."""
    of_place: Counter[tuple[str, str]] = Counter()
    metrics = count = 0
    for job in jobs:
        count += 1
        of_place[job.ref.account, job.ref.region] += 1
        metrics += METRICS_A_HOST if job.ref.kind is not JobKind.TUNING else 0
    return ScanCost(count, metrics, max(of_place.values(), default=0) / DESCRIBES_A_SECOND)


def usd_of(metrics: int) -> Decimal:
    """What GetMetricData costs for so many metrics."""
    return metrics * USD_PER_METRIC


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
            heads = self.history.by_family(
                family.account or "",
                family.region or "",
                family.name,
                before=period.created_before,
                limit=_FAMILY_RUNS,
            )
            in_period = (head for head in heads if head.ended_at.date() >= period.since)
            return family_fix(in_period, self.history.audit)

        return fix


def period_of(lanes: Sequence[Lane], today: date) -> Period:
    """The days in which the jobs of these lanes ended; today without any."""
    days = [job.last_at.astimezone(UTC).date() for lane in lanes for job in lane.jobs]
    return Period(min(days, default=today), max(days, default=today))
