"""The history in DynamoDB. docs/data-model.md describes the keys and the query of each list.

Decisions about recommendations have a small partition of their own. So a person who decides needs
only one permission, limited to its key.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar, cast

from sageaudit.adapters.history.codec import (
    Item,
    from_item,
    moment_sk,
    moment_text,
    sk_before,
    through_sk,
    to_item,
)
from sageaudit.adapters.history.dynamo import items, keys
from sageaudit.adapters.history.dynamo.calls import ConditionFailed, DynamoTable
from sageaudit.adapters.history.dynamo.keys import (
    AUDIT_PREFIX,
    FAMILY_RUNS_PREFIX,
    INDEXES,
    JOB_PREFIX,
    PARTITION_KEY,
    RECOMMENDATIONS_PK,
    SORT_KEY,
    SUMS_PREFIX,
)
from sageaudit.adapters.history.dynamo.run_writer import RunWriter, read_sums
from sageaudit.adapters.history.dynamo.table_writes import TableWrites
from sageaudit.adapters.history.record_steps import find_outdated
from sageaudit.adapters.history.rows import clip_text
from sageaudit.adapters.history.stored_items import StoredItems
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import (
    MAX_EARLIER_RUNS,
    AuditEntry,
    Detail,
    RecordResult,
    Row,
    RunIndex,
    RunQuery,
)
from sageaudit.domain.audit.sum_parts import PART_FIELDS, USAGE_FIELDS, SumPart
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Scope, SumRow, Sums
from sageaudit.domain.moments import parse_moment
from sageaudit.errors import UnreadableItem

RECORD_WRITES: TableWrites = dict.fromkeys(
    ("dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"),
    (JOB_PREFIX, FAMILY_RUNS_PREFIX, SUMS_PREFIX),
)
"""What `record` and `schedule_reaudit` write."""
RECORD_PERMISSIONS = ("dynamodb:GetItem", *RECORD_WRITES)
"""The permissions of `record`."""
READ_PERMISSIONS = ("dynamodb:GetItem", "dynamodb:Query")
"""The permissions of all reading methods, on the table; Query also on its indexes."""
INDEX_PERMISSIONS = ("dynamodb:Query",)
"""The permission that a list needs on its index."""
SUMS_PERMISSIONS = READ_PERMISSIONS
"""The permissions of `daily_sums` and `summary`, only on the table."""
PERMISSIONS = tuple(sorted({*RECORD_PERMISSIONS, *READ_PERMISSIONS}))

_INDEXES = {index.name: index for index in INDEXES}
_MIN_DUE_ROWS = 8
"""The minimum number of rows to request from each shard, since shards fill unevenly."""
READ_DECISIONS_PERMISSIONS = ("dynamodb:Query",)
"""The permission of `decisions`, only on the table."""
SAVE_DECISION_WRITES: TableWrites = {"dynamodb:PutItem": (RECOMMENDATIONS_PK,)}
"""What `save_decision` writes."""

StoredRow = TypeVar("StoredRow")


class DynamoHistory:
    """Implements History and Decisions in a DynamoDB table.

    `client` is boto3's low-level DynamoDB client.
    """

    def __init__(
        self,
        client: Any,
        table_name: str,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._table = DynamoTable(client, table_name)
        self._items = StoredItems(items.item_key)
        self._writer = RunWriter(self._table, self._items, clock, sleep)

    def record(self, entry: AuditEntry) -> RecordResult:
        """Records an audit in one transaction. Writes nothing for a duplicate or an older state.

        Raises AwsError.
        """
        return self._writer.record(entry)

    def recheck_family(
        self,
        key: JobKey,
        *,
        account: str,
        region: str,
        family: str,
        ended_at: datetime,
        due_at: datetime,
    ) -> tuple[JobKey, ...]:
        """Schedules the family's audits that were judged without an earlier run. Returns their
        keys.

        It makes two queries, and usually no write.
        """
        partition = keys.family_runs_pk(account, region, family)
        outdated_keys = self._find_outdated(partition, key, ended_at)
        for run in outdated_keys:
            self.schedule_reaudit(run, due_at)
        return outdated_keys

    def _find_outdated(
        self, partition_key: str, key: JobKey, ended_at: datetime
    ) -> tuple[JobKey, ...]:
        # All reads are strongly consistent, and each run is checked after it was recorded. So if
        # two runs are recorded at the same time, the later check sees both.
        own_sk, later_sk = moment_sk(ended_at, key), through_sk(ended_at)
        own_and_later = self._family_items(partition_key, ">=", own_sk, 1 + MAX_EARLIER_RUNS)
        item = next(own_and_later, None)
        if item is None or item[SORT_KEY] != own_sk:
            return ()
        earlier = self._family_items(
            partition_key,
            "<",
            moment_text(ended_at),
            MAX_EARLIER_RUNS,
            attributes=items.FAMILY_PLACE,
        )
        later = (item for item in own_and_later if item[SORT_KEY] > later_sk)
        return tuple(
            find_outdated(
                self._items.read(items.read_family_row, item),
                self._first_rows(items.read_family_place, earlier),
                self._first_rows(items.read_family_row, later),
            )
        )

    def _family_items(
        self, partition: str, operator: str, sk: str, limit: int, **options: Any
    ) -> Iterator[Item]:
        # Earlier runs come newest first, later runs oldest first.
        return self._table.query(
            partition,
            f"#s {operator} :sk",
            {":sk": sk},
            ScanIndexForward=operator == ">=",
            ConsistentRead=True,
            Limit=limit,
            **options,
        )

    def _first_rows(
        self, read: Callable[[Item], StoredRow], family_items: Iterable[Item]
    ) -> Iterator[StoredRow]:
        return islice(self._items.read_each(read, family_items), MAX_EARLIER_RUNS)

    def schedule_reaudit(self, key: JobKey, due_at: datetime) -> None:
        """Sets an audit's `due_at`, unless it is due earlier or there is no audit."""
        with suppress(ConditionFailed):
            self._table.update(
                keys.job_pk(key),
                keys.HEAD_SK,
                "SET due_at = :at, due_pk = :pk, due_sk = :sk",
                condition=f"attribute_exists({PARTITION_KEY}) AND "
                "(attribute_not_exists(due_at) OR due_at > :at)",
                values={
                    ":at": moment_text(due_at),
                    ":pk": keys.due_pk(key),
                    ":sk": moment_sk(due_at, key),
                },
            )

    def summary(self, key: JobKey) -> AuditSummary | None:
        """Returns the summary of a run's newest version; None for an unknown run."""
        item = self._table.get(keys.job_pk(key), keys.HEAD_SK)
        return None if item is None else self._items.read(items.read_head, item)

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """Returns the document of a version, by default the newest; None if it does not exist."""
        if version is not None:
            item = self._table.get(keys.job_pk(key), keys.audit_sk(version))
            return None if item is None else self._items.read(items.read_audit, item)
        newest = self._table.query(
            keys.job_pk(key),
            "begins_with(#s, :audit)",
            {":audit": AUDIT_PREFIX},
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=1,
        )
        item = next(newest, None)
        return None if item is None else self._items.read(items.read_audit, item)

    def detail(self, key: JobKey) -> Detail | None:
        """Returns the data that a new audit of the job needs; None if it is absent or expired."""
        item = self._table.get(keys.job_pk(key), keys.DETAIL_SK)
        return None if item is None else self._items.read(items.read_detail_item, item)

    def runs(
        self,
        query: RunQuery[Row],
        *,
        ended_before: datetime | None = None,
        page_size: int | None = None,
        fields: Collection[str] | None = None,
    ) -> Iterator[Row]:
        """Yields the rows of a list: of one index, merged from the shards of its key.

        Only `fields` of each summary are read.
        """
        read: Callable[[Item], Any] = items.read_head
        if query.index is RunIndex.RULE:
            read, fields = items.read_finding, None
        elif fields is not None:
            fields = {*fields, "key", "ended_at"}
            read = partial(items.read_partial, items.summary_readers(fields))
        rows = self._items.read_each(read, self._walk(query, ended_before, page_size, fields))
        return cast("Iterator[Row]", rows)

    def sum_parts(
        self,
        query: RunQuery[AuditSummary],
        label: Callable[[AuditSummary], object],
        fields: Collection[str],
        *,
        ended_before: datetime | None = None,
        with_usage: bool = False,
    ) -> Iterator[SumPart]:
        """Yields what the audits of a list add to sums. Only these fields of each are read."""
        names = {*fields, *PART_FIELDS, *(USAGE_FIELDS if with_usage else ())}
        read = partial(items.read_part, items.summary_readers(names), label)
        return self._items.read_each(read, self._walk(query, ended_before, None, names))

    def _walk(
        self,
        query: RunQuery[Any],
        ended_before: datetime | None,
        page_size: int | None,
        field_names: Collection[str] | None,
    ) -> Iterator[Item]:
        index, partitions = _INDEXES[query.index], _partitions(query)
        is_oldest_first = query.index is RunIndex.DUE
        end = (
            through_sk(parse_moment(query.values[0]))
            if is_oldest_first
            else sk_before(ended_before)
        )
        page_rows = None if page_size is None else _rows_per_partition(page_size, len(partitions))
        if page_rows is not None and is_oldest_first:
            page_rows = max(page_rows, _MIN_DUE_ROWS)
        limit = {} if page_rows is None else {"Limit": page_rows}
        attributes: Sequence[str] = ()
        if field_names is not None:
            attributes = (*items.head_attributes(field_names), index.sort_key)
        queries = [
            self._table.query(
                partition,
                "#s < :end",
                {":end": end},
                index=index,
                attributes=attributes,
                ScanIndexForward=is_oldest_first,
                **limit,
            )
            for partition in partitions
        ]
        return heapq.merge(
            *queries, key=lambda item: item[index.sort_key], reverse=not is_oldest_first
        )

    def daily_sums(
        self,
        scope: Scope,
        since: date,
        until: date,
        *,
        account: str | None = None,
        region: str | None = None,
        name: str | None = None,
    ) -> Iterator[SumRow]:
        """Yields a scope's daily sums, one row per day, account, region and name.

        Sums that became zero have no row. They do so if their audits moved to other sums.
        """
        name = None if name is None else clip_text(name)
        rows = read_sums(self._table, self._items, scope, since, until, account=account, name=name)
        for row in rows:
            filters = ((account, row.account), (region, row.region), (name, row.name))
            is_selected = all(
                filter_value is None or filter_value == value for filter_value, value in filters
            )
            if is_selected and since <= row.day <= until and row.sums != Sums():
                yield row

    def decisions(self) -> Sequence[Decision]:
        """Returns all readable decisions, by a consistent read. Raises AwsError."""
        stored_decisions = self._table.query(keys.RECOMMENDATIONS_PK, ConsistentRead=True)
        return [*self._items.read_each(partial(from_item, Decision), stored_decisions)]

    def save_decision(self, decision: Decision) -> None:
        """Stores a decision. Raises AwsError."""
        key = {PARTITION_KEY: keys.RECOMMENDATIONS_PK, SORT_KEY: keys.decision_sk(decision)}
        self._table.put({**key, **to_item(decision)})

    def unreadable_items(self) -> tuple[UnreadableItem, ...]:
        """Returns the items that were left out since they were last taken."""
        return self._items.left_out

    def take_unreadable(self) -> tuple[UnreadableItem, ...]:
        """Returns `unreadable_items`, and forgets them."""
        return self._items.take_left_out()


def _partitions(query: RunQuery[Any]) -> tuple[str, ...]:
    match query.index:
        case RunIndex.DAY:
            return keys.day_pks(date.fromisoformat(*query.values))
        case RunIndex.FAMILY:
            return (keys.family_pk(*query.values),)
        case RunIndex.OWNER:
            return (keys.owner_pk(*query.values),)
        case RunIndex.NAME:
            return (keys.name_pk(*query.values),)
        case RunIndex.ACCOUNT:
            return (keys.account_pk(*query.values),)
        case RunIndex.RULE:
            return (keys.rule_pk(*query.values),)
        case RunIndex.DUE:
            return keys.due_pks()


def _rows_per_partition(rows: int, partitions: int) -> int:
    """Returns twice the even share, since shards fill unevenly."""
    return rows if partitions == 1 else -(-2 * rows // partitions)
