"""docs/scan.md computes what the code does."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.adapters.aws import pace
from sageaudit.adapters.aws.sagemaker import PAGE_SIZE
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import ListedJob
from sageaudit.workflows.scan.tally import METRICS_PER_HOST, metrics_cost_usd, scan_cost
from tests.fakes.jobs import ACCOUNT, REGION, START

PAGE_TEXT = (Path(__file__).parents[3] / "docs" / "scan.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([\d,]+) \| (\d+) \| (\d+) s \| \$([\d.]+) \|$", PAGE_TEXT, re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_table_is_the_formula(row: tuple[str, str, str, str]) -> None:
    """Pages, seconds and dollars of 100, 1,000 and 5,000 jobs."""
    jobs, pages, seconds = (int(cell.replace(",", "")) for cell in row[:3])
    assert pages == jobs / PAGE_SIZE
    assert seconds == -(-(pages / pace.LISTS_PER_SECOND + jobs / pace.DESCRIBES_PER_SECOND) // 1)
    assert Decimal(row[3]) == metrics_cost_usd(jobs * METRICS_PER_HOST)


def test_the_table_has_three_rows() -> None:
    """So that none is missed by the pattern."""
    assert [row[0] for row in ROWS] == ["100", "1,000", "5,000"]


@pytest.mark.parametrize(
    ("api", "words"),
    [
        ("ListTrainingJobs", r"ListTrainingJobs \| 2 "),
        ("ListTransformJobs", r"lists of the other kinds \| 2 "),
        ("DescribeProcessingJob", r"Describe of each kind, ListTags \| 10 "),
        ("ListTags", r"ListTags \| 10 "),
        ("GetMetricData", r"\| GetMetricData \| 50 "),
        ("ListMetrics", r"ListMetrics \| 10 "),
    ],
)
def test_the_rates_are_those_of_the_code(api: str, words: str) -> None:
    """Requests a second."""
    assert re.search(words, PAGE_TEXT)
    assert pace.requests_per_second(api) == int(words.rsplit(maxsplit=1)[-1])


def test_what_is_said_before_a_scan_is_the_formula_too() -> None:
    """The region with the most jobs takes the longest; tuning jobs have no metrics."""

    def row(number: int, kind: JobKind, region: str) -> ListedJob:
        ref = JobRef(kind, f"job-{number}", f"arn-{number}", ACCOUNT, region)
        return ListedJob(ref, "Completed", START, START, START)

    jobs = [row(n, JobKind.TRAINING, REGION) for n in range(300)]
    jobs += [row(n, JobKind.TUNING, "eu-west-1") for n in range(50)]
    cost = scan_cost(jobs)
    assert (cost.jobs, cost.metrics, cost.min_seconds) == (350, 1500, 30)
    assert cost.usd == Decimal("0.015")
