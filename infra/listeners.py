"""What `make deploy` prints at its end: who gets alarms and findings, or that nobody does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra import subscribers
from infra.subscribers import Subscriber

_CONFIRM = "AWS sends each new address a request to confirm; open its link within two days"


def alarm_lines(known: Sequence[Subscriber], topic_arn: str) -> Iterator[str]:
    """Yields lines about the topic of alarms."""
    if any(subscriber.is_confirmed for subscriber in known):
        yield f"Alarms go to {subscribers.subscribers_text(known)}."
    else:
        yield (
            "Nobody is told of alarms: when sageaudit itself fails, only the CloudWatch console "
            f"shows it.{_next_step(known, '--alarms-to', topic_arn)}"
        )


def notice_lines(
    known: Sequence[Subscriber], topic_arn: str, *, channels: Sequence[str], is_observe_mode: bool
) -> Iterator[str]:
    """Yields lines about the messages to job owners; `channels` are those besides the topic."""
    if is_observe_mode:
        yield 'Nothing is posted: policy.toml says mode = "observe"; audits are only stored.'
    if channels or any(subscriber.is_confirmed for subscriber in known):
        receivers = [*channels, *([subscribers.subscribers_text(known)] if known else [])]
        yield f"Findings go to {', '.join(receivers)}."
    else:
        yield (
            "Nobody is told of findings: they are only in the table, for `sageaudit top`."
            f"{_next_step(known, '--notices-to', topic_arn)}"
        )


def unconfirmed_lines(known: Sequence[Subscriber]) -> Iterator[str]:
    """Yields what unconfirmed addresses must do, which get nothing yet."""
    if any(not subscriber.is_confirmed for subscriber in known):
        yield f"{_CONFIRM}."


def _next_step(unconfirmed: Sequence[Subscriber], flag: str, topic_arn: str) -> str:
    if unconfirmed:
        return f" Not confirmed yet: {', '.join(str(subscriber) for subscriber in unconfirmed)}."
    return f' Run make deploy ARGS="{flag} ADDRESS", or subscribe to {topic_arn}.'
