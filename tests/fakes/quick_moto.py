"""Makes moto fast.

moto's DynamoDB copies or sorts the whole table in many operations. Its serializer looks up a dozen
names for each of the ten possible types of each attribute.
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
"""Position of `index_name` in the arguments of moto's `Table.query` after the hash key."""

_key = cache(rsa.generate_private_key)


@contextmanager
def quick_moto() -> Iterator[None]:
    """Patches moto: a transaction copies the table once, and a query reads only its partition.

    One copy is enough for a rollback: the table does not change while moto makes its copies.
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
        # moto reads all items in order and then sorts the selected ones again
        whole = self.items if args[_INDEX_NAME] else [hash_key]
        items = [item for key in whole for item in self.items.get(key, {}).values()]
        with patch.object(self, "all_items", lambda: items):
            return query(self, hash_key, *args, **words)

    def get_value(self: Any, value: Any, key: str, shape: Any) -> Any:
        parent = getattr(shape, "parent", None)
        if parent is not None and parent.name == "AttributeValue" and type(value) is dict:
            return value.get(key)
        return pick(self, value, key, shape)

    def nodes_of_a_class(self: Any) -> Any:
        if type(self) not in types:
            types[type(self)] = nodes(self)
        return types[type(self)]

    with (
        # SNS generates a signing key per topic, which is slow: all topics share one here
        patch("moto.sns.models.rsa.generate_private_key", _key),
        # stream records never change
        patch.object(StreamRecord, "__deepcopy__", lambda self, _: self, create=True),
        patch.object(models, "copy", SimpleNamespace(deepcopy=deepcopy, copy=copy.copy)),
        patch.object(DynamoDBBackend, "transact_write_items", transact_write_items),
        patch.object(Table, "query", query_of_a_partition),
        patch.object(ResponseSerializer, "get_value", get_value),
        patch.object(DepthFirstTraverser, "nodes_to_be_processed", nodes_of_a_class),
        # the check of the whole expression covers its nested parts
        patch.object(ActionCountValidator, "traverse", ActionCountValidator.process),
        patch.object(OverlappingPathsValidator, "traverse", OverlappingPathsValidator.process),
        patch.object(
            DynamoType,
            "cast_value",
            property(lambda self: self.value if self.type == "S" else cast.fget(self)),
        ),
    ):
        yield
