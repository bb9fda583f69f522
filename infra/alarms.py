"""The alarms of `alarm_list` in CloudWatch, and the topic that they publish to."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.alarm_list import MAX_STATISTIC, SUM_STATISTIC, AlarmSpec


class Alarms(Construct):
    """The alarms. Operators subscribe to `topic`, job owners to the topic of notices."""

    def __init__(
        self, scope: Construct, construct_id: str, *, watches: Iterable[AlarmSpec]
    ) -> None:
        super().__init__(scope, construct_id)
        # No SSE: CloudWatch cannot publish to a topic under the AWS managed key, and the text of an
        # alarm is not a secret.
        self.topic = sns.Topic(self, "Topic", display_name="sageaudit alarms", enforce_ssl=True)
        self.topic.add_to_resource_policy(_publish_statement(self.topic))
        watches = list(watches)
        silent = {watch.name for watch in watches if watch.alarm_if_no_data}
        self.all = [_alarm(self, watch) for watch in watches]
        action = actions.SnsAction(self.topic)
        for alarm in self.all:
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)
            if alarm.node.id in silent:
                alarm.add_insufficient_data_action(action)


def _alarm(scope: Construct, watch: AlarmSpec) -> cloudwatch.Alarm:
    compare, missing = cloudwatch.ComparisonOperator, cloudwatch.TreatMissingData
    return cloudwatch.Alarm(
        scope,
        watch.name,
        metric=alarm_metric(watch),
        threshold=1 if watch.alarm_if_no_data else watch.threshold,
        evaluation_periods=watch.periods,
        datapoints_to_alarm=watch.datapoints_to_alarm,
        comparison_operator=(
            compare.LESS_THAN_THRESHOLD
            if watch.alarm_if_no_data
            else compare.GREATER_THAN_THRESHOLD
        ),
        # Its state is INSUFFICIENT_DATA before the first value and after the last. Only a change of
        # the state is sent, so a new installation is quiet.
        treat_missing_data=missing.MISSING if watch.alarm_if_no_data else missing.NOT_BREACHING,
        alarm_description=watch.description,
    )


def alarm_metric(watch: AlarmSpec) -> cloudwatch.IMetric:
    """Returns the metric that an alarm watches, also for a graph."""
    period = cdk.Duration.seconds(watch.period_s)
    metrics = [
        cloudwatch.Metric(
            namespace=source.namespace or cdk.Aws.STACK_NAME,
            metric_name=source.metric,
            dimensions_map=dict(source.dimensions),
            period=period,
            statistic=watch.statistic,
        )
        for source in watch.sources
    ]
    if watch.expression is None:
        return metrics[0]
    # A graph may have several of these, so their names are the alarm's.
    named = {f"m{watch.name}{number}": metric for number, metric in enumerate(metrics)}
    expression = watch.expression.format(*named)
    if expression in {SUM_STATISTIC, MAX_STATISTIC}:
        expression = f"{expression}([{', '.join(f'FILL({name}, 0)' for name in named)}])"
    return cloudwatch.MathExpression(
        expression=expression, using_metrics=named, period=period, label=watch.name
    )


def _publish_statement(topic: sns.Topic) -> iam.PolicyStatement:
    """Needed because a topic with its own policy loses the default policy of SNS."""
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=["sns:Publish"],
        resources=[topic.topic_arn],
        conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
    )
