"""One stream record: whose audit it is, or which key is wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.history.dynamo.keys import job_pk
from sageaudit.adapters.lambda_runtime.stream import Change
from sageaudit.errors import Malformed
from tests.fakes.delivering import ARN, NOON, PK, stream_record
from tests.fakes.documents import document

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


def changed(**image: Any) -> Change:
    """A record with parts of its image replaced."""
    record = stream_record(document())
    record["dynamodb"]["NewImage"] |= image
    return Change(record)


def test_run_version_and_document_are_read() -> None:
    """The key that comes out is the one that went in."""
    change = Change(stream_record(document(), version=12))
    pk, key, version = change.run()
    assert (pk, key.arn, version) == (PK, ARN, 12)
    assert job_pk(key) == PK
    assert change.document()["job"]["name"] == "train-bert-0412"


def test_only_inserts_of_audits_are_new_audits() -> None:
    """moto emits MODIFY records for what did not change, and heads go the same way."""
    assert Change(stream_record(document())).is_new_audit()
    assert not Change({**stream_record(document()), "eventName": "MODIFY"}).is_new_audit()
    assert not Change({**stream_record(document()), "eventName": "REMOVE"}).is_new_audit()
    assert not changed(sk={"S": "HEAD"}).is_new_audit()


@pytest.mark.parametrize(
    ("image", "key"),
    [
        ({"pk": {"S": "HEAD"}}, "pk"),
        ({"pk": {"S": f"JOB#{ARN}"}}, "pk"),
        ({"pk": {"S": f"JOB#{ARN}#soon"}}, "pk"),
        ({"pk": {"S": f"JOB#{ARN}#007"}}, "pk"),
        ({"pk": {"N": "1"}}, "pk"),
        ({"sk": {"S": "AUDIT#x"}}, "sk"),
        ({"sk": {}}, "sk"),
    ],
)
def test_a_key_that_is_none_is_named(image: dict[str, Any], key: str) -> None:
    """It is an audit's record and still cannot be told."""
    change = changed(**image)
    assert change.is_new_audit()
    with pytest.raises(Malformed) as raised:
        change.run()
    assert raised.value.key == key


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"'])
def test_a_document_that_is_no_object_is_refused(text: str) -> None:
    """Or no JSON at all."""
    with pytest.raises(Malformed, match="document "):
        changed(document={"S": text}).document()


def test_the_time_is_the_writing_not_the_delivery() -> None:
    """So that a delivery after midnight is told on the same day."""
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert Change(stream_record(document())).written_at(now) == NOON
    assert Change({}).written_at(now) == now


@given(st.dictionaries(st.sampled_from(["eventName", "dynamodb"]), JSON))
def test_whatever_a_record_holds_it_is_read_or_malformed(record: dict[str, Any]) -> None:
    """Nothing else is raised."""
    change = Change(record)
    change.is_new_audit()
    assert isinstance(change.identifier, str)
    assert json.loads(change.letter)["sequence_number"] == change.identifier
    with pytest.raises(Malformed):
        change.run()
    with pytest.raises(Malformed):
        change.document()
