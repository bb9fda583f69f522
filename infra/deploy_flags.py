"""The answers to the questions of `make deploy`: from options, else from the keyboard.

Every question has an option, so that a pipeline can deploy. Without a terminal the command asks
nothing: it stops before it changes anything, and names the missing options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from infra import subscribers
from infra.subscribers import InvalidAddress, Subscriber
from sageaudit.adapters.channels.channel import SecretFormat


@dataclass(frozen=True, slots=True)
class Flags:
    """Answers from the command line; None if an option is missing.

    `secrets`: new secrets, by channel. `is_interactive`: whether the terminal can ask a person.
    `bootstrap`: whether a region may be bootstrapped for the CDK without a question.
    """

    is_interactive: bool = True
    assume_yes: bool = False
    bootstrap: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict)
    alarms_to: tuple[str, ...] | None = None
    notices_to: tuple[str, ...] | None = None

    def missing_flags(self) -> Iterator[str]:
        """Yields the missing options, except those for missing secrets."""
        if not self.assume_yes:
            yield "--yes"
        if self.alarms_to is None:
            yield "--alarms-to ADDRESS|nobody"
        if self.notices_to is None:
            yield "--notices-to ADDRESS|nobody"

    def confirm(self, question: str) -> None:
        """Asks the question, and continues only if the user agrees. Raises Abort."""
        if self.assume_yes:
            click.echo(f"{question} yes (--yes)")
        else:
            click.confirm(question, abort=True)


def ask_for_addresses(
    flag_value: tuple[str, ...] | None, topic_name: str, known_subscribers: Sequence[Subscriber]
) -> tuple[str, ...]:
    """Returns the addresses to add to a topic's subscribers; asks until they are valid."""
    if flag_value is not None:
        return flag_value
    default_text = (
        f"keeps {subscribers.subscribers_text(known_subscribers)}"
        if known_subscribers
        else "for nobody"
    )
    while True:
        try:
            text = click.prompt(
                f"{topic_name} go to (e-mail addresses; Enter {default_text})",
                default="",
                show_default=False,
            )
            return subscribers.parse_addresses(text)
        except InvalidAddress as error:
            click.echo(f"Not accepted: {error}.")


class SecretFileType(click.ParamType[tuple[str, str]]):
    """The option type `CHANNEL=FILE`, whose file is read immediately; `-` is standard input."""

    name = "channel=file"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, str]:
        """Returns the channel and its file's text.

        Raises BadParameter, whose message never quotes the secret.
        """
        name, equals, path = value.partition("=")
        if not (name and equals and path):
            self.fail("it is not of the form CHANNEL=FILE", param, ctx)
        with click.File("r", encoding="utf-8").convert(path, param, ctx) as file:
            return name, str(file.read()).strip()


def check_secrets(secrets: Iterable[tuple[str, str]], formats: Mapping[str, SecretFormat]) -> None:
    """Raises BadParameter, without quoting the secret, if a secret is invalid for its channel."""
    for name, text in secrets:
        if name not in formats:
            names = ", ".join(formats) or "no channel with a secret"
            raise click.BadParameter(
                f"the policy has {names}, not {name!r}", param_hint="--secret-file"
            )
        if reason := formats[name].invalid_reason(text):
            raise click.BadParameter(
                f"the file for {name} is not a {formats[name].kind}: {reason}",
                param_hint="--secret-file",
            )


class AddressesType(click.ParamType[tuple[str, ...]]):
    """The option type of addresses separated by commas, or `nobody`."""

    name = "address"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        """Reads the addresses. Raises BadParameter."""
        try:
            return subscribers.parse_addresses(value)
        except InvalidAddress as error:
            self.fail(str(error), param, ctx)
