"""Lists the jobs of a scan and makes its lanes: of recordings, of an account, or of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from sageaudit.cli.exits import exit_of
from sageaudit.cli.messages import say
from sageaudit.cli.support.recordings.recorded_jobs import recordings_below
from sageaudit.cli.support.scan.scan_tally import AccountStatus, ScanTally
from sageaudit.cli.support.scan.scanned_accounts import (
    ScannedAccount,
    ScannedAccounts,
    lanes_of,
    note_lanes,
)
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.listed import Listed, Period, chosen, newest
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording, NoCredentials
from sageaudit.ports import History, Workers
from sageaudit.workflows.audit.attempt import AuditDependencies
from sageaudit.workflows.scan.listing import ListRefusal, list_jobs
from sageaudit.workflows.scan.run import Lane


@dataclass(frozen=True, slots=True)
class Asked:
    """Which jobs are audited, and how. `period` is None for all days."""

    period: Period | None
    kinds: tuple[JobKind, ...]
    limit: int | None
    again: bool
    policy: Policy

    @property
    def days(self) -> Period:
        """The days of an account's jobs; only recordings may be of all days."""
        assert self.period is not None  # noqa: S101 - the command gives an account's scan days
        return self.period

    def of(self, jobs: Iterable[Listed]) -> list[Listed]:
        """At most `limit` jobs, those that ended last."""
        return [*jobs] if self.limit is None else newest([*jobs], self.limit)


@dataclass(frozen=True, slots=True)
class Places:
    """The regions to scan. `some`: an account need not have all of them."""

    regions: tuple[str, ...]
    some: bool


@dataclass(frozen=True, slots=True)
class LaneMaker:
    """Makes the lanes of a scan. `tally` counts what could not be listed, and unless `quiet` a
    message says it.
    """

    history: History
    asked: Asked
    places: Places
    workers: Workers
    tally: ScanTally
    statuses: dict[str, AccountStatus] = field(default_factory=dict)
    """Of each account, where several are scanned."""
    quiet: bool = False

    def of_recordings(self, folder: Path) -> list[Lane]:
        """The recorded jobs; a file that cannot be audited is counted by its name, and said."""

        def refused(error: BadRecording) -> None:
            self.tally.refuse(str(error), exit_of(error))
            if not self.quiet:
                say(str(error))

        asked = self.asked
        recorded = {
            (job.listed.ref, job.listed.created_at): job
            for job in recordings_below(folder, refused)
            if job.listed.ref.kind in asked.kinds
        }
        jobs = [job.listed for job in recorded.values()]
        if asked.period is not None:
            jobs = chosen(jobs, asked.period, asked.kinds)
        if not jobs:
            return []

        def of(listed: Listed) -> tuple[AuditDependencies, datetime]:
            job = recorded[listed.ref, listed.created_at]
            return job.dependencies(self.history, asked.policy), job.final_at

        lanes = lanes_of(asked.of(jobs), of(jobs[0])[0], again=asked.again)
        return [replace(lane, recorded=of) for lane in lanes]

    def of_account(self, account: ScannedAccount) -> list[Lane]:
        """The listed jobs. Raises NoCredentials where no region accepts the credentials."""
        jobs = self._listed(account, self.tally, quiet=self.quiet)
        deps = account.dependencies(self.history, self.asked.policy)
        return lanes_of(self.asked.of(jobs), deps, again=self.asked.again)

    def of_accounts(self, several: ScannedAccounts, stopped: Callable[[], bool]) -> list[Lane]:
        """The listed jobs of several accounts; one that refuses is said and stops no other.

        Raises Stopped as soon as `stopped()` becomes true.
        """
        jobs: list[Listed] = []
        asked = several.each(
            lambda account, tally: self._listed(account, tally, quiet=True), stopped
        )
        for status, found in asked:
            self.statuses[status.account] = status
            jobs += found
            for reason in status.reasons:
                say(f"{status.account}: {reason}")
            self.tally.take(status.tally, status.error)
        chosen_jobs = self.asked.of(jobs)
        names = {job.ref.account for job in chosen_jobs}
        deps = several.dependencies(sorted(names), self.history, self.asked.policy)
        lanes = [
            lane
            for account, of_account in deps.items()
            for lane in lanes_of(
                [job for job in chosen_jobs if job.ref.account == account],
                of_account,
                again=self.asked.again,
            )
        ]
        note_lanes(self.statuses, lanes)
        return lanes

    def _listed(self, account: ScannedAccount, tally: ScanTally, *, quiet: bool) -> list[Listed]:
        """The jobs of an account; what cannot be listed is counted, and said unless `quiet`.

        Raises the error where nothing can be listed with the account's credentials.
        """
        asked, places = self.asked, self.places
        regions = places.regions
        listing = list_jobs(account.lists, regions, asked.kinds, asked.days, self.workers)
        closed = {refusal.region for refusal in listing.refusals if _no_credentials(refusal)}
        for refusal in listing.refusals:
            if closed == set(regions) and _no_credentials(refusal):
                raise refusal.error
            if not (places.some and refusal.region in closed):
                if not quiet:
                    say(str(refusal.error))
                tally.refuse(str(refusal.error), exit_of(refusal.error))
        if places.some and closed and not quiet:
            say(f"not enabled for this account: {', '.join(sorted(closed))}")
        return [*listing.jobs]


def _no_credentials(refusal: ListRefusal) -> bool:
    """A region that is not enabled refuses credentials that are good elsewhere."""
    return isinstance(refusal.error, NoCredentials)
