"""Splits a rule's page, which is its docstring, into sections."""

from __future__ import annotations

import re

SECTION_NAMES = (
    "What it checks",
    "Why it costs",
    "Saving",
    "When it is wrong",
    "What to do",
    "Sources",
)
"""The sections of every page, in this order.

A rule's docstring has a title, then a paragraph for each section. The paragraph's further lines are
indented. A line that begins with `- ` is an item of a list, which ends the section.
"""
_SECTION = re.compile(rf"^({'|'.join(SECTION_NAMES)}): (.*(?:\n    .*)*)", re.MULTILINE)
_ITEM = re.compile(r"\n +(?=- )")


def page_sections(page: str) -> dict[str, tuple[str, ...]]:
    """Returns the parts of each section by its heading: the paragraph, then each item of its list.

    A part is one line. An item begins with `- `.
    """
    return {
        heading: tuple(" ".join(part.split()) for part in _ITEM.split(text))
        for heading, text in _SECTION.findall(page)
    }
