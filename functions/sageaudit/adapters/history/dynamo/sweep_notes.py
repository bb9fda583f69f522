"""Stores the state of sweeps in the history's table, under one partition key.

`notify` reads one of these items: the time of the installation, which the first sweep stores.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from sageaudit.adapters.aws.clients import aws_errors, parse_errors, require_key
from sageaudit.adapters.files.exact_json import gzip_json, read_gzip_json
from sageaudit.adapters.history.codec import (
    Item,
    epoch_s,
    moment_text,
)
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.calls import ConditionFailed, DynamoTable
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.history.dynamo.table_writes import TableWrites
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion, JobRef
from sageaudit.domain.moments import as_utc, parse_moment
from sageaudit.domain.sweep import (
    ListProgress,
    ListState,
    SentEvent,
    SweptRegion,
    running_row,
)
from sageaudit.errors import PARSE_ERRORS, MalformedData

READ_PERMISSIONS = ("dynamodb:DescribeTable", "dynamodb:GetItem")
"""The permissions to read sweeps' state; GetItem also reads summaries."""
LIST_PERMISSIONS = ("dynamodb:Query",)
"""The permission of `swept_regions`."""
WRITES: TableWrites = {"dynamodb:PutItem": (keys.SWEEP_PK,)}
PERMISSIONS = (*READ_PERMISSIONS, *WRITES)
INSTALLATION_PERMISSIONS = ("dynamodb:GetItem",)
"""The permission of `installed_at`."""
EVENT_RECORD_DAYS = 30
"""Days to store that an event was sent: longer than its message can be in a queue."""
_INSTALLED_AT = "installed_at"
_LISTS, _RUNNING = "lists", "running"
"""The attributes of an account and region: its lists by kind, and its running jobs as gzipped JSON.
"""
_WAITED = "waited_for_member"
_IS_ABSENT = f"attribute_not_exists({PARTITION_KEY})"
_LEASE_IS_FREE = (
    "NOT attribute_type(lease_until_s, :number) OR lease_until_s <= :now OR lease_until_s > :far"
)


class DynamoSweepStore:
    """Implements SweepStore. `client` is boto3's low-level DynamoDB client."""

    def __init__(
        self,
        client: Any,
        table_name: str,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._name = table_name
        self._table = DynamoTable(client, table_name)
        self._clock = clock
        self._installed_at: datetime | None = None

    def acquire_lease(self, owner: str, now: datetime, lease_s: int) -> bool:
        """Takes the lease if it is free or has expired. Returns True if it was taken.

        A lease also counts as free if its end is missing, or more than twice `lease_s` away, since
        clocks differ. Raises AwsError.
        """
        now_s = epoch_s(now)
        try:
            self._put(
                keys.SWEEP_LEASE_SK,
                {"lease_owner": owner, "lease_until_s": now_s + lease_s},
                condition=f"{_IS_ABSENT} OR lease_owner = :owner OR {_LEASE_IS_FREE}",
                values={
                    ":owner": owner,
                    ":now": now_s,
                    ":far": now_s + 2 * lease_s,
                    ":number": "N",
                },
            )
        except ConditionFailed:
            return False
        return True

    def release_lease(self, owner: str) -> None:
        """Ends the lease if the owner still has it. Raises AwsError."""
        with suppress(ConditionFailed):
            self._put(
                keys.SWEEP_LEASE_SK,
                {"lease_owner": owner, "lease_until_s": 0},
                condition="lease_owner = :owner",
                values={":owner": owner},
            )

    def record_installation(self) -> None:
        """Stores the table's creation time as the time of the installation, if none is stored.

        Raises AwsError.
        """
        if self._table.get(keys.SWEEP_PK, keys.INSTALLED_SK) is not None:
            return
        with aws_errors("dynamodb", f"on the table {self._name}"):
            answer = self._client.describe_table(TableName=self._name)
        with parse_errors("dynamodb"):
            installed_at = moment_text(
                require_key(require_key(answer, "Table"), "CreationDateTime")
            )
        with suppress(ConditionFailed):
            self._put(keys.INSTALLED_SK, {_INSTALLED_AT: installed_at}, _IS_ABSENT)

    def installed_at(self) -> datetime | None:
        """Returns the time of the installation, read once in a process.

        Returns None before the first sweep, and for a time in the future. Raises AwsError or
        MalformedData.
        """
        if self._installed_at is None:
            item = self._table.get(keys.SWEEP_PK, keys.INSTALLED_SK)
            if item is None:
                return None
            try:
                stored_moment = parse_moment(str(item.get(_INSTALLED_AT)))
            except ValueError as error:
                where = f"the item {keys.SWEEP_PK} {keys.INSTALLED_SK}"
                raise MalformedData(where, "has no time") from error
            if stored_moment > self._clock():
                return None
            self._installed_at = stored_moment
        return self._installed_at

    def swept_regions(self) -> dict[AccountRegion, SweptRegion]:
        """Returns the readable states of all accounts and regions that were ever swept.

        Raises AwsError.
        """
        items = self._table.query(
            keys.SWEEP_PK, "begins_with(#s, :list)", {":list": keys.SWEEP_LIST_PREFIX}
        )
        states = {}
        for item in items:
            with suppress(*PARSE_ERRORS):
                account_region = AccountRegion(*item[SORT_KEY].split("#")[1:])
                states[account_region] = _read_swept_region(item)
        return states

    def save_swept_region(self, account_region: AccountRegion, swept: SweptRegion) -> None:
        """Replaces the state of one account and region. Raises AwsError."""
        running = {
            kind.value: [[row.ref.arn, row.ref.name, moment_text(row.created_at)] for row in rows]
            for kind, rows in swept.running_jobs.items()
            if rows
        }
        item: Item = {
            _LISTS: {kind.value: _list_item(state) for kind, state in swept.lists.items()}
        }
        if running:
            item[_RUNNING] = gzip_json(running)
        self._put(keys.swept_region_sk(account_region), item)

    def event_record(self, key: JobKey) -> SentEvent | None:
        """Returns the record of a run's last event; None if it is absent or unreadable.

        Records expire after EVENT_RECORD_DAYS. Raises AwsError.
        """
        item = self._table.get(keys.SWEEP_PK, keys.sent_event_sk(key))
        if item is None:
            return None
        try:
            due_at = item.get("due_at")
            return SentEvent(
                parse_moment(item["sent_at"]),
                due_at and parse_moment(due_at),
                bool(item.get(_WAITED, False)),
            )
        except PARSE_ERRORS:
            return None

    def record_event_sent(self, key: JobKey, event_record: SentEvent) -> None:
        """Stores that a run's event was sent. Raises AwsError."""
        self._put(keys.sent_event_sk(key), _event_record_item(event_record))

    def record_event_arrival(self, key: JobKey, arrived_at: datetime) -> None:
        """Stores that a run's event arrived, unless the run has an event record.

        Raises AwsError.
        """
        item = _event_record_item(SentEvent(arrived_at, None))
        with suppress(ConditionFailed):
            self._put(keys.sent_event_sk(key), item, _IS_ABSENT)

    def _put(self, sk: str, item: Item, condition: str = "", values: Item | None = None) -> None:
        keyed_item = {PARTITION_KEY: keys.SWEEP_PK, SORT_KEY: sk, **item}
        self._table.put(keyed_item, condition, values)


def _event_record_item(event_record: SentEvent) -> Item:
    item: Item = {
        "sent_at": moment_text(event_record.last_event_at),
        TTL_ATTRIBUTE: epoch_s(
            as_utc(event_record.last_event_at) + timedelta(days=EVENT_RECORD_DAYS)
        ),
    }
    if event_record.waited_for_member:
        item[_WAITED] = True
    return (
        item if event_record.due_at is None else item | {"due_at": moment_text(event_record.due_at)}
    )


def _list_item(state: ListState) -> Item:
    progress = state.progress
    moments = {
        "began_at": state.began_at,
        "watermark": state.watermark,
        "next_created_after": state.next_created_after,
        "tried_at": state.tried_at,
        "started_at": progress and progress.started_at,
        "created_before": progress and progress.created_before,
        "oldest_open_created_at": progress and progress.oldest_open_created_at,
    }
    item: Item = {name: moment_text(moment) for name, moment in moments.items() if moment}
    return item if progress is None else item | {"edge": sorted(progress.edge)}


def _read_swept_region(item: Mapping[str, Any]) -> SweptRegion:
    """Returns the readable lists of an item, and its running jobs if these can be read."""
    lists, running_jobs = {}, {}
    for kind_text, list_item in item[_LISTS].items():
        with suppress(*PARSE_ERRORS):
            lists[JobKind(kind_text)] = _read_list_state(list_item)
    with suppress(zlib.error, *PARSE_ERRORS):
        running = read_gzip_json(item[_RUNNING]) if _RUNNING in item else {}
        for kind_text, rows in running.items():
            refs = ((JobRef.from_arn(arn, name), parse_moment(time)) for arn, name, time in rows)
            running_jobs[JobKind(kind_text)] = tuple(
                running_row(ref, created_at) for ref, created_at in refs if ref is not None
            )
    return SweptRegion(lists, running_jobs)


def _read_list_state(item: Mapping[str, Any]) -> ListState:
    progress = None
    if "started_at" in item:
        progress = ListProgress(
            parse_moment(item["started_at"]),
            parse_moment(item["created_before"]),
            parse_moment(item["oldest_open_created_at"])
            if "oldest_open_created_at" in item
            else None,
            frozenset(map(str, item["edge"])),
        )
    return ListState(
        parse_moment(item["began_at"]),
        parse_moment(item["watermark"]),
        parse_moment(item["next_created_after"]),
        progress,
        parse_moment(item["tried_at"]) if "tried_at" in item else None,
    )
