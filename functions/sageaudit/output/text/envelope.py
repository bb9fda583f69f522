"""The SQS message from notify to deliver: one JSON object with one channel's payload."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sageaudit.domain.alert.rule import Notify
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import Malformed

SCHEMA = 1
REPEAT = "(possible repeat) "
"""The prefix of a payload that may have been posted before."""
_LONGEST_ID = 2_000

Payload = dict[str, Any]
Writer = Callable[[AuditDocument, Policy, Notify], Payload]
"""What one channel posts for an audit, as it was decided, within the channel's size limits."""
Check = Callable[[Payload], None]
"""Raises Malformed, naming the key, for a payload that its channel cannot post."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A payload that one channel must post."""

    notice_id: str
    channel: str
    payload: Payload


def to_body(notice: Notice) -> str:
    """The message body: JSON in ASCII, because SQS refuses some Unicode characters."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "notice_id": notice.notice_id,
            "channel": notice.channel,
            "payload": notice.payload,
        }
    )


def read_body(body: str, checks: Mapping[str, Check]) -> Notice:
    """Parses a message body. `checks`: by channel name, its payload check. Raises Malformed."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("body", "is not JSON") from error
    _need(isinstance(message, dict), "body", "is not an object")
    _need(message.get("schema") == SCHEMA, "schema", f"is not {SCHEMA}")
    channel, payload = message.get("channel"), message.get("payload")
    known = isinstance(channel, str) and channel in checks
    _need(known, "channel", "is not known to this version")
    notice_id = message.get("notice_id")
    _need(
        isinstance(notice_id, str)
        and len(notice_id) <= _LONGEST_ID
        and notice_id.endswith(f"|{channel}"),
        "notice_id",
        "is not an audit's version followed by the channel",
    )
    _need(isinstance(payload, dict), "payload", "is not an object")
    checks[channel](payload)
    return Notice(notice_id, channel, payload)


def check_types(payload: Payload, types: Mapping[str, type]) -> None:
    """Raises Malformed for the first key that is absent or has another type."""
    for key, kind in types.items():
        _need(isinstance(payload.get(key), kind), f"payload.{key}", f"is not a {kind.__name__}")


def _need(holds: bool, key: str, reason: str) -> None:
    if not holds:
        raise Malformed(key, reason)
