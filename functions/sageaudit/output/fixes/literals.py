"""Values as literals of Python and JSON, always on one line: names may be hostile.

Characters that do not print (control characters, marks that reverse a line) are escaped; all others
stay readable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_BEYOND_16_BITS = 0xFFFF
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def python(value: Any) -> str:
    """The value as a Python literal."""
    return _literal(value, _escape, ("None", "True", "False"))


def json_value(value: Any) -> str:
    """The value as JSON, whose escapes of code points beyond 16 bits are surrogate pairs."""
    return _literal(value, _json_escape, ("null", "true", "false"))


def one_line(text: str) -> str:
    """The text for a comment: characters that do not print are escaped."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _literal(value: Any, escape: Callable[[str], str], words: tuple[str, str, str]) -> str:
    none, true, false = words
    if value is None:
        return none
    if isinstance(value, bool):
        return true if value else false
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, int | float) and math.isfinite(value):
        return repr(value)
    written = (
        f"\\{char}" if char in '"\\' else char if char.isprintable() else escape(char)
        for char in str(value)
    )
    return f'"{"".join(written)}"'


def _json_escape(char: str) -> str:
    return json.dumps(_whole(char))[1:-1]


def _escape(char: str) -> str:
    code = ord(_whole(char))
    return f"\\U{code:08x}" if code > _BEYOND_16_BITS else f"\\u{code:04x}"


def _whole(char: str) -> str:
    """The character; half of a surrogate pair, which is no character, is replaced."""
    return _REPLACEMENT if "\ud800" <= char <= "\udfff" else char
