"""Every contract test runs over both implementations: DynamoDB as moto plays it, and SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.send_ledger import DynamoSendLedger
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.ports import AlertLedger, History, SendLedger
from tests.adapters.history.entries import NOON
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.memory_ledger import MemoryAlertLedger, MemorySendLedger


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A DynamoDB for one file of tests: each test makes its own table."""
    with dynamodb() as made:
        yield made


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
