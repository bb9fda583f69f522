"""Fits a Slack payload into every limit of Block Kit, including the undocumented total.

Evidence is dropped first; then long texts are cut in the middle; then the last items are dropped
and "+n more" says how many.
"""

from __future__ import annotations

import json
from typing import Any

from sageaudit.output.text.untrusted import cut, units

BLOCKS = 50
"""Blocks in a message (docs.slack.dev/reference/block-kit/blocks)."""
HEADER = 150
"""Characters of a header."""
SECTION = 3000
"""Characters of a section's text."""
FIELDS = 10
"""Fields of a section."""
FIELD = 2000
"""Characters of a field."""
ELEMENTS = 10
"""Elements of a context block."""
TEXT = 3999
"""Characters of the fallback text: 4,000 are truncated by Slack."""
TOTAL = 13_000
"""All blocks as JSON: near 13,200 Slack answers `msg_blocks_too_long`."""

_ROOMS = (600, 200, 80)

Block = dict[str, Any]


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
