"""Which notices were sent, in the history's table. A lease must outlast its Lambda's timeout."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sageaudit.adapters.dynamo import keys
from sageaudit.adapters.dynamo.calls import ConditionFailed, Dynamo
from sageaudit.adapters.dynamo.leases import LEDGER_DAYS, Lease, State, claim_of, released
from sageaudit.adapters.dynamo.table import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.files.exact_json import whole_text
from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.moments import epoch_s, moment_text
from sageaudit.domain.audit.record import Claim

PERMISSIONS = (
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
)

_NOTICE_SK = "NOTICE"
_LONGEST_REASON = 500
_ABSENT = f"attribute_not_exists({PARTITION_KEY})"
_UNTOUCHED = "#state = :state AND tries = :tries AND lease_until = :lease_until"
_STATE = {"#state": "state"}


class DynamoSendLedger:
    """Implements SendLedger. `client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = Dynamo(client, table_name)

    def claim_send(self, notice_id: str, now: datetime, lease_s: int) -> Claim:
        """Takes the lease to send a notice for `lease_s` seconds, if the result allows it."""
        try:
            self._take_lease(notice_id, None, now, lease_s)
        except ConditionFailed as failed:
            lease = _read_lease(failed.item)
        else:
            return Claim.FIRST
        claim = claim_of(lease, epoch_s(now))
        if claim is Claim.FIRST:
            return Claim.BUSY  # released between our write and its response
        if claim is not Claim.REPEAT:
            return claim
        try:
            self._take_lease(notice_id, lease, now, lease_s)
        except ConditionFailed:
            return Claim.BUSY  # another delivery took the expired lease first
        return claim

    def mark_sent(self, notice_id: str, now: datetime) -> None:
        """Records that the notice was posted, so that it is never sent again."""
        self._table.update(
            keys.notice_pk(notice_id),
            _NOTICE_SK,
            f"SET #state = :state, sent_at = :now, {TTL_ATTRIBUTE} = :expires",
            values={
                ":state": State.SENT.value,
                ":now": moment_text(now),
                ":expires": _expiry(now),
            },
            names=_STATE,
        )

    def mark_failed(self, notice_id: str, now: datetime, reason: str) -> None:
        """Records a permanent failure: the notice is not tried again. No change if it was sent."""
        with suppress(ConditionFailed):
            self._table.update(
                keys.notice_pk(notice_id),
                _NOTICE_SK,
                "SET #state = :state, failed_at = :now, reason = :reason"
                f", {TTL_ATTRIBUTE} = :expires",
                condition="attribute_not_exists(#state) OR #state <> :sent",
                values={
                    ":state": State.FAILED.value,
                    ":sent": State.SENT.value,
                    ":now": moment_text(now),
                    ":reason": whole_text(reason)[:_LONGEST_REASON],
                    ":expires": _expiry(now),
                },
                names=_STATE,
            )

    def release(self, notice_id: str) -> None:
        """Restores the lease as it was before the claim, for a send that posted nothing."""
        pk = keys.notice_pk(notice_id)
        lease = _read_lease(self._table.get(pk, _NOTICE_SK))
        before = released(lease)
        if lease is None or before == lease:
            return
        with suppress(ConditionFailed):  # another delivery has changed the lease since
            if before is None:
                self._table.delete(
                    pk, _NOTICE_SK, condition=_UNTOUCHED, values=_untouched(lease), names=_STATE
                )
            else:
                self._table.update(
                    pk,
                    _NOTICE_SK,
                    "SET tries = :tries_before, lease_until = :lease_before",
                    condition=_UNTOUCHED,
                    values=_untouched(lease)
                    | {":tries_before": before.tries, ":lease_before": before.lease_until_s},
                    names=_STATE,
                )

    def _take_lease(self, notice_id: str, lease: Lease | None, now: datetime, lease_s: int) -> None:
        """Replaces the lease that was read, or creates it. Raises ConditionFailed if it changed."""
        item = {
            PARTITION_KEY: keys.notice_pk(notice_id),
            SORT_KEY: _NOTICE_SK,
            "state": State.SENDING.value,
            "tries": 1 if lease is None else lease.tries + 1,
            "lease_until": epoch_s(now) + lease_s,
            TTL_ATTRIBUTE: _expiry(now),
        }
        if lease is None:
            self._table.put(item, condition=_ABSENT, values={}, names={})
        else:
            self._table.put(item, condition=_UNTOUCHED, values=_untouched(lease), names=_STATE)


def _expiry(moment: datetime) -> int:
    return epoch_s(moment + timedelta(days=LEDGER_DAYS))


def _untouched(lease: Lease) -> Item:
    return {
        ":state": lease.state.value,
        ":tries": lease.tries,
        ":lease_until": lease.lease_until_s,
    }


def _read_lease(item: Item | None) -> Lease | None:
    if item is None:
        return None
    return Lease(State(item["state"]), int(item.get("tries", 1)), int(item.get("lease_until", 0)))
