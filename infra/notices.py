"""The queue of notices, the topic, and where undecided audits go."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.queues import dead_letter_queue, work_queue


class Notices(Construct):
    """The queue has one message per channel and audit version."""

    def __init__(
        self, scope: Construct, construct_id: str, *, consumer_timeout: cdk.Duration
    ) -> None:
        super().__init__(scope, construct_id)
        self.undecided = dead_letter_queue(self, "UndecidedAudits")
        self.dead_letters = dead_letter_queue(self, "NoticesDeadLetters")
        self.queue = work_queue(
            self,
            "Queue",
            consumer_timeout=consumer_timeout,
            dead_letters=self.dead_letters,
            # Each wait that a channel asks for uses one receive. Waits double up to half an hour,
            # so 20 receives last for an outage of about eight hours.
            max_receive_count=20,
        )
        self.topic = sns.Topic(
            self,
            "Topic",
            display_name="sageaudit",
            enforce_ssl=True,
            master_key=kms.Alias.from_alias_name(self, "SnsKey", "alias/aws/sns"),
        )
