"""What a file is that a command cannot read, by its beginning, and how to make the right one."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from pathlib import Path

_HEAD = 4096
_PLAN_TEXT = re.compile(
    rb"Terraform (used the selected providers|will perform)"
    rb"|^\s*(\x1b\[\d*m)*\s*# \S+ (will|must) be ",
    re.MULTILINE,
)
_MAKE_PLAN = "`terraform show -json PLANFILE > plan.json` makes it JSON"
_FORMS: tuple[tuple[re.Pattern[bytes], str, str], ...] = (
    (re.compile(rb"\x1f\x8b"), "compressed by gzip", "`gunzip {path}` unpacks it"),
    (
        re.compile(rb"PK\x03\x04"),
        "a ZIP archive, as `terraform plan -out` writes",
        "`terraform show -json {path} > plan.json` makes a plan JSON",
    ),
    (
        re.compile(rb'\{"@level"'),
        "the log of `terraform plan -json`",
        "write the plan with `terraform plan -out PLANFILE`, then " + _MAKE_PLAN,
    ),
    (re.compile(rb"\s*\[\s*[{\]\"\d]"), "a list", ""),
)
"""How a file begins, what it is then, and what makes the right one of it."""


def other_form(path: Path, make: str) -> str | None:
    """`is a folder: ...`, with `make` where nothing better is known; None for any other file."""
    if path.is_dir():
        return f"is a folder: {make}"
    with suppress(OSError), path.open("rb") as file:
        return other_form_of(str(path), file.read(_HEAD), make)
    return None


def other_form_of(path: str, head: bytes, make: str) -> str | None:
    """The same of what was read."""
    head = head.removeprefix(codecs.BOM_UTF8)
    if _PLAN_TEXT.search(head, 0, _HEAD):
        return f"is a Terraform plan as text: {_MAKE_PLAN}"
    for begins, what, do in _FORMS:
        if begins.match(head):
            return f"is {what}: {do.format(path=path) or make}"
    return None
