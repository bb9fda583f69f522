"""Makes the payload of a Slack incoming webhook from a card.

Untrusted text is in code spans, or escaped in mrkdwn with `verbatim`, so Slack makes no links or
mentions of it. Only the owner is mentioned, if the policy lists their Slack id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sageaudit.errors import MalformedData
from sageaudit.output.text.card import (
    LINK_SEPARATOR,
    MAX_COMMAND_LENGTH,
    NO_OWNER_IDS,
    REPEAT_PREFIX,
    CardLine,
    MessageCard,
    Payload,
    check_key_types,
)
from sageaudit.output.text.untrusted import cut_mrkdwn_middle, for_slack, slack_code, utf16_length

MAX_BLOCKS = 50
"""The maximum number of blocks of a message (docs.slack.dev/reference/block-kit/blocks)."""
MAX_SECTION_LENGTH = 3000
"""The maximum number of characters of a section (docs.slack.dev/reference/block-kit/blocks)."""
_MAX_LINKS_LENGTH = 2000
"""The rest of the links' section has far fewer than 1,000 characters."""
_USER_ID = re.compile(r"[UW][A-Z0-9]{2,20}\Z")
_GROUP_ID = re.compile(r"S[A-Z0-9]{2,20}\Z")
_TITLE_BLOCK = "headline"
_MAX_LINE_LENGTH = 1000
_LINK = re.compile(r"<[^<>|]*\|([^<>]*)>")

Block = dict[str, Any]


def make_payload(card: MessageCard, owner_ids: Mapping[str, str] = NO_OWNER_IDS) -> Payload:
    """Returns the webhook's JSON, within Slack's limits.

    `owner_ids`: Slack user or group ids by the owner's name.
    """
    title = for_slack(card.title, _MAX_LINE_LENGTH)
    scope_line = (
        f"{_scope(card, owner_ids)}, {for_slack(card.place_or_period)}"
        if card.place_or_period
        else ""
    )
    foot_text = "\n".join(filter(None, [scope_line, _links(card), _lines(card.commands)]))
    texts = {_TITLE_BLOCK: f"*{title}*", "card": _lines(card.lines), "foot": foot_text}
    blocks = [_section(name, text) for name, text in texts.items() if text]
    return {"text": title, "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def check_payload(payload: Payload) -> None:
    """Raises MalformedData for a payload that Slack would refuse with `REPEAT_PREFIX` added."""
    check_key_types(payload, {"text": str, "blocks": list})
    try:
        blocks = mark_as_repeat(payload)["blocks"]
        texts = [block["text"]["text"] for block in blocks]
        is_within_limits = len(blocks) <= MAX_BLOCKS and all(
            0 < utf16_length(text) <= MAX_SECTION_LENGTH for text in texts
        )
    except (AttributeError, LookupError, TypeError) as error:
        raise MalformedData("payload", "has a block that Slack does not accept") from error
    if not is_within_limits:
        raise MalformedData("payload", "exceeds Slack's limits")


def text_lines(payload: Payload) -> Iterator[str]:
    """Yields the lines of a message as a person reads them. A link is shown as its label."""
    for block in payload["blocks"]:
        yield from _LINK.sub(r"\1", block["text"]["text"]).split("\n")


def mark_as_repeat(payload: Payload) -> Payload:
    """Returns the payload with `REPEAT_PREFIX` before its notification and headline."""
    blocks = [_mark_title_block(block) for block in payload["blocks"]]
    return {**payload, "text": f"{REPEAT_PREFIX}{payload['text']}", "blocks": blocks}


def _mark_title_block(block: Block) -> Block:
    if block.get("block_id") != _TITLE_BLOCK:
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
        slack_code(line.text, MAX_COMMAND_LENGTH)
        if line.is_code
        else for_slack(line.text, _MAX_LINE_LENGTH)
    )
    return f"{label} {text}".strip()


def _scope(card: MessageCard, owner_ids: Mapping[str, str]) -> str:
    slack_id = owner_ids.get(card.scope, "") if card.scope else ""
    if _USER_ID.match(slack_id):
        return f"<@{slack_id}>"
    if _GROUP_ID.match(slack_id):
        return f"<!subteam^{slack_id}>"
    return for_slack(card.short_scope)


def _links(card: MessageCard) -> str:
    """Returns the line with links and rule. URLs are quoted, so that no character ends a link
    early.
    """
    available, texts = _MAX_LINKS_LENGTH, []
    for link in card.links:
        text = f"<{link.url.replace('&', '&amp;')}|{link.label}>"
        available -= utf16_length(text)
        texts += [text] if available >= 0 else []
    return LINK_SEPARATOR.join([*texts, *([for_slack(f"Rule: {card.rule}")] if card.rule else [])])
