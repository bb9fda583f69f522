"""Records audits in the table: HEAD, version, findings, detail and sums in one transaction.

HEAD is the item with the summary. A sum item is one shard of one day's sums of one name
(docs/data-model.md). DynamoDB adds exactly to its number attributes. A rule's attributes begin with
the rule's name and a point: `gpu-idle.lost_usd`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import groupby

from sageaudit.adapters.history.codec import (
    Item,
    make_row,
    moment_sk,
    moment_text,
    non_zero_numbers,
    parse_numbers,
)
from sageaudit.adapters.history.dynamo import items, keys
from sageaudit.adapters.history.dynamo.calls import (
    ConditionFailed,
    DynamoTable,
    add_action,
    delete_action,
    put_action,
)
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.record_steps import (
    RecordStep,
    document_digest,
    family_row,
    next_step,
    sum_differences,
    unchanged_result,
)
from sageaudit.adapters.history.rows import finding_rows, make_summary
from sageaudit.adapters.history.stored_items import StoredItems
from sageaudit.domain.audit.record import (
    DETAIL_DAYS,
    AuditEntry,
    RecordOutcome,
    RecordResult,
    RuleFinding,
)
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums, sum_rows
from sageaudit.domain.moments import as_utc, parse_day
from sageaudit.errors import Throttled
from sageaudit.structs import replace

RETRY_DELAYS_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between the attempts of one record. A conflict ends when the other delivery has written.
"""
_IS_ABSENT = f"attribute_not_exists({PARTITION_KEY})"
_IS_UNCHANGED = "revision = :revision"


class RunWriter:
    """Records audits. It writes only if HEAD has not changed since it was read."""

    def __init__(
        self,
        table: DynamoTable,
        stored_items: StoredItems[Item],
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
    ) -> None:
        self._table = table
        self._items = stored_items
        self._clock = clock
        self._sleep = sleep
        self._registered_accounts: set[tuple[str, str]] = set()

    def record(self, entry: AuditEntry) -> RecordResult:
        """Writes an entry. Raises AwsError; Throttled after the last attempt.

        If an earlier attempt wrote the document but its answer was lost, the result is still
        RECORDED. The work that follows a record is then still to do.
        """
        digest = document_digest(entry.document)
        for try_count, wait_s in enumerate((*RETRY_DELAYS_S, None)):
            try:
                result = self._try_record(entry, digest, try_count)
            except ConditionFailed as error:
                # Another delivery has written since HEAD was read.
                if wait_s is None:
                    raise Throttled(f"Too many concurrent writes of {entry.key.arn}.") from error
            except Throttled:
                if wait_s is None:
                    raise
                self._sleep(wait_s)
            else:
                break
        is_same_document = (
            result.outcome is RecordOutcome.DUPLICATE
            and result.summary
            and result.summary.digest == digest
        )
        return (
            replace(result, outcome=RecordOutcome.RECORDED)
            if try_count and is_same_document
            else result
        )

    def _try_record(self, entry: AuditEntry, digest: str, try_count: int) -> RecordResult:
        item = self._table.get(keys.job_pk(entry.key), keys.HEAD_SK)
        newest = None if item is None else self._items.read(items.read_head, item)
        revision = 0 if item is None else self._items.read(items.read_revision, item)
        step = next_step(newest, entry, digest)
        if newest is not None and step is RecordStep.ADVANCE:
            self._advance(entry, revision)
        if newest is not None and step not in {RecordStep.WRITE, RecordStep.CONFIRM}:
            return unchanged_result(step, newest)
        version = 1 if newest is None else newest.version + (step is RecordStep.WRITE)
        summary = make_summary(entry, version, digest)
        actions = [
            _put_head(summary, revision),
            *self._family_actions(entry, summary, newest),
            *sum_actions(newest, summary, try_count),
        ]
        if newest is None or step is RecordStep.WRITE:
            actions += self._version_actions(entry, summary, newest)
        self._register_account(summary)
        self._table.transact(actions)
        if newest is not None and step is RecordStep.CONFIRM:
            return unchanged_result(step, newest)
        return RecordResult(RecordOutcome.RECORDED, summary.version, summary)

    def _register_account(self, summary: AuditSummary) -> None:
        """Adds the account to the directory of accounts that have sums in the run's month.

        A process does this once for each account and month.
        """
        month = keys.month_text(as_utc(summary.ended_at).date())
        if (summary.account, month) in self._registered_accounts:
            return
        item = {
            PARTITION_KEY: keys.SUMS_ACCOUNTS_PK,
            SORT_KEY: keys.sums_account_sk(month, summary.account),
        }
        with suppress(ConditionFailed):  # another process has added it
            self._table.put(item, _IS_ABSENT)
        self._registered_accounts.add((summary.account, month))

    def _version_actions(
        self, entry: AuditEntry, summary: AuditSummary, newest_summary: AuditSummary | None
    ) -> list[Item]:
        removed_rule_ids = set(newest_summary.finding_ids if newest_summary else ()) - set(
            summary.finding_ids
        )
        actions = [
            put_action(items.audit_item(summary, entry.document), _IS_ABSENT),
            *(
                put_action(items.finding_item(RuleFinding(finding, summary)))
                for finding in finding_rows(entry)
            ),
            *(
                delete_action(keys.job_pk(entry.key), keys.finding_sk(rule_id))
                for rule_id in sorted(removed_rule_ids)
            ),
        ]
        if entry.detail is not None:
            detail = items.detail_item(entry.key, entry.detail, self._expires_at())
            actions.append(put_action(detail))
        return actions

    def _family_actions(
        self, entry: AuditEntry, summary: AuditSummary, newest_summary: AuditSummary | None
    ) -> list[Item]:
        # Also deletes the run's old row if it was elsewhere.
        row = family_row(entry, summary)
        new_item = None if row is None else items.family_item(summary, row, self._expires_at())
        actions = [] if new_item is None else [put_action(new_item)]
        if newest_summary is not None and newest_summary.stamp is not None:
            old_key = (
                keys.family_runs_pk(
                    newest_summary.account, newest_summary.region, newest_summary.family
                ),
                moment_sk(newest_summary.ended_at, newest_summary.key),
            )
            if new_item is None or old_key != (new_item[PARTITION_KEY], new_item[SORT_KEY]):
                actions.append(delete_action(*old_key))
        return actions

    def _advance(self, entry: AuditEntry, revision: int) -> None:
        self._table.update(
            keys.job_pk(entry.key),
            keys.HEAD_SK,
            "SET last_modified_at = :new, revision = :next",
            condition=_IS_UNCHANGED,
            values={
                ":new": moment_text(entry.last_modified_at),
                ":revision": revision,
                ":next": revision + 1,
            },
        )

    def _expires_at(self) -> datetime:
        return self._clock() + timedelta(days=DETAIL_DAYS)


def _put_head(summary: AuditSummary, revision: int) -> Item:
    # Requires that HEAD has not changed since it was read.
    item = items.head_item(summary, revision + 1)
    if not revision:
        return put_action(item, _IS_ABSENT)
    return put_action(item, _IS_UNCHANGED, {":revision": revision})


def sum_actions(
    newest_summary: AuditSummary | None, summary: AuditSummary, try_count: int
) -> list[Item]:
    """Returns the Updates of sums: at most 14, two for each of four scopes and three cost tags."""
    return [
        add_action(
            keys.sums_pk(row.account, keys.month_text(row.day)),
            keys.sums_sk(row, keys.sums_shard(summary.key, row.scope, try_count)),
            constants=_sum_key_attributes(row),
            increments=_attributes(row.sums),
        )
        for row in sum_differences(newest_summary, summary)
    ]


def _sum_key_attributes(row: SumRow) -> Item:
    # The attributes say what a sum item adds up, since its key may be cut.
    attributes = {
        "scope": row.scope.value,
        "account": row.account,
        "region": row.region,
        "name": row.name,
        "day": row.day.isoformat(),
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _attributes(sums: Sums) -> Item:
    # Zeros have no attribute.
    rule_attributes = {
        f"{rule}.{name}": value
        for rule, rule_sums in sums.rules.items()
        for name, value in non_zero_numbers(rule_sums).items()
    }
    return non_zero_numbers(sums) | rule_attributes


def read_sum_row(item: Item) -> SumRow:
    """Reads the row of an item. Raises PARSE_ERRORS."""
    numbers_by_rule: dict[str, Item] = {}
    for attribute, value in item.items():
        rule, separator, name = attribute.rpartition(".")
        if separator:
            numbers_by_rule.setdefault(rule, {})[name] = value
    rules = {
        rule: RuleSums(**parse_numbers(RuleSums, numbers))
        for rule, numbers in numbers_by_rule.items()
    }
    non_zero = {rule: numbers for rule, numbers in rules.items() if numbers != RuleSums()}
    values = {
        "scope": Scope(item["scope"]),
        "account": item["account"],
        "region": item["region"],
        "name": item.get("name"),
        "day": parse_day(item["day"]),
        "sums": Sums(**parse_numbers(Sums, item), rules=non_zero),
    }
    return make_row(SumRow, values)


def read_sums(
    table: DynamoTable,
    stored_items: StoredItems[Item],
    scope: Scope,
    since: date,
    until: date,
    *,
    account: str | None,
    name: str | None,
) -> Iterator[SumRow]:
    """Yields a scope's sums with their shards added up, by one Query per account and month.

    It may also yield other days of these months, other regions, and names that begin with `name`.
    The reads are strongly consistent, so they include every audit that was recorded before.
    """
    if until < since:  # DynamoDB rejects a range that ends before it begins
        return
    if account is None:
        directory = _query(table, keys.SUMS_ACCOUNTS_PK, *keys.sums_directory_range(since, until))
        partitions = stored_items.read_each(_registered_partition, directory)
    else:
        partitions = (keys.sums_pk(account, month) for month in _months(since, until))
    first, last = keys.sums_key_range(scope, name)
    for partition in partitions:
        shards = _query(table, partition, first, last)
        yield from _merge_shards(stored_items.read_each(read_sum_row, shards))


def _merge_shards(rows: Iterator[SumRow]) -> Iterator[SumRow]:
    # A row's shards are adjacent in the order of the keys.
    for first, shards in groupby(rows, lambda row: replace(row, sums=Sums())):
        yield replace(first, sums=sum_rows(shards))


def _months(since: date, until: date) -> Iterator[str]:
    month = since.replace(day=1)
    while month <= until:
        yield keys.month_text(month)
        month = (month + timedelta(days=31)).replace(day=1)


def _registered_partition(item: Item) -> str:
    month, _, account = item[SORT_KEY].partition("#")
    return keys.sums_pk(account, month)


def _query(table: DynamoTable, partition: str, first: str, last: str) -> Iterator[Item]:
    return table.query(
        partition,
        "#s BETWEEN :first AND :last",
        {":first": first, ":last": last},
        ConsistentRead=True,
    )
