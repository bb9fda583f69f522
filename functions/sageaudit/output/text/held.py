"""The card of the messages of a channel that were held in an hour."""

from __future__ import annotations

from collections.abc import Mapping

from sageaudit.domain.alert.alert import ChannelHour
from sageaudit.output.text.attributes import Attribute
from sageaudit.output.text.card import CardLine, MessageCard
from sageaudit.output.text.words import counted

_ATTRIBUTES: Mapping[str, Attribute] = {"message_kind": {"type": "String", "value": "held"}}


def held_card(hour: ChannelHour) -> MessageCard:
    """How many were held, and the dearest of them."""
    others = hour.held - len(hour.dearest)
    return MessageCard(
        headline=f"And {counted(hour.held, 'more message')} since {hour.began_at:%H:%M} UTC",
        lines=(
            *(CardLine(headline) for headline, _ in hour.dearest),
            *([CardLine(f"and {counted(others, 'other')}")] if others else []),
        ),
        attributes=_ATTRIBUTES,
        more=(CardLine("sageaudit advice", "All open advices", code=True),),
    )
