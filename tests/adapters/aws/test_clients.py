"""Clients leave out what the SDK does for each request and answer, and tests check it instead."""

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.utils import parse_timestamp
from hypothesis import example, given
from hypothesis import strategies as st

from local.requests import RequestRouter, http_answer
from sageaudit import __version__
from sageaudit.adapters.aws.clients import (
    CONFIG,
    PARALLEL_CONFIG,
    QUICK_CONFIG,
    client,
    new_session,
)
from sageaudit.adapters.aws.sqs import QUEUE_CONFIG
from tests.fakes.jobs import REGION
from tests.integration.whole_flow import recorded, scene


@pytest.mark.parametrize("config", [CONFIG, PARALLEL_CONFIG, QUICK_CONFIG, QUEUE_CONFIG])
def test_no_client_checks_its_parameters_when_deployed(config: Any) -> None:
    """The SDK would walk through each item that is written."""
    assert not config.parameter_validation


def test_a_bad_parameter_fails_the_test_that_sends_it() -> None:
    """Although the client does not check it, and its caller handles all of the SDK's errors."""
    sqs = client(boto3.Session(), "sqs", REGION)
    bad_parameter = pytest.raises(pytest.fail.Exception, match="Invalid type for parameter Queue")
    with bad_parameter, suppress(Exception):
        sqs.send_message(QueueUrl=7, MessageBody="text")


def test_a_bad_parameter_of_a_handler_fails_the_test_of_its_invocation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here of the audit's request for a job, whose name becomes a number."""
    monkeypatch.setattr("sageaudit.domain.job.ref.JobRef.name", 7)
    job = recorded("composed-g4dn-12xlarge")
    with scene(job.ended_at) as running_scene:
        running_scene.aws.end_job(job)
        with pytest.raises(pytest.fail.Exception, match="a bad parameter of"):
            running_scene.aws.advance()


def test_requests_name_sageaudit_and_the_sdk() -> None:
    """CloudTrail shows it."""
    session, agents = new_session(region=REGION), list[str]()

    def answer(_operation: str, request: Any, _send: Any) -> Any:
        agents.append(request.headers["User-Agent"].decode())
        return http_answer(request.url, 200, {})

    RequestRouter(session).interceptor = answer
    client(session, "sqs").list_queues()
    [agent] = agents
    assert agent.startswith(f"sageaudit/{__version__} Boto3/{boto3.__version__} Botocore/")


NUMBERS = st.integers(-(10**12), 10**12) | st.floats()
TEXTS = st.datetimes(timezones=st.timezones()).map(datetime.isoformat)


def _time_by(parse: Any, value: object) -> datetime | type[Exception]:
    try:
        moment: datetime = parse(value)
    except Exception as error:  # noqa: BLE001 - the type of the error is compared
        return type(error)
    return moment


@given(value=NUMBERS | NUMBERS.map(str) | TEXTS | st.none())
@example(value=1_717_000_000.123456)
@example(value=math.nan)
@example(value=2**40)
def test_times_are_those_of_the_sdk(value: object) -> None:
    """In UTC instead of local time."""
    core = new_session(region=REGION)._session
    parse = core.get_component("response_parser_factory").create_parser("json")._timestamp_parser
    moment, expected = _time_by(parse, value), _time_by(parse_timestamp, value)
    assert moment == expected
    if isinstance(moment, datetime) and isinstance(value, int | float):
        assert moment.utcoffset() == timedelta(0)
        assert moment.astimezone(UTC) == moment
