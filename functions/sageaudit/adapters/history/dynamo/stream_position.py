"""Reads records of the table's stream again by their position, as a failed batch names it.

A stream keeps its records for 24 hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.aws.clients import aws_errors, code_of
from sageaudit.adapters.lambda_runtime.stream import Change
from sageaudit.errors import Unavailable

CLI_PERMISSIONS = ("dynamodb:GetRecords", "dynamodb:GetShardIterator")
_MOST_PAGES = 100
_GONE = frozenset(
    {"TrimmedDataAccessException", "ResourceNotFoundException", "ExpiredIteratorException"}
)


class NoLongerThere(Exception):
    """The stream no longer has these records."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A batch of records: those of one shard, between two sequence numbers."""

    stream_arn: str
    shard_id: str
    first: str
    last: str


def decisions_at(client: Any, position: StreamPosition) -> list[str]:
    """One body for the queue of decisions for each new audit in this batch.

    `client` is boto3's client of DynamoDB streams. Raises NoLongerThere or AwsError.
    """
    with aws_errors("dynamodb", position.stream_arn):
        try:
            changes = [Change(raw) for raw in _records(client, position)]
        except ClientError as error:
            if code_of(error) in _GONE:
                raise NoLongerThere from error
            raise
    return [change.letter for change in changes if change.is_new_audit()]


def _records(client: Any, position: StreamPosition) -> Iterator[dict[str, Any]]:
    """The records up to the last one. Raises NoLongerThere or Unavailable without it."""
    iterator = client.get_shard_iterator(
        StreamArn=position.stream_arn,
        ShardId=position.shard_id,
        ShardIteratorType="AT_SEQUENCE_NUMBER",
        SequenceNumber=position.first,
    )["ShardIterator"]
    for _ in range(_MOST_PAGES):
        answer = client.get_records(ShardIterator=iterator)
        for record in answer.get("Records", []):
            number = record["dynamodb"]["SequenceNumber"]
            if int(number) <= int(position.last):
                yield _as_lambda_passes(record)
            if int(number) >= int(position.last):
                return
        iterator = answer.get("NextShardIterator")
        if not iterator:
            raise NoLongerThere
    raise Unavailable(
        f"The stream answered {_MOST_PAGES} pages without the last record of a letter: try again"
        " later."
    )


def _as_lambda_passes(record: Mapping[str, Any]) -> dict[str, Any]:
    """With its time in seconds."""
    stream = dict(record["dynamodb"])
    written = stream.get("ApproximateCreationDateTime")
    if isinstance(written, datetime):
        stream["ApproximateCreationDateTime"] = written.timestamp()
    return {**record, "dynamodb": stream}
