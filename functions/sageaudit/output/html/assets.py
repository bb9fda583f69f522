"""The style sheet and the script of every page, and the policy that allows these two alone."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources


@cache
def style() -> str:
    """The style sheet, without the line breaks' indents."""
    return _lean("page.css")


@cache
def script() -> str:
    """The script: sorting, filtering, copying, the choice of a dialect and of a theme."""
    return _lean("page.js")


def content_security_policy() -> str:
    """Nothing is loaded or sent; the style and the script are known by their hashes."""
    return (
        f"default-src 'none'; style-src '{_hash(style())}'; script-src '{_hash(script())}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def _lean(name: str) -> str:
    lines = resources.files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    return "\n".join(filter(None, map(str.strip, lines)))


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
