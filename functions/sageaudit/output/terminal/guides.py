"""Guides on the terminal: what to try, and where to read more."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sageaudit.domain.guides.guides import GuideDocument
from sageaudit.output.terminal.layout import heading, line
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import GUIDES_TITLE, NO_GUIDES


def show_guides(guides: Sequence[GuideDocument], console: Console) -> None:
    """Prints them; only the terminal may wrap an address."""
    heading(console, GUIDES_TITLE)
    if not guides:
        line(console, NO_GUIDES, "dim", indent=2)
    for position, guide in enumerate(guides):
        if position:
            console.print()
        line(console, guide["name"], "cyan", indent=2)
        line(console, guide["says"], indent=4)
        console.print(Text(f"    {terminal(guide['source'])}", "dim"), soft_wrap=True)
