"""The queues of notices and decisions, the topic, and where undecided audits go."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.queues import dead_letter_queue, work_queue


class Notices(Construct):
    """`queues` has one for each channel, so that a channel that hangs delays no other.

    A message of `queues` is one notice; one of `decisions` names an audit that notify must decide
    about again.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        channels: Sequence[str],
        notify_timeout: cdk.Duration,
        deliver_timeout: cdk.Duration,
    ) -> None:
        super().__init__(scope, construct_id)
        self.undecided = dead_letter_queue(self, "UndecidedAudits")
        self.decisions = work_queue(
            self, "Decisions", consumer_timeout=notify_timeout, dead_letters=self.undecided
        )
        self.dead_letters = dead_letter_queue(self, "NoticesDeadLetters")
        self.queues = {
            name: work_queue(
                self,
                f"Queue{name.capitalize()}",
                consumer_timeout=deliver_timeout,
                dead_letters=self.dead_letters,
            )
            for name in channels
        }
        self.topic = sns.Topic(
            self,
            "Topic",
            display_name="sageaudit",
            enforce_ssl=True,
            master_key=kms.Alias.from_alias_name(self, "SnsKey", "alias/aws/sns"),
        )
