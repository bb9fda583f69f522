"""The alarms of `alarm_list` in CloudWatch, and the topic that they publish to."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.alarm_list import Watch


class Alarms(Construct):
    """Operators subscribe to `topic`; job owners to the topic of notices."""

    def __init__(self, scope: Construct, construct_id: str, *, watches: Iterable[Watch]) -> None:
        super().__init__(scope, construct_id)
        # No SSE: CloudWatch cannot publish to a topic under the AWS managed key, and the text of an
        # alarm is no secret.
        self.topic = sns.Topic(self, "Topic", display_name="sageaudit alarms", enforce_ssl=True)
        self.topic.add_to_resource_policy(_cloudwatch_may_publish(self.topic))
        for watch in watches:
            _alarm(self, watch).add_alarm_action(actions.SnsAction(self.topic))


def _alarm(scope: Construct, watch: Watch) -> cloudwatch.Alarm:
    compare, missing = cloudwatch.ComparisonOperator, cloudwatch.TreatMissingData
    return cloudwatch.Alarm(
        scope,
        watch.name,
        metric=_metric(watch) if watch.while_counted is None else _never(watch),
        threshold=1 if watch.silence else watch.above,
        evaluation_periods=watch.periods,
        datapoints_to_alarm=watch.needed,
        comparison_operator=(
            compare.LESS_THAN_THRESHOLD if watch.silence else compare.GREATER_THAN_THRESHOLD
        ),
        treat_missing_data=missing.BREACHING if watch.silence else missing.NOT_BREACHING,
        alarm_description=watch.description,
    )


def _metric(watch: Watch) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=watch.namespace or cdk.Aws.STACK_NAME,
        metric_name=watch.metric,
        dimensions_map=dict(watch.dimensions),
        period=cdk.Duration.seconds(watch.period_s),
        statistic=watch.statistic,
    )


def _never(watch: Watch) -> cloudwatch.MathExpression:
    """1 where audits counted something and the metric of the watch was never counted."""
    counted = cloudwatch.Metric(
        namespace=cdk.Aws.STACK_NAME,
        metric_name=watch.while_counted or "",
        dimensions_map={"service": "audit"},
        statistic="Sum",
    )
    return cloudwatch.MathExpression(
        expression="IF(counted > 0 AND FILL(seen, 0) < 1, 1, 0)",
        using_metrics={"counted": counted, "seen": _metric(watch)},
        period=cdk.Duration.seconds(watch.period_s),
        label=watch.name,
    )


def _cloudwatch_may_publish(topic: sns.Topic) -> iam.PolicyStatement:
    """Needed because a topic with its own policy loses the default policy of SNS."""
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=["sns:Publish"],
        resources=[topic.topic_arn],
        conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
    )
