"""Creates the queues of notices, decisions and undecided audits, and the topic of notices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.queues import dead_letter_queue, work_queue
from sageaudit.adapters.aws.stack_outputs import pascal_case

SNS_MANAGED_KEY = "alias/aws/sns"
"""The key's alias. SNS creates this key if an account first uses it by this name. The CDK would use
its ARN, with which SNS does not create the key, so that the topic accepts no message (aws-cdk issue
22605)."""
OWN_KEY_PERMISSIONS = ("kms:GenerateDataKey*", "kms:Decrypt")
"""The permissions that publishers need on the topic's own key; the managed key needs none."""


class Notices(Construct):
    """The queues of notices and decisions, and the topic.

    Each channel has its own queue in `queues`, so that a channel that hangs does not delay the
    others. A message of `queues` is one notice; a message of `decisions` names an audit about which
    notify must decide again. `own_key`: the ARN of the topic's own KMS key; None for the managed
    key.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        channels: Sequence[str],
        notify_timeout: cdk.Duration,
        deliver_timeout: cdk.Duration,
        own_key: str | None,
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
                f"Queue{pascal_case(name)}",
                consumer_timeout=deliver_timeout,
                dead_letters=self.dead_letters,
            )
            for name in channels
        }
        self.topic = sns.Topic(self, "Topic", display_name="sageaudit", enforce_ssl=True)
        topic = cast("sns.CfnTopic", self.topic.node.default_child)
        topic.add_property_override("KmsMasterKeyId", own_key or SNS_MANAGED_KEY)
