"""Makes moto fast, whose DynamoDB copies or sorts the whole table for each small thing.

Of each attribute's ten possible types it looks for a dozen other names, in each answer.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric import rsa
from moto.core.serialize import ResponseSerializer
from moto.dynamodb import models
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import StreamRecord, Table
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser  # type: ignore[attr-defined]
from moto.dynamodb.parsing.validators import ActionCountValidator, OverlappingPathsValidator

_INDEX_NAME = 6
"""Of the arguments with which moto calls `Table.query`, after the hash key."""

_key = cache(rsa.generate_private_key)


@contextmanager
def quick_moto() -> Iterator[None]:
    """A transaction copies the table once, a query looks at its own items, and no text is cast.

    One copy is enough to go back to: the table does not change while moto makes them.
    """
    copies: dict[int, Table] = {}
    transact, query = DynamoDBBackend.transact_write_items, Table.query
    cast: Any = DynamoType.cast_value
    pick, nodes = ResponseSerializer.get_value, DepthFirstTraverser.nodes_to_be_processed
    types: dict[type, Any] = {}

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

    def get_value(self: Any, value: Any, key: str, shape: Any) -> Any:
        of = getattr(shape, "parent", None)
        if of is not None and of.name == "AttributeValue" and type(value) is dict:
            return value.get(key)
        return pick(self, value, key, shape)

    def nodes_of_a_class(self: Any) -> Any:
        if type(self) not in types:
            types[type(self)] = nodes(self)
        return types[type(self)]

    with (
        # SNS signs with a key that it takes long to make; here all topics have one
        patch("moto.sns.models.rsa.generate_private_key", _key),
        # A record of the stream never changes.
        patch.object(StreamRecord, "__deepcopy__", lambda self, _: self, create=True),
        patch.object(models, "copy", SimpleNamespace(deepcopy=deepcopy, copy=copy.copy)),
        patch.object(DynamoDBBackend, "transact_write_items", transact_write_items),
        patch.object(Table, "query", query_of_a_partition),
        patch.object(ResponseSerializer, "get_value", get_value),
        patch.object(DepthFirstTraverser, "nodes_to_be_processed", nodes_of_a_class),
        # the parts of an expression lie in one another: the check of the whole one is that of all
        patch.object(ActionCountValidator, "traverse", ActionCountValidator.process),
        patch.object(OverlappingPathsValidator, "traverse", OverlappingPathsValidator.process),
        patch.object(
            DynamoType,
            "cast_value",
            property(lambda self: self.value if self.type == "S" else cast.fget(self)),
        ),
    ):
        yield
