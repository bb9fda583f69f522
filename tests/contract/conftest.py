"""Every contract test runs over both twins: DynamoDB as moto plays it, and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sageaudit.adapters.dynamo.history import DynamoHistory
from sageaudit.adapters.dynamo.ledger import DynamoLedger
from sageaudit.adapters.in_memory.history import MemoryHistory
from tests.contract.tables import dynamodb, new_table
from tests.fakes.memory_ledger import MemoryLedger


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A DynamoDB for one file of tests: each test makes its own table."""
    with dynamodb() as made:
        yield made


@pytest.fixture(params=["dynamo", "memory"])
def history(request: pytest.FixtureRequest) -> DynamoHistory | MemoryHistory:
    """An empty history."""
    if request.param == "memory":
        return MemoryHistory()
    client = request.getfixturevalue("client")
    return DynamoHistory(client, new_table(client))


@pytest.fixture(params=["dynamo", "memory"])
def ledger(request: pytest.FixtureRequest) -> DynamoLedger | MemoryLedger:
    """An empty ledger."""
    if request.param == "memory":
        return MemoryLedger()
    client = request.getfixturevalue("client")
    return DynamoLedger(client, new_table(client))
