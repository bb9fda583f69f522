"""Requests end in time: a function answers before Lambda ends it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ReadTimeoutError

from sageaudit.adapters.aws.clients import CONFIG, RESERVE_S, TimeLimitedClients, aws_errors, client
from sageaudit.adapters.aws.sqs import QUEUE_CONFIG
from sageaudit.errors import Unavailable
from tests.fakes.calls import NOON, Clock

TIMEOUT_S = 180
_TRY_S = 13


class Wire:
    """Requests that hang, each for as long as a client waits; `answers_after` tries one answers."""

    def __init__(self, clock: Clock, answers_after: int | None = None) -> None:
        self.tries = 0
        self._clock, self._answers_after = clock, answers_after

    def send(self, request: Any, **_: Any) -> AWSResponse:
        self.tries += 1
        if self._answers_after is not None and self.tries % self._answers_after == 0:
            return AWSResponse(request.url, 200, {}, _Body())
        self._clock.move(_TRY_S)
        raise ReadTimeoutError(endpoint_url=request.url)


class _Body:
    def stream(self, **_: Any) -> Any:
        yield b'{"QueueUrl": "url", "TableNames": []}'


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that the SDK's pauses move too."""
    fake_clock = Clock()
    monkeypatch.setattr("botocore.endpoint.time.sleep", fake_clock.move)
    return fake_clock


def make_client(limit: TimeLimitedClients, service: str, wire: Wire, config: Any = CONFIG) -> Any:
    """A client whose requests go to the wire."""
    new_client = client(limit, service, "us-east-1", config)
    new_client.meta.events.register_last("before-send", wire.send)
    return new_client


def limited(clock: Clock) -> TimeLimitedClients:
    """One without credentials of its own."""
    session = boto3.Session(aws_access_key_id="testing", aws_secret_access_key="testing")
    return TimeLimitedClients(session, clock)


def asks(call: Callable[[], Any]) -> None:
    """A call as the adapters make it."""
    with aws_errors("dynamodb"):
        call()


@pytest.mark.parametrize("answers_after", [None, 6, 3])
def test_requests_that_hang_end_before_the_function(
    clock: Clock, answers_after: int | None
) -> None:
    """Six tries of 13 s and a dozen requests, or each request answered at its last try."""
    limit, wire = limited(clock), Wire(clock, answers_after)
    dynamodb = make_client(limit, "dynamodb", wire)
    limit.start(TIMEOUT_S * 1000)

    def audit() -> None:
        for _ in range(12):
            asks(dynamodb.list_tables)

    with pytest.raises(Unavailable, match="dynamodb did not answer"):
        audit()
    assert (clock.now - NOON).total_seconds() < TIMEOUT_S - RESERVE_S + _TRY_S + 16


@pytest.mark.parametrize(
    ("service", "ask"),
    [
        ("dynamodb", lambda dynamodb: dynamodb.list_tables()),
        ("s3", lambda s3: s3.get_object(Bucket="reports", Key="page")),
    ],
)
def test_once_the_time_is_up_nothing_is_asked(
    clock: Clock, service: str, ask: Callable[[Any], Any]
) -> None:
    """The error names what was not asked; the next record has its own time."""
    limit, wire = limited(clock), Wire(clock, 1)
    limited_client = make_client(limit, service, wire)
    limit.start(TIMEOUT_S * 1000)
    clock.now += timedelta(seconds=TIMEOUT_S - RESERVE_S)
    with pytest.raises(Unavailable, match="no time was left to ask "):
        asks(lambda: ask(limited_client))
    assert wire.tries == 0
    limit.start(TIMEOUT_S * 1000)
    asks(lambda: ask(limited_client))
    assert wire.tries == 1


def test_sqs_still_hears_of_the_record(clock: Clock) -> None:
    """Within two tries: the reserve is for it."""
    limit, wire = limited(clock), Wire(clock)
    sqs = make_client(limit, "sqs", wire, QUEUE_CONFIG)
    limit.start(0)
    with pytest.raises(Unavailable):
        asks(lambda: sqs.send_message(QueueUrl="https://queue", MessageBody="{}"))
    assert wire.tries == 2


def test_where_nobody_ends_the_function_there_is_no_end(clock: Clock) -> None:
    """On the command line of a developer, say."""
    limit, wire = limited(clock), Wire(clock, 1)
    dynamodb = make_client(limit, "dynamodb", wire)
    limit.start(None)
    clock.now += timedelta(days=1)
    asks(dynamodb.list_tables)
    assert wire.tries == 1
