"""docs/guidance.md: each piece of advice of the source documents has an answer that exists."""

import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.guides import load as load_guides
from sageaudit.rules.catalogue import load as load_rules
from tests.house.test_commands_in_docs import parse_error
from tools.pages.guidance import ANSWERS, PAGE, documents, page

POINTS = [point for document in documents() for point in document["points"]]


def fields_of(shape: Any, path: str = "") -> Iterator[str]:
    """Yields the paths of a document's keys. The keys of a list's items follow the list's own
    path.
    """
    for part in _parts(shape):
        if typing.is_typeddict(part):
            for name, inner in typing.get_type_hints(part).items():
                yield f"{path}{name}"
                if inner != list[AuditDocument] | None:
                    yield from fields_of(inner, f"{path}{name}.")


def _parts(shape: Any) -> Iterator[Any]:
    if typing.get_origin(shape) in {list, types.UnionType, typing.Union}:
        for inside in typing.get_args(shape):
            yield from _parts(inside)
    else:
        yield shape


FIELDS = set(fields_of(AuditDocument))
NAMES = {
    "rules": {rule.info.name for rule in load_rules()},
    "guides": {guide.name for guide in load_guides()},
    "fields": FIELDS,
}


def test_the_page_is_fresh() -> None:
    """`make docs` writes the page."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point["says"])
def test_a_point_has_an_answer(point: dict[str, Any]) -> None:
    """A point has at least one answer, a sentence of our own, and no key that nothing reads."""
    assert any(point.get(kind) for kind in ANSWERS)
    assert point.keys() <= {"says", *ANSWERS}
    assert point["says"].endswith(".")
    assert len(point["says"].split()) <= 20


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point["says"])
def test_each_answer_exists(point: dict[str, Any]) -> None:
    """Rules, guides and keys are checked by their names, commands by the command line's parser."""
    for kind, names in NAMES.items():
        assert set(point.get(kind, ())) <= names, kind
    assert [
        why for command in point.get("commands", ()) if (why := parse_error(f"{command} X"))
    ] == []


def test_a_name_that_does_not_exist_is_seen() -> None:
    """The test has a key of a key, a key of an item of a list, and keys that do not exist."""
    assert {"bill.lines.usage_type", "phases.seconds", "idle_capacity.likely_causes"} <= FIELDS
    assert not {"bill.line", "phases.minutes", "children.job"} & FIELDS
    assert parse_error("sageaudit by --no-such-option X")


def test_every_guide_answers_a_point() -> None:
    """No guide exists without a point of a document."""
    assert {name for point in POINTS for name in point.get("guides", ())} == NAMES["guides"]
