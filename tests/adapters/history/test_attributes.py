"""Attributes of items are written and read as by boto3, but without the SDK's walk through each."""

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from unittest import mock

import boto3
import pytest
from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer
from botocore.parsers import BaseJSONParser
from hypothesis import example, given
from hypothesis import strategies as st

from local.requests import RequestRouter, http_answer
from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.history.dynamo.calls import DynamoTable, put_action
from sageaudit.errors import Unavailable
from tests.fakes.jobs import REGION

NUMBERS = st.integers(-(10**40), 10**40) | st.decimals(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text() | st.binary() | st.just(Decimal("1E+130"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TYPED_NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str)
TYPED_SCALARS = (
    st.fixed_dictionaries({"S": st.text()})
    | st.fixed_dictionaries({"N": TYPED_NUMBERS})
    | st.fixed_dictionaries({"B": st.binary().map(lambda raw: base64.b64encode(raw).decode())})
    | st.fixed_dictionaries({"BOOL": st.booleans()})
    | st.just({"NULL": True})
    | st.fixed_dictionaries({"SS": st.lists(st.text(), min_size=1, max_size=3)})
    | st.fixed_dictionaries({"NS": st.lists(TYPED_NUMBERS, min_size=1, max_size=3)})
)
TYPED = st.recursive(
    TYPED_SCALARS,
    lambda inner: (
        st.fixed_dictionaries({"L": st.lists(inner, max_size=3)})
        | st.fixed_dictionaries({"M": st.dictionaries(st.text(), inner, max_size=3)})
    ),
    max_leaves=8,
)


def _result(call: Callable[[], object]) -> object:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the type of the error is compared
        return type(error)


def _dynamodb(*bodies: bytes) -> Any:
    """A client whose requests get these answers."""
    session, answers = boto3.Session(region_name=REGION), iter(bodies)
    RequestRouter(session).interceptor = lambda _operation, request, _send: http_answer(
        request.url, 200, next(answers)
    )
    return client(session, "dynamodb")


def _plain(value: object) -> object:
    """boto3's value, with bytes instead of its class for them."""
    if isinstance(value, Binary):
        return bytes(value.value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


@given(value=VALUES)
@example(value=Decimal("NaN"))
@example(value=Decimal("Infinity"))
@example(value=Decimal("0." + "1" * 39))
@example(value=1.5)
@example(value=(1, "two"))
def test_values_are_written_as_by_boto3(value: object) -> None:
    """A number that DynamoDB cannot store is the same error."""
    ours = _result(lambda: put_action({"value": value})["Put"]["Item"]["value"])
    assert ours == _result(lambda: TypeSerializer().serialize(value))


@given(item=st.dictionaries(st.text(min_size=1), TYPED, max_size=4))
def test_items_are_read_as_by_boto3(item: dict[str, Any]) -> None:
    """From the bytes of an answer."""
    body = json.dumps({"Item": item}).encode()
    parsed = _dynamodb(body).get_item(TableName="history", Key={"pk": {"S": "a"}})["Item"]
    expected = {name: TypeDeserializer().deserialize(value) for name, value in parsed.items()}
    assert DynamoTable(_dynamodb(body), "history").get("a", "b") == _plain(expected)


@pytest.mark.parametrize(
    "body",
    [
        *(b"<html>", b"[]", b'{"Items": 7}', b'{"Items": [{"a": {"Q": "b"}}]}', b"{}"),
        b'{"Items": [{"a": {"S": "\xff"}}]}',
        b'{"Items": ' + b"[" * 3_000 + b"]" * 3_000 + b"}",
    ],
    ids=range(7),
)
def test_an_odd_answer_is_unavailable(body: bytes) -> None:
    """Such as the page of a proxy: it may be better the next time."""
    with pytest.raises(Unavailable):
        list(DynamoTable(_dynamodb(body), "history").query("partition"))


def test_the_sdk_parses_no_item_of_a_query() -> None:
    """Fifty items of thirty attributes are one JSON document, read once."""
    item = {f"name-{number}": {"N": "1"} for number in range(30)}
    body = json.dumps({"Items": [item] * 50, "Count": 50}).encode()
    table = DynamoTable(_dynamodb(body), "history")
    parse_shape = BaseJSONParser._parse_shape
    with mock.patch.object(
        BaseJSONParser, "_parse_shape", autospec=True, side_effect=parse_shape
    ) as parsed:
        assert len(list(table.query("partition"))) == 50
    assert parsed.call_count == 1
