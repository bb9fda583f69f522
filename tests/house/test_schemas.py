"""The JSON Schemas under docs/schema are what the program prints and reads."""

import copy
import json
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sageaudit.adapters.files import recording, recording_file
from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.domain.policy.policy import Policy
from sageaudit.workflows.recordings.run import audit_recording
from tests.fakes import recorded
from tests.fakes.schemas import schema_errors, validator
from tools.pages import schemas

NAMES = sorted(schemas.schemas())
ONE_JOB = "profiled-053-g4dn-xlarge.json"
JOB_SET = "tuning-set-bayesian-221019-1807.json"


@cache
def audit(file: str) -> Any:
    """Returns the audit of one recording, as it is printed."""
    path = recorded.DATA / "jobs" / file
    return from_json(to_json(audit_recording(path, Policy())))


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_what_make_docs_writes(name: str) -> None:
    """If a type or key changes, its schema must change too."""
    written = (schemas.FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
    assert written == schemas.to_text(schemas.schemas()[name])


def test_every_schema_is_one_of_the_2020_dialect_and_listed() -> None:
    """The folder has no other file."""
    for name in NAMES:
        Draft202012Validator.check_schema(validator(name).schema)
    files = {path.name for path in schemas.FOLDER.iterdir()}
    assert files == {f"{name}.schema.json" for name in NAMES}


@pytest.mark.parametrize("stem", recorded.stem_params())
def test_every_recording_and_its_audit_are_valid(stem: str) -> None:
    """The recording is valid as it is, and as `record` writes it."""
    path = recorded.file(stem)
    assert schema_errors("recording", json.loads(path.read_text(encoding="utf-8"))) == []
    written = recording_file.to_text(recording_file.make_document(recording.read(path)))
    assert schema_errors("recording", json.loads(written)) == []
    assert schema_errors("audit", audit(path.name)) == []


def test_the_schema_of_the_audit_names_every_key() -> None:
    """A document has no key that the schema lacks."""
    schema = copy.deepcopy(schemas.schemas()["audit"])
    for shape in schema["$defs"].values():
        shape["additionalProperties"] = False
    closed = Draft202012Validator(schema)
    for file in (ONE_JOB, JOB_SET):
        assert [error.message for error in closed.iter_errors(audit(file))] == []


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yields the path of every value inside a document."""
    if isinstance(value, dict):
        pairs: list[tuple[str | int, Any]] = list(value.items())
    else:
        pairs = list(enumerate(value)) if isinstance(value, list) else []
    for key, inner in pairs:
        yield (*path, key)
        yield from places(inner, (*path, key))


def changed(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """Returns a copy with another value; without the key if the value is None."""
    whole = copy.deepcopy(document)
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return whole


_FREE = {"evidence", "old", "new", "share"}
"""Keys of an audit whose value has any shape, or not always the same keys."""


def required(file: str) -> list[tuple[str | int, ...]]:
    """Returns the paths of the keys that an audit must have."""
    return [
        path
        for path in places(audit(file))
        if isinstance(path[-1], str) and not _FREE & {*path[:-1]}
    ]


@given(st.data())
def test_an_audit_without_one_of_its_keys_is_not_valid(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(required(ONE_JOB)))
    assert schema_errors("audit", changed(audit(ONE_JOB), path, None))


@given(st.data())
def test_an_audit_with_a_value_of_another_type_is_not_valid(data: st.DataObject) -> None:
    path = data.draw(
        st.sampled_from([path for path in places(audit(ONE_JOB)) if not _FREE & {*path}])
    )
    assert schema_errors("audit", changed(audit(ONE_JOB), path, {"a": [Decimal(1)]}))


_RECORDED: dict[str, Any] = {
    "schema": 1,
    "account": "111122223333",
    "region": "eu-west-1",
    "as_of": "2026-05-20T12:00:00Z",
    "notes": ["tags: sagemaker:ListTags is not permitted"],
    "describe": {"TrainingJobName": "a", "TrainingJobStatus": "Completed"},
    "tags": [{"Key": "owner", "Value": "ana"}],
    "metrics": {
        "absent": {"code": "metric_missing", "reason": "no points", "remedy": None},
        "notes": ["CloudWatch returned Forbidden for some series"],
        "series": [
            {
                "host": "a/algo-1",
                "metric": "CPUUtilization",
                "start": "2026-05-20T10:00:00Z",
                "period_s": 60,
                "values": [1.5, None],
            }
        ],
    },
    "prices": {
        "region": "eu-west-1",
        "component": "Training",
        "read_at": "2026-05-20T11:00:00Z",
        "why": None,
        "rates": {
            "ml.m5.large": {"usd": "0.128", "effective": "2026-05-01", "usage_type": "x"},
            "ml.m4.xlarge": {"refused": "priced in CNY"},
        },
    },
}


def test_a_recording_with_every_key_is_valid_and_read() -> None:
    """The schema and the reader have the same keys."""
    assert schema_errors("recording", _RECORDED) == []
    read = recording.parse(_RECORDED)
    assert isinstance(read, recording.Recording)
    described = {**_RECORDED["describe"], "Derived": {}}
    assert recording_file.make_document(read) == _RECORDED | {"describe": described}


@given(st.data())
def test_a_mutant_of_a_recording_is_not_valid(data: st.DataObject) -> None:
    """A value of another type is not valid at any path."""
    path = data.draw(st.sampled_from(list(places(_RECORDED))))
    assert schema_errors("recording", changed(_RECORDED, path, {"a": [Decimal(1)]}))
