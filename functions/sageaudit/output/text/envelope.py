"""The SQS message from notify to deliver: one JSON object with one channel's payload."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from sageaudit.errors import Malformed
from sageaudit.output.text.card import MessageCard

SCHEMA = 1
REPEAT = "(possible repeat) "
"""The prefix of a payload that may have been posted before."""
_LONGEST_ID, _HOUR = 2_000, "%Y-%m-%dT%H"

Payload = dict[str, Any]
NOBODY: Mapping[str, str] = {}
Writer = Callable[[MessageCard, Mapping[str, str]], Payload]
"""What one channel posts for a card, with the ids of owners to mention, within its size limits."""
Check = Callable[[Payload], None]
"""Raises Malformed, naming the key, for a payload that its channel cannot post."""
NO_CHECKS: Mapping[str, Check] = {}


class Notice(Struct, frozen=True):
    """A payload that one channel must post.

    With `held_hour`, it stands for the messages held in the hour that began then: its payload is
    written after that hour.
    """

    notice_id: str
    channel: str
    payload: Payload
    held_hour: datetime | None = None


def to_body(notice: Notice) -> str:
    """The message body: JSON in ASCII, because SQS refuses some Unicode characters."""
    held = {} if notice.held_hour is None else {"held_hour": f"{notice.held_hour:{_HOUR}}"}
    return json.dumps(
        {
            "schema": SCHEMA,
            "notice_id": notice.notice_id,
            "channel": notice.channel,
            "payload": notice.payload,
            **held,
        }
    )


def read_body(body: str, checks: Mapping[str, Check] = NO_CHECKS) -> Notice:
    """Parses a message body. Raises Malformed.

    `checks`: by channel name, its payload check; of another channel any payload is taken.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("body", "is not JSON") from error
    _need(isinstance(message, dict), "body", "is not an object")
    _need(message.get("schema") == SCHEMA, "schema", f"is not {SCHEMA}")
    channel, payload = message.get("channel"), message.get("payload")
    _need(isinstance(channel, str), "channel", "is not a string")
    notice_id = message.get("notice_id")
    _need(
        isinstance(notice_id, str)
        and len(notice_id) <= _LONGEST_ID
        and notice_id.endswith(f"|{channel}"),
        "notice_id",
        "is not an audit's version followed by the channel",
    )
    _need(isinstance(payload, dict), "payload", "is not an object")
    held_hour = _hour(message["held_hour"]) if "held_hour" in message else None
    if held_hour is None and channel in checks:
        checks[channel](payload)
    return Notice(notice_id, channel, payload, held_hour)


def check_types(payload: Payload, types: Mapping[str, type]) -> None:
    """Raises Malformed for the first key that is absent or has another type."""
    for key, kind in types.items():
        _need(isinstance(payload.get(key), kind), f"payload.{key}", f"is not a {kind.__name__}")


def _need(holds: bool, key: str, reason: str) -> None:
    if not holds:
        raise Malformed(key, reason)


def _hour(text: object) -> datetime:
    try:
        return datetime.strptime(str(text), _HOUR).replace(tzinfo=UTC)
    except ValueError as error:
        raise Malformed("held_hour", "is not an hour") from error
