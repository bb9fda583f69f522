"""Notify wired as it is deployed, over a table and queues as moto plays them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import boto3
import pytest
from moto import mock_aws

from notify.handler import build
from sageaudit.adapters.channels.catalogue import CHECKS
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.keys import audit_sk, job_pk
from sageaudit.adapters.lambda_runtime.batch import entry_point
from sageaudit.adapters.lambda_runtime.records import Change
from sageaudit.domain.audit.record import Entry, JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadPolicy, BadSettings
from sageaudit.output.text.envelope import Notice, read_body
from tests.adapters.history.faults import everything
from tests.adapters.history.tables import new_table
from tests.fakes.delivering import NOON, Clock, batch, sqs_record, stream_record
from tests.fakes.documents import document, job

CREATED_AT = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
DONE: dict[str, list[Any]] = {"batchItemFailures": []}
BOTH = {"sns", "slack"}


@pytest.fixture
def aws() -> Iterator[boto3.Session]:
    """A region with nothing in it."""
    with mock_aws():
        yield boto3.Session(region_name="us-east-1")


@pytest.fixture
def environ(aws: boto3.Session) -> dict[str, str]:
    """The table and the queues: the function's environment."""
    sqs = aws.client("sqs")
    return {
        "TABLE_NAME": new_table(aws.client("dynamodb")),
        "NOTICES_QUEUE_URL_SNS": sqs.create_queue(QueueName="sns")["QueueUrl"],
        "NOTICES_QUEUE_URL_SLACK": sqs.create_queue(QueueName="slack")["QueueUrl"],
        "DECISIONS_QUEUE_URL": sqs.create_queue(QueueName="decisions")["QueueUrl"],
        "UNDECIDED_QUEUE_URL": sqs.create_queue(QueueName="undecided")["QueueUrl"],
        "CHANNELS": "sns,slack",
        "POWERTOOLS_SERVICE_NAME": "notify-on-moto",
    }


def inserted(image: dict[str, Any]) -> dict[str, Any]:
    """The record of an item as the stream shows it."""
    return {"eventName": "INSERT", "dynamodb": {"NewImage": image, "SequenceNumber": "1"}}


def recorded(aws: boto3.Session, table: str, name: str) -> dict[str, Any]:
    """Writes a run's audit into the history; its record."""
    key = JobKey(f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{name}", CREATED_AT)
    dynamodb, whole = aws.client("dynamodb"), document(job=job(name=name))
    DynamoHistory(dynamodb, table).record(Entry(key, NOON, whole, 1, None, None))
    item = {"pk": {"S": job_pk(key)}, "sk": {"S": audit_sk(1)}}
    return inserted(dynamodb.get_item(TableName=table, Key=item)["Item"])


def notices(aws: boto3.Session, table: str) -> list[dict[str, Any]]:
    """The records of the notices that are in the table."""
    items = everything(aws.client("dynamodb"), table)
    return [inserted(item) for item in items if item["sk"]["S"].startswith("NOTICE#")]


def waiting(aws: boto3.Session, url: str) -> list[dict[str, Any]]:
    """The messages of a queue that can be seen now."""
    answer = aws.client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def queued(aws: boto3.Session, environ: dict[str, str]) -> list[Notice]:
    """The notices that can be seen now."""
    return [
        read_body(one["Body"], CHECKS)
        for channel in ("SNS", "SLACK")
        for one in waiting(aws, environ[f"NOTICES_QUEUE_URL_{channel}"])
    ]


@pytest.mark.parametrize("set_aside", [False, True])
def test_from_the_stream_to_the_queues(
    aws: boto3.Session, environ: dict[str, str], *, set_aside: bool
) -> None:
    """An audit becomes notices in the table, these messages; so do their letters, and once."""
    handle = build(environ, session=aws, clock=Clock(), policy=Policy(floor_usd=Decimal(1)))

    def event(record: dict[str, Any]) -> dict[str, Any]:
        return batch(sqs_record(Change(record).letter) if set_aside else record)

    audit = recorded(aws, environ["TABLE_NAME"], "train-1")
    for _ in range(2):
        assert handle(event(audit), None) == DONE
    assert not queued(aws, environ)
    records = notices(aws, environ["TABLE_NAME"])
    for record in records:
        assert handle(event(record), None) == DONE
    found = queued(aws, environ)
    assert {one.channel for one in found} == BOTH
    pk = audit["dynamodb"]["NewImage"]["pk"]["S"]
    assert {one.notice_id for one in found} == {f"{pk}|1|sns", f"{pk}|1|slack"}


def test_a_family_reaches_the_floor_with_its_other_runs(
    aws: boto3.Session, environ: dict[str, str]
) -> None:
    """$2.04 a run: the floor of $6 is reached by the third."""
    handle = build(environ, session=aws, clock=Clock(), policy=Policy(floor_usd=Decimal(6)))
    counts = []
    for name in ("train-1", "train-2", "train-3"):
        assert handle(batch(recorded(aws, environ["TABLE_NAME"], name)), None) == DONE
        counts.append(len(notices(aws, environ["TABLE_NAME"])))
    assert counts == [0, 0, 2]


def test_it_keeps_what_cannot_be_read(aws: boto3.Session, environ: dict[str, str]) -> None:
    """With the reason as an attribute of the message."""
    handle = build(environ, session=aws, clock=Clock(), policy=Policy())
    assert handle(batch(stream_record("{")), None) == DONE
    [kept] = waiting(aws, environ["UNDECIDED_QUEUE_URL"])
    assert json.loads(kept["Body"])["sk"] == "AUDIT#00001"
    assert kept["MessageAttributes"]["reason"]["StringValue"] == "malformed_audit"


def test_it_is_wired_from_the_environment_and_the_policy_of_the_asset(
    aws: boto3.Session,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    """Once, at the first event; what is wrong is named before any record is taken."""
    with pytest.raises(BadSettings, match="TABLE_NAME"):
        build({}, session=aws)
    stored = tmp_path / "policy.json"
    monkeypatch.setattr(stored_policy, "IN_ASSET", stored)
    for text, fault in ((None, "cannot be read"), ('mode = "tell"', "is not a policy")):
        if text is not None:
            stored.write_text(text, encoding="utf-8")
        with pytest.raises(BadPolicy, match=rf"policy\.json: {fault}"):
            build(environ, session=aws)
    stored.write_text(stored_policy.to_text(Policy(mode="observe")), encoding="utf-8")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    handle, record = entry_point(build), recorded(aws, environ["TABLE_NAME"], "train-1")
    assert handle(batch(record), None) == DONE
    monkeypatch.delenv("TABLE_NAME")
    assert handle(batch(record), None) == DONE
    assert not notices(aws, environ["TABLE_NAME"])
