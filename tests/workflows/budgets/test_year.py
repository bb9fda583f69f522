"""A year of budgets in a simulated company: every message is due, true, and sent once."""

import random
import re
from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import pytest

from local.workers import InlineWorkers
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.budget import Threshold
from sageaudit.domain.money import format_usd
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.text.card import MessageCard, Payload
from sageaudit.structs import replace
from sageaudit.workflows.budgets import BudgetDependencies, check_budgets
from tests.fakes.documents import ACCOUNT
from tests.fakes.entries import document as audit_document
from tests.fakes.entries import entry_of
from tests.fakes.memory_budgets import MemoryBudgetLedger
from tools.pages.message_year import SEED, Workload, company

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 365
CHECK_HOURS = (0, 12)
"""The hours of a day's checks. The watch makes 24; these are the first after midnight and one that
sees the day's jobs."""
TEAMS = ("vision", "nlp", "ranking")
AMOUNT = re.compile(r"\$[\d,]+\.\d\d")


class Bill(NamedTuple):
    """A job's bill. It is corrected to `usd` some days after its audit."""

    family: str
    owner: str
    team: str
    ended_at: datetime
    first_usd: Decimal
    usd: Decimal
    corrected_on: date

    def usd_on(self, day: date) -> Decimal:
        """Returns the bill that the newest audit of a day has."""
        return self.usd if day >= self.corrected_on else self.first_usd


class Message(NamedTuple):
    """A message that was written."""

    at: datetime
    budget: str
    month: str
    threshold: Threshold
    spent_text: str


def bills() -> list[Bill]:
    """Returns the bills of a year of a third of the company, in the order of their ends."""
    random_ = random.Random(SEED)
    workloads = [workload for subject in company()[::3] for workload in subject]
    rows = [
        _bill(random_, number, workload, day)
        for number, workload in enumerate(workloads)
        for day in range(number % workload.every_days, DAYS, workload.every_days)
    ]
    return sorted(rows, key=lambda bill: bill.ended_at)


def _bill(random_: random.Random, number: int, workload: Workload, day: int) -> Bill:
    ended_at = JANUARY + timedelta(days=day, hours=3 + number % 8, minutes=number)
    usd = Decimal(round(float(workload.usd) * random_.uniform(0.7, 1.6), 2)).quantize(
        Decimal("0.01")
    )
    corrected = usd * random_.choice((1, 1, 1, 1, 1, Decimal("0.5"), Decimal("1.5")))
    delay = timedelta(days=random_.randint(1, 6))
    return Bill(
        workload.name,
        f"owner-{number % 4}",
        TEAMS[number % 3],
        ended_at,
        usd,
        corrected.quantize(Decimal("0.01")),
        (ended_at + delay).date(),
    )


def budgets_for(rows: list[Bill]) -> tuple[Budget, ...]:
    """Returns budgets that some months exceed, and one that none does: about a month's average."""
    total = sum((bill.usd for bill in rows), Decimal(0)) / 12
    families = defaultdict[str, Decimal](Decimal)
    for bill in rows:
        families[bill.family] += bill.usd
    largest = max(families, key=lambda family: families[family])
    return (
        Budget("all jobs", total.quantize(Decimal(1))),
        Budget("owner-1", (total / 4).quantize(Decimal(1)), owner="owner-1"),
        Budget("team=nlp", (total / 3).quantize(Decimal(1)), tag=("team", "nlp")),
        Budget("largest", (families[largest] / 12).quantize(Decimal(1)), family=largest),
        Budget("the account", 10 * total, account=ACCOUNT),
    )


def selects(budget: Budget, bill: Bill) -> bool:
    """Returns whether the budget is for the job, by this test's own reading."""
    return (
        budget.family in {None, bill.family}
        and budget.owner in {None, bill.owner}
        and budget.tag in {None, ("team", bill.team)}
    )


def spent(budget: Budget, rows: list[Bill], now: datetime, month: str) -> Decimal:
    """Returns the sum of the bills of a month that were audited by then."""
    return sum(
        (
            bill.usd_on(now.date())
            for bill in rows
            if selects(budget, bill) and bill.ended_at < now and f"{bill.ended_at:%Y-%m}" == month
        ),
        Decimal(0),
    )


def record(history: SqliteHistory, bill: Bill, usd: Decimal, version: int) -> None:
    """Records an audit of the job with this bill."""
    audit = audit_document(
        f"{bill.family.replace('/', '-')}-{bill.ended_at:%m%d%H%M}",
        job={
            "family": bill.family,
            "owner": bill.owner,
            "tags": {"team": bill.team},
            "created_at": bill.ended_at - timedelta(hours=2),
            "ended_at": bill.ended_at,
        },
        bill={"total_usd": usd},
        findings=[],
    )
    entry = entry_of(audit)
    later = entry.last_modified_at + timedelta(seconds=version)
    history.record(replace(entry, last_modified_at=later))


def play(rows: list[Bill], budgets: tuple[Budget, ...]) -> Iterator[Message]:
    """Yields the messages of the year, while jobs end and bills are corrected."""
    ledger = MemoryBudgetLedger()
    with SqliteHistory() as history:
        deps = BudgetDependencies(
            history, ledger, replace(Policy(), budgets=budgets), {"sns": _write_lines}
        )
        waiting, corrections = iter(rows), defaultdict[date, list[Bill]](list)
        bill = next(waiting, None)
        for hour in range(0, 24 * (DAYS + 1), 12):
            now = JANUARY + timedelta(hours=hour, minutes=9)
            while bill is not None and bill.ended_at < now:
                record(history, bill, bill.first_usd, 1)
                if bill.usd != bill.first_usd:
                    corrections[bill.corrected_on].append(bill)
                bill = next(waiting, None)
            for corrected in corrections.pop(now.date(), ()):
                record(history, corrected, corrected.usd, 2)
            yield from _check(deps, ledger, now)


def _write_lines(card: MessageCard, owner_ids: object) -> Payload:
    del owner_ids
    return {"lines": [card.headline, *(line.text for line in card.lines)]}


def _check(
    deps: BudgetDependencies, ledger: MemoryBudgetLedger, now: datetime
) -> Iterator[Message]:
    written = len(ledger.bodies)
    with InlineWorkers() as workers:
        for check in check_budgets(deps, workers, installed_at=JANUARY, now=now):
            assert check.error is None
            if check.threshold is not None:
                body = ledger.bodies[written][1]
                written += 1
                yield Message(now, check.budget, check.month, check.threshold, body)
    assert written == len(ledger.bodies)


@pytest.fixture(scope="module")
def year() -> tuple[list[Bill], tuple[Budget, ...], list[Message]]:
    """The bills, the budgets and the messages of the year."""
    rows = bills()
    budgets = budgets_for(rows)
    return rows, budgets, [*play(rows, budgets)]


Year = tuple[list[Bill], tuple[Budget, ...], list[Message]]


def test_a_budget_has_at_most_three_messages_a_month_and_none_twice(year: Year) -> None:
    """About a thousand jobs, a third of whose bills are corrected later."""
    rows, budgets, messages = year
    assert len(rows) > 900
    by_month = defaultdict[tuple[str, str], list[Threshold]](list)
    for message in messages:
        by_month[message.budget, message.month].append(message.threshold)
    assert {threshold for sent in by_month.values() for threshold in sent} == set(Threshold)
    for sent in by_month.values():
        assert len(sent) == len({*sent})
        assert Threshold.EXCEEDED not in sent[:-1]
    assert len(by_month) <= 12 * len(budgets)
    assert not [message for message in messages if message.budget == "the account"]


def test_each_message_has_the_sum_of_the_bills_and_its_threshold_is_reached(year: Year) -> None:
    """By this test's own addition."""
    rows, budgets, messages = year
    by_name = {budget.name: budget for budget in budgets}
    for message in messages:
        budget = by_name[message.budget]
        usd = spent(budget, rows, message.at, message.month)
        assert f"{format_usd(usd)} of {format_usd(budget.usd_per_month)}" in message.spent_text
        if message.threshold is Threshold.EXCEEDED:
            assert usd >= budget.usd_per_month
        elif message.threshold is Threshold.NEAR:
            assert Decimal("0.8") * budget.usd_per_month <= usd < budget.usd_per_month
        else:
            assert usd < budget.usd_per_month
            assert message.at.day > 5


def test_each_passed_month_has_its_message(year: Year) -> None:
    """Whatever was spent when a month is checked for the last time."""
    rows, budgets, messages = year
    sent = {
        (message.budget, message.month)
        for message in messages
        if message.threshold is Threshold.EXCEEDED
    }
    exceeded = set()
    for month in range(1, 13):
        days = monthrange(2026, month)[1]
        last_check = datetime(2026, month, days, 12, 9, tzinfo=UTC) + timedelta(days=1)
        for budget in budgets:
            label = f"2026-{month:02d}"
            if spent(budget, rows, last_check, label) >= budget.usd_per_month:
                exceeded.add((budget.name, label))
    assert exceeded
    assert exceeded <= sent
