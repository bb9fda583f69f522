"""The answers to the questions of `make deploy`: from flags, else from the keyboard.

Every question has a flag, so that a pipeline can deploy. Without a terminal nothing is asked: the
command then stops before it did anything, and names the flags that are missing. A channel without a
flag stays as it is deployed, so that a new one is off and stops no pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from infra import subscribers
from infra.subscribers import Address, NoAddress, Subscriber
from sageaudit.adapters.channels.channel import NoticeChannel, StoredSecret


@dataclass(frozen=True, slots=True)
class ChannelFlags:
    """For a channel with a stored secret: the new secret, and whether the channel is on."""

    secret: str | None = None
    on: bool | None = None


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line answered; None where it did not. `channels` is by name.

    `terminal`: whether somebody can be asked.
    """

    terminal: bool = True
    yes: bool = False
    channels: Mapping[str, ChannelFlags] = field(default_factory=dict)
    alarms_to: tuple[Address, ...] | None = None
    notices_to: tuple[Address, ...] | None = None

    def missing(self) -> Iterator[str]:
        """The flags without which something would be asked; a channel needs none."""
        if not self.yes:
            yield "--yes"
        if self.alarms_to is None:
            yield "--alarms-to ADDRESS|nobody"
        if self.notices_to is None:
            yield "--notices-to ADDRESS|nobody"

    def confirm(self, question: str) -> None:
        """Goes on when agreed. Raises Abort."""
        if self.yes:
            click.echo(f"{question} yes (--yes)")
        else:
            click.confirm(question, abort=True)


def ask_for_addresses(
    answered: tuple[Address, ...] | None, what: str, known: Sequence[Subscriber]
) -> tuple[Address, ...]:
    """Who is subscribed to the topic of `what`, beside those that are known; asks until valid."""
    if answered is not None:
        return answered
    otherwise = f"keeps {subscribers.listed(known)}" if known else "for nobody"
    while True:
        try:
            text = click.prompt(
                f"{what} go to (e-mail or https addresses; Enter {otherwise})",
                default="",
                show_default=False,
            )
            return subscribers.addresses(text)
        except NoAddress as refusal:
            click.echo(f"Not taken: {refusal}.")


def with_secrets(channels: Sequence[type[NoticeChannel]]) -> list[type[NoticeChannel]]:
    """The channels that a deployment switches on or off."""
    return [channel for channel in channels if isinstance(channel.address, StoredSecret)]


def secret_of(channel: type[NoticeChannel]) -> StoredSecret:
    """The secret of a channel that has one."""
    if not isinstance(channel.address, StoredSecret):
        raise TypeError(f"{channel.name} has no secret")
    return channel.address


def channel_options(
    channels: Sequence[type[NoticeChannel]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--NAME on|off` and `--NAME-secret-file FILE` for each channel with a secret."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for channel in with_secrets(channels):
            wanted = secret_of(channel)
            command = click.option(
                f"--{channel.name}-secret-file",
                type=click.File("r", encoding="utf-8"),
                help=f"File with the {wanted.service} {wanted.kind} to store; - is stdin.",
            )(command)
            command = click.option(
                f"--{channel.name}",
                type=click.Choice(["on", "off"]),
                help=f"Post to {wanted.service}, with the {wanted.kind} that is stored, or not.",
            )(command)
        return command

    return add


def channel_flags(
    channels: Sequence[type[NoticeChannel]], options: Mapping[str, Any]
) -> dict[str, ChannelFlags]:
    """The values of `channel_options`. Raises BadParameter, which never repeats a secret."""
    return {
        channel.name: ChannelFlags(
            _secret_in(options[f"{channel.name}_secret_file"], channel),
            {"on": True, "off": False, None: None}[options[channel.name]],
        )
        for channel in with_secrets(channels)
    }


def _secret_in(file: Any, channel: type[NoticeChannel]) -> str | None:
    if file is None:
        return None
    wanted, text = secret_of(channel), file.read().strip()
    if reason := wanted.refusal(text):
        raise click.BadParameter(
            f"{file.name} has no {wanted.service} {wanted.kind}: {reason}",
            param_hint=f"--{channel.name}-secret-file",
        )
    return str(text)


class AddressesType(click.ParamType[tuple[Address, ...]]):
    """Addresses divided by commas, or `nobody`."""

    name = "address"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[Address, ...]:
        """Raises BadParameter."""
        try:
            return subscribers.addresses(value)
        except NoAddress as refusal:
            self.fail(str(refusal), param, ctx)
