"""Computes how long a sweep over many accounts takes: `python -m tools.bench sweeps`.

A real sweep reads the empty lists of generated accounts in virtual time, on the threads of a Lambda
function: CPU time is one core's, and is spent by one thread at a time. The CPU times of a client
and a list are measured with the real SDK against an endpoint in this process.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.httpsession import URLLib3Session

from local import REGION
from sageaudit.adapters.aws.sagemaker import PacedJobPages
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.sweep import JobList, ListedJob, SweptRegion
from sageaudit.workflows.side_by_side import MAX_RUNNING
from tests.fakes.capacity import item_bytes
from tests.fakes.sweeps import NOON, FakePages, SweepFlow
from tests.fakes.virtual_time import VirtualTime
from tools.bench.measure import Row

ACCOUNTS = (1, 30, 300, 1_000)
VCPU = 1024 / 1769
"""The share of a core that a function of 1 GiB has."""
CLIENT_CPU_S, LIST_CPU_S = 0.05, 0.005
"""The assumed CPU seconds of a member's role and client, and of a list: twice what `rows` measures
here, since this machine is not Lambda and the endpoint has no TLS."""
FAR_S, NEAR_S = 0.1, 0.01
"""The assumed time of a request to SageMaker or STS, and to DynamoDB, in seconds."""
_BYTES_PER_WRITE_UNIT, _BYTES_PER_READ_UNIT = 1024, 2 * 4096
_SAMPLES = 50


class _VirtualPages(FakePages):
    """Lists without jobs, of one page each. A request takes CPU and waits for its answer."""

    def __init__(self, flow: SweepFlow, virtual: VirtualTime) -> None:
        super().__init__(flow)
        self._virtual = virtual
        self._core_free_at_s = 0.0
        self._clients: set[AccountRegion] = set()

    def pages(
        self, job_list: JobList, *, created_after: datetime, created_before: datetime
    ) -> Iterator[list[ListedJob]]:
        del created_after, created_before
        if job_list.account_region not in self._clients:
            self._clients.add(job_list.account_region)
            self._compute(CLIENT_CPU_S)
            self._virtual.sleep(FAR_S)
        self._compute(LIST_CPU_S)
        self._virtual.sleep(FAR_S)
        self.requests.append((self.flow.now, job_list))
        yield []

    def _compute(self, cpu_s: float) -> None:
        began_at_s = max(self._core_free_at_s, self._virtual.now_s)
        self._core_free_at_s = began_at_s + cpu_s / VCPU
        self._virtual.sleep(self._core_free_at_s - self._virtual.now_s)


class _VirtualFlow(SweepFlow):
    """A sweep whose clock is that of its threads."""

    def __init__(self, account_count: int) -> None:
        self.virtual = VirtualTime(MAX_RUNNING)
        super().__init__(accounts=tuple(f"{number:012}" for number in range(1, account_count + 1)))
        self.pages = _VirtualPages(self, self.virtual)
        self.workers = self.virtual

    @property
    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.virtual.now_s)

    @now.setter
    def now(self, _: datetime) -> None:
        """The flow's own start is that of the virtual clock."""


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One sweep: its seconds, its list requests, and the regions that it stored."""

    seconds: float
    list_requests: int
    stored: Collection[SweptRegion]


def run_sweep(account_count: int) -> SweepRun:
    """Runs a sweep over this many accounts in one region, none of which has a job."""
    flow = _VirtualFlow(account_count)
    for _ in flow.sweep_parts():
        pass
    stored = flow.notes.swept_regions()
    seconds = flow.virtual.now_s + NEAR_S * len(stored) / MAX_RUNNING
    return SweepRun(seconds, len(flow.pages.requests), stored.values())


def member_units() -> dict[str, float]:
    """Returns the DynamoDB units that one more account and region adds to a sweep and its watch.

    A Query is charged for the sum of its items, so it has a part of a unit.
    """
    [swept] = run_sweep(1).stored
    client = mock.Mock()
    [account_region] = _VirtualFlow(1).dependencies(lambda: False).scope.audited({})
    DynamoSweepStore(client, "history").save_swept_region(account_region, swept)
    size = item_bytes(client.put_item.call_args.kwargs["Item"])
    return {
        "write units": -(-size // _BYTES_PER_WRITE_UNIT),
        "read units": 2 * size / _BYTES_PER_READ_UNIT,
    }


def _answer(self: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
    del self
    name = request.headers["X-Amz-Target"]
    name = name.decode() if isinstance(name, bytes) else name
    kind = next(kind for kind in JobKind if name.endswith(kind.spec.list_call))
    raw = io.BytesIO(json.dumps({kind.spec.list_key: []}).encode())
    raw.stream = lambda *_, **__: iter([raw.read()])  # type: ignore[attr-defined]
    return AWSResponse(request.url, 200, {}, raw)


def _measure_sdk() -> tuple[float, float]:
    """Returns the CPU seconds of a SageMaker client, and of a request for an empty list."""
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    session, now = boto3.Session(region_name=REGION), datetime.now(UTC)

    def lists(client: Any) -> None:
        pages = PacedJobPages(lambda *_: client, time.monotonic, lambda _: None)
        for kind in JobKind:
            period = {"created_after": now - timedelta(hours=3), "created_before": now}
            list(pages.pages(JobList("111122223333", REGION, kind), **period))

    with mock.patch.object(URLLib3Session, "send", _answer):
        lists(session.client("sagemaker", **keys))
        began_s = time.process_time()
        clients = [session.client("sagemaker", **keys) for _ in range(_SAMPLES)]
        created_s = time.process_time()
        for client in clients:
            lists(client)
        listed_s = time.process_time()
    per_list = _SAMPLES * len(JobKind)
    return (created_s - began_s) / _SAMPLES, (listed_s - created_s) / per_list


def rows() -> Iterator[Row]:
    """Yields the CPU time of the SDK, then the seconds of sweeps."""
    client_s, list_s = _measure_sdk()
    yield Row("a SageMaker client", 1000 * client_s, "CPU ms", goal=f"below {CLIENT_CPU_S} s")
    yield Row("a list without jobs", 1000 * list_s, "CPU ms", goal=f"below {LIST_CPU_S} s")
    for count in ACCOUNTS:
        run = run_sweep(count)
        yield Row(f"a sweep of {count:,} accounts", run.seconds, "s", goal="below 510")
    for unit, number in member_units().items():
        yield Row(f"{unit} of an account and region", number, "a sweep")
