"""Adds to and reads the daily sums in the table. docs/data-model.md describes the items.

An item is one shard of one day's sums of one name. Its counts and amounts are number attributes to
which DynamoDB adds exactly; those of a rule have its name before a point: `gpu-idle.lost_usd`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import groupby

from sageaudit.adapters.history.codec import Item, numbers_of, read_numbers
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.calls import Dynamo, add_action
from sageaudit.adapters.history.dynamo.items import own_item
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.record_steps import changes
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums, total
from sageaudit.structs import replace


def sum_actions(newest: AuditSummary | None, head: AuditSummary, tries: int) -> list[Item]:
    """What recording a version adds: at most 8 Updates, two for each scope that it moves in."""
    return [
        add_action(
            keys.sums_pk(row.account, keys.month_of_day(row.day)),
            keys.sums_sk(row, keys.sums_shard(head.key, row.scope, tries)),
            constants=_place(row),
            added=_attributes(row.sums),
        )
        for row in changes(newest, head)
    ]


def _place(row: SumRow) -> Item:
    """The attributes that tell what an item sums, since a key may be cut."""
    place = {
        "scope": row.scope.value,
        "account": row.account,
        "region": row.region,
        "name": row.name,
        "day": row.day.isoformat(),
    }
    return {name: value for name, value in place.items() if value is not None}


def _attributes(sums: Sums) -> Item:
    """The number attributes; none for what is zero."""
    of_rules = {
        f"{rule}.{name}": value
        for rule, of in sums.rules.items()
        for name, value in numbers_of(of).items()
    }
    return numbers_of(sums) | of_rules


def read_row(item: Item) -> SumRow:
    """The row of an item. Raises BadHistory."""
    with own_item(item):
        of_rules: dict[str, Item] = {}
        for attribute, value in item.items():
            rule, point, name = attribute.rpartition(".")
            if point:
                of_rules.setdefault(rule, {})[name] = value
        rules = {rule: RuleSums(**read_numbers(RuleSums, of)) for rule, of in of_rules.items()}
        known = {rule: of for rule, of in rules.items() if of != RuleSums()}
        return SumRow(
            scope=Scope(item["scope"]),
            account=item["account"],
            region=item["region"],
            name=item.get("name"),
            day=date.fromisoformat(item["day"]),
            sums=Sums(**read_numbers(Sums, item), rules=known),
        )


def read_sums(
    table: Dynamo, scope: Scope, since: date, until: date, *, account: str | None, name: str | None
) -> Iterator[SumRow]:
    """The rows of a scope, with their shards added up: one Query for each account and month.

    Rows of all days of these months, regions and names that begin alike. All reads are strongly
    consistent, so a sum has every audit that was recorded before it is asked.
    """
    if until < since:  # DynamoDB refuses a range that ends before it begins
        return
    if account is None:
        partitions = _named_partitions(table, since, until)
    else:
        partitions = (keys.sums_pk(account, month) for month in _months(since, until))
    first, last = keys.sums_within(scope, name)
    for partition in partitions:
        yield from _without_shards(map(read_row, _query(table, partition, first, last)))


def _without_shards(rows: Iterator[SumRow]) -> Iterator[SumRow]:
    """One row for each name and day: its shards stand together in the order of the keys."""
    for first, shards in groupby(rows, lambda row: replace(row, sums=Sums())):
        yield replace(first, sums=total(shards))


def _months(since: date, until: date) -> Iterator[str]:
    month = since.replace(day=1)
    while month <= until:
        yield keys.month_of_day(month)
        month = (month + timedelta(days=31)).replace(day=1)


def _named_partitions(table: Dynamo, since: date, until: date) -> Iterator[str]:
    first, last = keys.sums_months(since, until)
    for item in _query(table, keys.SUMS_ACCOUNTS_PK, first, last):
        with own_item(item):
            partition = keys.sums_pk(item["account"], item["month"])
        yield partition


def _query(table: Dynamo, partition: str, first: str, last: str) -> Iterator[Item]:
    pages = table.pages(
        KeyConditionExpression="#p = :p AND #s BETWEEN :first AND :last",
        ExpressionAttributeNames={"#p": PARTITION_KEY, "#s": SORT_KEY},
        ExpressionAttributeValues={":p": partition, ":first": first, ":last": last},
        ConsistentRead=True,
    )
    return (item for page in pages for item in page)
