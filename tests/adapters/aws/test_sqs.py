"""One queue: what is sent, what waits, and what SQS refuses."""

import re
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from sageaudit.adapters.aws.sqs import MAX_BATCH_BYTES, SqsQueue
from sageaudit.errors import AccessDenied, Throttled, Unavailable

URL = "https://sqs.us-east-1.amazonaws.com/111122223333/queue"


@pytest.fixture
def client() -> Iterator[Any]:
    """moto's SQS."""
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1")


@pytest.fixture
def url(client: Any) -> str:
    """The URL of an empty queue."""
    queue_url: str = client.create_queue(QueueName="queue")["QueueUrl"]
    return queue_url


def received(client: Any, url: str) -> list[dict[str, Any]]:
    """All messages that can be seen now."""
    answer = client.receive_message(
        QueueUrl=url, MessageAttributeNames=["All"], MaxNumberOfMessages=10, VisibilityTimeout=60
    )
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def test_a_message_arrives_as_it_was_sent(client: Any, url: str) -> None:
    """With its attributes: digits as a Number, text as a String, and no empty ones.

    SQS takes no control characters; a long reason is cut.
    """
    hostile = "\x1b[31m\ud800\uffff" + "a" * 5_000
    attributes = {"attempt": "2", "reason": "no", "why": "", "hostile": hostile}
    SqsQueue(client, url).send('{"a":1}', attributes=attributes)
    [message] = received(client, url)
    assert message["Body"] == '{"a":1}'
    assert message["MessageAttributes"] == {
        "attempt": {"StringValue": "2", "DataType": "Number"},
        "reason": {"StringValue": "no", "DataType": "String"},
        "hostile": {"StringValue": "\ufffd[31m\ufffd\ufffd" + "a" * 993, "DataType": "String"},
    }


def test_ten_messages_go_in_one_request_and_fewer_where_they_are_long(
    client: Any, url: str
) -> None:
    """As SQS takes at most ten, and 256 KiB, at once; all arrive."""
    sizes = list[int]()

    def note(params: dict[str, Any], **_: Any) -> None:
        sizes.append(len(params["Entries"]))

    client.meta.events.register("provide-client-params.sqs.SendMessageBatch", note)
    queue = SqsQueue(client, url)
    assert queue.send_batch(["short"] * 21) == {}
    assert queue.send_batch(["x" * (MAX_BATCH_BYTES // 2)] * 3) == {}
    assert sizes == [10, 10, 1, 2, 1]


def test_a_delayed_message_cannot_be_seen_yet(client: Any, url: str) -> None:
    """Delayed by the call, or by the queue, as that of finished jobs is."""
    SqsQueue(client, url).send("later", delay_s=900)
    attributes = {"DelaySeconds": "300"}
    delaying = client.create_queue(QueueName="other", Attributes=attributes)["QueueUrl"]
    SqsQueue(client, delaying).send("event")
    assert received(client, url) == received(client, delaying) == []


def test_a_received_message_comes_back_when_told(client: Any, url: str) -> None:
    """At once, with a visibility of 0."""
    queue = SqsQueue(client, url)
    queue.send("x")
    [message] = received(client, url)
    assert received(client, url) == []
    queue.change_visibility(message["ReceiptHandle"], 0)
    assert len(received(client, url)) == 1


def test_seconds_that_sqs_refuses_are_refused_here() -> None:
    """It would be the caller's mistake."""
    queue = SqsQueue(None, URL)
    for seconds in (-1, 901):
        with pytest.raises(ValueError, match="0 to 900"):
            queue.send("x", delay_s=seconds)
    for seconds in (-1, 43_201):
        with pytest.raises(ValueError, match="0 to 43200"):
            queue.change_visibility("handle", seconds)


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

    with pytest.raises(Unavailable, match="may have accepted an earlier try"):
        SqsQueue(Retried(), URL).send("x")


def test_each_character_that_sqs_accepts_is_sent_and_each_other_is_replaced() -> None:
    """Its API reference lists the accepted ones: tab, line feed, carriage return, three ranges."""
    refused = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
    client = Mock()
    for start in range(0, sys.maxunicode + 1, 0x100):
        text = "".join(map(chr, range(start, start + 0x100)))
        SqsQueue(client, URL).send("{}", attributes={"text": text})
        sent = client.send_message.call_args.kwargs["MessageAttributes"]["text"]["StringValue"]
        assert sent == refused.sub("\ufffd", text)
