"""Makes moto's DynamoDB fast, which copies or sorts the whole table for each small thing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from moto.dynamodb import models
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import StreamRecord, Table

_INDEX_NAME = 6
"""Of the arguments with which moto calls `Table.query`, after the hash key."""


@contextmanager
def quick_tables() -> Iterator[None]:
    """A transaction copies the table once, a query looks at its own items, and no text is cast.

    One copy is enough to go back to: the table does not change while moto makes them.
    """
    copies: dict[int, Table] = {}
    transact, query = DynamoDBBackend.transact_write_items, Table.query
    cast: Any = DynamoType.cast_value

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

    def query_of_a_partition(self: Any, hash_key: Any, *args: Any, **words: Any) -> Any:
        # moto asks for all items in their order, and sorts those that it takes once more
        whole = self.items if args[_INDEX_NAME] else [hash_key]
        items = [item for key in whole for item in self.items.get(key, {}).values()]
        with patch.object(self, "all_items", lambda: items):
            return query(self, hash_key, *args, **words)

    with (
        # A record of the stream never changes.
        patch.object(StreamRecord, "__deepcopy__", lambda self, _: self, create=True),
        patch.object(models, "copy", SimpleNamespace(deepcopy=deepcopy, copy=copy.copy)),
        patch.object(DynamoDBBackend, "transact_write_items", transact_write_items),
        patch.object(Table, "query", query_of_a_partition),
        patch.object(
            DynamoType,
            "cast_value",
            property(lambda self: self.value if self.type == "S" else cast.fget(self)),
        ),
    ):
        yield
