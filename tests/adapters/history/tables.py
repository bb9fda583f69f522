"""A DynamoDB with the table that the stack deploys: moto's, or that of `make dynamodb`."""

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import boto3
from botocore.config import Config
from moto import mock_aws

from sageaudit.adapters.history.dynamo.keys import INDEXES, PARTITION_KEY, SORT_KEY
from tests.fakes import named_dynamodb
from tests.fakes.quick_moto import quick_moto

PROJECTION: dict[str, Any] = {"ProjectionType": "ALL"}
"""What each index has beside its keys."""
_NUMBERS = itertools.count(1)
_PREFIX = f"sageaudit-test-{uuid4().hex[:8]}" if named_dynamodb.NAMED else "history"


@contextmanager
def dynamodb() -> Iterator[Any]:
    """A client of a DynamoDB that lives for this block; a named one loses the block's tables."""
    if named_dynamodb.NAMED:
        client, first = named_dynamodb.client(), next(_NUMBERS)
        try:
            yield client
        finally:
            for number in range(first, next(_NUMBERS)):
                with suppress(client.exceptions.ResourceNotFoundException):
                    client.delete_table(TableName=f"{_PREFIX}-{number}")
        return
    with mock_aws(), _deep_recursion(), quick_moto():
        yield boto3.client(
            "dynamodb",
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(account_id_endpoint_mode="disabled"),
        )


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """moto reads an update expression by one call in another for each of its up to 180 parts."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 10_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def new_table(client: Any) -> str:
    """Makes an empty table from the shared constant; its name is new."""
    name = f"{_PREFIX}-{next(_NUMBERS)}"
    indexed = {key for index in INDEXES for key in (index.partition_key, index.sort_key)}
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=_schema(PARTITION_KEY, SORT_KEY),
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": "S"}
            for attribute in sorted({PARTITION_KEY, SORT_KEY} | indexed)
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index.name,
                "KeySchema": _schema(index.partition_key, index.sort_key),
                "Projection": PROJECTION,
            }
            for index in INDEXES
        ],
    )
    if named_dynamodb.NAMED:
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    return name


def _schema(partition_key: str, sort_key: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition_key, "KeyType": "HASH"},
        {"AttributeName": sort_key, "KeyType": "RANGE"},
    ]
