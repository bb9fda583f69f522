"""A card for a Slack incoming webhook, in Block Kit: three sections.

Data is shown in code spans, or escaped in mrkdwn, where `verbatim` stops Slack from making links
and mentions of it. The only mention is that of the owner, and only when the policy lists a Slack id
for that owner.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sageaudit.errors import MalformedData
from sageaudit.output.text.card import (
    MAX_COMMAND_LENGTH,
    NO_OWNER_IDS,
    REPEAT_PREFIX,
    SEPARATOR,
    CardLine,
    MessageCard,
    Payload,
    check_key_types,
)
from sageaudit.output.text.untrusted import cut_mrkdwn_middle, for_slack, slack_code, utf16_length

MAX_BLOCKS = 50
MAX_SECTION_LENGTH = 3000
"""Of a message, and characters of a section (docs.slack.dev/reference/block-kit/blocks)."""
_LINKS = 2000
"""Characters of the links: the rest of their section is far below 1,000."""
_USER = re.compile(r"[UW][A-Z0-9]{2,20}\Z")
_GROUP = re.compile(r"S[A-Z0-9]{2,20}\Z")
_TITLE = "headline"
_LINE = 1000

Block = dict[str, Any]


_LINK = re.compile(r"<[^<>|]*\|([^<>]*)>")


def make_payload(card: MessageCard, owner_ids: Mapping[str, str] = NO_OWNER_IDS) -> Payload:
    """The webhook's JSON for a card, within every limit of Slack.

    `owner_ids` maps an owner's name in the audit to a Slack user or group id.
    """
    title = for_slack(card.title, _LINE)
    whose = (
        f"{_owner(card, owner_ids)}, {for_slack(card.account_region)}"
        if card.account_region
        else ""
    )
    foot = "\n".join(filter(None, [whose, _links(card), _lines(card.commands)]))
    texts = {_TITLE: f"*{title}*", "card": _lines(card.lines), "foot": foot}
    blocks = [_section(name, text) for name, text in texts.items() if text]
    return {"text": title, "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def check_payload(payload: Payload) -> None:
    """Raises MalformedData if it exceeds a limit, also marked as a repeat, or cannot be marked."""
    check_key_types(payload, {"text": str, "blocks": list})
    try:
        blocks = mark_as_repeat(payload)["blocks"]
        texts = [block["text"]["text"] for block in blocks]
        fits = len(blocks) <= MAX_BLOCKS and all(
            0 < utf16_length(text) <= MAX_SECTION_LENGTH for text in texts
        )
    except (AttributeError, LookupError, TypeError) as error:
        raise MalformedData("payload", "has a block that Slack does not accept") from error
    if not fits:
        raise MalformedData("payload", "exceeds Slack's limits")


def text_lines(payload: Payload) -> Iterator[str]:
    """The lines of a message as they are read, with the words of its links."""
    for block in payload["blocks"]:
        yield from _LINK.sub(r"\1", block["text"]["text"]).split("\n")


def mark_as_repeat(payload: Payload) -> Payload:
    """The payload, marked as a possible repeat in the notification and in the headline."""
    blocks = [_as_repeat(block) for block in payload["blocks"]]
    return {**payload, "text": f"{REPEAT_PREFIX}{payload['text']}", "blocks": blocks}


def _as_repeat(block: Block) -> Block:
    if block.get("block_id") != _TITLE:
        return block
    return {**block, "text": {**block["text"], "text": f"{REPEAT_PREFIX}{block['text']['text']}"}}


def _section(block_id: str, mrkdwn: str) -> Block:
    text = {
        "type": "mrkdwn",
        "text": cut_mrkdwn_middle(mrkdwn, MAX_SECTION_LENGTH - len(REPEAT_PREFIX)),
        "verbatim": True,
    }
    return {"type": "section", "block_id": block_id, "text": text}


def _lines(lines: Sequence[CardLine]) -> str:
    return "\n".join(map(_line, lines))


def _line(line: CardLine) -> str:
    label = f"*{for_slack(line.label)}*:" if line.label else ""
    text = (
        slack_code(line.text, MAX_COMMAND_LENGTH) if line.is_code else for_slack(line.text, _LINE)
    )
    return f"{label} {text}".strip()


def _owner(card: MessageCard, owner_ids: Mapping[str, str]) -> str:
    """A mention when the policy lists an id for the owner; else the name as plain text."""
    slack_id = owner_ids.get(card.owner, "") if card.owner else ""
    if _USER.match(slack_id):
        return f"<@{slack_id}>"
    if _GROUP.match(slack_id):
        return f"<!subteam^{slack_id}>"
    return for_slack(card.short_owner)


def _links(card: MessageCard) -> str:
    """The links. `links` has quoted the URLs, so no character can end a link early."""
    room, shown = _LINKS, []
    for link in card.links:
        made = f"<{link.url.replace('&', '&amp;')}|{link.label}>"
        room -= utf16_length(made)
        shown += [made] if room >= 0 else []
    return SEPARATOR.join([*shown, *([for_slack(card.rule)] if card.rule else [])])
