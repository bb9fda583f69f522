"""A card for Microsoft Teams: an Adaptive Card of lines of plain runs, with its links as buttons.

Every text is in a TextRun, of which Teams reads no Markdown, as it does of a TextBlock; so nothing
in it becomes a format, a link or a mention. Its addresses are broken, so that no client links them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sageaudit.errors import MalformedData
from sageaudit.output.text.card import (
    MAX_COMMAND_LENGTH,
    NO_OWNER_IDS,
    REPEAT_PREFIX,
    CardLine,
    MessageCard,
    Payload,
    check_key_types,
)
from sageaudit.output.text.untrusted import cut_middle, for_plain_text, for_terminal

MAX_BYTES = 20_000
"""Of a message as it is posted. Teams documents about 28 KB, and others met the end at 21 KB."""
_CARD = "application/vnd.microsoft.card.adaptive"
_LINE = 1000
_MAX_BUTTONS = 6
"""Teams shows so many of a card."""

Element = dict[str, Any]


def make_payload(card: MessageCard, owner_ids: Mapping[str, str] = NO_OWNER_IDS) -> Payload:
    """The workflow's JSON for a card, within the size that Teams takes."""
    del owner_ids  # ids of Slack: Teams shows the name
    title = _element(_run(_text(card.title), weight="Bolder", size="Medium"))
    body = [title, *map(_line, card.body)]
    buttons = [
        {"type": "Action.OpenUrl", "title": link.label, "url": link.url}
        for link in card.links[:_MAX_BUTTONS]
    ]
    return _fit_payload(body, buttons)


def check_payload(payload: Payload) -> None:
    """Raises MalformedData when it is too large, also marked as a repeat, or cannot be marked."""
    check_key_types(payload, {"type": str, "attachments": list})
    try:
        marked = mark_as_repeat(payload)
        texts = [run["text"] for element in _body(marked) for run in element["inlines"]]
        whole = all(isinstance(text, str) and text for text in texts)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise MalformedData("payload", "has an element that is not of this card") from error
    if not whole or _size(marked) > MAX_BYTES:
        raise MalformedData("payload", "exceeds Teams' limits")


def mark_as_repeat(payload: Payload) -> Payload:
    """The payload, marked as a possible repeat in its first line."""
    first, *others = _body(payload)
    run, *rest = first["inlines"]
    marked = {**run, "text": f"{REPEAT_PREFIX}{run['text']}"}
    return _payload([{**first, "inlines": [marked, *rest]}, *others], _content(payload)["actions"])


def text_lines(payload: Payload) -> Iterator[str]:
    """The lines of a message as they are read, the buttons last."""
    for element in _body(payload):
        yield "".join(run["text"] for run in element["inlines"])
    if actions := _content(payload)["actions"]:
        yield "  ".join(f"[{one['title']}]" for one in actions)


def _fit_payload(body: list[Element], buttons: list[Element]) -> Payload:
    """With fewer buttons, then fewer lines, where all of them are too large: the last go first."""
    while _size(_payload(body, buttons)) > MAX_BYTES - len(REPEAT_PREFIX):
        (buttons or body).pop()
    return _payload(body, buttons)


def _payload(body: list[Element], actions: list[Element]) -> Payload:
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
        "msteams": {"width": "Full"},
    }
    attachment = {"contentType": _CARD, "contentUrl": None, "content": content}
    return {"type": "message", "attachments": [attachment]}


def _content(payload: Payload) -> dict[str, Any]:
    content: dict[str, Any] = payload["attachments"][0]["content"]
    return content


def _body(payload: Payload) -> list[Element]:
    body: list[Element] = _content(payload)["body"]
    return body


def _size(payload: Payload) -> int:
    return len(json.dumps(payload))


def _line(line: CardLine) -> Element:
    label = [_run(f"{_text(line.label)}: ", weight="Bolder")] if line.label else []
    if line.is_code:
        return _element(*label, _run(_code(line.text), fontType="Monospace"))
    return _element(*label, _run(_text(line.text)))


def _element(*runs: Element) -> Element:
    return {"type": "RichTextBlock", "inlines": list(runs), "spacing": "Small"}


def _run(text: str, **style: str) -> Element:
    return {"type": "TextRun", "text": text, **style}


def _text(text: str) -> str:
    return _inert(for_plain_text(text, _LINE))


def _code(text: str) -> str:
    return _inert(cut_middle(for_terminal(text), MAX_COMMAND_LENGTH))


def _inert(text: str) -> str:
    """Without `{{`, from which Adaptive Cards make dates; never empty, which they refuse."""
    return text.replace("{{", "{ {") or " "
