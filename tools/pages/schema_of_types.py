"""Makes JSON Schemas from TypedDicts and Structs, with their docstrings as descriptions.

The schema of a Struct describes what `msgspec.structs.asdict` and `to_json` make of it.
"""

from __future__ import annotations

import ast
import enum
import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import StructMeta

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: Mapping[object, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    Decimal: {"type": "number"},
    float: {"type": "number"},
    date: {"type": "string", "format": "date"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
    type(None): {"type": "null"},
}


class Definitions:
    """Collects the types that other types refer to.

    `words`: the enumerated words of a key that is typed as plain text, by class and key. `formats`:
    the formats of such keys.
    """

    def __init__(
        self,
        words: Mapping[tuple[str, str], type[enum.Enum]],
        formats: Mapping[tuple[str, str], str],
    ) -> None:
        self.schemas: dict[str, Schema] = {}
        self._words = words
        self._formats = formats

    def schema_of(self, annotation: Any) -> Schema:
        """Returns the schema of a type. A type with keys becomes a reference to its definition."""
        if typing.is_typeddict(annotation) or isinstance(annotation, StructMeta):
            return self._reference(annotation)
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            return {"enum": [word.value for word in annotation]}
        if annotation in _SCALARS:
            return dict(_SCALARS[annotation])
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in {list, tuple}:
            return {"type": "array", "items": self.schema_of(arguments[0])}
        if origin in {dict, Mapping}:
            return {"type": "object", "additionalProperties": self.schema_of(arguments[1])}
        if origin in {typing.Union, types.UnionType}:
            return _either([self.schema_of(inner_type) for inner_type in arguments])
        raise TypeError(f"no schema is known for {annotation}")

    def _reference(self, shape: type) -> Schema:
        name = shape.__name__
        if name not in self.schemas:
            self.schemas[name] = {}
            self.schemas[name] = self._object(shape)
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, shape: type) -> Schema:
        hints = typing.get_type_hints(shape)
        descriptions = dict(_docstrings(shape))
        keys = {
            key: self._key(shape, key, hint, descriptions.get(key)) for key, hint in hints.items()
        }
        schema: Schema = {"type": "object", "properties": keys, "required": list(hints)}
        return {"description": inspect.cleandoc(shape.__doc__ or ""), **schema}

    def _key(self, shape: type, key: str, hint: Any, description: str | None) -> Schema:
        schema = self.schema_of(hint)
        place = (shape.__name__, key)
        nullable = "null" in _types(schema)
        if words := self._words.get(place):
            members = [word.value for word in words]
            schema = {"enum": [*members, None] if nullable else members}
        if form := self._formats.get(place):
            schema["format"] = form
        return {**schema, "description": description} if description else schema


def _types(schema: Schema) -> list[str]:
    named = schema.get("type", [])
    return [named] if isinstance(named, str) else [*named]


def _either(schemas: list[Schema]) -> Schema:
    """Returns the schema of one of several types. Plain types are listed in one `type`."""
    words = [word for schema in schemas for word in schema.get("enum", ())]
    if words and all("enum" in schema or schema == _SCALARS[type(None)] for schema in schemas):
        return {"enum": [*words, None]}
    if all(set(schema) == {"type"} for schema in schemas):
        return {"type": [name for schema in schemas for name in _types(schema)]}
    if len(schemas) == 2 and schemas[1] == _SCALARS[type(None)] and set(schemas[0]) > {"type"}:  # noqa: PLR2004
        return {**schemas[0], "type": [*_types(schemas[0]), "null"]}
    return {"anyOf": schemas}


def _docstrings(shape: type) -> Iterator[tuple[str, str]]:
    """Yields each key of a class with the docstring below it."""
    [node] = [
        node
        for node in ast.walk(_tree(inspect.getsourcefile(shape) or ""))
        if isinstance(node, ast.ClassDef) and node.name == shape.__name__
    ]
    for before, after in zip(node.body, node.body[1:], strict=False):
        has_docstring = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if (
            has_docstring
            and isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
        ):
            yield before.target.id, inspect.cleandoc(str(after.value.value))  # type: ignore[attr-defined]


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text(encoding="utf-8"))
