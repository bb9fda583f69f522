"""Every channel, and which of them an entry point uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sageaudit.adapters.channels.channel import Connections, NoticeChannel, StackTopic
from sageaudit.adapters.channels.slack import SlackChannel
from sageaudit.adapters.channels.sns import SnsChannel
from sageaudit.errors import BadSettings
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.envelope import Check, Payload, Writer

CHANNELS: tuple[type[NoticeChannel], ...] = (SnsChannel, SlackChannel)
_BY_NAME = {channel.name: channel for channel in CHANNELS}
CHECKS: Mapping[str, Check] = {channel.name: channel.check for channel in CHANNELS}
"""Of every channel, on or off: a notice for one that is off is well-formed all the same."""


def always_on(channel: type[NoticeChannel]) -> bool:
    """True for a channel whose address the stack itself makes."""
    return isinstance(channel.address, StackTopic)


def writers(names: Iterable[str]) -> dict[str, Writer]:
    """The writer of each of these channels, in the order given. Raises BadSettings."""
    names = tuple(names)
    if unknown := [name for name in names if name not in _BY_NAME]:
        raise BadSettings(f"CHANNELS knows {', '.join(_BY_NAME)}, not {unknown[0]!r}")
    return {name: _BY_NAME[name].write for name in names}


def digest_writers(names: Iterable[str]) -> dict[str, Callable[[MessageCard], Payload]]:
    """What writes the digest for each of these channels. Raises BadSettings."""
    return {name: _BY_NAME[name].write_digest for name in writers(names)}


def connected(environ: Mapping[str, str], connections: Connections) -> dict[str, NoticeChannel]:
    """Each channel whose address the environment has. Raises BadSettings."""
    channels: dict[str, NoticeChannel] = {}
    for channel in CHANNELS:
        variable = channel.address.variable
        if address := environ.get(variable, "").strip():
            channels[channel.name] = channel.connect(address, connections)
        elif always_on(channel):
            raise BadSettings(f"the environment variable {variable} is missing or empty")
    return channels
