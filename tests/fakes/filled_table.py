"""Tables of moto's that hold many audits, and answer in time.

They get their items at once (`fill`), since moto needs 20 ms for a transaction, and sorts the whole
table for each Query (`quick_queries`).
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from inspect import signature
from operator import itemgetter
from typing import Any
from unittest.mock import patch

from boto3.dynamodb.types import TypeSerializer
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models import table as moto_table
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler

from sageaudit.adapters.history.daily_sums import changes
from sageaudit.adapters.history.dynamo import items, keys
from sageaudit.adapters.history.dynamo.sum_table import directory_item, sum_item
from sageaudit.adapters.history.dynamo.table import INDEXES, PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.rows import finding_rows, head_of
from sageaudit.adapters.history.stored_document import digest_of
from sageaudit.domain.audit.record import Entry, Head
from sageaudit.domain.audit.sums import SumRow


def fill(
    table_name: str,
    audits: Iterable[Entry | tuple[Entry, ...]],
    *,
    documents: bool = True,
) -> Counter[str]:
    """Puts what recording these audits of different jobs leaves behind; counts the items.

    An audit is one entry or its versions, the oldest first. Without `documents` there are no AUDIT#
    items, which are most of the bytes and in no list. Family rows and details are left out. The
    table is one of moto's.
    """
    counts: Counter[str] = Counter()
    sums: dict[tuple[str, str], list[SumRow]] = defaultdict(list)
    put = _putter(table_name)
    for audit in audits:
        versions = audit if isinstance(audit, tuple) else (audit,)
        newest: Head | None = None
        for version, given in enumerate(versions, 1):
            digest = digest_of(given.document) if documents else "0" * 64
            head = head_of(given, version, digest=digest, findings=finding_rows(given))
            if documents:
                put(items.audit_item(head, given.document))
            for changed in changes(newest, head):
                sums[_place(changed, head)].append(changed)
            newest = head
        put({**items.head_item(head), "revision": len(versions)})
        findings = finding_rows(versions[-1])
        for row in findings:
            put(items.finding_item(row))
        counts.update(head=1, audit=documents * len(versions), finding=len(findings))
    for (_, sk), rows in sums.items():
        put(sum_item(_together(rows), int(sk[-1])))
    named = {(row.account, keys.month_of_day(row.day)) for [row, *_] in sums.values()}
    for account, month in named:
        put(directory_item(account, month))
    counts.update(sums=len(sums), directory=len(named))
    return counts


def _place(row: SumRow, head: Head) -> tuple[str, str]:
    shard = keys.sums_shard(head.key, row.scope, 0)
    return keys.sums_pk(row.account, keys.month_of_day(row.day)), keys.sums_sk(row, shard)


def _together(rows: Sequence[SumRow]) -> SumRow:
    sums = rows[0].sums
    for row in rows[1:]:
        sums += row.sums
    return replace(rows[0], sums=sums)


def _putter(table_name: str) -> Callable[[dict[str, Any]], None]:
    """Puts items into moto's table without the calls, which take most of the time."""
    table = moto_table_of(table_name)
    serialize = TypeSerializer().serialize

    def put(item: dict[str, Any]) -> None:
        typed = {name: serialize(value) for name, value in item.items()}
        hash_key, range_key = DynamoType(typed[PARTITION_KEY]), DynamoType(typed[SORT_KEY])
        stored = Item(hash_key, range_key, {})
        for name, value in typed.items():
            dict.__setitem__(stored.attrs, name, DynamoType(value))
        table.items[hash_key][range_key] = stored

    return put


def moto_table_of(table_name: str) -> Table:
    """The table, in whichever account and region moto keeps it."""
    regions = [region for account in dynamodb_backends.values() for region in account.values()]
    [table] = [region.tables[table_name] for region in regions if table_name in region.tables]
    return table


@contextmanager
def quick_queries(table_name: str) -> Iterator[None]:
    """Answers Queries on a table that does not change meanwhile from each index's own partitions.

    moto decides as ever what it gives, in which order and page; it only looks at the items that a
    page can have, and neither measures an item twice, nor copies one, nor looks each value of the
    answer up in the service's model.
    """
    table = moto_table_of(table_name)
    partitions = _partitions(table)
    ask, asks = Table.query, signature(Table.query)

    def query(*args: Any, **limits: Any) -> Any:
        asked = asks.bind(*args, **limits).arguments
        if asked["self"] is not table:
            return ask(*args, **limits)
        partition = partitions.get((asked.get("index_name"), asked["hash_key"].value), [])
        found = _of_one_page(partition, asked)
        with patch.object(table, "all_items", lambda: found):
            return ask(*args, **limits)

    sizes: dict[int, int] = {}
    measure = Item.size

    def size(item: Item) -> int:
        known = sizes.get(id(item))
        if known is None:
            known = sizes[id(item)] = measure(item)
        return known

    def answer(handler: DynamoHandler) -> Any:
        return json.dumps(answered(handler).result, default=vars)

    answered: Any = DynamoHandler.query
    with (
        patch.object(Table, "query", query),
        patch.object(DynamoHandler, "query", answer),
        patch.object(LimitedSizeDict, "__setitem__", dict.__setitem__),
        patch.object(moto_table, "copy", _Shared),
        patch.object(Item, "size", size),
    ):
        yield


class _Shared:
    """Stands for the module copy: what is only read need not be copied deeply."""

    copy = staticmethod(copy)

    @staticmethod
    def deepcopy(found: Any) -> Any:
        return found


_Sorted = list[tuple[str, str, Item]]
_MOST_OF_A_PAGE = 20_000
"""More items than fit into the 1 MB of a page: each has 60 bytes at least."""


def _partitions(table: Table) -> dict[tuple[str | None, str], _Sorted]:
    """Sort key, partition key of the table, and item, by index and partition, in order."""
    partitions: dict[tuple[str | None, str], _Sorted] = defaultdict(list)
    for item in table.all_items():
        assert item.range_key is not None
        of_table = item.hash_key.value
        partitions[None, of_table].append((item.range_key.value, of_table, item))
        for index in INDEXES:
            if index.partition_key in item.attrs:
                sort_key = item.attrs[index.sort_key].value
                partitions[index.name, item.attrs[index.partition_key].value].append(
                    (sort_key, of_table, item)
                )
    for partition in partitions.values():
        partition.sort(key=lambda entry: entry[:2])
    return partitions


def _of_one_page(partition: _Sorted, asked: Mapping[str, Any]) -> list[Item]:
    """The items of a partition from the page's first one on, as many as a page can have."""
    forward = asked["scan_index_forward"]
    low, high = 0, len(partition)
    bounds = [value.value for value in asked.get("range_objs") or ()]
    if asked.get("range_comparison") == "BETWEEN":
        low = bisect_left(partition, bounds[0], key=itemgetter(0))
        high = bisect_right(partition, bounds[1], key=itemgetter(0))
    elif asked.get("range_comparison") == "<":
        high = bisect_left(partition, bounds[0], key=itemgetter(0))
    if start := asked.get("exclusive_start_key"):
        last = tuple(
            start[name]["S"] for name in (_sort_key(asked.get("index_name")), PARTITION_KEY)
        )
        if forward is False:
            high = min(high, bisect_right(partition, last, key=itemgetter(0, 1)))
        else:
            low = max(low, bisect_left(partition, last, key=itemgetter(0, 1)))
    cut = slice(max(low, high - _MOST_OF_A_PAGE), high)
    if forward is not False:
        cut = slice(low, min(high, low + _MOST_OF_A_PAGE))
    return [item for _, _, item in partition[cut]]


def _sort_key(index_name: str | None) -> str:
    names = {index.name: index.sort_key for index in INDEXES}
    return SORT_KEY if index_name is None else names[index_name]
