"""The EventBridge rule for finished jobs, and the delayed queue that receives their events."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.queues import dead_letter_queue, work_queue
from sageaudit.domain.job.event import BUS_SOURCES, DETAIL_TYPES, TERMINAL
from sageaudit.domain.job.kinds import JobKind


class Trigger(Construct):
    """The rule on the default bus, and the queue of finished jobs."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        delay: cdk.Duration,
        consumer_timeout: cdk.Duration,
        other_accounts: Sequence[str],
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = dead_letter_queue(self, "FinishedJobsDeadLetters")
        self.queue = work_queue(
            self,
            "FinishedJobs",
            consumer_timeout=consumer_timeout,
            dead_letters=self.dead_letters,
            delay=delay,
        )
        self.rule = events.Rule(
            self,
            "JobEnded",
            description="SageMaker jobs that reached a final state, and events that are sent again",
            event_pattern=_terminal_states(other_accounts),
            targets=[
                targets.SqsQueue(
                    self.queue,
                    dead_letter_queue=self.dead_letters,
                    max_event_age=cdk.Duration.hours(24),
                    retry_attempts=185,
                )
            ],
        )


def _terminal_states(other_accounts: Sequence[str]) -> events.EventPattern:
    return events.EventPattern(
        source=list(BUS_SOURCES),
        # Others may write to the bus, so the rule names the allowed accounts; so does the handler.
        account=[cdk.Aws.ACCOUNT_ID, *other_accounts],
        region=[cdk.Aws.REGION],
        detail_type=list(DETAIL_TYPES),
        detail={"$or": [{f"{kind.row.prefix}JobStatus": sorted(TERMINAL)} for kind in JobKind]},
    )
