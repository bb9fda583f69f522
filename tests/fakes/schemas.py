"""Validates documents against the JSON Schemas of docs/schema."""

import json
from functools import cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator

from tools.pages import schemas


@cache
def validator(name: str) -> Draft202012Validator:
    """Returns the validator of a schema in the repository."""
    path = schemas.FOLDER / f"{name}.schema.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def schema_errors(name: str, value: Any) -> list[str]:
    """Returns the first errors of a document; an empty list if it is valid."""
    errors = islice(validator(name).iter_errors(value), 5)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]
