"""Stores what was sent about budgets, in one transaction with the notices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from sageaudit.adapters.history.codec import Item, make_row, read_decimal
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.alert_ledger import notice_actions, unchanged_condition
from sageaudit.adapters.history.dynamo.calls import ConditionFailed, DynamoTable, put_action
from sageaudit.adapters.history.dynamo.items import item_key
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.history.dynamo.table_writes import TableWrites
from sageaudit.adapters.history.stored_items import StoredItems
from sageaudit.domain.budget import SentBudgetMessages, Threshold

WRITES: TableWrites = {"dynamodb:PutItem": (keys.BUDGET_PREFIX,)}
"""What `write_budget_message` writes."""
_SENT_SK = "SENT"


class DynamoBudgetLedger:
    """Implements BudgetLedger. `client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = DynamoTable(client, table_name)
        self._items = StoredItems(item_key)

    def budget_messages(self, month: str, selector: tuple[str, str]) -> SentBudgetMessages:
        """Reads what was sent about a budget in a month (YYYY-MM).

        Raises UnreadableItem, or AwsError.
        """
        item = self._table.get(keys.budget_pk(month, selector), _SENT_SK)
        if item is None:
            return SentBudgetMessages(month, selector)
        return self._items.read(partial(_read_messages, month, selector), item)

    def write_budget_message(
        self, messages: SentBudgetMessages, bodies: Mapping[str, str], now: datetime
    ) -> bool:
        """Writes what was sent, and the newest message's notices, in one transaction.

        Returns False, and writes nothing, if the stored number of messages has changed.
        """
        pk = keys.budget_pk(messages.month, messages.selector)
        item = {PARTITION_KEY: pk, SORT_KEY: _SENT_SK, **_messages_item(messages, now)}
        body_by_key = {(messages.messages, channel): body for channel, body in bodies.items()}
        condition = unchanged_condition("messages", messages.messages - 1)
        try:
            self._table.transact(
                [put_action(item, *condition), *notice_actions(pk, body_by_key, now)]
            )
        except ConditionFailed:
            return False
        return True


def _messages_item(messages: SentBudgetMessages, now: datetime) -> Item:
    kind, name = messages.selector
    return {
        TTL_ATTRIBUTE: keys.kept_until(now),
        "messages": messages.messages,
        "sent": {threshold.value: usd for threshold, usd in messages.sent.items()},
        **({kind: name} if kind else {}),
    }


def _read_messages(month: str, selector: tuple[str, str], item: Item) -> SentBudgetMessages:
    values = {
        "month": month,
        "selector": selector,
        "sent": {Threshold(name): read_decimal(usd) for name, usd in item["sent"].items()},
        "messages": int(item["messages"]),
    }
    return make_row(SentBudgetMessages, values)
