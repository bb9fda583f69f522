"""Queues with this project's settings: encrypted, TLS only, with a dead-letter queue."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.names import MAX_RECEIVES, VISIBILITY_FACTOR

RETENTION = cdk.Duration.days(14)
"""The longest time that SQS keeps a message."""


def dead_letter_queue(scope: Construct, construct_id: str) -> sqs.Queue:
    """Creates a queue for messages that failed."""
    return sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=RETENTION,
    )


def work_queue(
    scope: Construct,
    construct_id: str,
    *,
    consumer_timeout: cdk.Duration,
    dead_letters: sqs.Queue,
    delay: cdk.Duration | None = None,
) -> sqs.Queue:
    """Creates a queue that one function reads. `delay`: how long each new message is hidden."""
    return sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        visibility_timeout=cdk.Duration.seconds(consumer_timeout.to_seconds() * VISIBILITY_FACTOR),
        retention_period=RETENTION,
        delivery_delay=delay,
        dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=MAX_RECEIVES),
    )
