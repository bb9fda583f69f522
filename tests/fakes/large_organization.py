"""An organization with running jobs, swept and watched in virtual time by the real workflows.

`tools/pages/organization.py` makes a table of it, and `tools/pages/running_cost.py` has the cost of
its sweeps. What is assumed stands in the constants.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import AuditScope, Member
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.scope import MemberAccounts, WatchSettings
from sageaudit.domain.sweep import JobList, ListedJob, SweptRegion
from sageaudit.errors import AwsError
from sageaudit.workflows.side_by_side import MAX_RUNNING
from sageaudit.workflows.sweep.lists import ListSweepResult, SweepDependencies
from sageaudit.workflows.sweep.run import SweepPart, SweepSummary, sweep
from sageaudit.workflows.watch.run import check_running_jobs, watched_jobs
from sageaudit.workflows.watch.running_job import JobCheck, WatchDependencies
from tests.fakes.jobs import TYPES, market
from tests.fakes.memory_ledger import (
    MemoryAlertLedger,
    MemoryDecisions,
    MemoryMemberRegistry,
    MemorySweepStore,
)
from tests.fakes.queues import FakeQueue
from tests.fakes.sweeps import NOON, KnownRuns, row
from tests.fakes.virtual_time import VirtualTime

LIST_S, DESCRIBE_S, METRICS_S, TABLE_S, ROLE_S = 0.3, 0.2, 0.4, 0.008, 0.3
"""Seconds of a request in another region: our assumption."""
CLIENT_CPU_S, REQUEST_CPU_S = 0.040, 0.004
"""CPU seconds of a full core for a client with its role, and for a request: twice what
`python -m tools.bench sweeps` measures (19 and 1.9 ms, boto3 1.44), since that is without TLS and
not on Lambda."""
VCPU = 1024 / 1769
"""A function of 1,024 MiB has this share of a core: "Configure Lambda function memory"."""
PAUSE_S = 1.0
"""Between two requests for one list of an account and region."""
INTERVAL = timedelta(minutes=15)
TIME_LIMIT_S = 510
"""After this time, a sweep reads no further page."""
REGIONS = ("us-east-1", "eu-west-1", "ap-southeast-2", "us-west-2")
T = TypeVar("T")


@dataclass(frozen=True)
class Round:
    """A sweep, and the watch of the running jobs that it found."""

    lists_read: int
    lists: int
    sweep_requests: int
    sweep_s: float
    oldest_list_s: float
    expensive_checked: int
    not_checked: int
    watch_requests: int
    watch_s: float


@dataclass
class LargeOrganization:
    """Accounts in regions, each with its share of running jobs. `slow` accounts answer in 60 s."""

    account_count: int
    region_count: int
    running_count: int = 0
    expensive_count: int = 0
    slow_count: int = 0
    time: VirtualTime = field(default_factory=lambda: VirtualTime(MAX_RUNNING))
    requests: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        accounts = [str(111_111_000_000 + number) for number in range(self.account_count)]
        self.regions = REGIONS[: self.region_count]
        self.slow = set(accounts[: self.slow_count])
        roles = dict.fromkeys(accounts[1:], "sageaudit-read")
        home = AccountRegion(accounts[0], self.regions[0])
        self.scope = AuditScope(home, MemberAccounts(roles, regions=self.regions[1:]))
        self.store, self.registry = MemorySweepStore(), MemoryMemberRegistry()
        self.ledger = MemoryAlertLedger()
        places = [AccountRegion(account, name) for account in accounts for name in self.regions]
        self.rows: dict[AccountRegion, list[ListedJob]] = {place: [] for place in places}
        for number in range(self.running_count):
            place = places[number % len(places)]
            name = f"{'large' if number < self.expensive_count else 'small'}-{number}"
            created_at = NOON - timedelta(hours=2, seconds=number)
            listed = row(
                name, None, created_at=created_at, account=place.account, region=place.region
            )
            self.rows[place].append(listed)
        self._cpu_free_at = 0.0
        self._last_list_at: dict[JobList, float] = {}
        self._clients: dict[tuple[str, AccountRegion], None] = {}
        self._deadline_s = 0.0

    # Virtual time

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.time.now_s)

    def work(self, cpu_s: float, wait_s: float) -> None:
        """Lets a thread compute on the function's share of a core, and wait for an answer."""
        start = max(self.time.now_s, self._cpu_free_at)
        self._cpu_free_at = start + cpu_s / VCPU
        self.time.sleep(self._cpu_free_at - self.time.now_s + wait_s)

    def request(self, name: str, place: AccountRegion, wait_s: float) -> None:
        """Sends one request, with a new client for an account and region that has none."""
        self.requests[name] += 1
        cpu_s, client = REQUEST_CPU_S, ("cloudwatch" if name == "metrics" else "sagemaker", place)
        if client not in self._clients:
            self._clients[client] = None
            cpu_s, wait_s = cpu_s + CLIENT_CPU_S, wait_s + ROLE_S
            if len(self._clients) > 256:
                del self._clients[next(iter(self._clients))]
        self.work(cpu_s, 60.0 if place.account in self.slow else wait_s)

    def is_out_of_time(self) -> bool:
        return self.time.now_s >= self._deadline_s

    # Ports

    def pages(
        self, job_list: JobList, *, created_after: datetime, created_before: datetime
    ) -> Iterator[list[ListedJob]]:
        place = job_list.account_region
        turn = self._last_list_at.get(job_list, -PAUSE_S) + PAUSE_S
        self._last_list_at[job_list] = max(turn, self.time.now_s)
        self.time.sleep(turn - self.time.now_s)
        self.request("lists", place, LIST_S)
        is_training = job_list.kind is JobKind.TRAINING
        rows = self.rows[place] if is_training else []
        yield [listed for listed in rows if created_after < listed.created_at < created_before]

    def describe(self, ref: Any) -> dict[str, Any]:
        self.request("describe", ref.account_region, DESCRIBE_S)
        created_at = next(
            listed.created_at for listed in self.rows[ref.account_region] if listed.ref == ref
        )
        instance = "ml.g4dn.12xlarge" if ref.name.startswith("large") else "ml.m5.large"
        return {
            "TrainingJobName": ref.name,
            "TrainingJobArn": ref.arn,
            "TrainingJobStatus": "InProgress",
            "SecondaryStatus": "Training",
            "ResourceConfig": {
                "InstanceType": instance,
                "InstanceCount": 2,
                "VolumeSizeInGB": 1,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 432_000},
            "CreationTime": created_at.isoformat(),
            "TrainingStartTime": created_at.isoformat(),
            "SecondaryStatusTransitions": [
                {"Status": "Training", "StartTime": created_at.isoformat()}
            ],
        }

    def tags(self, ref: Any) -> dict[str, str]:
        self.request("tags", ref.account_region, DESCRIBE_S)
        return {}

    def read(self, job: Any, now: datetime) -> Any:
        from sageaudit.domain.usage.measure import measure  # noqa: PLC0415
        from sageaudit.domain.usage.measurements import MissingMetrics  # noqa: PLC0415

        del now
        self.request("metrics", AccountRegion(job.account, job.region), METRICS_S)
        missing = MissingMetrics("metric_missing", "no points")
        return measure(job, [], TYPES, missing_reason=missing)

    def market(self, *_: object) -> Any:
        return market()

    def runs(self, *_: object, **__: object) -> Iterator[Any]:
        self.table_request()
        return iter(())

    def table_request(self) -> None:
        self.requests["table"] += 1
        self.work(REQUEST_CPU_S, TABLE_S)

    # Rounds

    def round(self) -> Round:
        """Runs the sweep of one quarter of an hour, then the watch of the next."""
        begun_s = self.time.now_s
        parts, sweep_requests, sweep_s = self._timed(self._sweep)
        checks, watch_requests, watch_s = self._timed(self._watch)
        self.time.now_s = max(self.time.now_s, begun_s + INTERVAL.total_seconds())
        lists = [part for part in parts if isinstance(part, ListSweepResult)]
        [summary] = [part for part in parts if isinstance(part, SweepSummary)]
        return Round(
            lists_read=sum(part.is_complete for part in lists),
            lists=len(self.rows) * len(JobKind),
            sweep_requests=sweep_requests,
            sweep_s=sweep_s,
            oldest_list_s=summary.oldest_list_age.total_seconds(),
            expensive_checked=sum(check.is_expensive is True for check in checks),
            not_checked=sum(check.was_out_of_time for check in checks),
            watch_requests=watch_requests,
            watch_s=watch_s,
        )

    def _timed(self, run: Callable[[], list[T]]) -> tuple[list[T], int, float]:
        begun_s, begun_requests = self.time.now_s, self.requests.total()
        self._cpu_free_at, self._deadline_s = begun_s, begun_s + TIME_LIMIT_S
        self._clients.clear()
        results = run()
        took_s, self.time.now_s = self.time.now_s - begun_s, begun_s
        self._last_list_at = {place: at - took_s for place, at in self._last_list_at.items()}
        return results, self.requests.total() - begun_requests, took_s

    def _sweep(self) -> list[SweepPart]:
        deps = SweepDependencies(
            job_pages=self,
            history=cast("Any", KnownRuns()),
            sweep_store=_Store(self),
            registry=self.registry,
            queue=cast("Any", FakeQueue()),
            scope=self.scope,
            check_member=lambda *_: dict[str, AwsError](),
            workers=self.time,
            clock=self.now,
            is_out_of_time=self.is_out_of_time,
        )
        return list(sweep(deps))

    def _watch(self) -> list[JobCheck]:
        policy, here = Policy(), cast("Any", self)
        deps = WatchDependencies(
            jobs=here,
            metrics=here,
            markets=here,
            history=here,
            decisions=MemoryDecisions(),
            ledger=_Ledger(self),
            policy=policy,
            rules=(),
            writers={},
            settings=WatchSettings(),
            clock=self.now,
            is_out_of_time=self.is_out_of_time,
        )
        members: dict[AccountRegion, Member] = {}
        rows = watched_jobs(self.scope, self.store.swept_regions(), members)
        return list(check_running_jobs(deps, rows, self.time))


class _Store(MemorySweepStore):
    """A MemorySweepStore whose writes take time."""

    def __init__(self, organization: LargeOrganization) -> None:
        super().__init__(organization.store.regions, organization.store.notes)
        self._organization = organization

    def save_swept_region(self, account_region: AccountRegion, swept: SweptRegion) -> None:
        self._organization.table_request()
        super().save_swept_region(account_region, swept)


class _Ledger:
    """The organization's MemoryAlertLedger; its requests take time."""

    def __init__(self, organization: LargeOrganization) -> None:
        self._organization = organization

    def watch_state(self, key: JobKey) -> Any:
        self._organization.table_request()
        return self._organization.ledger.watch_state(key)

    def write_watch_state(self, *arguments: Any) -> bool:
        self._organization.table_request()
        return self._organization.ledger.write_watch_state(*arguments)
