"""JSON files are changed in place: only the edited values differ."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.files.request_edit import Edit, EditableFile, edit_json
from sageaudit.errors import BadUsage

TWO = """{
  "a": {
    "b": 1,
    "c": "x"
  },
  "list": [ {"n": 1}, {"n": 2} ]
}
"""


@pytest.mark.parametrize(
    ("text", "edit", "expected"),
    [
        pytest.param(TWO, Edit(("a", "b"), 25), ('"b": 1', '"b": 25'), id="a number"),
        pytest.param(TWO, Edit(("a", "c"), 5), ('"c": "x"', '"c": "5"'), id="a number as text"),
        pytest.param(TWO, Edit(("a", "c"), "ö"), ('"c": "x"', '"c": "ö"'), id="a text"),
        pytest.param(TWO, Edit(("list", 1, "n"), True), ('{"n": 2}', '{"n": true}'), id="an item"),
        pytest.param(
            TWO, Edit(("a", "d"), 2), ('"c": "x"\n', '"c": "x",\n    "d": 2\n'), id="a new key"
        ),
        pytest.param(
            TWO,
            Edit(("a", "d", "e"), 2),
            ('"c": "x"\n', '"c": "x",\n    "d": {\n      "e": 2\n    }\n'),
            id="a new key in a new object",
        ),
        pytest.param(
            TWO, Edit(("list", 0, "m"), 2), ('{"n": 1}', '{"n": 1, "m": 2}'), id="on one line"
        ),
        pytest.param(TWO, Edit(("a", "b")), ('\n    "b": 1,', ""), id="the first key goes"),
        pytest.param(TWO, Edit(("a", "c")), (',\n    "c": "x"', ""), id="the last key goes"),
        pytest.param(TWO, Edit(("list", 0, "n")), ('{"n": 1}', "{}"), id="the only key goes"),
        pytest.param(TWO, Edit(("a", "z")), ("", ""), id="a key that is missing"),
        pytest.param(
            TWO, Edit(("a", "b"), new_key="B"), ('"b": 1', '"B": 1'), id="a misspelled key"
        ),
        pytest.param(TWO, Edit(("a", "b", "c"), 1), ("", ""), id="a number is no object"),
        pytest.param(TWO, Edit(("a", "x", 0, "c"), 1), ("", ""), id="an item of no list"),
        pytest.param('{"a":1}', Edit(("b",), 2), ("1}", '1,"b":2}'), id="compact"),
        pytest.param("{}", Edit(("b",), 2), ("{}", '{"b": 2}'), id="empty"),
        pytest.param('{\n\t"a": {}\n}', Edit(("a", "b"), 2),
                     ("{}", '{\n\t\t"b": 2\n\t}'), id="empty, with tabs"),
        pytest.param(
            '{\r\n "a": 1\r\n}\r\n', Edit(("b",), 2), ("1\r", '1,\r\n "b": 2\r'), id="Windows"
        ),
        pytest.param(
            '{"a" : "\\"}, \\u00e9" , "b":1}', Edit(("b",), 2), ('"b":1', '"b":2'),
            id="a text with brackets",
        ),
    ],
)  # fmt: skip
def test_only_the_edited_value_changes(text: str, edit: Edit, expected: tuple[str, str]) -> None:
    """The rest of the text is the same, character by character."""
    assert edit_json(text, [edit]) == text.replace(*expected, 1)


def test_several_edits_are_made_and_renamed_keys_come_last() -> None:
    """Edits inside a renamed object use its old name."""
    edits = [Edit(("a",), new_key="A"), Edit(("a", "b"), 2), Edit(("a", "d"), 3), Edit(("list",))]
    assert json.loads(edit_json(TWO, edits)) == {"A": {"b": 2, "c": "x", "d": 3}}


_TEXT = st.characters(codec="utf-8")
_KEYS = st.text(_TEXT, max_size=3)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(_TEXT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=10,
)


@given(st.data(), st.sampled_from([None, 1, 2, 4, "\t"]))
def test_any_text_with_any_edit_is_the_changed_document(
    data: Any, indent: int | str | None
) -> None:
    """Values, new keys and removed keys, at any place."""
    document = data.draw(st.dictionaries(_KEYS, _VALUES, max_size=4))
    place: list[Any] = []
    inside: Any = document
    while isinstance(inside, dict) and (not place or data.draw(st.booleans())):
        place.append(data.draw(st.sampled_from([*inside, "new"])))
        inside = inside.get(place[-1])
    new = data.draw(st.none() | st.integers() | st.text('ab"\\é{}'))
    text = json.dumps(document, indent=indent, ensure_ascii=data.draw(st.booleans()))
    changed = json.loads(edit_json(text, [Edit(tuple(place), new)]))
    around: Any = document
    for step in place[:-1]:
        around = around.setdefault(step, {})
    if new is None:
        around.pop(place[-1], None)
    else:
        old = around.get(place[-1])
        is_text = isinstance(old, str) and not isinstance(new, str)
        around[place[-1]] = str(new) if is_text else new
    assert changed == document


def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path: Path) -> None:
    """A byte order mark stays, too."""
    target = tmp_path / "target.json"
    target.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n')
    target.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(target)
    file = EditableFile.read(str(link), '{"a": 1}\r\n')
    file.save('{"a": 2}\r\n')
    assert target.read_bytes() == b'\xef\xbb\xbf{"a": 2}\r\n'
    assert (target.stat().st_mode & 0o777, link.is_symlink()) == (0o640, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "target.json"]


def test_a_file_that_is_read_only_or_has_changed_stays(tmp_path: Path) -> None:
    """The error names it."""
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}', "utf-8")
    file = EditableFile.read(str(path), '{"a": 1}')
    path.write_text('{"a": 3}', "utf-8")
    with pytest.raises(BadUsage, match=re.escape(f"{path}: has changed meanwhile")):
        file.save('{"a": 2}')
    path.chmod(0o444)
    with pytest.raises(BadUsage, match="is read-only"):
        EditableFile.read(str(path), '{"a": 3}')
    path.chmod(0o644)
    path.write_text('{"a": 3}', "utf-16")
    with pytest.raises(BadUsage, match="save it as UTF-8"):
        EditableFile.read(str(path), '{"a": 3}')
    path.unlink()
    with pytest.raises(BadUsage, match="cannot be read"):
        EditableFile.read(str(path), '{"a": 3}')
    assert list(tmp_path.iterdir()) == []
