"""Queues with this project's settings: encrypted, TLS only, with a dead-letter queue."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

VISIBILITY_FACTOR = 6
"""AWS advises at least six function timeouts, so that throttled invokes do not repeat a batch."""


def dead_letter_queue(scope: Construct, construct_id: str) -> sqs.Queue:
    """A queue that keeps failed messages for 14 days, the longest time that SQS allows."""
    return sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=cdk.Duration.days(14),
    )


def work_queue(
    scope: Construct,
    construct_id: str,
    *,
    consumer_timeout: cdk.Duration,
    dead_letters: sqs.Queue,
    max_receive_count: int,
    delay: cdk.Duration | None = None,
) -> sqs.Queue:
    """A queue for one function; after `max_receive_count` tries a message is a dead letter."""
    return sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        visibility_timeout=cdk.Duration.seconds(consumer_timeout.to_seconds() * VISIBILITY_FACTOR),
        delivery_delay=delay,
        dead_letter_queue=sqs.DeadLetterQueue(
            queue=dead_letters, max_receive_count=max_receive_count
        ),
    )
