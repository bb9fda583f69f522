"""When EventBridge Scheduler invokes the functions that no event does: the sweep and the digest."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.queues import dead_letter_queue
from sageaudit.domain.policy.scope import DigestTimes


@dataclass(frozen=True, slots=True)
class When:
    """`expression` in `timezone`. What fails is tried again for `tried_for`: until the
    next time the same work is done.
    """

    description: str
    expression: str
    tried_for: cdk.Duration
    timezone: str = "UTC"
    on: bool = True


EVERY = cdk.Duration.minutes(15)
SWEEP = When(
    "sageaudit: finds lost jobs, and has due audits made again",
    f"rate({int(EVERY.to_minutes())} minutes)",
    EVERY,
)


def weekly(times: DigestTimes | None) -> When:
    """The hour of the digest, and the one after it.

    The second start finds the digest written. It is for an hour that summer time leaves out, in
    which EventBridge Scheduler starts nothing, and for a first one that failed.
    """
    at = times or DigestTimes()
    return When(
        "sageaudit: the weekly digest",
        f"cron(0 {at.hour},{at.hour + 1} ? * {at.day[:3].upper()} *)",
        cdk.Duration.hours(1),
        at.timezone,
        on=times is not None,
    )


class Schedule(Construct):
    """Invokes `function`; what cannot be delivered or ends in an error is kept.

    No reserved concurrency: a new account has too little of it to reserve any. Two invocations at
    once are told apart in the table instead.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, function: lambda_.Function, when: When
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = dead_letter_queue(self, "DeadLetters")
        self._role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            ),
        )
        self._may("lambda:InvokeFunction", function.function_arn)
        self._may("sqs:SendMessage", self.dead_letters.queue_arn)
        # One that fails once leaves no dead letter; the table keeps two apart.
        invocations = lambda_.CfnEventInvokeConfig(
            self,
            "Invocations",
            function_name=function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=2,
            maximum_event_age_in_seconds=int(when.tried_for.to_seconds()),
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(
                    destination=self.dead_letters.queue_arn
                )
            ),
        )
        # Lambda looks whether the function's role may send there.
        invocations.node.add_dependency(function)
        schedule = scheduler.CfnSchedule(
            self,
            "Schedule",
            description=when.description,
            schedule_expression=when.expression,
            schedule_expression_timezone=when.timezone,
            state="ENABLED" if when.on else "DISABLED",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=self._role.role_arn,
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=self.dead_letters.queue_arn
                ),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=int(when.tried_for.to_seconds()),
                    maximum_retry_attempts=10,
                ),
            ),
        )
        schedule.node.add_dependency(self._role)

    def _may(self, action: str, resource: str) -> None:
        self._role.add_to_policy(iam.PolicyStatement(actions=[action], resources=[resource]))
