"""What people decided about advices, in the history's table: one partition, which is small.

So whoever may decide needs one permission that is limited to this partition's key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sageaudit.adapters.history.codec import from_item, to_item
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.calls import Dynamo
from sageaudit.adapters.history.dynamo.items import own_item
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY
from sageaudit.domain.advice.advice import Decision

PERMISSIONS = ("dynamodb:Query",)
"""What `decisions` calls, on the table alone."""
DECIDE_PERMISSIONS = ("dynamodb:PutItem",)
"""What `decide` calls, for items of the partition `ADVICE` alone."""


class DynamoDecisions:
    """Implements Decisions. `client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = Dynamo(client, table_name)

    def decisions(self) -> Sequence[Decision]:
        """All of them, by a consistent read. Raises AwsError, or BadHistory."""
        pages = self._table.pages(
            KeyConditionExpression="#p = :p",
            ExpressionAttributeNames={"#p": PARTITION_KEY},
            ExpressionAttributeValues={":p": keys.ADVICE_PK},
            ConsistentRead=True,
        )
        found = []
        for item in (item for page in pages for item in page):
            with own_item(item):
                found.append(from_item(Decision, item))
        return found

    def decide(self, decision: Decision) -> None:
        """Puts an item. Raises AwsError."""
        place = {PARTITION_KEY: keys.ADVICE_PK, SORT_KEY: keys.decision_sk(decision)}
        self._table.put({**place, **to_item(decision)})
