"""Values as each language writes them. Names may be hostile: a literal is one line and stays one.

What does not print (control characters, marks that turn a line around) is escaped, the rest stays
readable.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_BEYOND_16_BITS = 0xFFFF
_TEMPLATE = re.compile(r"(\$+|%+)(?=\{)")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def python(value: Any) -> str:
    """For Python source."""
    return _literal(value, _python_text, ("None", "True", "False"))


def json_value(value: Any) -> str:
    """For JSON."""
    return _literal(value, _json_text, ("null", "true", "false"))


def hcl(value: Any) -> str:
    """For Terraform: nothing in a text is taken for a template."""
    return _literal(value, _hcl_text, ("null", "true", "false"))


def json_path(name: str) -> str:
    """A name in a JSONPath (RFC 9535), in single quotes so that it reads well inside JSON."""
    escaped = "".join(f"\\{char}" if char in "\\'" else _json_path_char(char) for char in name)
    return f"'{escaped}'"


def one_line(text: str) -> str:
    """For a comment: what does not print is escaped."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _literal(value: Any, text: Callable[[str], str], words: tuple[str, str, str]) -> str:
    none, true, false = words
    if value is None:
        return none
    if isinstance(value, bool):
        return true if value else false
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, int | float) and math.isfinite(value):
        return repr(value)
    return text(str(value))


def _python_text(text: str) -> str:
    return f'"{"".join(map(_char, text))}"'


def _hcl_text(text: str) -> str:
    return _TEMPLATE.sub(_no_template, _python_text(text))


def _no_template(signs: re.Match[str]) -> str:
    """A sign doubled is itself; where several stand, only their codes are sure."""
    run = signs[1]
    return run * 2 if len(run) == 1 else f"\\u{ord(run[0]):04x}" * len(run)


def _json_text(text: str) -> str:
    return f'"{"".join(_json_char(char) for char in text)}"'


def _char(char: str) -> str:
    if char in {'"', "\\"}:
        return f"\\{char}"
    return char if char.isprintable() else _escape(char)


def _json_char(char: str) -> str:
    return f"\\{char}" if char in {'"', "\\"} else _json_path_char(char)


def _json_path_char(char: str) -> str:
    """JSON escapes what lies beyond 16 bits as a pair."""
    return char if char.isprintable() else json.dumps(_whole(char))[1:-1]


def _escape(char: str) -> str:
    code = ord(_whole(char))
    return f"\\U{code:08x}" if code > _BEYOND_16_BITS else f"\\u{code:04x}"


def _whole(char: str) -> str:
    """Half of a surrogate pair is no character."""
    return _REPLACEMENT if "\ud800" <= char <= "\udfff" else char
