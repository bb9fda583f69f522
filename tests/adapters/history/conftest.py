"""Every contract test runs over all twins: DynamoDB as moto plays it, SQLite, and memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.send_ledger import DynamoSendLedger
from sageaudit.adapters.history.in_memory import MemoryHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.ports import AlertLedger, History, SendLedger
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.memory_ledger import MemoryAlertLedger, MemorySendLedger


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A DynamoDB for one file of tests: each test makes its own table."""
    with dynamodb() as made:
        yield made


@pytest.fixture(params=["dynamo", "sqlite", "memory"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[History]:
    """An empty history."""
    if request.param == "memory":
        yield MemoryHistory()
    elif request.param == "sqlite":
        with SqliteHistory(tmp_path / "history.db") as of_file:
            yield of_file
    else:
        client = request.getfixturevalue("client")
        yield DynamoHistory(client, new_table(client))


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
