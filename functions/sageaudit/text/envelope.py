"""A notice as it travels from notify to deliver, and how a repeat of it says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sageaudit.errors import Malformed
from sageaudit.text.plain import SUBJECT
from sageaudit.text.slack_fit import fit
from sageaudit.text.untrusted import middle

SCHEMA = 1
REPEAT = "(possible repeat) "
_LONGEST_ID = 2_000

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notice:
    """What one channel is to post."""

    notice_id: str
    channel: str
    payload: Payload


def to_body(notice: Notice) -> str:
    """The queue's message: ASCII, so that no character of a name is one that SQS refuses."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "notice_id": notice.notice_id,
            "channel": notice.channel,
            "payload": notice.payload,
        }
    )


def read_body(body: str) -> Notice:
    """The notice of a queue's message. Raises Malformed naming the key."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("body", "is not JSON") from error
    _need(isinstance(message, dict), "body", "is not an object")
    _need(message.get("schema") == SCHEMA, "schema", f"is not {SCHEMA}")
    channel, payload = message.get("channel"), message.get("payload")
    known = isinstance(channel, str) and channel in _SHAPES
    _need(known, "channel", "is not one that this version knows")
    notice_id = message.get("notice_id")
    _need(
        isinstance(notice_id, str)
        and len(notice_id) <= _LONGEST_ID
        and notice_id.endswith(f"|{channel}"),
        "notice_id",
        "is not an audit's version and the channel",
    )
    _need(isinstance(payload, dict), "payload", "is not an object")
    for key, kind in _SHAPES[channel].items():
        _need(isinstance(payload.get(key), kind), f"payload.{key}", f"is not a {kind.__name__}")
    _need(_PARTS[channel](payload), "payload", f"has a part that is none of {channel}'s")
    return Notice(notice_id, channel, payload)


def as_repeat(notice: Notice) -> Payload:
    """The payload, saying where it is read first that it may have been posted before."""
    if notice.channel == "sns":
        subject = middle(f"{REPEAT}{notice.payload['subject']}", SUBJECT)
        return {
            **notice.payload,
            "subject": subject.replace("…", "~"),
            "message": f"{REPEAT}{notice.payload['message']}",
        }
    return fit(
        {
            **notice.payload,
            "text": f"{REPEAT}{notice.payload['text']}",
            "blocks": [_header_as_repeat(block) for block in notice.payload["blocks"]],
        }
    )


def _header_as_repeat(block: Payload) -> Payload:
    if block.get("type") != "header":
        return block
    return {**block, "text": {**block["text"], "text": f"{REPEAT}{block['text']['text']}"}}


def _are_blocks(payload: Payload) -> bool:
    """Blocks that can be marked and fitted: a repeat must not be the first to find out."""
    try:
        as_repeat(Notice("", "slack", payload))
    except (AttributeError, LookupError, TypeError):
        return False
    return True


def _are_attributes(payload: Payload) -> bool:
    return all(_has_texts(value, "type", "value") for value in payload["attributes"].values())


def _has_texts(part: object, *keys: str) -> bool:
    return isinstance(part, dict) and all(isinstance(part.get(key), str) for key in keys)


_SHAPES: Mapping[str, Mapping[str, type]] = {
    "sns": {"subject": str, "message": str, "attributes": dict},
    "slack": {"text": str, "blocks": list},
}
_PARTS: Mapping[str, Callable[[Payload], bool]] = {"sns": _are_attributes, "slack": _are_blocks}


def _need(holds: bool, key: str, reason: str) -> None:
    if not holds:
        raise Malformed(key, reason)
