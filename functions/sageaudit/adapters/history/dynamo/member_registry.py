"""Stores members, and the events that wait until a member can be read, in the history's table.

Members are under one partition key, waiting events under one key for each account and region.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sageaudit.adapters.history.codec import Item, epoch_s, moment_text, run_key
from sageaudit.adapters.history.dynamo import items, keys
from sageaudit.adapters.history.dynamo.calls import ConditionFailed, DynamoTable
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.history.dynamo.table_writes import TableWrites
from sageaudit.adapters.history.stored_items import StoredItems
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import Denial, Member, WaitingEvent
from sageaudit.domain.moments import parse_moment
from sageaudit.errors import UnreadableItem

READ_KEYS = (keys.MEMBERS_PK, keys.WAITING_PREFIX)
MEMBER_WRITES: TableWrites = {"dynamodb:UpdateItem": (keys.MEMBERS_PK,)}
ADD_EVENT_WRITES: TableWrites = {"dynamodb:PutItem": (keys.WAITING_PREFIX,)}
REMOVE_EVENT_WRITES: TableWrites = {"dynamodb:DeleteItem": (keys.WAITING_PREFIX,)}
_EVENT_DAYS = 400
"""Days to keep a waiting event: CloudWatch keeps hourly metrics for 455."""
_MEMBER_DAYS = _EVENT_DAYS + 45
"""Days to keep a member after its last change: longer than its events, which only its denial makes
sweeps look for. Until then `doctor` names members that left."""
_REPEATED_AT = "denial_repeated_at"
_DENIAL_NAMES = (
    "denied_since",
    "denied_checked_at",
    "denied_actions",
    "denied_reason",
    "denial_is_confirmed",
)


class DynamoMemberRegistry:
    """Implements MemberRegistry. `client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = DynamoTable(client, table_name)
        self._items = StoredItems(items.item_key)

    def members(self) -> dict[AccountRegion, Member]:
        """Returns the readable members. Raises AwsError."""
        stored = self._table.query(keys.MEMBERS_PK)
        members = self._items.read_each(_read_member, stored)
        return {member.account_region: member for member in members}

    def take_unreadable(self) -> tuple[UnreadableItem, ...]:
        """Returns the items that were left out since they were last taken, and forgets them."""
        return self._items.take_left_out()

    def record_seen(
        self, account_region: AccountRegion, seen_at: datetime, template_version: int | None
    ) -> None:
        """Stores when an event of the member arrived, unless a later one has arrived.

        `template_version` is None for an event other than a heartbeat. Raises AwsError.
        """
        seen = {
            "last_seen_at": moment_text(seen_at),
            TTL_ATTRIBUTE: epoch_s(seen_at + timedelta(days=_MEMBER_DAYS)),
        }
        version = {} if template_version is None else {"template_version": template_version}
        is_newest = "attribute_not_exists(last_seen_at) OR last_seen_at < :last_seen_at"
        first_seen = "first_seen_at = if_not_exists(first_seen_at, :last_seen_at)"
        try:
            self._set(account_region, seen | version, first_seen, condition=is_newest)
        except ConditionFailed:  # the event of a job arrived in the meantime
            if version:
                self._set(account_region, version)

    def add_denial(self, account_region: AccountRegion, denial: Denial) -> None:
        """Stores what the member denies. Keeps an earlier denial, and when it was last repeated.

        Raises AwsError.
        """
        names = {name: f"if_not_exists({name}, :{name})" for name in _DENIAL_NAMES}
        clauses = [f"{name} = {value}" for name, value in names.items()]
        repeated = {_REPEATED_AT: moment_text(denial.checked_at)}
        item = _denial_item(denial)
        values = {name: item[name] for name in _DENIAL_NAMES}
        self._set(
            account_region, repeated | {TTL_ATTRIBUTE: item[TTL_ATTRIBUTE]}, *clauses, others=values
        )

    def replace_denial(self, account_region: AccountRegion, denial: Denial) -> None:
        """Replaces what the member denies. Raises AwsError."""
        self._set(account_region, _denial_item(denial))

    def clear_denial(self, account_region: AccountRegion, asked_at: datetime) -> bool:
        """Removes a denial, unless it was repeated since `asked_at`. Returns whether it did.

        Raises AwsError.
        """
        try:
            self._table.update(
                keys.MEMBERS_PK,
                keys.member_sk(account_region),
                f"REMOVE {', '.join((*_DENIAL_NAMES, _REPEATED_AT))}",
                values={":asked_at": moment_text(asked_at)},
                condition=f"attribute_not_exists({_REPEATED_AT}) OR {_REPEATED_AT} < :asked_at",
            )
        except ConditionFailed:
            return False
        return True

    def add_waiting_event(self, key: JobKey, event: WaitingEvent) -> None:
        """Stores an event until its account and region can be read. Raises AwsError."""
        self._table.put(
            {
                PARTITION_KEY: keys.waiting_pk(event.account_region),
                SORT_KEY: run_key(key),
                "arn": key.arn,
                "created_at": moment_text(key.created_at),
                "kind": event.kind.value,
                "body": event.body,
                "arrived_at": moment_text(event.arrived_at),
                TTL_ATTRIBUTE: epoch_s(event.arrived_at + timedelta(days=_EVENT_DAYS)),
            }
        )

    def waiting_events(
        self, account_region: AccountRegion
    ) -> Iterator[tuple[JobKey, WaitingEvent]]:
        """Yields the member's readable waiting events. Raises AwsError."""
        stored = self._table.query(keys.waiting_pk(account_region))
        yield from self._items.read_each(partial(_read_waiting_event, account_region), stored)

    def remove_waiting_event(self, key: JobKey, event: WaitingEvent) -> None:
        """Removes a waiting event. Raises AwsError."""
        self._table.delete(keys.waiting_pk(event.account_region), run_key(key))

    def _set(
        self,
        account_region: AccountRegion,
        values: Item,
        *assignments: str,
        others: Mapping[str, Any] | None = None,
        condition: str | None = None,
    ) -> None:
        # `others` are values that only the assignments use.
        clauses = [*(f"{name} = :{name}" for name in values), *assignments]
        self._table.update(
            keys.MEMBERS_PK,
            keys.member_sk(account_region),
            f"SET {', '.join(clauses)}",
            values={f":{name}": value for name, value in (values | dict(others or {})).items()},
            condition=condition,
        )


def _denial_item(denial: Denial) -> Item:
    since, checked_at = moment_text(denial.since), moment_text(denial.checked_at)
    values = since, checked_at, list(denial.actions), denial.reason, denial.is_confirmed
    expires_at = epoch_s(denial.checked_at + timedelta(days=_MEMBER_DAYS))
    return dict(zip(_DENIAL_NAMES, values, strict=True)) | {TTL_ATTRIBUTE: expires_at}


def _read_waiting_event(
    account_region: AccountRegion, item: Mapping[str, Any]
) -> tuple[JobKey, WaitingEvent]:
    key, kind = JobKey(item["arn"], parse_moment(item["created_at"])), JobKind(item["kind"])
    arrived_at = parse_moment(item["arrived_at"])
    return key, WaitingEvent(account_region, kind, str(item["body"]), arrived_at)


def _read_member(item: Mapping[str, Any]) -> Member:
    moments = {
        name: parse_moment(item[name]) if name in item else None
        for name in ("first_seen_at", "last_seen_at")
    }
    denial = None
    if _DENIAL_NAMES[0] in item:
        since, checked_at, actions, reason, is_confirmed = (item[name] for name in _DENIAL_NAMES)
        denial = Denial(
            parse_moment(since),
            parse_moment(checked_at),
            tuple(map(str, actions)),
            str(reason),
            bool(is_confirmed),
        )
    version = item.get("template_version")
    return Member(
        AccountRegion(*item[SORT_KEY].split("#")),
        **moments,
        template_version=None if version is None else int(version),
        denial=denial,
    )
