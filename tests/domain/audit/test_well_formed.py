"""Whether a stored document has the form of an audit."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.well_formed import fault_in, reading
from sageaudit.errors import Malformed
from tests.fakes.documents import document
from tests.fakes.family import run_document


def test_an_audit_has_no_fault() -> None:
    """Nor has one with findings and idle hours."""
    assert fault_in(document()) is None
    assert fault_in(run_document(severity="high", avoidable="40", idle={"hours": "30"})) is None


def test_each_key_that_is_missing_is_named() -> None:
    """Also those that may be null."""
    whole = document()
    for key in whole:
        rest = {name: value for name, value in whole.items() if name != key}
        assert fault_in(rest) == f"document.{key} is not there"


def test_each_key_of_another_type_is_named() -> None:
    """At any depth; what an audit may leave open is free."""
    for path in _paths(document()):
        if "evidence" in path or "old" in path or "new" in path:
            continue
        broken: Any = deepcopy(document())
        *folders, key = path
        inner = broken
        for folder in folders:
            inner = inner[folder]
        inner[key] = {1, 2}
        assert (fault_in(broken) or "").startswith("document." + ".".join(map(str, path)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("avoidable_usd", "12"),
        ("avoidable_usd", "much"),
        ("schema", True),
        ("avoidable_usd", True),
        ("avoidable_usd", float("nan")),
        ("avoidable_usd", Decimal("1e400")),
        ("judged", "perhaps"),
        ("rollup", 1),
        ("findings", {}),
    ],
)
def test_a_value_that_no_audit_has_is_a_fault(key: str, value: object) -> None:
    """Amounts beyond any bill among them."""
    whole: Any = {**document(), key: value}
    assert (fault_in(whole) or "").startswith(f"document.{key} is")


@pytest.mark.parametrize("ended_at", ["2026-13-45", "0001-01-01T00:00:00Z", "2026-05-20T10:00:00"])
def test_a_time_that_is_none_is_a_fault(ended_at: str) -> None:
    """Times have a zone, and are of the years in which there are jobs."""
    whole = document()
    whole["job"]["ended_at"] = ended_at
    assert fault_in(whole) == "document.job.ended_at is not a date-time"


def test_only_what_fails_is_checked() -> None:
    """An older form that can be read is read; an error about a whole document is a defect."""
    older: Any = {name: value for name, value in document().items() if name != "clear"}
    with reading(older):
        pass
    with pytest.raises(KeyError), reading(document(), None):
        raise KeyError("x")
    why = r"document cannot be read: document\.clear is not there"
    with pytest.raises(Malformed, match=why), reading(document(), older):
        raise KeyError("x")


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else pairs:
        yield from _paths(inner, (*path, key))
