"""What `make deploy` prints at its end: who gets alarms and messages, or that nobody does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra import subscribers
from infra.subscribers import Subscriber

_CONFIRM = "AWS sends each new address a request to confirm; open its link within two days"


def alarm_lines(known_subscribers: Sequence[Subscriber], topic_arn: str) -> Iterator[str]:
    """Yields a line about who gets alarms."""
    if any(subscriber.is_confirmed for subscriber in known_subscribers):
        yield f"Alarms go to {subscribers.subscribers_text(known_subscribers)}."
    else:
        yield (
            "Nobody gets alarms: if sageaudit itself fails, only the CloudWatch console "
            f"shows it.{_next_step(known_subscribers, '--alarms-to', topic_arn)}"
        )


def notice_lines(
    known_subscribers: Sequence[Subscriber],
    topic_arn: str,
    *,
    channels: Sequence[str],
    is_observe_mode: bool,
) -> Iterator[str]:
    """Yields lines about who gets the messages to job owners.

    `channels`: the policy's channels, without the stack's own topic.
    """
    if is_observe_mode:
        yield 'No messages are sent: policy.toml has mode = "observe", so audits are only stored.'
    if channels or any(subscriber.is_confirmed for subscriber in known_subscribers):
        receivers = [
            *channels,
            *([subscribers.subscribers_text(known_subscribers)] if known_subscribers else []),
        ]
        yield f"Messages go to {', '.join(receivers)}."
    else:
        yield (
            "Nobody gets messages: findings are only in the table, for `sageaudit top`."
            f"{_next_step(known_subscribers, '--notices-to', topic_arn)}"
        )


def unconfirmed_lines(known_subscribers: Sequence[Subscriber]) -> Iterator[str]:
    """Yields a line on how to confirm, if an address is unconfirmed and gets nothing yet."""
    if any(not subscriber.is_confirmed for subscriber in known_subscribers):
        yield f"{_CONFIRM}."


def _next_step(unconfirmed: Sequence[Subscriber], flag: str, topic_arn: str) -> str:
    if unconfirmed:
        return f" Not confirmed yet: {', '.join(str(subscriber) for subscriber in unconfirmed)}."
    return f' Run make deploy ARGS="{flag} ADDRESS", or subscribe to {topic_arn}.'
