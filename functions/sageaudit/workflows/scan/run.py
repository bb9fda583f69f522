"""One scan: lists jobs, audits them into a history, and ranks the sums."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path

from msgspec import Struct, field

from sageaudit.adapters.aws.pace import ScanStopped
from sageaudit.domain.audit.ranking import FamilyFix, RankedName, Ranking, family_fix, ranking
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.sums import Scope, SumRow, group_rows
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.sweep import ListedJob, Period, newest_rows, select_rows
from sageaudit.errors import (
    AwsError,
    BadRecording,
    HistoryFileError,
    NoCredentials,
    SageauditError,
    Throttled,
    Unavailable,
)
from sageaudit.exits import exit_for
from sageaudit.ports import History, Workers
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies
from sageaudit.workflows.audit.stored import read_audit
from sageaudit.workflows.recordings.jobs import recorded_jobs_in_folder
from sageaudit.workflows.scan.accounts import (
    ListRefusal,
    ScannedAccount,
    ScannedAccounts,
    list_jobs,
    make_lanes,
)
from sageaudit.workflows.scan.lanes import Lane, jobs_to_audit, scan_lanes
from sageaudit.workflows.scan.tally import AccountStatus, ScanTally

_FAMILY_RUNS = 500
"""How many of a family's newest runs are searched for the most wasteful run."""


class ScanScope(Struct, frozen=True):
    """Which jobs are audited, and how. `period` is None for all days of recordings.

    `limit` is the maximum number of jobs; None for all. `force` also audits jobs whose audit is
    final. `regions_optional` means that a region that is not enabled is not an error.
    """

    period: Period | None
    kinds: tuple[JobKind, ...]
    limit: int | None
    force: bool
    policy: Policy
    regions: tuple[str, ...] = ()
    regions_optional: bool = False

    @property
    def days(self) -> Period:
        """The period of a scan of accounts. Only a scan of recordings may have none."""
        assert self.period is not None  # noqa: S101 - the command gives an account's scan days
        return self.period

    def newest_jobs(self, jobs: Iterable[ListedJob]) -> list[ListedJob]:
        """Returns the `limit` jobs that ended last, or all jobs without a limit."""
        return [*jobs] if self.limit is None else newest_rows([*jobs], self.limit)


class ScanRun(Struct):
    """One scan. `tally` counts failed lists first, then the jobs' outcomes.

    `statuses` has each account's status by its id, if several accounts are scanned.
    """

    history: History
    scope: ScanScope
    workers: Workers
    warn: Callable[[str], None]
    """Called with a sentence about each list or file that cannot be read."""
    lanes: Sequence[Lane] = ()
    tally: ScanTally = field(default_factory=ScanTally)
    statuses: dict[str, AccountStatus] = field(default_factory=dict)

    def list_recordings(self, folder: Path) -> None:
        """Adds the recorded jobs of a folder. Files that cannot be audited count as refused."""

        def refuse(error: BadRecording) -> None:
            self._refuse(error, quiet=False, tally=self.tally)

        scope = self.scope
        recorded_by_key = {
            (job.list_row.ref, job.list_row.created_at): job
            for job in recorded_jobs_in_folder(folder, refuse)
            if job.list_row.ref.kind in scope.kinds
        }
        jobs = [job.list_row for job in recorded_by_key.values()]
        if scope.period is not None:
            jobs = select_rows(jobs, scope.period, scope.kinds)

        def dependencies_for(listed_job: ListedJob) -> tuple[AuditDependencies, datetime]:
            job = recorded_by_key[listed_job.ref, listed_job.created_at]
            return job.dependencies(self.history, scope.policy), job.final_at

        if jobs:
            lanes = make_lanes(
                scope.newest_jobs(jobs), dependencies_for(jobs[0])[0], force=scope.force
            )
            self.lanes = [replace(lane, recorded_dependencies=dependencies_for) for lane in lanes]

    def list_account(self, account: ScannedAccount) -> None:
        """Adds an account's jobs. Raises NoCredentials if no region accepts the credentials."""
        jobs = self._list_jobs(account, self.tally, quiet=False)
        deps = account.dependencies(self.history, self.scope.policy)
        self.lanes = make_lanes(self.scope.newest_jobs(jobs), deps, force=self.scope.force)

    def list_accounts(self, accounts: ScannedAccounts, is_stopped: Callable[[], bool]) -> None:
        """Adds the jobs of several accounts. An account that refuses does not stop the others.

        Raises ScanStopped as soon as `is_stopped()` is true.
        """
        jobs: list[ListedJob] = []
        for status, account_jobs in accounts.list_each(
            lambda account, tally: self._list_jobs(account, tally, quiet=True), is_stopped
        ):
            self.statuses[status.account] = status
            jobs += account_jobs
            for reason in status.reasons:
                self.warn(f"{status.account}: {reason}")
            self.tally.merge(status.tally, status.error)
        newest_jobs = self.scope.newest_jobs(jobs)
        account_ids = sorted({job.ref.account for job in newest_jobs})
        deps = accounts.dependencies(account_ids, self.history, self.scope.policy)
        self.lanes = [
            lane
            for account_id in account_ids
            for lane in make_lanes(
                [job for job in newest_jobs if job.ref.account == account_id],
                deps[account_id],
                force=self.scope.force,
            )
        ]
        for lane in self.lanes:
            if (account_status := self.statuses.get(lane.account)) is not None:
                account_status.listed_job_count += len(lane.jobs)

    def _list_jobs(
        self, account: ScannedAccount, tally: ScanTally, *, quiet: bool
    ) -> list[ListedJob]:
        # Counts refusals, and warns of them unless `quiet`. Raises the error if the account's
        # credentials are refused in all regions.
        scope = self.scope
        listing = list_jobs(
            account.lists,
            account.jobs.children,
            scope.regions,
            scope.kinds,
            scope.days,
            self.workers,
        )
        if not listing.has_any_answer:
            _raise_if_nothing_answered([refusal.error for refusal in listing.refusals])
        closed_regions = {
            refusal.region for refusal in listing.refusals if _is_credentials_refusal(refusal)
        }
        for refusal in listing.refusals:
            if closed_regions == set(scope.regions) and _is_credentials_refusal(refusal):
                raise refusal.error
            if not (scope.regions_optional and refusal.region in closed_regions):
                self._refuse(refusal.error, quiet=quiet, tally=tally)
        if scope.regions_optional and closed_regions and not quiet:
            self.warn(f"not enabled for this account: {', '.join(sorted(closed_regions))}")
        return [*listing.jobs]

    def _refuse(self, error: SageauditError, *, quiet: bool, tally: ScanTally) -> None:
        if not quiet:
            self.warn(str(error))
        tally.refuse(str(error), exit_for(error))

    @property
    def job_count(self) -> int:
        """The number of listed jobs, including running jobs."""
        return sum(len(lane.jobs) for lane in self.lanes)

    @property
    def account_regions(self) -> list[tuple[str, str]]:
        """The accounts and regions with jobs."""
        return sorted({(lane.account, lane.region) for lane in self.lanes})

    @property
    def remaining(self) -> int:
        """The number of jobs that the scan did not reach."""
        return self.job_count - self.tally.job_count

    def jobs_to_audit(self) -> Iterator[ListedJob]:
        """Yields the jobs that would be requested from AWS now."""
        now = datetime.now(UTC)
        return (job for lane in self.lanes for job in jobs_to_audit(lane, now))

    def audit_all(self, is_stopped: Callable[[], bool], on_progress: Callable[[], None]) -> None:
        """Audits and records all jobs, until `is_stopped()` or an error of the history file."""
        outcomes = scan_lanes(
            self.lanes,
            self.workers,
            clock=lambda: datetime.now(UTC),
            is_stopped=is_stopped,
        )
        try:
            for outcome in outcomes:
                self.tally.add(outcome)
                if (status := self.statuses.get(outcome.lane.account)) is not None:
                    status.tally.add(outcome)
                on_progress()
        except ScanStopped:  # a request of the current audit was not sent
            return
        except HistoryFileError as error:
            self.tally.refuse(str(error), exit_for(error))
        finally:
            outcomes.close()

    def period(self, today: date) -> Period:
        """Returns the requested days, else the days in which the jobs ended, else today."""
        if self.scope.period is not None:
            return self.scope.period
        days = [
            job.last_changed_at.astimezone(UTC).date() for lane in self.lanes for job in lane.jobs
        ]
        return Period(min(days, default=today), max(days, default=today))

    def sums(self, scope: Scope, period: Period) -> Iterator[SumRow]:
        """Yields the history's sums of the scanned accounts and regions in the period."""
        for account, region in self.account_regions:
            yield from self.history.daily_sums(
                scope, period.since, period.until, account=account, region=region
            )

    def ranking(self, period: Period) -> Ranking:
        """Returns the ranking of the scanned accounts' sums in the period."""

        def find_fix(family: RankedName) -> FamilyFix | None:
            if family.name is None:
                return None
            runs = (
                self.history.runs(
                    RunQuery.for_family(account, region, family.name),
                    ended_before=period.created_before,
                    page_size=_FAMILY_RUNS,
                )
                for account, region in family.account_regions
            )
            newest = heapq.merge(*runs, key=lambda summary: summary.ended_at, reverse=True)
            summaries_of_period = (
                summary for summary in newest if summary.ended_at.date() >= period.since
            )
            newest_summaries = islice(summaries_of_period, _FAMILY_RUNS)
            return family_fix(
                family.sums, newest_summaries, lambda key: read_audit(self.history, key)
            )

        return ranking(lambda scope: self.sums(scope, period), period.since, period.until, find_fix)

    def accounts(self, period: Period) -> list[AccountStatus]:
        """Returns each account's status, with sums that add up to the ranking's sums."""
        rows = self.sums(Scope.ACCOUNT, period) if self.statuses else ()
        for account, sums in group_rows(rows, lambda row: row.account).items():
            if (status := self.statuses.get(account)) is not None:
                status.sums = sums
        return [*self.statuses.values()]


def _raise_if_nothing_answered(errors: Sequence[AwsError]) -> None:
    """Raises Unavailable or Throttled if no list was answered and no permission is missing."""
    unanswered_errors = [error for error in errors if isinstance(error, (Unavailable, Throttled))]
    if unanswered_errors and all(
        error in unanswered_errors or isinstance(error, NoCredentials) for error in errors
    ):
        raise type(unanswered_errors[0])(
            f"no list of jobs could be read, so nothing is known about this account:"
            f" {str(unanswered_errors[0]).rstrip('.')}; check the network and the region,"
            " then try again"
        )


def _is_credentials_refusal(refusal: ListRefusal) -> bool:
    # A region that is not enabled refuses credentials.
    return isinstance(refusal.error, NoCredentials)
