"""Thousands of made-up audits, always the same for one seed, and histories that hold them.

`MemoryHistory` records them. A table of moto's gets the same items at once (`fill`), since moto
needs 20 ms for a transaction and sorts the whole table for each Query (`quick_queries`).
"""

from __future__ import annotations

import json
import random
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from inspect import signature
from itertools import accumulate
from operator import itemgetter
from typing import Any, cast
from unittest.mock import patch

from boto3.dynamodb.types import TypeSerializer
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models import table as moto_table
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler

from sageaudit.adapters.dynamo import items, keys
from sageaudit.adapters.dynamo.sum_table import directory_item, sum_item
from sageaudit.adapters.dynamo.table import INDEXES, PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.daily_sums import changes
from sageaudit.adapters.history.rows import finding_rows, head_of
from sageaudit.adapters.history.stored_document import digest_of
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import RunFacts
from sageaudit.domain.audit.record import Entry, Head
from sageaudit.domain.audit.sums import SumRow
from sageaudit.domain.job.job import Purchase
from tests.contract.entries import entry, finding, key

LAST_END = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ACCOUNTS = ("111122223333", "444455556666")
REGIONS = ("us-east-1", "eu-central-1")
OWNERS = (None, *(f"person-{number:02d}" for number in range(40)))
TYPES = (None, "ml.g5.xlarge", "ml.g5.2xlarge", "ml.p4d.24xlarge", "ml.m5.large", "ml.c6i.4xlarge")
RULES = {
    "gpu-underused": "avoidable",
    "idle-tail": "avoidable",
    "download-dominates": "avoidable",
    "volume-oversized": "avoidable",
    "failed-spend": "lost",
    "spot-not-used": "possible",
    "mixed-precision-candidate": "possible",
}
_BUCKETS = ("avoidable", "lost", "possible")


def many_audits(
    count: int,
    *,
    seed: int = 1,
    days: int = 60,
    last_end: datetime = LAST_END,
    families: int = 200,
    owners: Sequence[str | None] = OWNERS,
    accounts: Sequence[str] = ACCOUNTS,
    regions: Sequence[str] = REGIONS,
) -> Iterator[Entry]:
    """Audits of different jobs that ended in the days before `last_end`, in no order of time.

    Few families have most of the jobs. One job in 50 could not be audited, one in 40 has no price.
    """
    chance = random.Random(seed)
    weights = list(accumulate(1 / (place + 1) for place in range(families)))
    for number in range(count):
        [family] = chance.choices(range(families), cum_weights=weights)
        ended_at = last_end - timedelta(seconds=chance.randrange(days * 86_400))
        account, region = accounts[family % len(accounts)], chance.choice(regions)
        name = f"family-{family:03d}-{number:06d}"
        yield _audit(
            chance,
            name,
            ended_at,
            account=account,
            region=region,
            family=f"training/family-{family:03d}",
            owner=owners[family * 7 % len(owners)],
            arn=f"arn:aws:sagemaker:{region}:{account}:training-job/{name}",
        )


def _audit(chance: random.Random, name: str, ended_at: datetime, **job: Any) -> Entry:
    total_usd = Decimal(chance.randrange(1, 50_000_000)).scaleb(-6)
    unpriced, unauditable = chance.random() < 1 / 40, chance.random() < 1 / 50
    found = [] if unauditable else _findings(chance, total_usd, known=not unpriced)
    sums = (
        {
            bucket: sum((one["saving_usd"] for one in found if one["bucket"] == bucket), Decimal(0))
            for bucket in _BUCKETS
        }
        if not unpriced and not unauditable
        else dict.fromkeys(_BUCKETS)
    )
    created_at = ended_at - timedelta(minutes=chance.randrange(5, 600))
    given = entry(
        name,
        job={
            **job,
            "status": "Failed" if any(one["bucket"] == "lost" for one in found) else "Completed",
            "created_at": created_at.isoformat(),
            "ended_at": ended_at.isoformat(),
        },
        bill={"total_usd": None if unpriced or unauditable else total_usd},
        findings=found,
        unauditable="It was deleted before it was described." if unauditable else None,
        judged="no" if unauditable else chance.choice(("yes", "yes", "yes", "partly")),
        avoidable_usd=sums["avoidable"],
        lost_usd=sums["lost"],
        lost_up_to_usd=sums["lost"],
        possible_usd=sums["possible"],
    )
    facts = RunFacts(Purchase.ON_DEMAND, instance_type=chance.choice(TYPES), instance_count=1)
    return replace(
        given,
        key=replace(key(name, created_at), arn=job["arn"]),
        last_modified_at=ended_at,
        facts=None if unauditable else facts,
    )


def _findings(chance: random.Random, total_usd: Decimal, *, known: bool) -> list[dict[str, Any]]:
    """Up to three findings, each of at most a fifth of the bill."""
    return [
        finding(
            rule,
            bucket=RULES[rule],
            severity=chance.choice(("info", "low", "medium", "high")),
            saving_usd=(total_usd * chance.randrange(200) / 1000).quantize(Decimal("0.000001"))
            if known
            else None,
            saving_alone_usd=None,
            evidence={},
            fix=[],
        )
        for rule in chance.sample(list(RULES), chance.choice((0, 0, 1, 1, 2, 3)))
    ]


def several_versions(count: int, **of: Any) -> Iterator[tuple[Entry, ...]]:
    """The versions of each of so many audits, the oldest first: what a history may hold.

    One in four was recorded before with other dollars, some of them under another owner, type or
    day; one in eight is a tuning job, which repeats dollars and adds one rule of its own; one in
    nine rests on an estimated rate, one in eleven lacks a part of its bill.
    """
    chance = random.Random(count)
    for number, given in enumerate(many_audits(count, **of)):
        newest = _changed(given, number)
        yield (_older(newest, chance), newest) if number % 4 == 0 else (newest,)


def _changed(given: Entry, number: int) -> Entry:
    document = given.document
    job, bill = dict(document["job"]), dict(document["bill"])
    if number % 9 == 0:
        said = "the rate is estimated"
        bill |= {"estimated": [said], "missing": [said]}
    if number % 11 == 0:
        bill["missing"] = [*bill["missing"], "no price of the storage"]
    own = {}
    if number % 8 == 5:
        arn = str(job["arn"]).replace("training-job", "hyper-parameter-tuning-job")
        job |= {"kind": "tuning", "arn": arn}
        given = replace(given, key=replace(given.key, arn=arn))
        own = {"rollup": True, "own_rules": [f["rule"] for f in document["findings"][:1]]}
    made = cast("AuditDocument", {**document, "job": job, "bill": bill, **own})
    return replace(given, document=made)


def _older(newest: Entry, chance: random.Random) -> Entry:
    """An earlier version of the same run."""
    document, job = newest.document, dict(newest.document["job"])
    moved = chance.randrange(4)
    if moved == 1:
        job["owner"] = "person-before"
    if moved == 2:
        earlier = datetime.fromisoformat(str(job["ended_at"])) - timedelta(days=1)
        job["ended_at"] = earlier.isoformat()
    usd = Decimal(chance.randrange(1, 9_000_000)).scaleb(-6)
    made = {**document, "job": job, "bill": {**document["bill"], "total_usd": usd}}
    made |= {"avoidable_usd": usd / 4, "findings": document["findings"][1:], "unauditable": None}
    return replace(
        newest,
        document=cast("AuditDocument", made),
        last_modified_at=newest.last_modified_at - timedelta(minutes=5),
        facts=None if moved == 3 else newest.facts,
    )


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
    table = _moto_table(table_name)
    serialize = TypeSerializer().serialize

    def put(item: dict[str, Any]) -> None:
        typed = {name: serialize(value) for name, value in item.items()}
        hash_key, range_key = DynamoType(typed[PARTITION_KEY]), DynamoType(typed[SORT_KEY])
        stored = Item(hash_key, range_key, {})
        for name, value in typed.items():
            dict.__setitem__(stored.attrs, name, DynamoType(value))
        table.items[hash_key][range_key] = stored

    return put


def _moto_table(table_name: str) -> Table:
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
    table = _moto_table(table_name)
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
