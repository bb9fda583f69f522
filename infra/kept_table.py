"""Changes the history table outside of its stack: adopts an existing table, and protects any table.

A restored table has no stream, no expiry, no point-in-time recovery and no tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.settings import tag_list
from sageaudit.adapters.history.dynamo import keys as schema

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}


class NotAHistoryTable(Exception):
    """The table to adopt does not fit; the message says why."""


def adopt_table(dynamodb: Any, name: str) -> str:
    """Returns the ARN of an existing table's stream; switches the stream on if it is off.

    Raises NotAHistoryTable if the table does not fit, or ClientError.
    """
    try:
        table = dynamodb.describe_table(TableName=name)["Table"]
    except dynamodb.exceptions.ResourceNotFoundException as error:
        raise NotAHistoryTable(f"there is no table {name} in this account and region") from error
    table_keys = [
        _keys(table),
        {index["IndexName"]: _keys(index) for index in table.get("GlobalSecondaryIndexes", ())},
    ]
    expected_keys = [
        (schema.PARTITION_KEY, schema.SORT_KEY),
        {index.name: (index.partition_key, index.sort_key) for index in schema.INDEXES},
    ]
    projections = {
        index["Projection"]["ProjectionType"] for index in table.get("GlobalSecondaryIndexes", ())
    }
    if table_keys != expected_keys or projections != {"ALL"}:
        raise NotAHistoryTable(
            f"the table {name} does not have the keys and indexes of this version"
        )
    stream = table.get("StreamSpecification", {})
    if not stream.get("StreamEnabled"):
        table = dynamodb.update_table(TableName=name, StreamSpecification=STREAM)[
            "TableDescription"
        ]
        dynamodb.get_waiter("table_exists").wait(TableName=name)
    elif stream.get("StreamViewType") not in {"NEW_IMAGE", "NEW_AND_OLD_IMAGES"}:
        raise NotAHistoryTable(
            f"the stream of the table {name} has no new images: switch the stream off"
        )
    return str(table["LatestStreamArn"])


def protect_table(dynamodb: Any, name: str, tags: Mapping[str, str]) -> None:
    """Switches on deletion protection, point-in-time recovery and expiry, if they are off.

    Also tags the table. Raises ClientError.
    """
    table = dynamodb.describe_table(TableName=name)["Table"]
    if not table.get("DeletionProtectionEnabled"):
        dynamodb.update_table(TableName=name, DeletionProtectionEnabled=True)
        dynamodb.get_waiter("table_exists").wait(TableName=name)
    backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    recovery = backups.get("PointInTimeRecoveryDescription", {})
    if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
        recovery_settings = {"PointInTimeRecoveryEnabled": True}
        dynamodb.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification=recovery_settings
        )
    expiry = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if expiry.get("TimeToLiveStatus") not in {"ENABLED", "ENABLING"}:
        expiry_settings = {"Enabled": True, "AttributeName": schema.TTL_ATTRIBUTE}
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry_settings)
    dynamodb.tag_resource(ResourceArn=table["TableArn"], Tags=tag_list(tags))


def _keys(description: Any) -> tuple[str, ...]:
    name_by_type = {key["KeyType"]: key["AttributeName"] for key in description["KeySchema"]}
    return name_by_type["HASH"], name_by_type.get("RANGE", "")
