"""The watch checks budgets once an hour: what it counts and logs, and that jobs are checked too."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local.workers import InlineWorkers
from sageaudit.adapters.channels.services import channel_writers
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.budget import Threshold
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig
from sageaudit.errors import Throttled, Unavailable
from sageaudit.structs import replace
from sageaudit.workflows.budgets import BudgetCheck, BudgetDependencies
from tests.fakes.budgets import spoil_sums
from tests.fakes.entries import record_run
from tests.fakes.memory_budgets import MemoryBudgetLedger
from tests.workflows.watch.test_handler import WatchedJobs, counts, logged
from tests.workflows.watch.test_watch import HANGS, MINUTE, NOON, Run
from watch import handler

NOTHING_DUE = BudgetCheck("vision", "2026-11")
PASSED = replace(NOTHING_DUE, threshold=Threshold.EXCEEDED, channels=("sns",))


class WatchedBudgets(WatchedJobs):
    """A watch function with budgets; `checked_at` has the times of their checks."""

    def __init__(self, *checks: BudgetCheck | Exception, runs: Iterable[Run] = ()) -> None:
        super().__init__(*runs)
        self.watch.now = NOON + 9 * MINUTE
        self.checks = checks
        self.checked_at: list[datetime] = []

    def check_budgets(self, workers: object, now: datetime) -> Iterator[BudgetCheck]:
        """Yields the results in their order, and raises an exception in its place."""
        del workers
        self.checked_at.append(now)
        for check in self.checks:
            if isinstance(check, Exception):
                raise check
            yield check

    def function(self, *, is_on: bool = True) -> handler.Watcher:
        """Returns the function with the check of budgets."""
        return replace(super().function(is_on=is_on), check_budgets=self.check_budgets)


def test_budgets_are_checked_by_the_first_watch_of_an_hour() -> None:
    """The schedule starts a watch every 15 minutes, at minute 9."""
    budgets = WatchedBudgets(NOTHING_DUE)
    for _ in range(8):
        assert budgets.run() == {"failed": 0}
        budgets.watch.now += timedelta(minutes=15)
    assert budgets.checked_at == [NOON + 9 * MINUTE, NOON + 69 * MINUTE]


def test_a_message_is_logged_with_its_threshold_and_channels(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is counted: a metric with values costs as much as three alarms."""
    assert WatchedBudgets(NOTHING_DUE, PASSED).run() == {"failed": 0}
    [line] = logged(caplog, "notified")
    said = {name: line[name] for name in ("budget", "month", "threshold", "to")}
    assert said == {"budget": "vision", "month": "2026-11", "threshold": "exceeded", "to": ("sns",)}
    assert counts(capsys) == {}


def test_a_budget_that_fails_is_counted_and_the_others_are_reported(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """With the reason."""
    failed = replace(NOTHING_DUE, error=Throttled("busy"))
    assert WatchedBudgets(failed, PASSED).run() == {"failed": 1}
    assert counts(capsys) == {"BudgetsFailed": 1}
    [line] = logged(caplog, "budget not checked")
    assert (line["budget"], line["error"], line["reason"]) == ("vision", "Throttled", "busy")
    assert logged(caplog, "notified")


def test_stored_sums_that_cannot_be_read_are_counted_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """After the checks of all budgets, each of which reads them."""
    budgets = tuple(Budget(name, Decimal(50), owner=name) for name in ("ana", "bo"))
    channels = {"sns": ChannelConfig("sns")}
    policy = replace(Policy(), budgets=budgets, channels=channels)
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:
        for name in ("ana", "bo"):
            record_run(history, name, NOON, cost_usd=5, owner=name)
        spoil_sums(path, Scope.OWNER)
        deps = BudgetDependencies(history, MemoryBudgetLedger(), policy, channel_writers(channels))
        report = RecordReport({})
        with InlineWorkers() as workers:
            checks = [*handler.check_all_budgets(deps, lambda: None, report, workers, NOON)]
        assert history.unreadable_items() == ()
    report.flush()
    assert [check.error for check in checks] == [None, None]
    assert counts(capsys) == {"UnreadableItems": 2}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Unavailable("no answer"), {"BudgetsFailed": 1}),
        (ZeroDivisionError("bug"), {"BudgetsFailed": 1, "Defects": 1}),
    ],
    ids=str,
)
def test_no_failure_of_budgets_stops_the_check_of_jobs(
    capsys: pytest.CaptureFixture[str], error: Exception, expected: dict[str, int]
) -> None:
    """A job that hangs costs money now."""
    budgets = WatchedBudgets(error, runs=[Run("hangs", uses=HANGS)])
    budgets.watch.now = NOON + 129 * MINUTE
    assert budgets.run() == {"failed": 1}
    assert counts(capsys) == expected
    assert len(budgets.watch.ledger.notices) == 1


def test_budgets_are_checked_if_running_jobs_are_not() -> None:
    """The policy has switched `[watch]` off."""
    budgets = WatchedBudgets(NOTHING_DUE, runs=[Run("hangs", uses=HANGS)])
    context: Any = type("Context", (), {"get_remaining_time_in_millis": lambda _: 600_000})()
    assert budgets.function(is_on=False)({}, context) == {"failed": 0}
    assert (len(budgets.checked_at), budgets.described()) == (1, [])
