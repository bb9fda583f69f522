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
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.memory_ledger import MemoryAlertLedger, MemorySendLedger


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A DynamoDB for one file of tests: each test makes its own table."""
    with dynamodb() as made:
        yield made


@pytest.fixture(params=["dynamo", "sqlite"])
def history(request: pytest.FixtureRequest) -> History:
    """An empty history; that of SQLite is in memory."""
    if request.param == "sqlite":
        return SqliteHistory()
    client = request.getfixturevalue("client")
    return DynamoHistory(client, new_table(client))


@pytest.fixture(params=["dynamo", "memory"])
def alerts(request: pytest.FixtureRequest) -> AlertLedger:
    """An empty ledger of alerts."""
    if request.param == "memory":
        return MemoryAlertLedger()
    client = request.getfixturevalue("client")
    return DynamoAlertLedger(client, new_table(client))


@pytest.fixture(params=["dynamo", "memory"])
def sends(request: pytest.FixtureRequest) -> SendLedger:
    """An empty ledger of what was sent."""
    if request.param == "memory":
        return MemorySendLedger()
    client = request.getfixturevalue("client")
    return DynamoSendLedger(client, new_table(client))
