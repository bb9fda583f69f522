"""S3 is asked for a bucket's region once, and never stops an audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
)

from sageaudit.adapters.aws import s3
from sageaudit.adapters.aws.s3 import MOST_BUCKETS, REST_S, S3Buckets

ACCOUNT, REGION = "111122223333", "us-east-1"


class Recorded:
    """S3 at the wire: recorded statuses and headers, by the bucket in the address."""

    def __init__(self, **changes: Any) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, dict[str, str]]] = {}
        self.error: Exception | None = None
        self.region = changes.pop("region", REGION)
        self.client = boto3.client(
            "s3",
            region_name=self.region,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=s3.CONFIG.merge(Config(**changes)),
        )
        self.client.meta.events.register_first("before-send.s3.*", self._send)

    def _send(self, request: Any, **_: Any) -> AWSResponse:
        self.asked.append(request.url)
        if self.error is not None:
            raise self.error
        found = [answer for name, answer in self.answers.items() if name in request.url]
        status, headers = found[0] if found else (404, {})
        return AWSResponse(request.url, status, headers, _Nothing())

    def of(self, account: str, region: str) -> Any:
        return self.client


class _Nothing:
    """The empty body of an answer to HEAD."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield b""


class Clock:
    """Seconds that a test moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def asking(recorded: Recorded, clock: Callable[[], float] | None = None) -> S3Buckets:
    """The adapter on recorded answers."""
    return S3Buckets(recorded.of, clock or Clock())


def answer(status: int, region: str | None = "eu-west-1") -> tuple[int, dict[str, str]]:
    """As S3 sends it."""
    header = {} if region is None else {"x-amz-bucket-region": region}
    return status, {"x-amz-request-id": "1", "server": "AmazonS3", **header}


@pytest.mark.parametrize(
    ("status", "header", "found"),
    [
        *((status, "eu-west-1", "eu-west-1") for status in (200, 403, 301, 400)),
        *((status, None, None) for status in (403, 404)),
        *((200, header, None) for header in ("", "EU", "nonsense", "us-east-1 <b>")),
    ],
)
def test_the_header_is_read_from_every_answer_about_the_bucket(
    status: int, header: str | None, found: str | None
) -> None:
    """Also from a refusal (403) and a redirect (301), without any permission on S3.

    A proxy may answer in S3's place.
    """
    recorded = Recorded()
    recorded.answers["data"] = answer(status, header)
    expected = {} if found is None else {"data": found}
    assert asking(recorded).regions(ACCOUNT, REGION, ["data"]) == expected


@pytest.mark.parametrize("region", ["eu-west-1", None])
def test_a_bucket_is_asked_for_once(region: str | None) -> None:
    """For all jobs and accounts of a container, also where S3 does not say."""
    recorded = Recorded()
    recorded.answers["data"] = answer(403, region)
    buckets = asking(recorded)
    for account in (ACCOUNT, "222233334444"):
        buckets.regions(account, REGION, ["data", "data"])
    assert len(recorded.asked) == 1


def test_no_more_than_ten_buckets_are_asked_for_one_job() -> None:
    """The others stay unknown."""
    recorded = Recorded()
    recorded.answers["data"] = answer(200)
    names = [f"data-{number}" for number in range(30)]
    assert list(asking(recorded).regions(ACCOUNT, REGION, names)) == names[:MOST_BUCKETS]


def test_slow_answers_hold_up_no_audit() -> None:
    """Each takes almost the time-out, with a redirect twice; what is not asked is asked next."""
    recorded, clock = Recorded(), Clock()
    names = [f"data-{number}" for number in range(9)]
    recorded.answers["data-"] = answer(403)

    def slow(account: str, region: str) -> Any:
        clock.now += 3.8
        return recorded.of(account, region)

    buckets = S3Buckets(slow, clock)
    assert len(buckets.regions(ACCOUNT, REGION, names)) == 2
    assert clock.now < s3.WITHIN_S + 3.8
    for _ in range(4):
        known = buckets.regions(ACCOUNT, REGION, names)
    assert len(known) == 9


@pytest.mark.parametrize(
    "error",
    [
        ConnectTimeoutError(endpoint_url="https://s3"),
        EndpointConnectionError(endpoint_url="https://s3"),
        NoCredentialsError(),
    ],
)
def test_where_s3_does_not_answer_it_is_left_alone_for_a_while(error: Exception) -> None:
    """An audit waits for one bucket, not for all; later it is asked again."""
    recorded, clock = Recorded(), Clock()
    recorded.error = error
    buckets = asking(recorded, clock)
    assert buckets.regions(ACCOUNT, REGION, ["data-a", "data-b", "data-c"]) == {}
    assert all("data-a" in url for url in recorded.asked)
    recorded.error, recorded.answers = None, {"data": answer(200)}
    assert buckets.regions(ACCOUNT, REGION, ["data-a"]) == {}
    clock.now = REST_S
    assert buckets.regions(ACCOUNT, REGION, ["data-a"]) == {"data-a": "eu-west-1"}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_throttled_answer_is_not_kept(status: int) -> None:
    """SlowDown says nothing of the bucket."""
    recorded, clock = Recorded(retries={"total_max_attempts": 1}), Clock()
    recorded.answers["data"] = answer(status, None)
    buckets = asking(recorded, clock)
    assert buckets.regions(ACCOUNT, REGION, ["data"]) == {}
    recorded.answers["data"], clock.now = answer(200), REST_S
    assert buckets.regions(ACCOUNT, REGION, ["data"]) == {"data": "eu-west-1"}


def test_an_account_that_does_not_answer_stops_no_other() -> None:
    """Its role may not be assumed: nothing is known of it, and nothing is raised."""
    recorded = Recorded()
    recorded.answers["data"] = answer(200)

    def of(account: str, region: str) -> Any:
        if account != ACCOUNT:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "AssumeRole")
        return recorded.client

    buckets = S3Buckets(of, Clock())
    assert buckets.regions("222233334444", REGION, ["data"]) == {}
    assert buckets.regions(ACCOUNT, REGION, ["data"]) == {"data": "eu-west-1"}


def test_a_name_that_boto3_refuses_is_unknown() -> None:
    """Validation fails before anything is sent, and other buckets are still asked for."""
    recorded = Recorded()
    recorded.answers["data"] = answer(200)
    assert asking(recorded).regions(ACCOUNT, REGION, ["no bucket", "data"]) == {"data": "eu-west-1"}


@pytest.mark.parametrize(
    ("region", "changes", "host"),
    [
        ("cn-north-1", {}, ".amazonaws.com.cn"),
        ("us-gov-west-1", {}, "us-gov-west-1.amazonaws.com"),
        ("eu-west-1", {"use_dualstack_endpoint": True}, ".dualstack.eu-west-1."),
    ],
)
def test_other_partitions_and_dualstack_endpoints_answer_alike(
    region: str, changes: dict[str, Any], host: str
) -> None:
    """The client of the job's own region is asked."""
    recorded = Recorded(region=region, **changes)
    recorded.answers["data"] = answer(403, region)
    assert asking(recorded).regions(ACCOUNT, region, ["data"]) == {"data": region}
    assert host in recorded.asked[0]
