"""The schedules on which EventBridge Scheduler invokes the sweep, the watch and the digest."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.queues import dead_letter_queue
from sageaudit.domain.policy.scope import DigestSchedule


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """A schedule: an `expression` in `timezone`.

    `retry_period`: how long failures are retried, until the next scheduled time.
    """

    description: str
    expression: str
    retry_period: cdk.Duration
    timezone: str = "UTC"
    is_enabled: bool = True


SWEEP_INTERVAL = cdk.Duration.minutes(15)
_SWEEP_MINUTE = 2
_WATCH_MINUTE = 9
"""The minute of each quarter of an hour. Most sweeps have ended by then, so the watch knows the
newest jobs, and the two rarely run together: a new account allows only ten executions."""
SWEEP_SCHEDULE = ScheduleSpec(
    "sageaudit: finds lost jobs, and sends due audits again",
    f"cron({_SWEEP_MINUTE}/15 * * * ? *)",
    SWEEP_INTERVAL,
)


def watch_schedule(*, is_enabled: bool) -> ScheduleSpec:
    """Returns the schedule of the watch: as often as the sweep, which stores the running jobs."""
    return ScheduleSpec(
        "sageaudit: checks running jobs and budgets",
        f"cron({_WATCH_MINUTE}/15 * * * ? *)",
        SWEEP_INTERVAL,
        is_enabled=is_enabled,
    )


def digest_schedule(digest: DigestSchedule | None) -> ScheduleSpec:
    """Returns the schedule of the digest, which is off if there is no digest."""
    digest_time = digest or DigestSchedule()
    return ScheduleSpec(
        "sageaudit: the weekly digest",
        digest_time.cron,
        cdk.Duration.hours(1),
        digest_time.timezone,
        is_enabled=digest is not None,
    )


class Schedule(Construct):
    """Invokes `function` by a schedule.

    An invocation that cannot be delivered or ends in an error becomes a dead letter. The function
    has no reserved concurrency, of which a new account has too little. A lease in the table
    prevents two sweeps at the same time.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: lambda_.Function,
        group: scheduler.CfnScheduleGroup,
        spec: ScheduleSpec,
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = dead_letter_queue(self, "DeadLetters")
        group_arn = cdk.Stack.of(self).format_arn(
            service="scheduler", resource="schedule-group", resource_name=group.name
        )
        self._role = iam.Role(
            self,
            "Role",
            # Both keys, and the group's ARN, not the schedule's: "Confused deputy prevention in
            # EventBridge Scheduler" in the user guide.
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={
                    "StringEquals": {
                        "aws:SourceAccount": cdk.Aws.ACCOUNT_ID,
                        "aws:SourceArn": group_arn,
                    }
                },
            ),
        )
        self._allow("lambda:InvokeFunction", function.function_arn)
        self._allow("sqs:SendMessage", self.dead_letters.queue_arn)
        # Two retries, so that a single failure leaves no dead letter.
        invocations = lambda_.CfnEventInvokeConfig(
            self,
            "Invocations",
            function_name=function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=2,
            maximum_event_age_in_seconds=int(spec.retry_period.to_seconds()),
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(
                    destination=self.dead_letters.queue_arn
                )
            ),
        )
        # Lambda checks that the function's role may send to the destination.
        invocations.node.add_dependency(function)
        schedule = scheduler.CfnSchedule(
            self,
            "Schedule",
            group_name=group.ref,
            description=spec.description,
            schedule_expression=spec.expression,
            schedule_expression_timezone=spec.timezone,
            state="ENABLED" if spec.is_enabled else "DISABLED",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=self._role.role_arn,
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=self.dead_letters.queue_arn
                ),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=int(spec.retry_period.to_seconds()),
                    maximum_retry_attempts=10,
                ),
            ),
        )
        schedule.node.add_dependency(self._role)

    def _allow(self, action: str, resource: str) -> None:
        self._role.add_to_policy(iam.PolicyStatement(actions=[action], resources=[resource]))
