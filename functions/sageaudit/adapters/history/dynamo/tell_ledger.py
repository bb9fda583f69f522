"""What was told of families and runs, in the history's table."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.calls import ConditionFailed, Dynamo, put_action
from sageaudit.adapters.history.dynamo.table import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.history.dynamo.told_items import (
    day_attributes,
    read_day,
    read_run,
    run_attributes,
)
from sageaudit.adapters.history.moments import epoch_s
from sageaudit.domain.alert.family_day import FamilyDay
from sageaudit.domain.alert.run_told import RunTold

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

    def run_told(self, run: str) -> RunTold:
        """What was told of a run. Raises Malformed for an item that cannot be read."""
        item = self._table.get(keys.news_pk(run), _NEWS_SK)
        return RunTold() if item is None else read_run(item)

    def write(
        self, family: str, day: date, changed: FamilyDay, told: tuple[str, RunTold] | None = None
    ) -> bool:
        """Writes the day, with what was told of a run in one transaction; False if either moved on.

        What was told of a run has no expiry, since new rules may judge a job again at any time.
        """
        expires_at = epoch_s(datetime.combine(day, time(), UTC) + timedelta(days=TOLD_DAYS))
        item = {
            PARTITION_KEY: keys.family_day_pk(family),
            SORT_KEY: day.isoformat(),
            TTL_ATTRIBUTE: expires_at,
            **day_attributes(changed),
        }
        condition, values = _unchanged(changed.revision)
        try:
            if told is None:
                self._table.put(item, condition=condition, values=values, names={})
            else:
                of_run = put_action(_run_item(*told), *_unchanged(told[1].revision))
                self._table.transact([put_action(item, condition, values), of_run])
        except ConditionFailed:
            return False
        return True

    def write_run(self, run: str, told: RunTold) -> bool:
        """Writes what was told of a run; False if it moved on."""
        condition, values = _unchanged(told.revision)
        try:
            self._table.put(_run_item(run, told), condition=condition, values=values, names={})
        except ConditionFailed:
            return False
        return True


def _run_item(run: str, told: RunTold) -> Item:
    return {PARTITION_KEY: keys.news_pk(run), SORT_KEY: _NEWS_SK, **run_attributes(told)}


def _unchanged(revision: int) -> tuple[str, Item]:
    """The condition that an item has the revision before this one; the oldest items have none."""
    seen = revision - 1
    if seen:
        return "revision = :seen", {":seen": seen}
    return f"{_ABSENT} OR attribute_not_exists(revision)", {}
