"""Every contract test runs over both implementations: DynamoDB and SQLite.

moto plays DynamoDB; with `make dynamodb` it is the one that is named.
"""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.send_ledger import DynamoSendLedger
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.ports import AlertLedger, History, SendLedger
from tests.adapters.history.old_limits import LIMITS, is_old
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.entries import NOON
from tests.fakes.memory_ledger import MemoryAlertLedger, MemorySendLedger


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A DynamoDB for one file of tests: each test makes its own table."""
    with dynamodb() as new_client:
        yield new_client


@pytest.fixture
def table(client: Any) -> str:
    """An empty table."""
    return new_table(client)


@pytest.fixture
def waited() -> list[float]:
    """The seconds that `dynamo` has waited."""
    return []


@pytest.fixture
def dynamo(client: Any, table: str, waited: list[float]) -> DynamoHistory:
    """The history of that table, which does not really wait."""
    return DynamoHistory(client, table, clock=lambda: NOON, sleep=waited.append)


def _twin(request: pytest.FixtureRequest, dynamo: Any, other: Any) -> Any:
    if request.param == "dynamo":
        return dynamo(request.getfixturevalue("client"), request.getfixturevalue("table"))
    return other()


@pytest.fixture(params=["dynamo", "sqlite"])
def history(request: pytest.FixtureRequest) -> History:
    """An empty history; that of SQLite is in memory."""
    twin: History = _twin(request, DynamoHistory, SqliteHistory)
    return twin


@pytest.fixture(params=["dynamo", "memory"])
def alerts(request: pytest.FixtureRequest) -> AlertLedger:
    """An empty ledger of alerts."""
    twin: AlertLedger = _twin(request, DynamoAlertLedger, MemoryAlertLedger)
    return twin


@pytest.fixture(params=["dynamo", "memory"])
def sends(request: pytest.FixtureRequest) -> SendLedger:
    """An empty ledger of what was sent."""
    twin: SendLedger = _twin(request, DynamoSendLedger, MemorySendLedger)
    return twin


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """On the old DynamoDB a test of the table must fail, and by its limit."""
    report = yield
    limit = LIMITS.get(item.nodeid.split("::", 1)[1])
    if call.when == "call" and limit is not None and is_old():
        if report.failed and limit.shows in report.longreprtext:
            report.outcome, report.wasxfail = "skipped", limit.reason
        elif report.passed:
            report.outcome, report.longrepr = "failed", f"it is not met: {limit.reason}"
    return report
