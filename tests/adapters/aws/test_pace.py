"""Requests keep to the services' rates, and every try of the SDK counts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from sageaudit.adapters.aws.pace import RateLimiter, ScanStopped, requests_per_second

REGION = "eu-west-1"


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.stopped = False

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        if self.stopped:
            raise ScanStopped
        self.now_s += seconds


class Raw:
    """A response on the wire."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._text


def client(service: str, *answers: tuple[int, bytes]) -> Any:
    """A boto3 client that gets these answers, the last one again and again."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 3})
    new_client = boto3.Session().client(service, region_name=REGION, config=config)
    left = list(answers)

    def send(**_: Any) -> AWSResponse:
        status, text = left.pop(0) if len(left) > 1 else left[0]
        return AWSResponse("https://aws", status, {}, Raw(text))

    new_client.meta.events.register("before-send", send)
    return new_client


GOOD = (200, b"{}")
THROTTLED = (400, b'{"__type": "ThrottlingException", "message": "Rate exceeded"}')


@pytest.fixture
def clock() -> Clock:
    """The clock of a test."""
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> RateLimiter:
    """Paced by this clock."""
    return RateLimiter(clock, clock.sleep)


@pytest.mark.parametrize("call", ["list_training_jobs", "list_transform_jobs"])
def test_requests_are_spread_evenly(pace: RateLimiter, clock: Clock, call: str) -> None:
    """The first one goes at once; a client that is given twice waits once for each request."""
    paced_client = client("sagemaker", GOOD)
    paced = pace.limit_clients(lambda *_: paced_client)
    for _ in range(4):
        getattr(paced("1", REGION), call)()
    assert clock.now_s == pytest.approx(100 + 3 * 0.5)
    assert pace.requests.total() == 4


def test_each_api_region_and_account_has_a_rate_of_its_own(pace: RateLimiter, clock: Clock) -> None:
    """None waits for another."""
    client_by_key: dict[tuple[str, str], Any] = {}
    paced = pace.limit_clients(
        lambda account, region: client_by_key.setdefault(
            (account, region), client("sagemaker", GOOD)
        )
    )
    for place in (("1", "eu-west-1"), ("1", "us-east-1"), ("2", "eu-west-1")):
        paced(*place).list_training_jobs()
        paced(*place).list_processing_jobs()
    assert clock.now_s == 100


def test_a_throttled_request_slows_its_api_down_until_it_recovers(
    pace: RateLimiter, clock: Clock
) -> None:
    """The try again is a request too."""
    sagemaker = pace.limit_clients(lambda *_: client("sagemaker", THROTTLED, GOOD))("1", REGION)
    sagemaker.list_training_jobs()
    assert (pace.throttles, pace.requests["ListTrainingJobs"]) == (1, 2)
    before_s = clock.now_s
    sagemaker.list_training_jobs()
    assert clock.now_s - before_s > 0.5
    for _ in range(100):
        sagemaker.list_training_jobs()
    before_s = clock.now_s
    sagemaker.list_training_jobs()
    assert clock.now_s - before_s == pytest.approx(0.5)


def test_points_of_metrics_have_a_rate_and_queries_are_counted(
    pace: RateLimiter, clock: Clock
) -> None:
    """90,000 points a second; what is billed are the queries."""
    answer = (200, b'{"MetricDataResults": []}')
    cloudwatch = pace.limit_clients(lambda *_: client("cloudwatch", answer))("1", REGION)
    start = datetime(2026, 11, 1, tzinfo=UTC)
    metric = {"Namespace": "n", "MetricName": "m"}
    stat = {"Metric": metric, "Period": 60, "Stat": "Average"}
    queries = [{"Id": f"q{n}", "MetricStat": stat} for n in range(50)]
    for _ in range(3):
        cloudwatch.get_metric_data(
            MetricDataQueries=queries, StartTime=start, EndTime=start + timedelta(days=1)
        )
    assert pace.metrics_requested == 150
    assert clock.now_s == pytest.approx(100 + 2 * 50 * 1440 / 90_000)


def test_a_request_that_waits_can_be_stopped(pace: RateLimiter, clock: Clock) -> None:
    """Also one that need not wait: nothing more is sent."""
    sagemaker = pace.limit_clients(lambda *_: client("sagemaker", GOOD))("1", REGION)
    clock.stopped = True
    with pytest.raises(ScanStopped):
        sagemaker.list_training_jobs()


def test_an_unknown_api_has_the_rate_of_descriptions() -> None:
    """Rather than none."""
    assert (
        requests_per_second("BatchDescribeSomething")
        == requests_per_second("DescribeTrainingJob")
        == 10
    )
