"""The EventBridge rules for finished jobs, and the delayed queue that receives their events.

Events of this account and region are on its default bus. Other accounts and regions forward their
events to a bus of this stack (infra/member.yaml): on the default bus, other rules would match them.
"""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.members import forward_statement
from infra.queues import dead_letter_queue, work_queue
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import BUS_SOURCES, TERMINAL
from sageaudit.domain.members import HEARTBEAT_DETAIL_TYPE, HEARTBEAT_SOURCE
from sageaudit.domain.policy.scope import MemberAccounts


class Trigger(Construct):
    """The rules, and the queue of finished jobs.

    `members`: the accounts that may forward to the stack's bus.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        delay: cdk.Duration,
        consumer_timeout: cdk.Duration,
        members: MemberAccounts,
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
        own_pattern = _terminal_states(account=[cdk.Aws.ACCOUNT_ID], region=[cdk.Aws.REGION])
        self._rule("JobEnded", own_pattern, None)
        if members.has_other_accounts or members.all_regions:
            self.bus = events.EventBus(self, "Bus", event_bus_name=cdk.Aws.STACK_NAME)
            # Not limited to accounts, as a pattern with all of them would be too long: `audit`
            # checks them.
            self._rule("MemberJobEnded", _terminal_states(), self.bus)
            self._rule("MemberHeartbeat", _HEARTBEATS, self.bus, "Heartbeats of members")
        if members.has_other_accounts:
            events.CfnEventBusPolicy(
                self,
                "MembersMayForward",
                statement_id="sageaudit",
                event_bus_name=self.bus.event_bus_name,
                statement=forward_statement(members, self.bus.event_bus_arn),
            )

    def _rule(
        self,
        construct_id: str,
        pattern: events.EventPattern,
        bus: events.IEventBus | None,
        description: str = "SageMaker jobs that reached a final state, and replayed events",
    ) -> None:
        events.Rule(
            self,
            construct_id,
            description=description,
            event_bus=bus,
            event_pattern=pattern,
            targets=[
                targets.SqsQueue(
                    self.queue,
                    dead_letter_queue=self.dead_letters,
                    max_event_age=cdk.Duration.hours(24),
                    retry_attempts=185,
                )
            ],
        )


_HEARTBEATS = events.EventPattern(source=[HEARTBEAT_SOURCE], detail_type=[HEARTBEAT_DETAIL_TYPE])
_KINDS = [kind for kind in JobKind if kind.spec.has_event]


def _terminal_states(
    account: Sequence[str] | None = None, region: Sequence[str] | None = None
) -> events.EventPattern:
    """Returns the event pattern of ended jobs, and of events that a person replays."""
    return events.EventPattern(
        source=list(BUS_SOURCES),
        account=None if account is None else [*account],
        region=None if region is None else [*region],
        detail_type=[kind.spec.detail_type for kind in _KINDS],
        detail={"$or": [{kind.spec.status_key: sorted(TERMINAL)} for kind in _KINDS]},
    )
