"""The words about who is told, and the subscriptions that they come from."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from infra import listeners, subscribers
from infra.subscribers import Subscriber

OPS = "ops@example.com"
HOOK = "https://events.example.com/integration/0123456789abcdef/enqueue"
TOPIC = "arn:aws:sns:us-east-1:111122223333:alarms"


class FakeSns:
    """The subscriptions of one topic; a new one waits for its confirmation, as in AWS."""

    def __init__(self, *listed: Mapping[str, str]) -> None:
        self.listed = [dict(subscription) for subscription in listed]

    def get_paginator(self, _name: str) -> "FakeSns":
        """Pages of one."""
        return self

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        """Also an empty page."""
        yield {"Subscriptions": []}
        for subscription in self.listed:
            yield {"Subscriptions": [subscription]}

    def subscribe(self, *, TopicArn: str, Protocol: str, Endpoint: str) -> None:  # noqa: N803
        """Adds one."""
        assert TopicArn == TOPIC
        self.listed.append(subscription("PendingConfirmation", Protocol, Endpoint))


def subscription(arn: str, protocol: str, endpoint: str) -> dict[str, str]:
    """One entry of AWS's list."""
    return {"SubscriptionArn": arn, "Protocol": protocol, "Endpoint": endpoint}


@pytest.mark.parametrize("listed", [[], [subscription("Deleted", "email", OPS)]])
def test_a_pending_address_is_not_asked_again(listed: list[Mapping[str, str]]) -> None:
    """A pipeline that deploys each hour would send a mail each hour.

    Who unsubscribed is nobody: AWS lists such an address as "Deleted" for a while.
    """
    sns = FakeSns(*listed)
    assert subscribers.list_subscribers(sns, TOPIC) == []
    for _ in range(2):
        subscribers.subscribe(sns, TOPIC, [OPS])
    assert subscribers.list_subscribers(sns, TOPIC) == [Subscriber(OPS, is_confirmed=False)]


def test_only_pending_addresses_are_nobody_yet() -> None:
    """They get nothing until they confirm."""
    known = [Subscriber(OPS, is_confirmed=False)]
    [line] = listeners.alarm_lines(known, TOPIC)
    assert line.startswith("Nobody gets alarms: ")
    assert line.endswith("Not confirmed yet: ops@example.com.")
    [confirm] = listeners.unconfirmed_lines(known)
    assert "within two days" in confirm


def test_a_pending_address_is_marked_beside_a_confirmed_one() -> None:
    """One of two is told. The key in an endpoint's path is not shown."""
    known = [Subscriber(OPS, is_confirmed=True), Subscriber(HOOK, is_confirmed=False)]
    assert list(listeners.alarm_lines(known, TOPIC)) == [
        "Alarms go to ops@example.com, https://events.example.com (not confirmed yet)."
    ]


def test_nobody_is_an_answer() -> None:
    """Enter at the keyboard, the word in a pipeline; not beside an address."""
    for text in ("", "  ", "nobody"):
        assert subscribers.parse_addresses(text) == ()
    with pytest.raises(subscribers.InvalidAddress, match="e-mail"):
        subscribers.parse_addresses("nobody,ops@example.com")
