"""One message of an SQS queue, as Lambda passes it to the function."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

_NUMBER = re.compile(r"[0-9]{1,18}")
FIRST_SENT = "first-sent"
"""Attribute of a message that was sent again: when it was sent first, in ms since the epoch."""


@dataclass(frozen=True, slots=True)
class SqsMessage:
    """Implements Record. Messages have no order: only those that failed are delivered again."""

    LABEL: ClassVar[str] = "message_id"
    IN_ORDER: ClassVar[bool] = False
    raw: dict[str, Any]

    @property
    def identifier(self) -> str:
        """How an answer names it."""
        return str(self.raw["messageId"])

    @property
    def body(self) -> str:
        """The body as it was sent."""
        return str(self.raw["body"])

    @property
    def letter(self) -> str:
        """The body to send to the dead-letter queue: unchanged."""
        return self.body

    @property
    def receipt_handle(self) -> str:
        """Needed to change its visibility."""
        return str(self.raw["receiptHandle"])

    @property
    def received(self) -> int:
        """How often SQS has delivered it, from 1."""
        return int(self.raw.get("attributes", {}).get("ApproximateReceiveCount", "1"))

    @property
    def queue_name(self) -> str:
        """The name of the queue that it came from."""
        return str(self.raw.get("eventSourceARN", "")).rpartition(":")[2]

    @property
    def first_sent_ms(self) -> int:
        """When it was sent first, in ms since the epoch; 0 where SQS does not say."""
        sent = str(self.raw.get("attributes", {}).get("SentTimestamp", ""))
        return self.number(FIRST_SENT, int(sent) if sent.isdecimal() else 0)

    def age_s(self, now: datetime) -> float:
        """Seconds since it was sent first; 0 where that is not known."""
        if not self.first_sent_ms:
            return 0.0
        return now.astimezone(UTC).timestamp() - self.first_sent_ms / 1000

    def number(self, name: str, default: int) -> int:
        """A number of at most 18 digits from the message attributes."""
        attribute = self.raw.get("messageAttributes", {}).get(name, {})
        value = attribute.get("stringValue", "")
        return int(value) if _NUMBER.fullmatch(value) else default
