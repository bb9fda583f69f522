"""When sageaudit was installed, as the first sweep writes it into the history's table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sageaudit.adapters.dynamo import keys
from sageaudit.adapters.dynamo.calls import Dynamo
from sageaudit.adapters.history.moments import read_moment
from sageaudit.errors import Malformed

PERMISSIONS = ("dynamodb:GetItem",)

INSTALLED_AT = "installed_at"
"""The attribute with the moment."""


class DynamoInstallation:
    """Reads the moment once in the life of a process, as soon as it is there."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = Dynamo(client, table_name)
        self._installed_at: datetime | None = None

    def installed_at(self) -> datetime | None:
        """None before the first sweep. Raises AwsError, or Malformed."""
        if self._installed_at is None:
            item = self._table.get(keys.SWEEP_PK, keys.INSTALLED_SK)
            if item is not None:
                self._installed_at = _moment(item.get(INSTALLED_AT))
        return self._installed_at


def _moment(text: object) -> datetime:
    try:
        return read_moment(str(text))
    except ValueError as error:
        raise Malformed(f"the item {keys.SWEEP_PK} {keys.INSTALLED_SK}", "has no time") from error
