"""A document gets each key from the overrides, or from the first source that has it."""

from types import SimpleNamespace
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.audit.finding_document import fill_document, to_plain_value


class _Shape(TypedDict):
    a: Any
    b: Any
    c: Any


_PARTS = st.dictionaries(st.sampled_from("abc"), st.none() | st.text() | st.integers())


def _fill_plainly(sources: list[Any], overrides: dict[str, Any]) -> dict[str, Any]:
    document = {}
    for key in _Shape.__annotations__:
        source = next((source for source in sources if hasattr(source, key)), None)
        document[key] = overrides[key] if key in overrides else to_plain_value(getattr(source, key))
    return document


@given(st.lists(_PARTS, min_size=1, max_size=3), _PARTS)
def test_a_key_comes_from_the_overrides_or_the_first_source(
    parts: list[dict[str, Any]], overrides: dict[str, Any]
) -> None:
    sources = [SimpleNamespace(**part) for part in parts]
    if set("abc") <= set().union(overrides, *parts):
        assert fill_document(_Shape, *sources, **overrides) == _fill_plainly(sources, overrides)
    else:
        with pytest.raises(AttributeError):
            fill_document(_Shape, *sources, **overrides)
