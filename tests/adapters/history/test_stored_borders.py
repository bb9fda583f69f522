"""Just inside and just outside of what of a document is stored."""

import json
from typing import Any

import pytest

from sageaudit.adapters.history.record_steps import to_stored_json
from tests.fakes.documents import document


def of_size(size: int) -> Any:
    """A document of this many bytes of JSON, most of which are the evidence of a finding."""
    whole: Any = document()
    whole["findings"][0]["evidence"] = {"log": ""}
    whole["findings"][0]["evidence"]["log"] = "x" * (size - len(to_stored_json(whole, 1)))
    return whole


@pytest.mark.parametrize(("size", "is_whole"), [(350_000, True), (350_001, False)])
def test_a_document_of_350000_bytes_is_stored_whole(size: int, is_whole: bool) -> None:
    """Its gzip fits an item of 400 KB whatever it says. A byte more costs it its evidence."""
    text = to_stored_json(of_size(size), 1)
    assert (len(text) == size) is is_whole
    evidence = [finding["evidence"] for finding in json.loads(text)["findings"]]
    assert any(evidence) is is_whole


def test_the_last_trim_keeps_50_entries_of_300_characters() -> None:
    """A longer text says that it was cut."""
    whole: Any = document()
    whole["audit"]["coverage"]["missing"] = ["a" * 300, "b" * 301, *["c" * 400] * 1_000]
    stored_notes = json.loads(to_stored_json(whole, 1))["audit"]["coverage"]["missing"]
    assert stored_notes[:2] == ["a" * 300, "b" * 299 + "…"]
    assert sum(text[:1] in "abc" for text in stored_notes) == 50
