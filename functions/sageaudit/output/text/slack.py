"""A card for a Slack incoming webhook, in Block Kit: three sections.

Data is shown in code spans, or escaped in mrkdwn, where `verbatim` stops Slack from making links
and mentions of it. The only mention is that of the owner, and only when the policy lists a Slack id
for that owner.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sageaudit.errors import Malformed
from sageaudit.output.text.card import (
    BETWEEN,
    COMMAND,
    NOBODY,
    REPEAT,
    CardLine,
    MessageCard,
    Payload,
    check_types,
)
from sageaudit.output.text.untrusted import cut, slack, slack_code, units

BLOCKS = 50
SECTION = 3000
"""Of a message, and characters of a section (docs.slack.dev/reference/block-kit/blocks)."""
_LINKS = 2000
"""Characters of the links: the rest of their section is far below 1,000."""
_USER = re.compile(r"[UW][A-Z0-9]{2,20}\Z")
_GROUP = re.compile(r"S[A-Z0-9]{2,20}\Z")
_TITLE = "headline"
_LINE = 1000

Block = dict[str, Any]


_LINK = re.compile(r"<[^<>|]*\|([^<>]*)>")


def message(card: MessageCard, owner_ids: Mapping[str, str] = NOBODY) -> Payload:
    """The webhook's JSON for a card, within every limit of Slack.

    `owner_ids` maps an owner's name in the audit to a Slack user or group id.
    """
    title = slack(card.title, _LINE)
    whose = f"{_owner(card, owner_ids)}, {slack(card.place)}" if card.place else ""
    foot = "\n".join(filter(None, [whose, _links(card), _lines(card.more)]))
    texts = {_TITLE: f"*{title}*", "card": _lines(card.lines), "foot": foot}
    blocks = [_section(name, text) for name, text in texts.items() if text]
    return {"text": title, "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def check(payload: Payload) -> None:
    """Raises Malformed when it exceeds a limit, also marked as a repeat, or cannot be marked."""
    check_types(payload, {"text": str, "blocks": list})
    try:
        blocks = as_repeat(payload)["blocks"]
        texts = [block["text"]["text"] for block in blocks]
        fits = len(blocks) <= BLOCKS and all(0 < units(text) <= SECTION for text in texts)
    except (AttributeError, LookupError, TypeError) as error:
        raise Malformed("payload", "has a block that Slack does not accept") from error
    if not fits:
        raise Malformed("payload", "exceeds Slack's limits")


def shown(payload: Payload) -> Iterator[str]:
    """The lines of a message as they are read, with the words of its links."""
    for block in payload["blocks"]:
        yield from _LINK.sub(r"\1", block["text"]["text"]).split("\n")


def as_repeat(payload: Payload) -> Payload:
    """The payload, marked as a possible repeat in the notification and in the headline."""
    blocks = [_as_repeat(block) for block in payload["blocks"]]
    return {**payload, "text": f"{REPEAT}{payload['text']}", "blocks": blocks}


def _as_repeat(block: Block) -> Block:
    if block.get("block_id") != _TITLE:
        return block
    return {**block, "text": {**block["text"], "text": f"{REPEAT}{block['text']['text']}"}}


def _section(block_id: str, safe: str) -> Block:
    text = {"type": "mrkdwn", "text": cut(safe, SECTION - len(REPEAT)), "verbatim": True}
    return {"type": "section", "block_id": block_id, "text": text}


def _lines(lines: Sequence[CardLine]) -> str:
    return "\n".join(map(_line, lines))


def _line(line: CardLine) -> str:
    label = f"*{slack(line.label)}*:" if line.label else ""
    text = slack_code(line.text, COMMAND) if line.code else slack(line.text, _LINE)
    return f"{label} {text}".strip()


def _owner(card: MessageCard, owner_ids: Mapping[str, str]) -> str:
    """A mention when the policy lists an id for the owner; else the name as plain text."""
    slack_id = owner_ids.get(card.owner, "") if card.owner else ""
    if _USER.match(slack_id):
        return f"<@{slack_id}>"
    if _GROUP.match(slack_id):
        return f"<!subteam^{slack_id}>"
    return slack(card.owner_shown)


def _links(card: MessageCard) -> str:
    """The links. `links` has quoted the URLs, so no character can end a link early."""
    room, shown = _LINKS, []
    for link in card.links:
        made = f"<{link.url.replace('&', '&amp;')}|{link.word}>"
        room -= units(made)
        shown += [made] if room >= 0 else []
    return BETWEEN.join([*shown, *([slack(card.rule)] if card.rule else [])])
