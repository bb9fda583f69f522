"""Alarms for failures that no retry repairs: a person has to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import METRICS_NAMESPACE

STREAM_LATE_AFTER = cdk.Duration.minutes(15)


class Alarms(Construct):
    """One for each dead-letter queue and each broken channel, and for a stream that falls behind.

    Also for refused events, and for a delivery that hits an unexpected error.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        dead_letters: Mapping[str, sqs.Queue],
        stream_reader: lambda_.Function,
        channels: Sequence[str],
    ) -> None:
        super().__init__(scope, construct_id)
        # No SSE: CloudWatch cannot publish to a topic under the AWS managed key, and the text of an
        # alarm is no secret. Operators subscribe here, job owners to the topic of notices.
        self.topic = sns.Topic(self, "Topic", display_name="sageaudit alarms", enforce_ssl=True)
        self.topic.add_to_resource_policy(_cloudwatch_may_publish(self.topic))
        for name, queue in dead_letters.items():
            self._add(
                f"{name}NotEmpty",
                queue.metric_approximate_number_of_messages_visible(
                    period=cdk.Duration.minutes(1), statistic="Maximum"
                ),
                threshold=0,
                periods=1,
                description=f"{name} has messages that failed for good",
            )
        for channel in channels:
            self._add(
                f"{channel.capitalize()}Broken",
                _counted("NotifyFailed", service="deliver", channel=channel),
                threshold=0,
                periods=1,
                description=f"{channel} refused a notice for good: check its webhook or topic",
            )
        # The queue's alarm does not fire again while older messages are in the queue.
        self._add(
            "EventsRejected",
            _counted("RejectedEvents", service="audit"),
            threshold=0,
            periods=1,
            description="Events were malformed, forged, or of an account that is not allowed",
        )
        # In the other two functions, such a record ends in a dead-letter queue. A notice that may
        # have been posted is tried once more and then left, so without this alarm nobody knows.
        self._add(
            "DeliveryDefect",
            _counted("Defects", service="deliver"),
            threshold=0,
            periods=1,
            description="Unexpected error in deliver (see its log); a notice may not be posted",
        )
        self._add(
            "StreamLate",
            stream_reader.metric(
                "IteratorAge", period=cdk.Duration.minutes(1), statistic="Maximum"
            ),
            threshold=STREAM_LATE_AFTER.to_milliseconds(),
            periods=3,
            description="Audits wait longer than 15 minutes for the decision whether to notify",
        )

    def _add(
        self,
        construct_id: str,
        metric: cloudwatch.Metric,
        *,
        threshold: float,
        periods: int,
        description: str,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            construct_id,
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=description,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))


def _counted(name: str, **dimensions: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=METRICS_NAMESPACE,
        metric_name=name,
        dimensions_map=dimensions,
        period=cdk.Duration.minutes(5),
        statistic="Sum",
    )


def _cloudwatch_may_publish(topic: sns.Topic) -> iam.PolicyStatement:
    """Needed because a topic with its own policy loses the default policy of SNS."""
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=["sns:Publish"],
        resources=[topic.topic_arn],
        conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
    )
