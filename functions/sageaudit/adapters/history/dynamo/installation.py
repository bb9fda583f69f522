"""When sageaudit was installed, as the first sweep writes it into the history's table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.calls import Dynamo
from sageaudit.adapters.history.moments import read_moment
from sageaudit.errors import Malformed

PERMISSIONS = ("dynamodb:GetItem",)

INSTALLED_AT = "installed_at"
"""The attribute with the moment."""


class DynamoInstallation:
    """Reads the moment once in the life of a process, as soon as it is there."""

    def __init__(
        self,
        client: Any,
        table_name: str,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._table = Dynamo(client, table_name)
        self._clock = clock
        self._installed_at: datetime | None = None

    def installed_at(self) -> datetime | None:
        """None before the first sweep, and for a time to come. Raises AwsError, or Malformed."""
        if self._installed_at is None:
            item = self._table.get(keys.SWEEP_PK, keys.INSTALLED_SK)
            if item is None:
                return None
            stored = _moment(item.get(INSTALLED_AT))
            if stored > self._clock():
                return None
            self._installed_at = stored
        return self._installed_at


def _moment(text: object) -> datetime:
    try:
        return read_moment(str(text))
    except ValueError as error:
        raise Malformed(f"the item {keys.SWEEP_PK} {keys.INSTALLED_SK}", "has no time") from error
