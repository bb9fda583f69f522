"""Makes moto's transactions fast: it copies the whole table once for each of their actions."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from moto.dynamodb import models
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.table import StreamRecord, Table


@contextmanager
def one_copy_a_transaction() -> Iterator[None]:
    """One copy is enough to go back to: the table does not change while moto makes them."""
    copies: dict[int, Table] = {}
    transact = DynamoDBBackend.transact_write_items

    def deepcopy(value: Any, *args: Any) -> Any:
        if not isinstance(value, Table):
            return copy.deepcopy(value, *args)
        if id(value) not in copies:
            copies[id(value)] = copy.deepcopy(value)
        return copies[id(value)]

    def transact_write_items(self: DynamoDBBackend, *args: Any, **words: Any) -> Any:
        copies.clear()
        try:
            return transact(self, *args, **words)
        finally:
            copies.clear()

    with (
        # A record of the stream never changes.
        patch.object(StreamRecord, "__deepcopy__", lambda self, _: self, create=True),
        patch.object(models, "copy", SimpleNamespace(deepcopy=deepcopy, copy=copy.copy)),
        patch.object(DynamoDBBackend, "transact_write_items", transact_write_items),
    ):
        yield
