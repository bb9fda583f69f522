"""When sageaudit was installed, as notify reads it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.installation import PERMISSIONS, DynamoInstallation
from sageaudit.adapters.history.moments import moment_text
from sageaudit.errors import Malformed
from tests.adapters.history.entries import NOON


def written(client: Any, table: str, text: str) -> None:
    """As the first sweep writes it."""
    item = {"pk": {"S": "SWEEP"}, "sk": {"S": "INSTALLED"}, "installed_at": {"S": text}}
    client.put_item(TableName=table, Item=item)


def test_the_moment_is_read_until_it_is_there_and_then_kept(client: Any, table: str) -> None:
    """One GetItem in the life of a process, once the first sweep has written it."""
    installation = DynamoInstallation(client, table)
    assert installation.installed_at() is None
    written(client, table, moment_text(NOON))
    assert installation.installed_at() == NOON
    written(client, table, "2030-01-01T00:00:00Z")
    assert installation.installed_at() == NOON
    assert PERMISSIONS == ("dynamodb:GetItem",)


def test_a_time_to_come_is_not_known(client: Any, table: str) -> None:
    """A damaged row, or a clock that was wrong: it would silence every message."""
    now = NOON
    installation = DynamoInstallation(client, table, clock=lambda: now)
    written(client, table, moment_text(NOON + timedelta(microseconds=1)))
    assert installation.installed_at() is None
    now = NOON + timedelta(hours=1)
    assert installation.installed_at() == NOON + timedelta(microseconds=1)


def test_an_item_without_a_time_is_malformed(client: Any, table: str) -> None:
    """It is not taken for none: then the past would be told."""
    written(client, table, "soon")
    with pytest.raises(Malformed, match="SWEEP INSTALLED has no time"):
        DynamoInstallation(client, table).installed_at()
