"""A scan takes the time that AWS's rates make it take, as docs/scan.md computes it."""

import math

import pytest

from sageaudit.workflows.scan import lanes as scanning
from sageaudit.workflows.scan.lanes import ScanResult
from tests.fakes.quota_aws import QUOTAS
from tests.fakes.quota_scan import QuotaScan


@pytest.fixture
def only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits take no time here: what AWS said is read, and nothing is judged."""
    document = {"rollup": True, "rollup_rules": [], "findings": [], "not_judged": []}
    monkeypatch.setattr(scanning, "_audit", lambda read, lane: document)


def by_the_docs(jobs: int, *, points: int = 0) -> float:
    """docs/scan.md's formula."""
    pages = math.ceil(jobs / 100)
    return pages / 2 + max(jobs / 10, points / 90_000)


@pytest.mark.usefixtures("only_read")
@pytest.mark.parametrize("jobs", [100, 1000, pytest.param(5000, marks=pytest.mark.more)])
def test_a_scan_takes_as_long_as_the_rates_of_aws(jobs: int) -> None:
    """No request is throttled, and beside the rates only the latency of one job is waited for."""
    scan = QuotaScan(jobs)
    took_s = scan.run(scan.dependencies())
    assert scan.results == {ScanResult.AUDITED: jobs}
    assert by_the_docs(jobs) <= took_s + 1 <= by_the_docs(jobs) + 3
    assert not scan.aws.throttled


@pytest.mark.usefixtures("only_read")
def test_long_runs_on_many_hosts_take_as_long_as_their_points() -> None:
    """CloudWatch gives 90,000 points a second: a day of 12 hosts has 34,560."""
    scan = QuotaScan(60, minutes=1440, hosts=12)
    took_s = scan.run(scan.dependencies())
    assert scan.aws.points > 1_000_000
    expected_s = by_the_docs(60, points=scan.aws.points)
    assert expected_s > by_the_docs(60) * 2
    assert expected_s - 1 <= took_s <= expected_s + 3
    assert not scan.aws.throttled


@pytest.mark.usefixtures("only_read")
def test_regions_are_scanned_at_the_same_time() -> None:
    """Rates are those of an account and region: three regions take as long as one."""
    scan = QuotaScan(300)
    took_s = scan.run(scan.dependencies(), regions=("us-east-1", "eu-west-1", "eu-west-2"))
    assert scan.results == {ScanResult.AUDITED: 900}
    assert took_s <= by_the_docs(300) + 3
    assert not scan.aws.throttled


@pytest.mark.usefixtures("only_read")
def test_a_scan_slows_down_where_aws_throttles_it() -> None:
    """With a quota of 4 a second, of which nobody told, no job is lost, and few tries are."""
    scan = QuotaScan(300, quotas={**QUOTAS, "DescribeTrainingJob": 4})
    took_s = scan.run(scan.dependencies())
    assert scan.results == {ScanResult.AUDITED: 300}
    assert 300 / 4 <= took_s <= 300 / 4 * 2
    assert scan.aws.throttled["DescribeTrainingJob"] <= 300 / 4
    assert scan.pace.requests["DescribeTrainingJob"] == scan.aws.requests["DescribeTrainingJob"]


@pytest.mark.usefixtures("only_read")
def test_what_cloudwatch_bills_is_counted() -> None:
    """A host without GPUs and without a disk of its own has two metrics."""
    scan = QuotaScan(50, hosts=2)
    scan.run(scan.dependencies())
    assert scan.pace.metrics_requested == 50 * 2 * 2
