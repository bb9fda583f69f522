"""One message of an SQS queue, as Lambda hands it over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class SqsMessage:
    """Implements Record. Messages stand for themselves: one that failed comes back alone."""

    LABEL: ClassVar[str] = "message_id"
    IN_ORDER: ClassVar[bool] = False
    raw: dict[str, Any]

    @property
    def identifier(self) -> str:
        """What an answer calls it."""
        return str(self.raw["messageId"])

    @property
    def body(self) -> str:
        """As it was sent."""
        return str(self.raw["body"])

    @property
    def letter(self) -> str:
        """What goes to the dead letters: the body, unchanged."""
        return self.body

    @property
    def receipt_handle(self) -> str:
        """What its visibility is changed with."""
        return str(self.raw["receiptHandle"])

    @property
    def received(self) -> int:
        """How often SQS handed it over, from 1."""
        return int(self.raw.get("attributes", {}).get("ApproximateReceiveCount", "1"))

    def number(self, name: str, default: int) -> int:
        """A number among its own attributes."""
        attribute = self.raw.get("messageAttributes", {}).get(name, {})
        value = attribute.get("stringValue", "")
        return int(value) if value.isdecimal() else default
