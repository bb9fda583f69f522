"""Records as Lambda passes them: whose audit or notice it is, or which key is wrong."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.history.dynamo.keys import job_pk
from sageaudit.adapters.lambda_runtime.records import (
    TableChange,
    notice_labels,
    parse_change_keys,
    parse_version,
)
from sageaudit.errors import MalformedData
from tests.fakes.documents import document
from tests.fakes.lambda_events import ARN, PK, notice_record, stream_record

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


def changed(**image: Any) -> TableChange:
    """A record with parts of its image replaced."""
    record = stream_record(document())
    record["dynamodb"]["NewImage"] |= image
    return TableChange(record)


def test_run_version_and_document_are_read() -> None:
    """The key that comes out is the one that went in; of a notice it is the same run."""
    change = TableChange(stream_record(document(), version=12))
    key, version = parse_version(change.pk, change.sk)
    assert (key.arn, version) == (ARN, 12)
    assert job_pk(key) == PK
    assert change.document()["job"]["name"] == "train-bert-0412"
    notice = TableChange(notice_record(f"ALERT#{PK}", "NOTICE#00012#slack", "slack", "{}"))
    assert parse_version(notice.pk, notice.sk) == (key, 12)
    assert notice.is_new


def test_a_letter_leads_back_to_its_item() -> None:
    """By its keys."""
    change = TableChange(stream_record(document(), version=12))
    assert parse_change_keys(change.dead_letter_body) == (PK, "AUDIT#00012")
    for body in ("{", "[]", '{"pk": 1, "sk": "AUDIT#00001"}', "[" * 100_000):
        with pytest.raises(MalformedData, match="body "):
            parse_change_keys(body)


def test_only_inserts_of_audits_and_notices_are_new() -> None:
    """moto emits MODIFY records for what did not change, expiry is REMOVE, heads come too."""
    assert TableChange(stream_record(document())).is_new
    assert not TableChange({**stream_record(document()), "eventName": "MODIFY"}).is_new
    assert not TableChange({**stream_record(document()), "eventName": "REMOVE"}).is_new
    for sk in ("HEAD", "LAST", "DELIVERY", "2026-05-20"):
        assert not changed(sk={"S": sk}).is_new


@pytest.mark.parametrize(
    ("image", "key"),
    [
        ({"pk": {"S": "HEAD"}}, "pk"),
        ({"pk": {"S": f"JOB#{ARN}"}}, "pk"),
        ({"pk": {"S": f"JOB#{ARN}#soon"}}, "pk"),
        ({"pk": {"S": f"JOB#{ARN}#007"}}, "pk"),
        ({"pk": {"N": "1"}}, "pk"),
        ({"sk": {"S": "AUDIT#x"}}, "sk"),
        ({"sk": {"S": "NOTICE#1#slack"}}, "sk"),
        ({"sk": {}}, "sk"),
    ],
)
def test_a_key_that_is_none_is_named(image: dict[str, Any], key: str) -> None:
    """It is an audit's record and still cannot be decided about."""
    change = changed(**image)
    assert change.is_new
    with pytest.raises(MalformedData) as raised:
        parse_version(change.pk, change.sk)
    assert raised.value.key == key


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"'])
def test_a_document_that_is_no_object_is_refused(text: str) -> None:
    """Or no JSON at all."""
    with pytest.raises(MalformedData, match="document "):
        TableChange(stream_record(text)).document()


@given(st.dictionaries(st.sampled_from(["eventName", "dynamodb"]), JSON))
def test_whatever_a_record_holds_it_is_read_or_malformed(record: dict[str, Any]) -> None:
    """Nothing else is raised."""
    change = TableChange(record)
    assert change.is_new in (True, False)
    assert isinstance(change.identifier, str)
    assert json.loads(change.dead_letter_body)["sequence_number"] == change.identifier
    with pytest.raises(MalformedData):
        parse_version(change.pk, change.sk)
    with pytest.raises(MalformedData):
        change.document()


@pytest.mark.parametrize("channel", ["sns", "ml-platform", "team2"])
def test_a_notice_of_any_channel_names_its_run(channel: str) -> None:
    """Also of one whose name has a hyphen or a digit."""
    assert parse_version(f"ALERT#{PK}", f"NOTICE#00012#{channel}") == parse_version(
        PK, "AUDIT#00012"
    )


@pytest.mark.parametrize("selector", ["#", "tag#team=a#b", "family#training/x\n"])
def test_a_notice_of_a_budget_names_it(selector: str) -> None:
    """By month and selector, with the number of its message."""
    labels = notice_labels(f"BUDGET#2026-11#{selector}", "NOTICE#00002#slack")
    assert labels == {"budget": f"2026-11#{selector}", "notice": 2}
    with pytest.raises(MalformedData):
        notice_labels(f"BUDGET#2026#{selector}", "NOTICE#00002#slack")


def test_a_notice_of_a_running_job_names_it() -> None:
    """With the number of its message, which is no version of an audit."""
    run = PK.removeprefix("JOB#")
    labels = notice_labels(f"WATCH#{run}", "NOTICE#00002#slack")
    assert labels == {"job": parse_version(PK, "AUDIT#00001")[0].arn, "notice": 2}
