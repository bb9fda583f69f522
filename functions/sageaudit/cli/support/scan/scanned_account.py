"""A live account as `scan` reads it: with the user's own credentials, within AWS's rates."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from botocore.config import Config

from sageaudit.adapters.aws import clients, s3
from sageaudit.adapters.aws.accounts import Accounts
from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.aws.job_lists import SageMakerJobLists
from sageaudit.adapters.aws.pace import Pace
from sageaudit.adapters.aws.s3 import S3Buckets
from sageaudit.adapters.aws.sagemaker import SageMakerJobs
from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.price_list import PriceList
from sageaudit.adapters.prices.sources import live_markets
from sageaudit.cli.support.history.fingerprint_key import fingerprint_key
from sageaudit.domain.job.listed import Listed, in_order
from sageaudit.domain.job.ref import partition_of
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.attempt import AuditDependencies
from sageaudit.workflows.scan.run import Lane

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

    def dependencies(self, history: History, policy: Policy) -> AuditDependencies:
        """What its audits read from, write to and are judged by."""
        return AuditDependencies(
            jobs=SageMakerJobs(self._paced("sagemaker")),
            metrics=CloudWatchMetrics(self._paced("cloudwatch"), packaged.types(), lists_once=True),
            history=history,
            buckets=S3Buckets(self._paced("s3", s3.CONFIG), time.monotonic),
            markets=live_markets(
                PriceList(lambda endpoint: self._paced("pricing")("", endpoint)),
                None,
                lambda: datetime.now(UTC),
            ),
            policy=policy,
            ruleset=catalogue.ruleset(),
            fingerprint_key=fingerprint_key,
        )

    def _paced(self, service: str, config: Config = _CONFIG) -> Callable[[str, str], Any]:
        client_of = self._pace.paced(self._clients_of(service, config))
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


def regions(session: Any, named: Sequence[str], *, every: bool) -> list[str]:
    """The regions to scan. Raises BadUsage for an unknown one, and for none at all."""
    known = clients.known_regions()
    for region in named:
        if region not in known:
            near = difflib.get_close_matches(region, known, 1)
            instead = f": did you mean {near[0]}?" if near else "; a region looks like eu-west-1"
            raise BadUsage(f"--region {region} is not a region of SageMaker{instead}")
    if every:
        partition = partition_of(session.region_name or "us-east-1")
        return sorted(region for region in known if partition_of(region) == partition)
    if named:
        return list(dict.fromkeys(named))
    if session.region_name is None:
        raise BadUsage("which region? give --region or --all-regions, or set one for your profile")
    return [session.region_name]
