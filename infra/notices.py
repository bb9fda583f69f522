"""The queue of notices, the topic, and where undecided audits go."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.queues import dead_letter_queue, work_queue


class Notices(Construct):
    """One message per channel and audit version waits here for its delivery."""

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
            # A channel that asks to wait uses up a receive each time. Waits double up to half an
            # hour, so that 20 cover some eight hours of outage.
            max_receive_count=20,
        )
        self.topic = sns.Topic(
            self,
            "Topic",
            display_name="sageaudit",
            enforce_ssl=True,
            master_key=kms.Alias.from_alias_name(self, "SnsKey", "alias/aws/sns"),
        )
