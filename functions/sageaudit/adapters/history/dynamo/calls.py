"""Calls one DynamoDB table, with Python values as items and sageaudit's errors."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Clamped, Context, Decimal, Inexact, Overflow, Rounded, Underflow
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from sageaudit.adapters.aws.clients import (
    aws_errors,
    error_code,
    error_message,
    parse_errors,
    require_key,
)
from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY, TABLE, Index
from sageaudit.errors import PARSE_ERRORS, TableNotFound, Throttled

_MAX_LIMIT = 1_000
"""The maximum Limit. A page of 1 MB has fewer items."""
_CONDITION_CODES = frozenset({"ConditionalCheckFailed", "ConditionalCheckFailedException"})
_BUSY_CODES = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "ThrottlingError",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
        "ValidationError",
    }
)
"""Error codes and cancellation reasons after which a later attempt may succeed.

ValidationError is the reason of a transaction for `_ODD_OPERAND`.
"""
_ODD_OPERAND = "operand in the update expression has an incorrect data type"
"""A part of DynamoDB's message about an addition to a number that somebody made a text. The next
attempt adds to another shard of the sum."""
_KEY_MISMATCH_MESSAGES = (
    "key schema element",
    "key element does not match",
    "does not match schema type",
    "does not have the specified index",
)
"""Parts of DynamoDB's messages about a table with other keys or indexes."""
_ERROR_STATUS = 300
_NUMBERS = Context(
    prec=38, Emin=-128, Emax=126, traps=[Clamped, Overflow, Inexact, Rounded, Underflow]
)
"""DynamoDB's numbers. Others raise an error."""


class ConditionFailed(Exception):
    """A write's condition was not met. `item` is the stored item; None if it was not requested."""

    def __init__(self, item: Item | None = None) -> None:
        super().__init__("a condition of the write does not hold")
        self.item = item


class DynamoTable:
    """Calls a table by boto3's low-level client. The methods raise AwsError or ConditionFailed."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._client = client
        self._table = table_name
        for operation in ("GetItem", "Query"):
            client.meta.events.register(
                f"before-parse.dynamodb.{operation}", _read_answer, unique_id=f"read-{operation}"
            )

    def get(self, pk: str, sk: str) -> Item | None:
        """Returns one item by a strongly consistent read; None if it does not exist."""
        with _aws_errors(self._table):
            answer = self._client.get_item(
                TableName=self._table,
                Key=_to_dynamo({PARTITION_KEY: pk, SORT_KEY: sk}),
                ConsistentRead=True,
            )
        with parse_errors("dynamodb"):
            return _from_dynamo(answer["Item"]) if "Item" in answer else None

    def query(
        self,
        partition: str,
        sort: str = "",
        values: Item | None = None,
        *,
        index: Index = TABLE,
        attributes: Sequence[str] = (),
        **options: Any,
    ) -> Iterator[Item]:
        """Yields a partition's items. Reads pages only as they are needed.

        `sort` is a condition on the sort key `#s`, and `values` are its values. `attributes` limits
        the items to these attributes. The option Limit sets the size of the first page. Each
        further page is twice as large, up to 1,000.
        """
        placeholders = {index.partition_key: "#p"} | ({index.sort_key: "#s"} if sort else {})
        for number, name in enumerate(attributes):
            placeholders.setdefault(name, f"#{number}")
        projection = ", ".join(placeholders[name] for name in attributes)
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": f"#p = :p AND {sort}" if sort else "#p = :p",
            "ExpressionAttributeNames": {
                placeholder: name for name, placeholder in placeholders.items()
            },
            "ExpressionAttributeValues": _to_dynamo({":p": partition, **(values or {})}),
            **({"IndexName": index.name} if index.name else {}),
            **({"ProjectionExpression": projection} if projection else {}),
            **options,
        }
        while True:
            with _aws_errors(self._table):
                answer = self._client.query(**request)
            with parse_errors("dynamodb"):
                page = [_from_dynamo(item) for item in require_key(answer, "Items")]
            yield from page
            if not answer.get("LastEvaluatedKey"):
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            if "Limit" in request:
                request["Limit"] = min(2 * request["Limit"], _MAX_LIMIT)

    def put(
        self,
        item: Item,
        condition: str = "",
        values: Item | None = None,
        names: dict[str, str] | None = None,
    ) -> None:
        """Stores an item. Raises ConditionFailed with the stored item if `condition` is not met."""
        with _aws_errors(self._table):
            self._client.put_item(
                TableName=self._table,
                Item=_to_dynamo(item),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **_condition_arguments(condition, values, names),
            )

    def update(
        self,
        pk: str,
        sk: str,
        expression: str,
        *,
        values: Item,
        names: dict[str, str] | None = None,
        condition: str | None = None,
    ) -> None:
        """Updates an item. Raises ConditionFailed if `condition` is not met."""
        with _aws_errors(self._table):
            self._client.update_item(
                TableName=self._table,
                Key=_to_dynamo({PARTITION_KEY: pk, SORT_KEY: sk}),
                UpdateExpression=expression,
                **_condition_arguments(condition, values, names),
            )

    def delete(self, pk: str, sk: str) -> None:
        """Deletes an item, if it exists."""
        with _aws_errors(self._table):
            self._client.delete_item(
                TableName=self._table, Key=_to_dynamo({PARTITION_KEY: pk, SORT_KEY: sk})
            )

    def transact(self, actions: list[dict[str, Any]]) -> None:
        """Writes all actions or none. Functions such as `put_action` return actions."""
        table_actions = [
            {operation: {"TableName": self._table, **arguments}}
            for action in actions
            for operation, arguments in action.items()
        ]
        with _aws_errors(self._table):
            self._client.transact_write_items(TransactItems=table_actions)


def put_action(item: Item, condition: str | None = None, values: Item | None = None) -> Item:
    """Returns a Put for a transaction."""
    return {"Put": {"Item": _to_dynamo(item), **_condition_arguments(condition, values)}}


def add_action(pk: str, sk: str, *, constants: Item, increments: Item) -> Item:
    """Returns an Update for a transaction.

    It sets `constants`, and adds `increments` to numbers, which begin at 0.
    """
    names = {f"#{index}": name for index, name in enumerate((*constants, *increments))}
    values = {
        f":{index}": value
        for index, value in enumerate((*constants.values(), *increments.values()))
    }
    set_clause = ",".join(f"#{index}=:{index}" for index in range(len(constants)))
    add_clause = ",".join(f"#{index} :{index}" for index in range(len(constants), len(names)))
    return {
        "Update": {
            "Key": _to_dynamo({PARTITION_KEY: pk, SORT_KEY: sk}),
            "UpdateExpression": f"SET {set_clause} ADD {add_clause}",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": _to_dynamo(values),
        }
    }


def check_action(pk: str, sk: str, condition: str, values: Item) -> Item:
    """Returns a ConditionCheck for a transaction. If it fails, nothing is written."""
    key = _to_dynamo({PARTITION_KEY: pk, SORT_KEY: sk})
    return {"ConditionCheck": {"Key": key, **_condition_arguments(condition, values, {})}}


def delete_action(pk: str, sk: str) -> Item:
    """Returns a Delete for a transaction."""
    return {"Delete": {"Key": _to_dynamo({PARTITION_KEY: pk, SORT_KEY: sk})}}


def _condition_arguments(
    condition: str | None, values: Item | None, names: dict[str, str] | None = None
) -> Item:
    parts = {
        "ConditionExpression": condition,
        "ExpressionAttributeValues": _to_dynamo(values or {}),
        "ExpressionAttributeNames": names,
    }
    return {name: part for name, part in parts.items() if part}


def _read_answer(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Decodes an answer's JSON before the SDK parses it. Binary values stay Base64.

    The SDK looks up each attribute's ten possible types in its model. For the 50 earlier runs of a
    family, this is two thirds of an audit's time. Answers of errors and odd ones are left to it.
    """
    try:
        answer = msgspec.json.decode(response_dict["body"])
    except PARSE_ERRORS:
        return
    if response_dict["status_code"] < _ERROR_STATUS and isinstance(answer, dict):
        customized_response_dict |= answer
        response_dict["body"] = b"{}"


def _to_dynamo(item: Mapping[str, Any]) -> Item:
    return {name: _to_typed(value) for name, value in item.items()}


def _to_typed(value: object) -> Item:
    """Returns a value with the name of its type, as DynamoDB's JSON has it.

    Raises TypeError for other types, and decimal errors for numbers that DynamoDB cannot store.
    """
    if isinstance(value, str):
        return {"S": value}
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | Decimal):
        number = _NUMBERS.create_decimal(value)
        if not number.is_finite():
            raise TypeError(f"DynamoDB has no {number}")
        return {"N": str(number)}
    if isinstance(value, bytes):
        return {"B": value}
    if isinstance(value, Mapping):
        return {"M": _to_dynamo(value)}
    if isinstance(value, list | tuple):
        return {"L": [_to_typed(entry) for entry in value]}
    raise TypeError(f"an attribute cannot be a {type(value).__name__}")


def _from_dynamo(item: Item) -> Item:
    return {name: _from_typed(value) for name, value in item.items()}


def _from_typed(typed: Item) -> Any:
    """Returns the value of an attribute. Raises PARSE_ERRORS."""
    [(kind, value)] = typed.items()
    if kind in {"S", "BOOL"}:
        return value
    if kind == "N":
        return _NUMBERS.create_decimal(value)
    if kind == "M":
        return _from_dynamo(value)
    if kind == "L":
        return [_from_typed(entry) for entry in value]
    if kind == "B":  # the SDK has decoded an error's item
        return value if isinstance(value, bytes) else base64.b64decode(value)
    if kind == "NULL":
        return None
    if kind in {"SS", "NS", "BS"}:
        return {_from_typed({kind[0]: entry}) for entry in value}
    raise TypeError(f"DynamoDB has no type {kind}")


@contextmanager
def _aws_errors(table: str) -> Iterator[None]:
    with aws_errors("dynamodb", f"on the table {table}"):
        try:
            yield
        except ClientError as error:
            answer: dict[str, Any] = dict(error.response)
            codes = {reason.get("Code") for reason in answer.get("CancellationReasons", ())}
            codes.add(error_code(error))
            if codes & _CONDITION_CODES:
                raise ConditionFailed(
                    _from_dynamo(answer["Item"]) if "Item" in answer else None
                ) from error
            if codes & _BUSY_CODES or _ODD_OPERAND in error_message(error):
                message = f"The table {table} is busy: try again later."
                raise Throttled(message) from error
            if "ResourceNotFoundException" in codes:
                raise TableNotFound(
                    f"There is no table {table} in this account and region, or it is not a"
                    " history: name another table, region or profile."
                ) from error
            if any(part in error_message(error) for part in _KEY_MISMATCH_MESSAGES):
                raise TableNotFound(
                    f"The table {table} is not a history of sageaudit, since it has other keys or"
                    " indexes: name another table."
                ) from error
            raise
