"""The message for a Slack incoming webhook: Block Kit, eight lines on a phone.

It is fitted into every limit of Block Kit, including the undocumented total: evidence is dropped
first; then long texts are cut in the middle; then the last items are dropped and "+n more" says how
many.

Data is shown as `plain_text` or in code spans where possible; in mrkdwn it is escaped, and
`verbatim` stops Slack from making links and mentions of it. The only mention is that of the owner,
and only when the policy lists a Slack id for that owner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sageaudit.domain.alert.rule import FIRST, Notify
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.errors import Malformed
from sageaudit.output.text.envelope import REPEAT, Payload, check_types
from sageaudit.output.text.idle_capacity import IDLE_LABEL
from sageaudit.output.text.message import Message, message_of
from sageaudit.output.text.untrusted import cut, slack, slack_code, units
from sageaudit.output.text.words import NO_OWNER

BLOCKS, FIELDS, ELEMENTS = 50, 10, 10
"""Of a message, of a section, of a context block (docs.slack.dev/reference/block-kit/blocks)."""
HEADER, SECTION, FIELD = 150, 3000, 2000
"""Characters of a header, of a section's text, and of a field."""
TEXT = 3999
"""Characters of the fallback text: 4,000 are truncated by Slack."""
TOTAL = 13_000
"""All blocks as JSON: near 13,200 Slack answers `msg_blocks_too_long`."""
_ROOMS = (600, 200, 80)
_USER = re.compile(r"[UW][A-Z0-9]{2,20}\Z")
_GROUP = re.compile(r"S[A-Z0-9]{2,20}\Z")
_WHY, _REMARK, _CODE, _FACT, _NOTE = 1500, 500, 300, 300, 600
_FIXES = 8
_NAME, _SHORTEST_NAME = 63, 20
_NOTHING = "-"
"""Slack refuses an empty text."""

Block = dict[str, Any]


def message(
    document: AuditDocument,
    *,
    owner_ids: Mapping[str, str] | None = None,
    notify: Notify = FIRST,
) -> Payload:
    """The webhook's JSON for an audit, within every limit of Slack.

    `owner_ids` maps an owner's name in the audit to a Slack user or group id. `notify` is why it
    is sent now.
    """
    parts = message_of(document, notify)
    first_line = _first_line(parts)
    why = slack(parts.why or "", _WHY)
    links, ids = _links(parts), owner_ids or {}
    idle = f"*{IDLE_LABEL}*: {slack(parts.idle_capacity, _REMARK)}" if parts.idle_capacity else ""
    before = f"*{parts.before[0]}*: {slack(parts.before[1], _WHY)}" if parts.before else ""
    blocks = [
        {"type": "header", "block_id": "headline", "text": _plain(first_line)},
        *([_section("before", before)] if before else []),
        *([{"type": "section", "block_id": "why", "text": _plain(why)}] if why else []),
        *([_section("fix", _fix(parts))] if parts.saving else []),
        *([_section("idle", idle)] if idle else []),
        *_evidence(parts),
        _section("owner", f"Owner: {_owner(parts.owner, ids)}"),
        *([_section("links", links)] if links else []),
        _context(parts),
    ]
    fallback = f"{first_line}: {why}" if why else first_line
    return fit({"text": fallback, "blocks": blocks, "unfurl_links": False, "unfurl_media": False})


def _first_line(parts: Message) -> str:
    """A long name is cut, so that what is told before and after it stays whole."""
    news = f"{parts.lead}{parts.gap}{slack(parts.headline)} - "
    tail = f" {slack(parts.tail)}" if parts.tail else ""
    room = max(HEADER - len(REPEAT) - units(news) - units(tail), _SHORTEST_NAME)
    return f"{news}{slack(parts.name, min(_NAME, room))}{tail}"


def check(payload: Payload) -> None:
    """Raises Malformed when the blocks cannot be marked as a repeat and fitted."""
    check_types(payload, {"text": str, "blocks": list})
    try:
        as_repeat(payload)
    except (AttributeError, LookupError, TypeError) as error:
        raise Malformed("payload", "has a block that Slack does not accept") from error


def as_repeat(payload: Payload) -> Payload:
    """The payload, marked as a possible repeat in the notification and in the headline."""
    return fit(
        {
            **payload,
            "text": f"{REPEAT}{payload['text']}",
            "blocks": [_header_as_repeat(block) for block in payload["blocks"]],
        }
    )


def _header_as_repeat(block: Block) -> Block:
    if block.get("type") != "header":
        return block
    return {**block, "text": {**block["text"], "text": f"{REPEAT}{block['text']['text']}"}}


def _plain(safe: str) -> Block:
    return {"type": "plain_text", "text": safe or _NOTHING, "emoji": False}


def _mrkdwn(safe: str) -> Block:
    return {"type": "mrkdwn", "text": safe or _NOTHING, "verbatim": True}


def _section(block_id: str, safe: str) -> Block:
    return {"type": "section", "block_id": block_id, "text": _mrkdwn(safe)}


def _fix(parts: Message) -> str:
    lines = [f"*Fix*: {slack(parts.saving or '')}"]
    for line, old in parts.fix[:_FIXES]:
        lines.append(f"{slack_code(line, _CODE)}  {slack(old, _CODE)}")
    if len(parts.fix) > _FIXES:
        lines.append(f"+{len(parts.fix) - _FIXES} more")
    if parts.caveat:
        lines.append(f"Caveat: {slack(parts.caveat, _REMARK)}")
    return "\n".join(lines)


def _evidence(parts: Message) -> list[Block]:
    fields = [
        _mrkdwn(f"*{slack(label, _CODE)}*: {slack(value, _FACT)}") for label, value in parts.facts
    ]
    return [{"type": "section", "block_id": "evidence", "fields": fields}] if fields else []


def _owner(owner: str | None, owner_ids: Mapping[str, str]) -> str:
    """A mention when the policy lists an id for the owner; else the name as plain text."""
    if owner is None:
        return NO_OWNER
    slack_id = owner_ids.get(owner, "")
    if _USER.match(slack_id):
        return f"<@{slack_id}>"
    if _GROUP.match(slack_id):
        return f"<!subteam^{slack_id}>"
    return slack(owner, _FACT)


def _links(parts: Message) -> str:
    """The links. `links` has quoted the URLs, so no character can end a link early."""
    shown = "  ".join(f"<{link.url.replace('&', '&amp;')}|{link.word}>" for link in parts.links)
    again = f"Full audit: {slack_code(parts.again, _CODE)}" if parts.again else ""
    return "\n".join(filter(None, (shown, again)))


def _context(parts: Message) -> Block:
    elements = [_plain(slack(note, _NOTE)) for note in parts.context]
    return {"type": "context", "block_id": "context", "elements": elements}


def fit(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload within all limits; unchanged when it was within them already."""
    blocks = [_within(block, SECTION) for block in payload["blocks"]]
    if size(blocks) > TOTAL:
        blocks = [block for block in blocks if block.get("block_id") != "evidence"]
    for room in _ROOMS:
        if size(blocks) > TOTAL:
            blocks = [_within(block, room) for block in blocks]
    keep = BLOCKS
    while size(_first(blocks, keep)) > TOTAL:
        keep -= 1
    return {**payload, "text": cut(payload["text"], TEXT), "blocks": _first(blocks, keep)}


def size(blocks: list[Block]) -> int:
    """Characters of the blocks as JSON, a safe upper bound of what Slack counts."""
    return units(json.dumps(blocks, ensure_ascii=False))


def _first(blocks: list[Block], limit: int) -> list[Block]:
    """At most `limit` blocks; the last one says how many are not shown."""
    if len(blocks) <= limit:
        return blocks
    note = {"type": "plain_text", "text": f"+{len(blocks) - limit + 1} more", "emoji": False}
    return [*blocks[: limit - 1], {"type": "context", "block_id": "more", "elements": [note]}]


def _within(block: Block, room: int) -> Block:
    fitted = dict(block)
    if "text" in block:
        limit = HEADER if block["type"] == "header" else SECTION
        fitted["text"] = _cut(block["text"], min(limit, max(room, HEADER)))
    if "fields" in block:
        fitted["fields"] = _listed(block["fields"], FIELDS, min(FIELD, room))
    if "elements" in block:
        fitted["elements"] = _listed(block["elements"], ELEMENTS, min(FIELD, room))
    return fitted


def _listed(texts: list[Block], limit: int, room: int) -> list[Block]:
    shown = [_cut(text, room) for text in texts[:limit]]
    if len(texts) > limit:
        shown[-1] = {**shown[-1], "text": f"+{len(texts) - limit + 1} more"}
    return shown


def _cut(text: Block, limit: int) -> Block:
    return {**text, "text": cut(text["text"], limit)}
