"""The check of budgets: what it reads, what it writes, and what fails alone."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local.workers import InlineWorkers
from sageaudit.adapters.channels.services import channel_writers
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.sums import Scope, SumRow
from sageaudit.domain.budget import CoveredDays, SentBudgetMessages, Threshold
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig
from sageaudit.errors import AwsError, MalformedData, Throttled
from sageaudit.output.text.card import Writer, parse_notice
from sageaudit.queries import budgets as queries
from sageaudit.structs import replace
from sageaudit.workflows import budgets as workflow
from sageaudit.workflows.budgets import BudgetCheck, BudgetDependencies, check_budgets
from tests.fakes.budgets import spoil_sums
from tests.fakes.documents import ACCOUNT
from tests.fakes.entries import entry, record_run
from tests.fakes.memory_budgets import MemoryBudgetLedger

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
ALL = Budget("all jobs", Decimal(100))
ANA = Budget("ana", Decimal(50), owner="ana", channels=("ml",))
CHANNELS = {"sns": ChannelConfig("sns"), "ml": ChannelConfig("slack", "ml/slack")}


@pytest.fixture
def history() -> Iterator[SqliteHistory]:
    """A history without audits."""
    with SqliteHistory() as file_history:
        yield file_history


class Budgets:
    """Checks the budgets of a history; `ledger` keeps what was sent."""

    def __init__(self, history: SqliteHistory, *budgets: Budget) -> None:
        self.history = history
        self.ledger = MemoryBudgetLedger()
        self.policy = replace(Policy(), budgets=budgets, channels=CHANNELS)

    def check(
        self, now: datetime = NOON, installed_at: datetime | None = LONG_AGO
    ) -> list[BudgetCheck]:
        """Returns the results of one check."""
        writers: Mapping[str, Writer] = channel_writers(self.policy.channels)
        deps = BudgetDependencies(self.history, self.ledger, self.policy, writers)
        with InlineWorkers() as workers:
            return [*check_budgets(deps, workers, installed_at=installed_at, now=now)]

    def sent(self, now: datetime = NOON, **options: Any) -> list[tuple[str, Threshold]]:
        """Returns the budgets and thresholds of the messages of one check."""
        checks = self.check(now, **options)
        return [(check.budget, check.threshold) for check in checks if check.threshold]

    def subjects(self) -> list[str]:
        """Returns the subjects of all e-mails, in the order of writing."""
        bodies = [body for channel, body in self.ledger.bodies if channel == "sns"]
        return [json.loads(body)["payload"]["subject"] for body in bodies]


def spend(history: SqliteHistory, usd: float, at: datetime = NOON, **job: Any) -> None:
    """Records a job that ended then."""
    record_run(history, "resnet", at, cost_usd=usd, **job)


def test_a_budget_is_checked_by_the_bills_of_its_jobs(history: SqliteHistory) -> None:
    """A job of another owner counts for all jobs only."""
    budgets = Budgets(history, ALL, ANA)
    spend(history, 30)
    spend(history, 55, NOON - timedelta(days=1), owner="mara")
    assert budgets.sent() == [("all jobs", Threshold.NEAR)]


def test_each_message_goes_to_the_channels_of_its_budget_or_the_default(
    history: SqliteHistory,
) -> None:
    """With an id that is its own, and that `deliver` accepts."""
    budgets = Budgets(history, ALL, ANA)
    spend(history, 120)
    assert [check.channels for check in budgets.check()] == [("sns",), ("ml",)]
    notices = [parse_notice(body) for _, body in budgets.ledger.bodies]
    assert [notice.notice_id for notice in notices] == [
        "budget 2026-11|1|sns",
        "budget 2026-11 owner ana|1|ml",
    ]


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (ALL, ["ranker, $60.00, of which avoidable: $0.00"]),
        (replace(ALL, account=ACCOUNT), ["ranker, $60.00, of which avoidable: $0.00"]),
        (replace(ALL, owner="ana"), []),
    ],
)
def test_a_message_names_the_family_that_cost_most(
    history: SqliteHistory, budget: Budget, expected: list[str]
) -> None:
    """Daily sums of families have no owner, so the command in the message lists those."""
    spend(history, 55, NOON - timedelta(hours=1))
    for hours in (2, 3):
        record_run(history, "ranker", NOON - timedelta(hours=hours), cost_usd=30)
    budgets = Budgets(history, budget)
    assert len(budgets.sent()) == 1
    message = json.loads(budgets.ledger.bodies[0][1])["payload"]["message"].splitlines()
    label = "Costliest family: "
    lines = [line.removeprefix(label) for line in message if line.startswith(label)]
    assert lines == expected


def test_a_message_reads_a_limited_number_of_families(
    history: SqliteHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that takes too long would never be sent."""
    monkeypatch.setattr(queries, "MAX_FAMILY_ROWS", 1)
    budgets = Budgets(history, ALL)
    spend(history, 85)
    record_run(history, "ranker", NOON, cost_usd=3)
    assert budgets.sent() == [("all jobs", Threshold.NEAR)]
    assert "Costliest family" not in budgets.ledger.bodies[0][1]


def test_a_message_whose_families_cannot_be_read_is_sent_by_the_next_check(
    history: SqliteHistory,
) -> None:
    """Nothing was written, so nothing is lost."""
    budgets = Budgets(history, ALL)
    spend(history, 85)
    read_sums = history.daily_sums

    def fail_for_families(scope: Scope, *args: Any, **options: Any) -> Iterator[SumRow]:
        if scope is Scope.FAMILY:
            raise Throttled("busy")
        return read_sums(scope, *args, **options)

    history.daily_sums = fail_for_families  # type: ignore[method-assign]
    [check] = budgets.check()
    assert (str(check.error), budgets.ledger.bodies) == ("busy", [])
    history.daily_sums = read_sums  # type: ignore[method-assign]
    assert budgets.sent() == [("all jobs", Threshold.NEAR)]


def test_a_second_check_writes_nothing(history: SqliteHistory) -> None:
    """The message was sent."""
    budgets = Budgets(history, ALL)
    spend(history, 85)
    assert budgets.sent() == [("all jobs", Threshold.NEAR)]
    assert budgets.sent() == []
    spend(history, 15, NOON + timedelta(minutes=5))
    assert budgets.sent(NOON + timedelta(hours=1)) == [("all jobs", Threshold.EXCEEDED)]


def test_a_month_begins_at_midnight_in_utc(history: SqliteHistory) -> None:
    """A job counts on the day of its end."""
    budgets = Budgets(history, ALL)
    midnight = datetime(2026, 12, 1, tzinfo=UTC)
    spend(history, 85, midnight - timedelta(seconds=1))
    spend(history, 10, midnight)
    assert budgets.sent(midnight + timedelta(days=2)) == []
    assert budgets.sent(midnight + timedelta(minutes=9)) == [("all jobs", Threshold.NEAR)]
    [subject] = budgets.subjects()
    assert subject == "Budget all jobs: $85.00 of $100.00 (85%) in 2026-11"


def test_a_backfill_of_past_months_sends_nothing(history: SqliteHistory) -> None:
    """Only the month before is checked, on the first day."""
    budgets = Budgets(history, ALL)
    for months in range(1, 6):
        spend(history, 500, NOON - timedelta(days=30 * months))
    assert budgets.sent() == []
    assert budgets.sent(datetime(2026, 11, 2, tzinfo=UTC)) == []


def test_a_new_deployment_reports_nothing_of_the_month_before(history: SqliteHistory) -> None:
    """Its sweep audits a few jobs from before."""
    budgets = Budgets(history, ALL)
    spend(history, 500, datetime(2026, 10, 31, 23, tzinfo=UTC))
    first = datetime(2026, 11, 1, 9, tzinfo=UTC)
    assert budgets.sent(first, installed_at=first) == []
    assert budgets.sent(first, installed_at=None) == []
    assert budgets.sent(first) == [("all jobs", Threshold.EXCEEDED)]


def test_a_month_in_which_the_table_was_deployed_is_projected_from_then(
    history: SqliteHistory,
) -> None:
    """Five whole days after the installation."""
    budgets = Budgets(history, ALL)
    for day in range(12, 18):
        spend(history, 5, datetime(2026, 11, day, 3, tzinfo=UTC))
    installed_at = datetime(2026, 11, 12, tzinfo=UTC)
    assert budgets.sent(datetime(2026, 11, 16, 23, tzinfo=UTC), installed_at=installed_at) == []
    budgets.policy = replace(budgets.policy, budgets=(replace(ALL, usd_per_month=Decimal(80)),))
    assert budgets.sent(NOON, installed_at=installed_at) == [("all jobs", Threshold.PROJECTED)]


def test_spend_without_sums_that_cannot_be_read_is_a_lower_bound(tmp_path: Path) -> None:
    """The message says so, and the budget is checked."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as file_history:
        spend(file_history, 85)
        spend(file_history, 10, NOON - timedelta(days=1), owner="mara")
        spoil_sums(path, Scope.OWNER)
        budgets = Budgets(file_history, replace(ANA, channels=()), ALL)
        assert budgets.sent() == [("all jobs", Threshold.NEAR)]
        [subject] = budgets.subjects()
    assert subject == "Budget all jobs: $95.00 or more of $100.00 (at least 95%)"
    assert "Not counted: stored sums that cannot be read" in budgets.ledger.bodies[0][1]


def test_nothing_is_checked_if_the_days_of_one_month_are_unknown(
    history: SqliteHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No month is checked while the other one fails; the next check reads both again."""
    first = datetime(2026, 12, 1, 9, tzinfo=UTC)

    def fail_for_december(history: object, day: date, today: date, _: object) -> CoveredDays:
        if day == first.date():
            raise Throttled("busy")
        return CoveredDays(day.replace(day=1), today, today)

    monkeypatch.setattr(workflow, "covered_days", fail_for_december)
    budgets = Budgets(history, ALL)
    spend(history, 120)
    with pytest.raises(Throttled):
        budgets.check(first)
    assert budgets.ledger.bodies == []


class Failing(MemoryBudgetLedger):
    """Cannot read what was sent about one owner."""

    def __init__(self, error: AwsError | MalformedData) -> None:
        super().__init__()
        self.error = error

    def budget_messages(self, month: str, selector: tuple[str, str]) -> SentBudgetMessages:
        """Raises for the owner."""
        if selector[0] == "owner":
            raise self.error
        return super().budget_messages(month, selector)


@pytest.mark.parametrize("error", [Throttled("busy"), MalformedData("item", "is odd")], ids=str)
def test_a_budget_that_fails_stops_no_other(
    history: SqliteHistory, error: AwsError | MalformedData
) -> None:
    """It is checked again an hour later."""
    budgets = Budgets(history, ANA, ALL)
    budgets.ledger = Failing(error)
    spend(history, 120)
    failed, exceeded = budgets.check()
    assert (failed.error, failed.threshold) == (error, None)
    assert (exceeded.error, exceeded.threshold) == (None, Threshold.EXCEEDED)


def test_of_two_checks_at_the_same_time_one_sends(history: SqliteHistory) -> None:
    """The other finds that a message was written since it read."""
    budgets = Budgets(history, ALL)
    spend(history, 85)
    read = budgets.ledger.budget_messages

    def read_then_lose(month: str, selector: tuple[str, str]) -> SentBudgetMessages:
        past = read(month, selector)
        budgets.ledger.messages[month, selector] = replace(past, messages=past.messages + 1)
        return past

    budgets.ledger.budget_messages = read_then_lose  # type: ignore[method-assign]
    [check] = budgets.check()
    assert (check.threshold, check.error, budgets.ledger.bodies) == (None, None, [])


def test_a_job_that_is_judged_again_counts_once(history: SqliteHistory) -> None:
    """With its newest bill."""
    budgets = Budgets(history, ALL)
    for usd in (70, 85):
        history.record(entry(bill={"total_usd": Decimal(usd)}, modified_s=usd))
    assert budgets.sent(NOON + timedelta(days=3)) == [("all jobs", Threshold.NEAR)]
    assert budgets.subjects()[0].startswith("Budget all jobs: $85.00 of $100.00 (85%)")
