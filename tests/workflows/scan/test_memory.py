"""A scan keeps no audit in memory: more jobs need a row of the list each."""

import gc
import tracemalloc
from copy import deepcopy

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.workflows.scan import lanes as scanning
from sageaudit.workflows.scan.accounts import list_jobs, make_lanes
from sageaudit.workflows.scan.lanes import scan_lanes
from sageaudit.workflows.scan.tally import ScanTally
from tests.fakes.documents import document
from tests.fakes.jobs import REGION
from tests.fakes.quota_aws import NOW
from tests.fakes.quota_scan import PERIOD, QuotaScan, no_children

BYTES_A_JOB = 3_000
"""The row of a list and its places in the order of auditing; an audit has several times as much."""


@pytest.fixture(autouse=True)
def _audits_of_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job gets a document of its own, so that one that is kept is seen."""
    template_document: AuditDocument = document()
    monkeypatch.setattr(scanning, "_audit", lambda read, lane: deepcopy(template_document))


def peak_bytes(jobs: int) -> int:
    """The most memory in use while so many jobs are scanned."""
    account = QuotaScan(jobs)
    deps = account.dependencies()
    gc.collect()
    tracemalloc.start()
    try:
        listing = list_jobs(
            account.lists, no_children, [REGION], [JobKind.TRAINING], PERIOD, account.time
        )
        tally = ScanTally()
        for outcome in scan_lanes(make_lanes(listing.jobs, deps), account.time, clock=lambda: NOW):
            tally.add(outcome)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert tally.job_count == jobs
    return peak


def test_memory_stays_flat() -> None:
    """Beside the rows of the list, 200 jobs need what 50 need."""
    peak_bytes(20)  # what is loaded once
    assert peak_bytes(200) - peak_bytes(50) <= 150 * BYTES_A_JOB
