"""Stores which notices were sent, and how many messages a channel got in a clock hour.

A lease must be longer than its Lambda function's timeout.
"""

from __future__ import annotations

import enum
import uuid
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct

from sageaudit.adapters.files.exact_json import replace_surrogates
from sageaudit.adapters.history.codec import Item, epoch_s, moment_text, read_decimal
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.calls import ConditionFailed, DynamoTable
from sageaudit.adapters.history.dynamo.items import item_key
from sageaudit.adapters.history.dynamo.keys import (
    PARTITION_KEY,
    SORT_KEY,
    TTL_ATTRIBUTE,
)
from sageaudit.adapters.history.dynamo.table_writes import TableWrites
from sageaudit.adapters.history.stored_items import StoredItems
from sageaudit.domain.alert.alert import ChannelHour
from sageaudit.domain.audit.record import SendClaim
from sageaudit.ports import Circuit

READ_PERMISSIONS = ("dynamodb:GetItem",)
WRITES: TableWrites = {
    "dynamodb:PutItem": (keys.CHANNEL_PREFIX, keys.DELIVERY_PREFIX),
    "dynamodb:UpdateItem": (keys.DELIVERY_PREFIX,),
}
PERMISSIONS = (*READ_PERMISSIONS, *WRITES)

MAX_TRIES = 2
"""One try, and one marked repeat if the first try may have posted the notice."""
_STORED_HOURS = StoredItems(item_key)
_DELIVERY_SK = "DELIVERY"
_CIRCUIT_SK = "CIRCUIT"
_MAX_REASON_LENGTH = 500
_IS_ABSENT = f"attribute_not_exists({PARTITION_KEY})"
_STATE_NAME = {"#state": "state"}
_IS_NOT_SENT = "(attribute_not_exists(#state) OR #state <> :sent)"
_SET_REASON = "failed_at = :at, reason = :why"
_LEASE_NAMES = {"#0": "state", "#1": "tries", "#2": "lease_until", "#3": "holder"}
_IS_FIRST_TRY = "(attribute_not_exists(tries) OR tries < :repeat)"


class NoticeState(enum.Enum):
    """A notice's state. SENDING after the lease's end means the same as UNKNOWN."""

    SENDING = "SENDING"
    SENT = "SENT"
    FAILED = "FAILED"
    """No attempt has posted the notice."""
    UNKNOWN = "UNKNOWN"
    """An attempt may have posted the notice, and no attempt is running."""


class Lease(Struct, frozen=True):
    """A notice's state, its number of attempts, and its lease's end in epoch seconds.

    `tries` becomes 2 when a claim follows an attempt that may have posted the notice.
    """

    state: NoticeState
    tries: int
    lease_until_s: int


NO_LEASE = Lease(NoticeState.UNKNOWN, 1, 0)
"""Replaces an unreadable item, since its notice may have been posted."""


def decide_claim(lease: Lease | None, now_s: int) -> SendClaim:
    """Returns whether the caller may send a notice. `lease` is None for a new notice.

    After FIRST or REPEAT, a new lease must be stored before the notice is sent.
    """
    if lease is None:
        return SendClaim.FIRST
    match lease.state:
        case NoticeState.SENT:
            return SendClaim.DONE
        case NoticeState.UNKNOWN:
            return SendClaim.REPEAT
        case NoticeState.FAILED:
            return SendClaim.FIRST if lease.tries < MAX_TRIES else SendClaim.REPEAT
        case NoticeState.SENDING:
            if lease.lease_until_s > now_s:
                return SendClaim.BUSY
            return SendClaim.REPEAT if lease.tries < MAX_TRIES else SendClaim.EXHAUSTED


def lease_for(claim: SendClaim, until_s: int) -> Lease:
    """Returns the lease of the delivery that may send now."""
    return Lease(NoticeState.SENDING, MAX_TRIES if claim is SendClaim.REPEAT else 1, until_s)


class DynamoSendLedger:
    """Implements SendLedger. `client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = DynamoTable(client, table_name)

    def claim_send(self, notice_id: str, now: datetime, lease_s: int) -> SendClaim:
        """Tries to take a notice's lease for `lease_s` seconds, and returns the outcome.

        The caller may send the notice only after FIRST or REPEAT.
        """
        holder, until_s = uuid.uuid4().hex, epoch_s(now) + lease_s
        try:
            self._take(notice_id, None, lease_for(SendClaim.FIRST, until_s), now, holder)
        except ConditionFailed as failed:
            item = failed.item
        else:
            return SendClaim.FIRST
        if item is None:
            return SendClaim.BUSY  # the item expired between our write and its response
        if item.get("holder") == holder:
            return (
                SendClaim.FIRST
            )  # our own write, whose answer was lost and which the SDK repeated
        claim = decide_claim(_read_lease(item), epoch_s(now))
        if claim not in (SendClaim.FIRST, SendClaim.REPEAT):
            return claim
        try:
            self._take(notice_id, item, lease_for(claim, until_s), now, holder)
        except ConditionFailed as failed:
            is_own_write = failed.item is not None and failed.item.get("holder") == holder
            return (
                claim if is_own_write else SendClaim.BUSY
            )  # otherwise another delivery was faster
        return claim

    def mark_sent(self, notice_id: str, now: datetime) -> None:
        """Records that the notice was posted, so that it is never sent again."""
        self._mark(notice_id, NoticeState.SENT, "sent_at = :at", {":at": moment_text(now)}, now)

    def mark_failed(self, notice_id: str, now: datetime, reason: str) -> None:
        """Records that the first attempt posted nothing.

        It changes nothing if the notice was sent or claimed again.
        """
        values = {
            ":sent": NoticeState.SENT.value,
            ":repeat": MAX_TRIES,
            **_reason_values(now, reason),
        }
        with suppress(ConditionFailed):
            self._mark(
                notice_id,
                NoticeState.FAILED,
                _SET_REASON,
                values,
                now,
                f"{_IS_NOT_SENT} AND {_IS_FIRST_TRY}",
            )

    def mark_unknown(self, notice_id: str, now: datetime, reason: str) -> None:
        """Records that an attempt may have posted the notice.

        It changes nothing if the notice was sent.
        """
        values = {":sent": NoticeState.SENT.value, **_reason_values(now, reason)}
        with suppress(ConditionFailed):
            self._mark(notice_id, NoticeState.UNKNOWN, _SET_REASON, values, now, _IS_NOT_SENT)

    def channel_hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """Returns the messages to a channel in a clock hour. Raises UnreadableItem."""
        return read_channel_hour(self._table, channel, began_at)

    def circuit(self, channel: str) -> Circuit:
        """Returns the channel's circuit. An absent or unreadable circuit is new."""
        item = self._table.get(keys.channel_pk(channel), _CIRCUIT_SK) or {}
        return Circuit(_int_or_zero(item, "failures"), _int_or_zero(item, "open_until"))

    def replace_circuit(
        self, channel: str, expected_circuit: Circuit, new_circuit: Circuit, now: datetime
    ) -> bool:
        """Stores `new_circuit`. Returns False if `expected_circuit` is no longer the stored one."""
        item = {
            PARTITION_KEY: keys.channel_pk(channel),
            SORT_KEY: _CIRCUIT_SK,
            "failures": new_circuit.failures,
            "open_until": new_circuit.open_until,
            TTL_ATTRIBUTE: keys.kept_until(now),
        }
        condition = "failures = :failures AND open_until = :open_until"
        if expected_circuit == Circuit():
            condition = f"{_IS_ABSENT} OR ({condition})"
        values = {
            ":failures": expected_circuit.failures,
            ":open_until": expected_circuit.open_until,
        }
        try:
            self._table.put(item, condition=condition, values=values, names={})
        except ConditionFailed:
            return False
        return True

    def _mark(
        self,
        notice_id: str,
        state: NoticeState,
        change: str,
        values: Item,
        now: datetime,
        condition: str | None = None,
    ) -> None:
        self._table.update(
            keys.delivery_pk(notice_id),
            _DELIVERY_SK,
            f"SET #state = :state, lease_until = :none, {change}, {TTL_ATTRIBUTE} = :expires",
            condition=condition,
            values={":state": state.value, ":none": 0, ":expires": keys.kept_until(now), **values},
            names=_STATE_NAME,
        )

    def _take(
        self, notice_id: str, read_item: Item | None, lease: Lease, now: datetime, holder: str
    ) -> None:
        """Replaces `read_item`, or creates the item. Raises ConditionFailed if the item has
        changed.
        """
        item = {
            PARTITION_KEY: keys.delivery_pk(notice_id),
            SORT_KEY: _DELIVERY_SK,
            "state": lease.state.value,
            "tries": lease.tries,
            "lease_until": lease.lease_until_s,
            "holder": holder,
            TTL_ATTRIBUTE: keys.kept_until(now),
        }
        if read_item is None:
            self._table.put(item, condition=_IS_ABSENT, values={}, names={})
        else:
            self._table.put(item, **_unchanged_lease_condition(read_item))


def _reason_values(now: datetime, reason: str) -> Item:
    return {":at": moment_text(now), ":why": replace_surrogates(reason)[:_MAX_REASON_LENGTH]}


def _unchanged_lease_condition(item: Item) -> dict[str, Any]:
    # Requires that the item still has the lease that was read, even a damaged one.
    values = {
        f":{placeholder[1]}": item[name]
        for placeholder, name in _LEASE_NAMES.items()
        if name in item
    }
    conditions = (
        f"{placeholder} = :{placeholder[1]}"
        if name in item
        else f"attribute_not_exists({placeholder})"
        for placeholder, name in _LEASE_NAMES.items()
    )
    return {"condition": " AND ".join(conditions), "values": values, "names": _LEASE_NAMES}


def _read_lease(item: Item) -> Lease:
    try:
        return Lease(
            NoticeState(item["state"]), int(item.get("tries", 1)), int(item.get("lease_until", 0))
        )
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return NO_LEASE


def _int_or_zero(item: Item, name: str) -> int:
    try:
        return int(item.get(name, 0))
    except (ArithmeticError, TypeError, ValueError):
        return 0


def read_channel_hour(table: DynamoTable, channel: str, began_at: datetime) -> ChannelHour:
    """Reads the stored hour of a channel. Raises UnreadableItem, or AwsError."""
    item = table.get(keys.channel_pk(channel), keys.hour_sk(began_at))
    if item is None:
        return ChannelHour(channel, began_at)
    return _STORED_HOURS.read(partial(_read_channel_hour, channel, began_at), item)


def _read_channel_hour(channel: str, began_at: datetime, item: Item) -> ChannelHour:
    largest_messages = tuple(
        (str(notice["headline"]), read_decimal(notice["usd"]) if "usd" in notice else None)
        for notice in item["largest_messages"]
    )
    return ChannelHour(channel, began_at, int(item["sent"]), int(item["held"]), largest_messages)


def channel_hour_item(hour: ChannelHour, now: datetime) -> Item:
    """Returns the item of a channel's hour."""
    return {
        PARTITION_KEY: keys.channel_pk(hour.channel),
        SORT_KEY: keys.hour_sk(hour.began_at),
        TTL_ATTRIBUTE: keys.kept_until(now),
        "revision": hour.count,
        "sent": hour.sent,
        "held": hour.held,
        "largest_messages": [
            {"headline": headline, **({} if usd is None else {"usd": usd})}
            for headline, usd in hour.largest_messages
        ],
    }
