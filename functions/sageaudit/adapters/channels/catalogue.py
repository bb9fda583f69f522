"""Every service that a channel can be of, and the channels of a policy by their names."""

from __future__ import annotations

from collections.abc import Mapping

from sageaudit.adapters.channels.channel import Connections, NoticeChannel
from sageaudit.adapters.channels.services import SlackChannel, SnsChannel, TeamsChannel
from sageaudit.domain.policy.routes import ChannelChoice, Service
from sageaudit.output.text.card import Check, Writer

SERVICES: Mapping[Service, type[NoticeChannel]] = {
    one.service: one for one in (SlackChannel, TeamsChannel, SnsChannel)
}
Channels = Mapping[str, ChannelChoice]


def writers(channels: Channels) -> dict[str, Writer]:
    """What writes a card for each channel; with the ids of owners to mention."""
    return {name: SERVICES[one.service].write for name, one in channels.items()}


def checks(channels: Channels) -> dict[str, Check]:
    """What checks the payload of each channel."""
    return {name: SERVICES[one.service].check for name, one in channels.items()}


def connected(
    channels: Channels, own_topic: str, connections: Connections
) -> dict[str, NoticeChannel]:
    """Each channel; `own_topic` is the ARN of the stack's own topic."""
    return {
        name: SERVICES[one.service].connect(
            name, one.secret or one.topic_arn or own_topic, connections
        )
        for name, one in channels.items()
    }
