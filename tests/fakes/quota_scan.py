"""Scans an account with quotas, in virtual time.

`PYTHONPATH=functions python -m tests.fakes.quota_scan 1000 5000` scans this many jobs with real
audits into a history file. It prints the time by AWS's rates, the CPU time of this machine, and the
memory.
"""

import resource
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.aws.pace import RateLimiter
from sageaudit.adapters.aws.sagemaker import SageMakerJobLists, SageMakerJobs
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import Period
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies
from sageaudit.workflows.scan.accounts import list_jobs, make_lanes
from sageaudit.workflows.scan.lanes import ScanResult, scan_lanes
from tests.fakes.audit_flow import FakeJobs, dependencies
from tests.fakes.jobs import REGION, TYPES
from tests.fakes.quota_aws import NOW, QuotaAws
from tests.fakes.virtual_time import VirtualTime

PERIOD = Period((NOW - timedelta(days=30)).date(), NOW.date())


def no_children(_: JobRef) -> tuple[JobRef, ...]:
    """Returns no child jobs for any roll-up."""
    return ()


class QuotaScan:
    """A scan of an account with quotas, in virtual time."""

    def __init__(self, jobs: int, **account: Any) -> None:
        self.time = VirtualTime()
        self.aws = QuotaAws(self.time, jobs, **account)
        self.pace = RateLimiter(self.time.clock, self.time.sleep)
        self.jobs = self.pace.limit_clients(self.aws.client("sagemaker"))
        self.metrics = self.pace.limit_clients(self.aws.client("cloudwatch"))
        self.lists = SageMakerJobLists(lambda region: self.jobs("", region))
        self.results: Counter[ScanResult] = Counter()

    def dependencies(self, **changes: Any) -> AuditDependencies:
        read: dict[str, Any] = {
            "jobs": SageMakerJobs(self.jobs),
            "metrics": CloudWatchMetrics(self.metrics, TYPES),
        }
        return replace(dependencies(FakeJobs()), **read, **changes)

    def run(self, deps: AuditDependencies, regions: tuple[str, ...] = (REGION,)) -> float:
        """Runs the scan; returns its virtual seconds."""
        listing = list_jobs(self.lists, no_children, regions, [JobKind.TRAINING], PERIOD, self.time)
        assert not listing.refusals
        for outcome in scan_lanes(make_lanes(listing.jobs, deps), self.time, clock=lambda: NOW):
            self.results[outcome.result] += 1
        return self.time.now_s


def measure(jobs: int) -> str:
    """Scans with real audits in a process of its own; returns one line about it."""
    account, begun_s = QuotaScan(jobs), time.process_time()
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteHistory(Path(folder) / "history.db", clock=lambda: NOW) as history,
    ):
        took_s = account.run(account.dependencies(history=history))
    cpu_s = time.process_time() - begun_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return f"{jobs} jobs: {took_s:.0f} s by the rates, {cpu_s:.0f} s of CPU, {peak_mb:.0f} MB\n"


if __name__ == "__main__":
    with get_context("spawn").Pool(1, maxtasksperchild=1) as processes:
        for line in processes.imap(measure, map(int, sys.argv[1:])):
            sys.stdout.write(line)
            sys.stdout.flush()
