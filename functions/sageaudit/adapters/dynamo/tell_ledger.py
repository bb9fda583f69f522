"""What was told of families and runs, in the history's table."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sageaudit.adapters.dynamo import keys
from sageaudit.adapters.dynamo.calls import ConditionFailed, Dynamo, put_action
from sageaudit.adapters.dynamo.table import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.dynamo.told_items import (
    day_attributes,
    notice_attributes,
    read_day,
    read_notice,
)
from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.moments import epoch_s
from sageaudit.domain.telling.family_day import FamilyDay
from sageaudit.domain.telling.news import Said

PERMISSIONS = ("dynamodb:GetItem", "dynamodb:PutItem")

TOLD_DAYS = 45
"""How long a family's day is kept: longer than any redelivery of its audits."""
_NEWS_SK = "NEWS"
_ABSENT = f"attribute_not_exists({PARTITION_KEY})"


class DynamoTellLedger:
    """Implements TellLedger. `client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = Dynamo(client, table_name)

    def family_day(self, family: str, day: date) -> FamilyDay:
        """What the family was told on a day. Raises Malformed for an item that cannot be read."""
        item = self._table.get(keys.family_day_pk(family), day.isoformat())
        return FamilyDay() if item is None else read_day(item)

    def last_notice(self, run: str) -> Said | None:
        """What was told last of a run; None before the first. Raises Malformed."""
        item = self._table.get(keys.news_pk(run), _NEWS_SK)
        return None if item is None else read_notice(item)

    def write(
        self, family: str, day: date, changed: FamilyDay, notice: tuple[str, Said] | None = None
    ) -> bool:
        """Writes the day, with a run's last notice in one transaction; False if either moved on.

        A notice has no expiry, since new rules may judge a job again at any time.
        """
        seen = changed.revision - 1
        values = {":seen": seen} if seen else {}
        condition = "revision = :seen" if seen else f"{_ABSENT} OR attribute_not_exists(revision)"
        expires_at = epoch_s(datetime.combine(day, time(), UTC) + timedelta(days=TOLD_DAYS))
        item = {
            PARTITION_KEY: keys.family_day_pk(family),
            SORT_KEY: day.isoformat(),
            TTL_ATTRIBUTE: expires_at,
            **day_attributes(changed),
        }
        try:
            if notice is None:
                self._table.put(item, condition=condition, values=values, names={})
            else:
                of_day = put_action(item, condition, values)
                self._table.transact([of_day, _notice_action(*notice)])
        except ConditionFailed:
            return False
        return True


def _notice_action(run: str, said: Said) -> Item:
    item = {PARTITION_KEY: keys.news_pk(run), SORT_KEY: _NEWS_SK, **notice_attributes(said)}
    return put_action(item, f"{_ABSENT} OR version <= :version", {":version": said.version})
