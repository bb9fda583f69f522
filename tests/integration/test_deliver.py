"""Deliver wired as it is deployed, over AWS as moto plays it; Slack ends at a transport of ours."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from moto import mock_aws
from moto.core.botocore_stubber import MockRawResponse

from deliver.handler import build
from sageaudit.adapters.channels.webhook import Response
from sageaudit.adapters.lambda_runtime.batch import entry_point
from sageaudit.errors import BadSettings
from tests.adapters.history.tables import new_table
from tests.fakes.delivering import PAYLOADS, Clock, batch, failures, notice_body, sqs_record

RECORD = sqs_record(notice_body(), queue="slack")
MAIL = sqs_record(notice_body("sns"), message_id="m2", queue="sns")
OK = Response(200, {}, b"ok")
WEBHOOK = "https://hooks.slack.com/services/T0001/B0001/s3cr3ts3cr3t"
DONE: dict[str, list[Any]] = {"batchItemFailures": []}


@pytest.fixture
def aws() -> Iterator[boto3.Session]:
    """A region with nothing in it."""
    with mock_aws():
        yield boto3.Session(region_name="us-east-1")


def deployed(session: boto3.Session) -> dict[str, str]:
    """The table, queues, topic with a subscriber and the secret: the function's environment."""
    sqs, sns = session.client("sqs"), session.client("sns")
    topic = sns.create_topic(Name="notices")["TopicArn"]
    inbox = sqs.create_queue(QueueName="inbox")["QueueUrl"]
    sns.subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint="arn:aws:sqs:us-east-1:111122223333:inbox",
        Attributes={"FilterPolicy": json.dumps({"severity": ["high"]})},
    )
    session.client("secretsmanager").create_secret(Name="webhook", SecretString=WEBHOOK)
    return {
        "TABLE_NAME": new_table(session.client("dynamodb")),
        "CHANNELS": "sns,slack",
        "NOTICES_QUEUE_URL_SNS": sqs.create_queue(QueueName="sns")["QueueUrl"],
        "NOTICES_QUEUE_URL_SLACK": sqs.create_queue(QueueName="slack")["QueueUrl"],
        "NOTICES_DLQ_URL": sqs.create_queue(QueueName="dead")["QueueUrl"],
        "TOPIC_ARN": topic,
        "SLACK_SECRET_ID": "webhook",
        "POWERTOOLS_SERVICE_NAME": "deliver-on-moto",
        "INBOX": inbox,
    }


def messages(session: boto3.Session, url: str) -> list[dict[str, Any]]:
    """All messages that can be seen now."""
    answer = session.client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    found: list[dict[str, Any]] = answer.get("Messages", [])
    return found


def test_it_posts_to_both_channels_once(aws: boto3.Session) -> None:
    """The webhook gets the JSON, the topic's subscriber what its filter lets through."""
    environ, posted = deployed(aws), []

    def transport(url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        posted.append((url, json.loads(body)))
        return Response(200, {}, b"ok")

    handle = build(environ, session=aws, clock=Clock(), transport=transport)
    event = batch(RECORD, MAIL)
    assert handle(event, None) == DONE
    assert handle(event, None) == DONE
    assert posted == [(WEBHOOK, PAYLOADS["slack"])]
    [mail] = messages(aws, environ["INBOX"])
    assert json.loads(mail["Body"])["Message"] == PAYLOADS["sns"]["message"]
    assert json.loads(mail["Body"])["Subject"] == PAYLOADS["sns"]["subject"]


def test_it_makes_a_message_wait(aws: boto3.Session) -> None:
    """Through its real receipt handle; after that it is posted as the first."""
    environ, clock = deployed(aws), Clock()
    answers = [Response(429, {"retry-after": "40"}, b""), Response(200, {}, b"ok")]
    handle = build(environ, session=aws, clock=clock, transport=lambda *_: answers.pop(0))
    url = environ["NOTICES_QUEUE_URL_SLACK"]
    aws.client("sqs").send_message(QueueUrl=url, MessageBody=notice_body())
    [message] = messages(aws, url)
    record = {**RECORD, "receiptHandle": message["ReceiptHandle"]}
    assert failures(handle(batch(record), None)) == ["m1"]
    clock.move(40)
    assert handle(batch(record), None) == DONE
    assert answers == []


def test_a_throttled_mark_is_written_in_the_same_call(aws: boto3.Session) -> None:
    """The SDK repeats the write, so the notice is known as sent."""
    environ, throttled = deployed(aws), [1]

    def throttle(request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        if not throttled:
            return None
        throttled.pop()
        body = b'{"__type":"com.amazonaws.dynamodb#ProvisionedThroughputExceededException"}'
        return AWSResponse(request.url, 400, {}, MockRawResponse(body))

    aws.events.register_first("before-send.dynamodb.UpdateItem", throttle)
    handle = build(environ, session=aws, clock=Clock(), transport=lambda *_: OK)
    assert handle(batch(RECORD), None) == DONE
    assert throttled == []
    [row] = aws.client("dynamodb").scan(TableName=environ["TABLE_NAME"])["Items"]
    assert row["state"] == {"S": "SENT"}


def test_what_was_refused_is_sent_from_the_dead_letters(aws: boto3.Session) -> None:
    """With its reason and its first sending there; unmarked, when the webhook is a new one."""
    environ, posted = deployed(aws), []
    answers = [Response(404, {}, b"no_service"), OK]

    def transport(url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        posted.append(json.loads(body)["text"])
        return answers.pop(0)

    handle = build(environ, session=aws, clock=Clock(), transport=transport)
    sent = {"ApproximateReceiveCount": "1", "SentTimestamp": "1779282600000"}
    assert handle(batch(RECORD | {"attributes": sent}), None) == DONE
    [dead] = messages(aws, environ["NOTICES_DLQ_URL"])
    said = {name: one["StringValue"] for name, one in dead["MessageAttributes"].items()}
    assert said.pop("why").startswith("slack: 404 no_service: the webhook is revoked")
    assert said == {"reason": "channel_broken", "first-sent": "1779282600000"}
    assert handle(batch(sqs_record(dead["Body"], queue="slack")), None) == DONE
    assert posted == [PAYLOADS["slack"]["text"]] * 2


@pytest.mark.parametrize(
    "stored",
    ["http://hooks.slack.com/services/T/B/s3cr3t", "https://evil.example/s3cr3t", "s3cr3t"],
)
def test_it_never_posts_to_another_host_nor_tells_the_secret(
    aws: boto3.Session,
    stored: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever is stored: given up with a clear reason, the mail is sent all the same."""
    caplog.set_level(logging.INFO)
    environ = {**deployed(aws), "POWERTOOLS_SERVICE_NAME": f"hostile-{len(stored)}"}
    aws.client("secretsmanager").put_secret_value(SecretId="webhook", SecretString=stored)

    def transport(*_: Any) -> Response:
        pytest.fail("nothing may be sent")

    handle = build(environ, session=aws, clock=Clock(), transport=transport)
    assert handle(batch(RECORD, MAIL), None) == DONE
    told = capsys.readouterr()
    assert "the stored webhook is refused" in told.out
    assert "s3cr3t" not in told.out + told.err + caplog.text
    assert len(messages(aws, environ["INBOX"])) == 1


def test_the_entry_point_is_wired_from_the_environment_once(
    aws: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first event; what is missing is named, and no secret is read before a notice."""
    with pytest.raises(BadSettings, match="TABLE_NAME"):
        build({}, session=aws)
    for name, value in {**deployed(aws), "SLACK_SECRET_ID": "gone"}.items():
        monkeypatch.setenv(name, value)
    handle = entry_point(build)
    assert handle(batch(), None) == DONE
    monkeypatch.delenv("TABLE_NAME")
    assert handle(batch(), None) == DONE
