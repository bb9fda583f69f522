"""Walks one index of the table in the order of its sort key, over all its shards."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.calls import Dynamo
from sageaudit.adapters.history.dynamo.table import INDEXES
from sageaudit.adapters.history.sort_keys import due_until

_INDEXES = {index.name: index for index in INDEXES}

Walk = Iterator[tuple[str, Item]]
"""Items with their sort keys."""


def newest_first(
    table: Dynamo, index: str, partitions: Sequence[str], last: str, page_size: int | None
) -> Walk:
    """The items of an index before the sort key `last`. `page_size` is shared by the partitions."""
    limit = {} if page_size is None else {"Limit": _share(page_size, len(partitions))}
    walks = [
        _walk(
            table,
            "ended_sk",
            IndexName=index,
            KeyConditionExpression="#p = :p AND #s < :last",
            ExpressionAttributeNames=key_names(index),
            ExpressionAttributeValues={":p": partition, ":last": last},
            ScanIndexForward=False,
            **limit,
        )
        for partition in partitions
    ]
    return heapq.merge(*walks, key=_sort_key, reverse=True)


def due_first(table: Dynamo, before: datetime, last: str | None, limit: int) -> Walk:
    """The items of the index `due` at or before a moment, those after `last`, the oldest first."""
    until, after = due_until(before), last or ""
    walks = [
        _walk(
            table,
            "due_sk",
            IndexName="due",
            KeyConditionExpression="#p = :p AND #s BETWEEN :last AND :until",
            ExpressionAttributeNames=key_names("due"),
            ExpressionAttributeValues={":p": shard, ":last": after or "0", ":until": until},
            Limit=max(8, _share(limit, keys.DUE_SHARDS)),
        )
        for shard in keys.due_pks()
        if after <= until
    ]
    merged = heapq.merge(*walks, key=_sort_key)
    return ((sk, item) for sk, item in merged if sk != after)


def key_names(index: str) -> dict[str, str]:
    """The placeholders of an index's keys in a query."""
    return {"#p": _INDEXES[index].partition_key, "#s": _INDEXES[index].sort_key}


def _walk(table: Dynamo, sort_key: str, **query: Any) -> Walk:
    for page in table.pages(**query):
        yield from ((item[sort_key], item) for item in page)


def _share(rows: int, partitions: int) -> int:
    """The rows to ask one partition for: twice the even share, as shards may fill unevenly."""
    return rows if partitions == 1 else -(-2 * rows // partitions)


def _sort_key(walked: tuple[str, Item]) -> str:
    return walked[0]
