"""One queue: what is sent, what waits, and what SQS refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.errors import AccessDenied, Throttled, Unavailable

URL = "https://sqs.us-east-1.amazonaws.com/111122223333/queue"


@pytest.fixture
def client() -> Iterator[Any]:
    """moto's SQS."""
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1")


def received(client: Any, url: str) -> list[dict[str, Any]]:
    """All messages that can be seen now."""
    answer = client.receive_message(
        QueueUrl=url, MessageAttributeNames=["All"], MaxNumberOfMessages=10, VisibilityTimeout=60
    )
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def test_a_message_arrives_as_it_was_sent(client: Any) -> None:
    """With its attributes: digits as a Number, text as a String, and no empty ones."""
    url = client.create_queue(QueueName="queue")["QueueUrl"]
    SqsQueue(client, url).send('{"a":1}', attributes={"attempt": "2", "reason": "no", "why": ""})
    [message] = received(client, url)
    assert message["Body"] == '{"a":1}'
    attributes = message["MessageAttributes"]
    assert attributes["attempt"] == {"StringValue": "2", "DataType": "Number"}
    assert attributes["reason"] == {"StringValue": "no", "DataType": "String"}
    assert set(attributes) == {"attempt", "reason"}


def test_a_delayed_message_cannot_be_seen_yet(client: Any) -> None:
    """It waits in the queue."""
    url = client.create_queue(QueueName="queue")["QueueUrl"]
    SqsQueue(client, url).send("later", delay_s=900)
    assert received(client, url) == []


def test_without_a_delay_the_queues_own_holds(client: Any) -> None:
    """The queue of finished jobs delays by a template parameter."""
    url = client.create_queue(QueueName="queue", Attributes={"DelaySeconds": "300"})["QueueUrl"]
    SqsQueue(client, url).send("event")
    assert received(client, url) == []


def test_hostile_text_in_an_attribute_is_sent_all_the_same(client: Any) -> None:
    """SQS takes no control characters; a long reason is cut."""
    url = client.create_queue(QueueName="queue")["QueueUrl"]
    SqsQueue(client, url).send("x", attributes={"why": "\x1b[31m\ud800\uffff" + "a" * 5_000})
    [message] = received(client, url)
    why = message["MessageAttributes"]["why"]["StringValue"]
    assert why.startswith("\ufffd[31m\ufffd\ufffdaaa")
    assert len(why) == 1_000


def test_a_received_message_comes_back_when_told(client: Any) -> None:
    """At once, with a visibility of 0."""
    url = client.create_queue(QueueName="queue")["QueueUrl"]
    queue = SqsQueue(client, url)
    queue.send("x")
    [message] = received(client, url)
    assert received(client, url) == []
    queue.change_visibility(message["ReceiptHandle"], 0)
    assert len(received(client, url)) == 1


@pytest.mark.parametrize("seconds", [-1, 901])
def test_a_delay_that_sqs_refuses_is_refused_here(seconds: int) -> None:
    """It would be the caller's mistake."""
    with pytest.raises(ValueError, match="0 to 900"):
        SqsQueue(None, URL).send("x", delay_s=seconds)


@pytest.mark.parametrize("seconds", [-1, 43_201])
def test_a_visibility_that_sqs_refuses_is_refused_here(seconds: int) -> None:
    """The same."""
    with pytest.raises(ValueError, match="0 to 43200"):
        SqsQueue(None, URL).change_visibility("handle", seconds)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ThrottlingException", Throttled),
        ("AccessDenied", AccessDenied),
        ("AWS.SimpleQueueService.NonExistentQueue", Unavailable),
    ],
)
def test_refusals_are_this_projects_errors(client: Any, code: str, error: type[Exception]) -> None:
    """For sending and for waiting."""
    queue = SqsQueue(client, URL)
    with Stubber(client) as stub:
        stub.add_client_error("send_message", code)
        stub.add_client_error("change_message_visibility", code)
        with pytest.raises(error):
            queue.send("x")
        with pytest.raises(error):
            queue.change_visibility("handle", 1)


def test_a_refusal_of_the_second_try_says_nothing_of_the_first() -> None:
    """The SDK sent it again after a time-out: SQS may have taken it then."""

    class Retried:
        def send_message(self, **_: Any) -> None:
            answer: Any = {"Error": {"Code": "ThrottlingException"}}
            raise ClientError(answer | {"ResponseMetadata": {"RetryAttempts": 1}}, "SendMessage")

    with pytest.raises(Unavailable, match="may have taken an earlier try"):
        SqsQueue(Retried(), URL).send("x")
