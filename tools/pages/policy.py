"""Writes docs/policy.md, the reference of policy.toml, from its schema: `make docs`."""

from __future__ import annotations

import json

from tools.pages import DOCS
from tools.pages.schema_of_types import Schema
from tools.pages.schema_policy import policy

PAGE = DOCS / "policy.md"
_HEAD = """\
# The policy

`policy.toml` has the settings that your team edits. The file in this repository has an example of
each table. An unknown key, rule or channel is refused before anything is deployed.

[schema/policy.schema.json](schema/policy.schema.json) is the same reference for editors. With the
*Even Better TOML* extension of VS Code, or with taplo, this first line turns on completion:

```toml
#:schema ./docs/schema/policy.schema.json
```

The thresholds of each rule, with their units, reasons and sources, are on its
[page](rules/README.md).

"""
_TYPES = {
    "any": "number or text",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "object": "table",
    "string": "text",
}
_DEFINITION_TYPES = {
    "RuleName": "the name of a rule",
    "Rules": "as in `[rules]`",
    "Require": "as in `[require]`",
}


def page() -> str:
    """Returns the whole page."""
    schema = policy()
    shapes = {key: _resolved(shape, schema) for key, shape in schema["properties"].items()}
    tables = {key: shape for key, shape in shapes.items() if _is_table(shape)}
    keys = {key: shape for key, shape in shapes.items() if key not in tables}
    parts = [_HEAD, "## Keys outside of tables\n\n", _rows(keys)]
    for name, shape in tables.items():
        heading = f"[[{name}]]" if shape["type"] == "array" else f"[{name}]"
        rows = _rows(_keys(name, shape.get("items", shape)))
        parts.append(f"\n## `{heading}`\n\n{shape['description']}\n\n{rows}")
    return "".join(parts)


def _resolved(shape: Schema, schema: Schema) -> Schema:
    """Returns the definition that a reference names, or the shape itself."""
    name = shape.get("$ref", "").rpartition("/")[2]
    return schema["$defs"][name] if name else shape


def _is_table(shape: Schema) -> bool:
    return shape.get("type") == "object" or shape.get("items", {}).get("type") == "object"


def _keys(name: str, table: Schema) -> Schema:
    """Returns the keys of a table that the page lists. Keys of inner tables have their full
    names.
    """
    if name == "channels":
        return dict(table["additionalProperties"]["properties"])
    if name == "rules":
        rule = next(row for row in table["properties"].values() if row.get("type") == "object")
        number = {"type": "number", "description": "A threshold of the rule, as on its page."}
        rule_keys = {"RULE.severity": rule["properties"]["severity"], "RULE.THRESHOLD": number}
        return {**{key: table["properties"][key] for key in ("off", "on")}, **rule_keys}
    return {key: shape for key, shape in _flat(table).items() if "description" in shape}


def _flat(table: Schema) -> Schema:
    """Returns the keys of a table and of its inner tables. Keys that may have any name have their
    titles.
    """
    other_names = table.get("additionalProperties") or None
    shapes = [*table.get("patternProperties", {}).values(), *([other_names] if other_names else [])]
    keys = {**table.get("properties", {}), **{shape["title"]: shape for shape in shapes}}
    flat: Schema = {}
    for key, shape in keys.items():
        inner = _flat(shape) if shape.get("type") == "object" and "description" in shape else {}
        flat |= {f"{key}.{name}": row for name, row in inner.items()} or {key: shape}
    return flat


def _rows(keys: Schema) -> str:
    head = "| key | value | default | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"{_row(key, shape)}\n" for key, shape in keys.items())


def _row(key: str, shape: Schema) -> str:
    default = f"`{json.dumps(shape['default'])}`" if "default" in shape else ""
    cells = (f"`{key}`", _value(shape), default, shape["description"])
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _value(shape: Schema) -> str:
    """Returns the type of a value in words, or the allowed words."""
    if "enum" in shape:
        return ", ".join(f"`{word}`" for word in shape["enum"])
    if "$ref" in shape:
        return _DEFINITION_TYPES[shape["$ref"].rpartition("/")[2]]
    if shape.get("type") == "array":
        return f"list: {_value(shape['items'])}"
    return _TYPES[shape.get("type", "any")]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
