"""What was told of families and jobs, in the history's table."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sageaudit.adapters.dynamo import keys
from sageaudit.adapters.dynamo.calls import ConditionFailed, Dynamo
from sageaudit.adapters.dynamo.table import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.history.moments import epoch_s
from sageaudit.ports import LastNotice

PERMISSIONS = ("dynamodb:GetItem", "dynamodb:PutItem")

TOLD_DAYS = 45
"""How long a family's day is kept: longer than any redelivery of its audits."""
_NEWS_SK = "NEWS"
_ABSENT = f"attribute_not_exists({PARTITION_KEY})"


class DynamoTellLedger:
    """Implements TellLedger. `client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = Dynamo(client, table_name)

    def claim_family_day(self, family: str, day: date, audit: str) -> bool:
        """True if the family's message of the day is about this audit; repeatable."""
        item = {
            PARTITION_KEY: keys.family_day_pk(family),
            SORT_KEY: day.isoformat(),
            "audit": audit,
            TTL_ATTRIBUTE: epoch_s(datetime.combine(day, time(), UTC) + timedelta(days=TOLD_DAYS)),
        }
        condition = f"{_ABSENT} OR #audit = :audit"
        try:
            self._table.put(
                item, condition=condition, values={":audit": audit}, names={"#audit": "audit"}
            )
        except ConditionFailed:
            return False
        return True

    def last_notice(self, job: str) -> LastNotice | None:
        """The last notice of this run of a job; None before the first."""
        item = self._table.get(keys.news_pk(job), _NEWS_SK)
        return None if item is None else LastNotice(int(item["version"]), item["news"])

    def remember_notice(self, job: str, notice: LastNotice) -> None:
        """Stores the notice without expiry, since new rules may judge a job again at any time.

        Changes nothing if a newer version's notice is stored.
        """
        item = {
            PARTITION_KEY: keys.news_pk(job),
            SORT_KEY: _NEWS_SK,
            "version": notice.version,
            "news": notice.news,
        }
        with suppress(ConditionFailed):  # a newer version was sent
            self._table.put(
                item,
                condition=f"{_ABSENT} OR version <= :version",
                values={":version": notice.version},
                names={},
            )
