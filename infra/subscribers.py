"""Lists, parses and creates subscriptions of the stack's two topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

NOBODY = "nobody"
"""The answer that stands for no subscription, for pipelines."""

_EMAIL = re.compile(r"[^@\s,;<>\"]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_PENDING = "PendingConfirmation"
_UNSUBSCRIBED = "Deleted"


class InvalidAddress(ValueError):
    """A text is not an e-mail address; the message says what to give instead."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """An endpoint that is subscribed to a topic; if unconfirmed, it gets nothing yet."""

    endpoint: str
    is_confirmed: bool

    def __str__(self) -> str:
        """Returns the endpoint; an https endpoint without its path, which often contains a key."""
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.hostname}" if parts.scheme else self.endpoint


def parse_addresses(text: str) -> tuple[str, ...]:
    """Reads e-mail addresses, separated by commas or spaces; none for "nobody" or an empty text.

    Raises InvalidAddress.
    """
    words = [word for word in re.split(r"[,\s]+", text) if word]
    if words in ([], [NOBODY]):
        return ()
    if not all(
        map(_EMAIL.fullmatch, words)
    ):  # the text is not quoted: an endpoint's path may contain a key
        raise InvalidAddress("not an e-mail address; `aws sns subscribe` takes other endpoints")
    return tuple(words)


def list_subscribers(sns: Any, topic_arn: str) -> list[Subscriber]:
    """Returns the subscribers of a topic, including unconfirmed subscribers."""
    pages = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic_arn)
    return [
        Subscriber(subscription["Endpoint"], subscription["SubscriptionArn"] != _PENDING)
        for page in pages
        for subscription in page["Subscriptions"]
        if subscription["SubscriptionArn"] != _UNSUBSCRIBED
    ]


def subscribe(sns: Any, topic_arn: str, addresses: Sequence[str]) -> None:
    """Subscribes new addresses; AWS asks each address to confirm. Raises ClientError."""
    subscribed_endpoints = {
        subscriber.endpoint.lower() for subscriber in list_subscribers(sns, topic_arn)
    }
    for address in addresses:
        if address.lower() not in subscribed_endpoints:
            sns.subscribe(TopicArn=topic_arn, Protocol="email", Endpoint=address)


def subscribers_text(subscribers: Iterable[Subscriber]) -> str:
    """Returns a text such as `a@example.com, b@example.com (not confirmed yet)`."""
    return ", ".join(
        f"{subscriber}{'' if subscriber.is_confirmed else ' (not confirmed yet)'}"
        for subscriber in subscribers
    )
