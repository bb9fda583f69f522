"""A live account as `scan` reads it: with the user's own credentials, within AWS's rates."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from botocore.config import Config

from sageaudit.adapters.aws import clients
from sageaudit.adapters.aws.accounts import AccountList, Accounts
from sageaudit.adapters.aws.pace import Pace, Stopped, Threads
from sageaudit.adapters.aws.sagemaker import SageMakerJobLists, SageMakerJobs
from sageaudit.adapters.files.local_files import fingerprint_key
from sageaudit.domain.job.listed import Listed, in_order
from sageaudit.domain.job.ref import partition_of
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import AwsError, BadUsage
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies
from sageaudit.workflows.live import live_dependencies
from sageaudit.workflows.scan.lanes import Lane
from sageaudit.workflows.scan.tally import AccountStatus, ScanTally

THREADS = 32
"""Requests under way at the same time, of all regions together."""
_CONFIG = clients.CONFIG.merge(
    Config(
        retries={"mode": "standard", "total_max_attempts": 8},
        read_timeout=30,
        max_pool_connections=THREADS,
    )
)
"""More tries than a Lambda has: nobody sends the job again. 8 wait some 25 s."""
ClientsOf = Callable[[str, Config], Callable[[str, str], Any]]
"""From a service and a config to a function from an account and region to a client."""


class ScannedAccount:
    """One account by one boto3 session. Calls only APIs that read."""

    def __init__(
        self, session: Any, pace: Pace, name: str = "", clients_of: ClientsOf | None = None
    ) -> None:
        """`name` keeps the rates of several accounts apart.

        `clients_of` makes the clients of a service where several accounts share them.
        """
        self._pace, self._name = pace, name
        self._clients_of = clients_of or Accounts(session, "", {}, time.time).of

    @property
    def lists(self) -> SageMakerJobLists:
        """Its lists of jobs."""
        client_of = self._paced("sagemaker")
        return SageMakerJobLists(lambda region: client_of("", region))

    @property
    def jobs(self) -> SageMakerJobs:
        """What lists the jobs that a roll-up launched."""
        return SageMakerJobs(self._paced("sagemaker"))

    def dependencies(self, history: History, policy: Policy) -> AuditDependencies:
        """What its audits read from, write to and are judged by."""
        return live_dependencies(
            self._paced, history, policy, fingerprint_key=fingerprint_key, lists_once=True
        )

    def _paced(self, service: str) -> Callable[[str, str], Any]:
        client_of = self._pace.paced(self._clients_of(service, _CONFIG))
        return lambda _, region: client_of(self._name, region)


def lanes_of(jobs: Iterable[Listed], deps: AuditDependencies, *, again: bool = False) -> list[Lane]:
    """One lane for each account and region among the jobs."""
    places: dict[tuple[str, str], list[Listed]] = {}
    for job in jobs:
        places.setdefault((job.ref.account, job.ref.region), []).append(job)
    return [
        Lane(account, region, deps, in_order(rows), again=again)
        for (account, region), rows in sorted(places.items())
    ]


def scanned_regions(session: Any, named: Sequence[str], *, every: bool) -> list[str]:
    """The regions to scan. Raises BadUsage for an unknown one, and for none at all."""
    known = clients.known_regions()
    for region in named:
        if region not in known:
            instead = did_you_mean(region, known) or "; a region looks like eu-west-1"
            raise BadUsage(f"--region {region} is not a region of SageMaker{instead}")
    if every:
        partition = partition_of(session.region_name or "us-east-1")
        return sorted(region for region in known if partition_of(region) == partition)
    if named:
        return list(dict.fromkeys(named))
    if session.region_name is None:
        raise BadUsage("which region? give --region or --all-regions, or set one for your profile")
    return [session.region_name]


_AT_ONCE = 8
"""Accounts whose jobs are listed at the same time."""


class ScannedAccounts:
    """The accounts of a list. The own one is read with the user's credentials, without a role."""

    def __init__(self, session: Any, listed: AccountList, region: str, pace: Pace) -> None:
        """`region`: where roles are assumed."""
        self.listed, self._pace, self._region = listed, pace, region
        self.clients, self.opened = listed.clients(session, region), {listed.own.account}

    def __len__(self) -> int:
        return len(self.listed.accounts)

    def each(
        self,
        list_of: Callable[[ScannedAccount, ScanTally], Sequence[Listed]],
        stopped: Callable[[], bool],
    ) -> Iterator[tuple[AccountStatus, Sequence[Listed]]]:
        """Each account with its jobs, in the order of the list; some are asked at the same time.

        `list_of` is called on other threads; the AwsError that it raises is the account's. Raises
        Stopped as soon as `stopped()` becomes true.
        """

        def ask(status: AccountStatus) -> tuple[AccountStatus, Sequence[Listed]]:
            try:
                return status, list_of(self._opened(status.account), status.tally)
            except AwsError as error:
                status.error = error
                return status, ()

        with Threads(_AT_ONCE) as workers:
            asked = [
                workers.submit(partial(ask, AccountStatus(account.id, account.name)))
                for account in self.listed.accounts
            ]
            for pending in asked:
                while not workers.first_done([pending]):
                    if stopped():
                        raise Stopped
                yield pending.result()

    def dependencies(
        self, accounts: Sequence[str], history: History, policy: Policy
    ) -> dict[str, AuditDependencies]:
        """What the audits of each account work with; prices are read once, by the own account."""
        own = self._opened(self.listed.own.account)
        markets = own.dependencies(history, policy).markets
        return {
            account: replace(self._opened(account).dependencies(history, policy), markets=markets)
            for account in accounts
        }

    def _opened(self, account: str) -> ScannedAccount:
        """The account to read from. Raises AwsError where its role cannot be assumed."""
        if account not in self.opened:
            self.clients.of("sagemaker", _CONFIG)(account, self._region)
            self.opened.add(account)
        return ScannedAccount(None, self._pace, account, self.clients.of)
