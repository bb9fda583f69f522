"""Lists live accounts' jobs for `scan`, with the user's own credentials, within AWS's
rate limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from botocore.config import Config
from msgspec import Struct

from sageaudit.adapters.aws import clients
from sageaudit.adapters.aws.accounts import AccountClients, AccountList, no_role
from sageaudit.adapters.aws.pace import RateLimiter, ScanStopped
from sageaudit.adapters.aws.sagemaker import SageMakerJobLists, SageMakerJobs
from sageaudit.adapters.files.local_files import fingerprint_key
from sageaudit.adapters.threads import DaemonThreads
from sageaudit.domain.job.kinds import BILLED_KINDS, JobKind
from sageaudit.domain.job.ref import JobRef, region_partition
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.sweep import (
    ListedJob,
    Period,
    rollups_with_listed_children,
    select_rows,
    sort_for_audit,
)
from sageaudit.errors import AwsError, BadUsage
from sageaudit.ports import History, JobLists, Workers
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies
from sageaudit.workflows.live import live_dependencies
from sageaudit.workflows.scan.lanes import Lane
from sageaudit.workflows.scan.tally import AccountStatus, ScanTally

THREADS = 32
"""The number of concurrent requests, of all regions together."""
_CONFIG = clients.CONFIG.merge(
    Config(
        retries={"mode": "standard", "total_max_attempts": 8},
        read_timeout=30,
        max_pool_connections=THREADS,
    )
)
"""The configuration of boto3 clients. 8 attempts wait about 25 s.

A scan makes more attempts than a Lambda function, since no queue sends the job again.
"""
ClientFactory = Callable[[str, Config], Callable[[str, str], Any]]
"""Takes a service and a config. Returns a function from account and region to a client."""
_MAX_PARALLEL_ACCOUNTS = 8
"""How many accounts are listed at the same time."""
ListChildren = Callable[[JobRef], Iterable[JobRef]]
"""Returns the jobs that a roll-up launched. Raises AwsError."""


class ScannedAccount:
    """One account, read with one boto3 session. It calls only APIs that read."""

    def __init__(
        self,
        session: Any,
        pace: RateLimiter,
        name: str = "",
        client_factory: ClientFactory | None = None,
    ) -> None:
        """`name` separates the rate limits of several accounts, which may share
        `client_factory`.
        """
        self._pace, self._name = pace, name
        self._client_factory = (
            client_factory or AccountClients(session, "", no_role, time.time).client_factory
        )

    @property
    def lists(self) -> SageMakerJobLists:
        """The account's lists of jobs."""
        client_for = self._paced_clients("sagemaker")
        return SageMakerJobLists(lambda region: client_for("", region))

    @property
    def jobs(self) -> SageMakerJobs:
        """The reader of the jobs that a roll-up launched."""
        return SageMakerJobs(self._paced_clients("sagemaker"))

    def dependencies(self, history: History, policy: Policy) -> AuditDependencies:
        """Returns the dependencies of the account's audits."""
        return live_dependencies(
            self._paced_clients,
            history,
            policy,
            fingerprint_key=fingerprint_key,
            list_hosts_once=True,
        )

    def _paced_clients(self, service: str) -> Callable[[str, str], Any]:
        client_for = self._pace.limit_clients(self._client_factory(service, _CONFIG))
        return lambda _, region: client_for(self._name, region)


def make_lanes(
    jobs: Iterable[ListedJob], deps: AuditDependencies, *, force: bool = False
) -> list[Lane]:
    """Returns one lane for each account and region of the jobs."""
    jobs_by_account_region: dict[tuple[str, str], list[ListedJob]] = {}
    for job in jobs:
        jobs_by_account_region.setdefault((job.ref.account, job.ref.region), []).append(job)
    return [
        Lane(account, region, deps, sort_for_audit(rows), force=force)
        for (account, region), rows in sorted(jobs_by_account_region.items())
    ]


def regions_to_scan(
    session: Any, requested_regions: Sequence[str], *, all_regions: bool
) -> list[str]:
    """Returns the regions to scan. Raises BadUsage if a region is unknown, or if there are none."""
    region_names = clients.known_regions()
    for region in requested_regions:
        if region not in region_names:
            suggestion = did_you_mean(region, region_names) or "; a region looks like eu-west-1"
            raise BadUsage(f"--region {region} is not a region of SageMaker{suggestion}")
    if all_regions:
        partition = region_partition(session.region_name or "us-east-1")
        return sorted(region for region in region_names if region_partition(region) == partition)
    if requested_regions:
        return list(dict.fromkeys(requested_regions))
    if session.region_name is None:
        raise BadUsage("which region? give --region or --all-regions, or set one for your profile")
    return [session.region_name]


class ScannedAccounts:
    """The accounts of a list. The user's own account is read without a role."""

    def __init__(
        self, session: Any, account_list: AccountList, region: str, pace: RateLimiter
    ) -> None:
        """Roles are assumed in `region`."""
        self.account_list, self._pace, self._region = account_list, pace, region
        self.clients, self.opened_accounts = (
            account_list.make_clients(session, region),
            {account_list.own_identity.account},
        )

    def __len__(self) -> int:
        return len(self.account_list.accounts)

    def list_each(
        self,
        list_account_jobs: Callable[[ScannedAccount, ScanTally], Sequence[ListedJob]],
        is_stopped: Callable[[], bool],
    ) -> Iterator[tuple[AccountStatus, Sequence[ListedJob]]]:
        """Yields each account with its jobs, in the order of the list.

        Threads call `list_account_jobs` for several accounts at a time. An AwsError of this call
        becomes the account's error. Raises ScanStopped as soon as `is_stopped()` is true.
        """

        def list_account(status: AccountStatus) -> tuple[AccountStatus, Sequence[ListedJob]]:
            try:
                return status, list_account_jobs(self._open_account(status.account), status.tally)
            except AwsError as error:
                status.error = error
                return status, ()

        with DaemonThreads(_MAX_PARALLEL_ACCOUNTS) as workers:
            calls = [
                workers.submit(partial(list_account, AccountStatus(account.id, account.name)))
                for account in self.account_list.accounts
            ]
            for pending in calls:
                while not workers.wait_for_any([pending]):
                    if is_stopped():
                        raise ScanStopped
                yield pending.result()

    def dependencies(
        self, accounts: Sequence[str], history: History, policy: Policy
    ) -> dict[str, AuditDependencies]:
        """Returns the audits' dependencies by account.

        Prices are read once, with the user's own account.
        """
        own_account = self._open_account(self.account_list.own_identity.account)
        markets = own_account.dependencies(history, policy).markets
        return {
            account: replace(
                self._open_account(account).dependencies(history, policy), markets=markets
            )
            for account in accounts
        }

    def _open_account(self, account: str) -> ScannedAccount:
        """Opens an account of the list. Raises AwsError if the account's role cannot be assumed."""
        if account not in self.opened_accounts:
            self.clients.client_factory("sagemaker", _CONFIG)(account, self._region)
            self.opened_accounts.add(account)
        return ScannedAccount(None, self._pace, account, self.clients.client_factory)


class ListRefusal(Struct, frozen=True):
    """The error of a kind of job that could not be listed in a region."""

    region: str
    kind: JobKind
    error: AwsError


class ListedJobs(Struct, frozen=True):
    """The jobs of a period, in any order, and what could not be listed.

    `has_any_answer` means that at least one list was read, so that an empty result means no jobs.
    """

    jobs: tuple[ListedJob, ...]
    refusals: tuple[ListRefusal, ...]
    has_any_answer: bool


def list_jobs(
    lists: JobLists,
    list_children: ListChildren,
    regions: Iterable[str],
    kinds: Collection[JobKind],
    period: Period,
    workers: Workers,
) -> ListedJobs:
    """Returns the jobs of these kinds and regions that ended in the period or have not ended.

    If one list cannot be read, the others still are. A roll-up's jobs are returned with it,
    whatever their kind and day.
    """
    listed_kinds = _kinds_with_children(kinds)
    calls_by_region = {
        region: [
            workers.submit(partial(_list_kind, lists, kind, region, period))
            for kind in listed_kinds
        ]
        for region in regions
    }
    jobs: list[ListedJob] = []
    refusals: list[ListRefusal] = []
    has_any_answer = False
    for calls in calls_by_region.values():
        answers = [call.result() for call in calls]
        refusals += [answer for answer in answers if isinstance(answer, ListRefusal)]
        rows = [row for answer in answers if not isinstance(answer, ListRefusal) for row in answer]
        children = set[JobRef]()
        for row in rollups_with_listed_children(rows, period, kinds):
            try:
                children.update(list_children(row.ref))
            except AwsError as error:
                refusals.append(ListRefusal(row.ref.region, row.ref.kind, error))
        jobs += select_rows(rows, period, kinds, children)
        has_any_answer |= not all(isinstance(answer, ListRefusal) for answer in answers)
    return ListedJobs(tuple(jobs), tuple(refusals), has_any_answer)


def _kinds_with_children(kinds: Collection[JobKind]) -> list[JobKind]:
    kinds_in_order = dict.fromkeys(kinds)
    for rollup in (kind.spec.rollup for kind in kinds):
        if rollup is not None:
            kinds_in_order |= dict.fromkeys(
                [rollup.child_kind] if rollup.child_kind else BILLED_KINDS
            )
    return [*kinds_in_order]


def _list_kind(
    lists: JobLists, kind: JobKind, region: str, period: Period
) -> list[ListedJob] | ListRefusal:
    try:
        return list(lists.list_jobs(kind, region, period))
    except AwsError as error:
        return ListRefusal(region, kind, error)
