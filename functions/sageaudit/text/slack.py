"""The message for a Slack incoming webhook: Block Kit, eight lines on a phone.

Data is shown in `plain_text` or in code spans where that can be; where it stands in mrkdwn it is
escaped, and `verbatim` keeps Slack from reading addresses and names into it. The only mention is
the owner's, and only when the policy lists an id for that owner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.text.message import Message, story
from sageaudit.text.slack_fit import fit
from sageaudit.text.untrusted import slack, slack_code

_USER = re.compile(r"[UW][A-Z0-9]{2,20}\Z")
_GROUP = re.compile(r"S[A-Z0-9]{2,20}\Z")
_WHY, _CAUTION, _CODE, _FACT, _NOTE = 1500, 500, 300, 300, 600
_FIXES = 8
_NAME = 63
_NOTHING = "-"
"""Slack refuses an empty text."""

Block = dict[str, Any]


def message(
    document: AuditDocument,
    *,
    run_note: str | None = None,
    owner_ids: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The webhook's JSON for an audit worth telling, within every limit.

    `owner_ids` maps an owner as the audit names it to a Slack user or group id.
    """
    told = story(document, run_note)
    severity = told.severity.upper()
    first_line = f"{severity}  {slack(told.headline)} - {slack(told.name, _NAME)}"
    blocks = [
        {"type": "header", "block_id": "headline", "text": _plain(first_line)},
        {"type": "section", "block_id": "why", "text": _plain(slack(told.why, _WHY))},
        _section("fix", _fix(told)),
        *_evidence(told),
        _section("owner", f"Owner: {_owner(told.owner, owner_ids or {})}"),
        *_links(told),
        *_context(told),
    ]
    fallback = f"{first_line}: {slack(told.why, _WHY)}"
    return fit({"text": fallback, "blocks": blocks, "unfurl_links": False, "unfurl_media": False})


def _plain(safe: str) -> Block:
    return {"type": "plain_text", "text": safe or _NOTHING, "emoji": False}


def _mrkdwn(safe: str) -> Block:
    return {"type": "mrkdwn", "text": safe or _NOTHING, "verbatim": True}


def _section(block_id: str, safe: str) -> Block:
    return {"type": "section", "block_id": block_id, "text": _mrkdwn(safe)}


def _fix(told: Message) -> str:
    lines = [f"*Fix*: {slack(told.saving)}"]
    for line, old in told.fix[:_FIXES]:
        lines.append(f"{slack_code(line, _CODE)}  {slack(old, _CODE)}")
    if len(told.fix) > _FIXES:
        lines.append(f"+{len(told.fix) - _FIXES} more")
    if told.caution:
        lines.append(f"Mind: {slack(told.caution, _CAUTION)}")
    return "\n".join(lines)


def _evidence(told: Message) -> list[Block]:
    fields = [
        _mrkdwn(f"*{slack(label, _CODE)}*: {slack(value, _FACT)}") for label, value in told.facts
    ]
    return [{"type": "section", "block_id": "evidence", "fields": fields}] if fields else []


def _owner(owner: str | None, owner_ids: Mapping[str, str]) -> str:
    """A mention for an id on the list; else the name as text, which calls nobody."""
    if owner is None:
        return "not known (no owner tag)"
    slack_id = owner_ids.get(owner, "")
    if _USER.match(slack_id):
        return f"<@{slack_id}>"
    if _GROUP.match(slack_id):
        return f"<!subteam^{slack_id}>"
    return slack(owner, _FACT)


def _links(told: Message) -> list[Block]:
    """Addresses are quoted by `links`: no letter in them can end the link."""
    shown = "  ".join(f"<{link.url.replace('&', '&amp;')}|{link.word}>" for link in told.links)
    again = slack_code(told.again, _CODE) if told.again else ""
    lines = "\n".join(line for line in (shown, again) if line)
    return [_section("links", lines)] if lines else []


def _context(told: Message) -> list[Block]:
    notes = list(told.context)
    if told.others:
        notes.insert(0, f"Also found: {', '.join(told.others)}")
    elements = [_plain(slack(note, _NOTE)) for note in notes]
    return [{"type": "context", "block_id": "context", "elements": elements}]
