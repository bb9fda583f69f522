"""Who is told: the subscriptions of the stack's two topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

NOBODY = "nobody"
"""The answer of a pipeline that wants no subscription."""

_EMAIL = re.compile(r"[^@\s,;<>\"]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_PENDING = "PendingConfirmation"
_UNSUBSCRIBED = "Deleted"


class NoAddress(ValueError):
    """A text is no address that a topic can send to; says why, and what to give instead."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a topic sends: SNS's protocol and endpoint."""

    protocol: str
    endpoint: str

    def __str__(self) -> str:
        """For the screen: an https endpoint without its path, which often holds a key."""
        if self.protocol in {"http", "https"}:
            parts = urlsplit(self.endpoint)
            return f"{parts.scheme}://{parts.hostname}"
        return self.endpoint

    def same_as(self, other: Address) -> bool:
        """E-mail addresses are compared without regard to case."""
        mine, yours = self.endpoint, other.endpoint
        if self.protocol == "email":
            mine, yours = mine.lower(), yours.lower()
        return (self.protocol, mine) == (other.protocol, yours)


@dataclass(frozen=True, slots=True)
class Subscriber:
    """An address of a topic. One that is not confirmed gets nothing yet."""

    address: Address
    confirmed: bool


def addresses(text: str) -> tuple[Address, ...]:
    """The addresses of an answer, divided by commas or spaces; none for "nobody" or an empty one.

    Raises NoAddress.
    """
    words = [word for word in re.split(r"[,\s]+", text) if word]
    return () if words in ([], [NOBODY]) else tuple(_address(word) for word in words)


def _address(word: str) -> Address:
    if "://" not in word:
        if _EMAIL.fullmatch(word):
            return Address("email", word)
        raise NoAddress(f"{word!r} is neither an e-mail address nor an https endpoint")
    try:
        parts = urlsplit(word)
        host = parts.hostname or ""
    except ValueError as error:
        raise NoAddress(f"an endpoint is no URL: {error}") from error
    if parts.scheme != "https" or "." not in host:
        raise NoAddress(
            "an endpoint must begin with https:// and a host, such as https://host.example/path"
        )
    if host.endswith((".slack.com", ".slack-gov.com")):
        raise NoAddress(
            "Slack does not confirm subscriptions of a topic: give the e-mail address of the Slack "
            "channel, or connect the topic with Amazon Q Developer in chat applications"
        )
    return Address("https", word)


def subscribers(sns: Any, topic_arn: str) -> list[Subscriber]:
    """Who is subscribed to a topic, or was asked to confirm."""
    pages = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic_arn)
    return [
        Subscriber(Address(one["Protocol"], one["Endpoint"]), one["SubscriptionArn"] != _PENDING)
        for page in pages
        for one in page["Subscriptions"]
        if one["SubscriptionArn"] != _UNSUBSCRIBED
    ]


def subscribe(sns: Any, topic_arn: str, wanted: Sequence[Address]) -> None:
    """Subscribes who is not yet; AWS asks each new one to confirm. Raises ClientError."""
    known = [subscriber.address for subscriber in subscribers(sns, topic_arn)]
    for address in wanted:
        if not any(address.same_as(other) for other in known):
            sns.subscribe(TopicArn=topic_arn, Protocol=address.protocol, Endpoint=address.endpoint)


def listed(known: Iterable[Subscriber]) -> str:
    """The subscribers in words."""
    return ", ".join(_words(known))


def _words(known: Iterable[Subscriber]) -> Iterator[str]:
    for subscriber in known:
        yield f"{subscriber.address}" + ("" if subscriber.confirmed else " (not confirmed yet)")
