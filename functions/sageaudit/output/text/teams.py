"""Makes the payload of a Microsoft Teams workflow from a card: an Adaptive Card.

Every text is in a TextRun, which Teams shows without Markdown, links or mentions. Addresses in
texts are broken, so that no client links them. The card's own links are buttons.
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
"""The maximum size of a message. Teams documents about 28 KB; others report a limit of 21 KB."""
_CARD_TYPE = "application/vnd.microsoft.card.adaptive"
_MAX_LINE_LENGTH = 1000
_MAX_BUTTONS = 6
"""Teams shows at most this many buttons."""

Element = dict[str, Any]


def make_payload(card: MessageCard, owner_ids: Mapping[str, str] = NO_OWNER_IDS) -> Payload:
    """Returns the workflow's JSON, within Teams' size limit."""
    del owner_ids  # they are Slack ids; Teams shows the owner's name
    title = _element(_run(_text(card.title), weight="Bolder", size="Medium"))
    body = [title, *map(_line, card.body)]
    buttons = [
        {"type": "Action.OpenUrl", "title": link.label, "url": link.url}
        for link in card.links[:_MAX_BUTTONS]
    ]
    return _fit_payload(body, buttons)


def check_payload(payload: Payload) -> None:
    """Raises MalformedData for a payload that Teams would refuse with `REPEAT_PREFIX` added."""
    check_key_types(payload, {"type": str, "attachments": list})
    try:
        marked = mark_as_repeat(payload)
        texts = [run["text"] for element in _body(marked) for run in element["inlines"]]
        has_texts = all(isinstance(text, str) and text for text in texts)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise MalformedData("payload", "has an element that sageaudit does not write") from error
    if not has_texts or _size(marked) > MAX_BYTES:
        raise MalformedData("payload", "exceeds Teams' limits")


def mark_as_repeat(payload: Payload) -> Payload:
    """Returns the payload with `REPEAT_PREFIX` before its first line."""
    title, *lines = _body(payload)
    first_run, *other_runs = title["inlines"]
    marked_run = {**first_run, "text": f"{REPEAT_PREFIX}{first_run['text']}"}
    marked_title = {**title, "inlines": [marked_run, *other_runs]}
    return _payload([marked_title, *lines], _content(payload)["actions"])


def text_lines(payload: Payload) -> Iterator[str]:
    """Yields the lines of a message as a person reads them, with the buttons last."""
    for element in _body(payload):
        yield "".join(run["text"] for run in element["inlines"])
    if actions := _content(payload)["actions"]:
        yield "  ".join(f"[{action['title']}]" for action in actions)


def _fit_payload(body: list[Element], buttons: list[Element]) -> Payload:
    """Returns a payload within the size limit. First the last buttons are dropped, then lines."""
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
    attachment = {"contentType": _CARD_TYPE, "contentUrl": None, "content": content}
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
    return _inert(for_plain_text(text, _MAX_LINE_LENGTH))


def _code(text: str) -> str:
    return _inert(cut_middle(for_terminal(text), MAX_COMMAND_LENGTH))


def _inert(text: str) -> str:
    """Returns the text for an Adaptive Card, which expands `{{` and refuses an empty text."""
    return text.replace("{{", "{ {") or " "
