"""An in-memory version of the ledger of budgets."""

from collections.abc import Mapping
from datetime import datetime

from sageaudit.domain.budget import SentBudgetMessages


class MemoryBudgetLedger:
    """Implements BudgetLedger. `bodies`: of all notices, in the order of writing."""

    def __init__(self) -> None:
        self.messages: dict[tuple[str, tuple[str, str]], SentBudgetMessages] = {}
        self.bodies: list[tuple[str, str]] = []

    def budget_messages(self, month: str, selector: tuple[str, str]) -> SentBudgetMessages:
        """Returns what was sent about a budget in a month."""
        return self.messages.get((month, selector), SentBudgetMessages(month, selector))

    def write_budget_message(
        self, messages: SentBudgetMessages, bodies: Mapping[str, str], now: datetime
    ) -> bool:
        """Writes all, or nothing if another check has written since; returns whether it did."""
        del now
        stored = self.budget_messages(messages.month, messages.selector)
        if stored.messages != messages.messages - 1:
            return False
        self.messages[messages.month, messages.selector] = messages
        self.bodies += bodies.items()
        return True
