"""Budgets in any order of jobs, corrections and watches, some of which are killed at any point."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from local.functions import ProcessKilled
from local.workers import InlineWorkers
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.budget import SentBudgetMessages, Threshold
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.text.card import MessageCard, Payload, parse_notice
from sageaudit.structs import replace
from sageaudit.workflows.budgets import BudgetDependencies, check_budgets
from tests.fakes.calls import at_step, die
from tests.fakes.entries import document, entry_of
from tests.fakes.memory_budgets import MemoryBudgetLedger

NOVEMBER = datetime(2026, 11, 1, 9, tzinfo=UTC)
NOVEMBER_ENDS, LAST_CHECK = (datetime(2026, 11, 30, 23, 59, tzinfo=UTC), timedelta(hours=23))
LIMIT_USD = 100
BUDGETS = (Budget("all jobs", Decimal(LIMIT_USD)), Budget("ana", Decimal(LIMIT_USD), owner="ana"))
CHANNELS = ("ml", "sns")
MAX_MESSAGES = 3


class Audit(NamedTuple):
    """An audit of a job. A second one of the same job corrects its bill. Odd jobs are Ana's."""

    job: int
    usd: int


class Watch(NamedTuple):
    """A check of the budgets. At a step, it is killed, or a second watch checks all budgets."""

    step: int
    is_killed: bool


EVENTS = st.one_of(
    st.builds(Audit, st.integers(0, 7), st.integers(0, 120)),
    st.builds(Watch, st.integers(0, 7), st.booleans()),
    st.timedeltas(timedelta(minutes=20), timedelta(days=6)),
)
"""What may happen in a month; a time is how long nothing happens."""


class SteppedLedger:
    """Implements BudgetLedger. Calls `step` before and after each read and each write."""

    def __init__(self) -> None:
        self.stored = MemoryBudgetLedger()
        self.step: Callable[[], None] = lambda: None

    def budget_messages(self, month: str, selector: tuple[str, str]) -> SentBudgetMessages:
        """Reads between two steps."""
        self.step()
        past = self.stored.budget_messages(month, selector)
        self.step()
        return past

    def write_budget_message(
        self, messages: SentBudgetMessages, bodies: Mapping[str, str], now: datetime
    ) -> bool:
        """Writes between two steps."""
        self.step()
        is_written = self.stored.write_budget_message(messages, bodies, now)
        self.step()
        return is_written


class Month:
    """November, in which jobs end, bills are corrected, and watches check the budgets."""

    def __init__(self, history: SqliteHistory) -> None:
        self.history, self.ledger, self.now = history, SteppedLedger(), NOVEMBER
        self.ended_at: dict[int, datetime] = {}
        self.bills: dict[int, int] = {}
        self.versions = Counter[int]()
        policy = replace(Policy(), budgets=BUDGETS)
        policy = replace(policy, routes=replace(policy.routes, default=CHANNELS))
        writers = dict.fromkeys(CHANNELS, _threshold_payload)
        self.deps = BudgetDependencies(history, self.ledger, policy, writers)

    def happen(self, event: Audit | Watch | timedelta) -> None:
        """Makes one event happen now. Time stops at the end of November."""
        if isinstance(event, Audit):
            self._audit(event)
        elif isinstance(event, Watch):
            self.ledger.step = at_step(event.step, die if event.is_killed else self._second_watch)
            with suppress(ProcessKilled):
                self.check()
            self.ledger.step = lambda: None
        else:
            self.now = min(self.now + event, NOVEMBER_ENDS)

    def check(self) -> None:
        """Checks the budgets once."""
        with InlineWorkers() as workers:
            for check in check_budgets(self.deps, workers, installed_at=NOVEMBER, now=self.now):
                assert check.error is None

    def sent(self) -> dict[str, list[str]]:
        """Returns the thresholds of the messages in each channel, by budget and channel."""
        sent = defaultdict[str, list[str]](list)
        for channel, body in self.ledger.stored.bodies:
            payload = parse_notice(body).payload
            sent[f"{payload['budget']} {channel}"].append(payload["threshold"])
        return sent

    def spent(self, budget: Budget) -> int:
        """Returns the sum of the newest bills, by this test's own addition."""
        return sum(usd for job, usd in self.bills.items() if budget.owner is None or job % 2)

    def _audit(self, audit: Audit) -> None:
        ended_at = self.ended_at.setdefault(audit.job, self.now)
        self.bills[audit.job] = audit.usd
        self.versions[audit.job] += 1
        created_at = ended_at - timedelta(hours=2)
        owner = "ana" if audit.job % 2 else "bo"
        entry = entry_of(
            document(
                f"job-{audit.job}",
                job={"created_at": created_at, "ended_at": ended_at, "owner": owner},
                bill={"total_usd": Decimal(audit.usd)},
                findings=[],
            )
        )
        modified_at = ended_at + timedelta(seconds=self.versions[audit.job])
        self.history.record(replace(entry, last_modified_at=modified_at))

    def _second_watch(self) -> None:
        self.ledger.step = lambda: None
        self.check()


def _threshold_payload(card: MessageCard, owner_ids: object) -> Payload:
    del owner_ids
    return {name: card.attributes[name]["value"] for name in ("budget", "threshold")}


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, min_size=10, max_size=40))
def test_no_message_is_repeated_or_lost(events: list[Audit | Watch | timedelta]) -> None:
    """Each channel gets at most three messages about a budget, the one about 100% last.

    The last check of the month's spend sends what is still due.
    """
    with SqliteHistory() as history:
        month = Month(history)
        for event in events:
            month.happen(event)
        month.now = NOVEMBER_ENDS + LAST_CHECK
        month.check()
        sent = month.sent()
        for budget in BUDGETS:
            [thresholds, others] = (sent[f"{budget.name} {channel}"] for channel in CHANNELS)
            assert thresholds == others
            assert len(thresholds) == len({*thresholds}) <= MAX_MESSAGES
            assert Threshold.EXCEEDED not in thresholds[:-1]
            spent = month.spent(budget)
            if spent >= LIMIT_USD:
                assert thresholds[-1] == Threshold.EXCEEDED
            elif 100 * spent >= 80 * LIMIT_USD:
                assert {Threshold.NEAR, Threshold.EXCEEDED} & {*thresholds}
