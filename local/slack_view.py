"""Shows a Slack message (Block Kit) on the terminal, about as wide as on a phone."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from sageaudit.output.text.untrusted import for_terminal

WIDTH = 44
_MARKUP = re.compile(r"\*(?P<bold>[^*\n]+)\*|`(?P<code>[^`]+)`|<(?P<link>[^<>]+)>")


def render(payload: Mapping[str, Any]) -> Panel:
    """Returns the message in a frame."""
    parts = [part for block in payload["blocks"] for part in (Text(), *_block(block))]
    return Panel(Group(*parts[1:]), title="Slack", title_align="left", width=WIDTH)


def _block(block: Mapping[str, Any]) -> Iterator[Text]:
    yield Text("\n").join(map(_line, block["text"]["text"].split("\n")))


def _line(line: str) -> Text:
    """Returns a line with bold text, code and links in their styles."""
    line_text = Text()
    position = 0
    for match in _MARKUP.finditer(line):
        line_text.append(_plain_text(line[position : match.start()]))
        line_text.append_text(_styled(match))
        position = match.end()
    line_text.append(_plain_text(line[position:]))
    return line_text


def _styled(match: re.Match[str]) -> Text:
    if match["bold"]:
        return Text(_plain_text(match["bold"]), "bold")
    if match["code"]:
        return Text(_plain_text(match["code"]), "cyan")
    address, _, word = match["link"].partition("|")
    return Text(_plain_text(word or address), "blue underline")


def _plain_text(text: str) -> str:
    """Undoes Slack's three escapes. Spaces at both ends stay, as parts of the line."""
    start, end = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{start}{for_terminal(html.unescape(text))}{end}" if text.strip() else text
