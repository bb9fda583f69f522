"""Creates the alarms of `alarm_list`, and the topic to which they publish."""

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

    def __init__(self, scope: Construct, construct_id: str, *, specs: Iterable[AlarmSpec]) -> None:
        super().__init__(scope, construct_id)
        # No SSE: CloudWatch cannot publish to a topic with the AWS managed key, and the text of an
        # alarm is not secret.
        self.topic = sns.Topic(self, "Topic", display_name="sageaudit alarms", enforce_ssl=True)
        self.topic.add_to_resource_policy(_publish_statement(self.topic))
        specs = list(specs)
        names_if_no_data = {spec.name for spec in specs if spec.alarm_if_no_data}
        self.all = [_create_alarm(self, spec) for spec in specs]
        action = actions.SnsAction(self.topic)
        for alarm in self.all:
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)
            if alarm.node.id in names_if_no_data:
                alarm.add_insufficient_data_action(action)


def _create_alarm(scope: Construct, spec: AlarmSpec) -> cloudwatch.Alarm:
    operators, missing_data = cloudwatch.ComparisonOperator, cloudwatch.TreatMissingData
    return cloudwatch.Alarm(
        scope,
        spec.name,
        metric=alarm_metric(spec),
        threshold=1 if spec.alarm_if_no_data else spec.threshold,
        evaluation_periods=spec.periods,
        datapoints_to_alarm=spec.datapoints_to_alarm,
        comparison_operator=(
            operators.LESS_THAN_THRESHOLD
            if spec.alarm_if_no_data
            else operators.GREATER_THAN_THRESHOLD
        ),
        # Its state is INSUFFICIENT_DATA before the first value and after the last. Only changes of
        # the state are sent, so a new installation sends nothing.
        treat_missing_data=missing_data.MISSING
        if spec.alarm_if_no_data
        else missing_data.NOT_BREACHING,
        alarm_description=spec.description,
    )


def alarm_metric(spec: AlarmSpec) -> cloudwatch.IMetric:
    """Returns the metric that an alarm watches, also for a graph."""
    period = cdk.Duration.seconds(spec.period_s)
    metrics = [
        cloudwatch.Metric(
            namespace=source.namespace or cdk.Aws.STACK_NAME,
            metric_name=source.metric,
            dimensions_map=dict(source.dimensions),
            period=period,
            statistic=spec.statistic,
        )
        for source in spec.sources
    ]
    if spec.expression is None:
        return metrics[0]
    # A graph may have several expressions, so the ids contain the alarm's name.
    metric_by_id = {f"m{spec.name}{number}": metric for number, metric in enumerate(metrics)}
    expression = spec.expression.format(*metric_by_id)
    if expression in {SUM_STATISTIC, MAX_STATISTIC}:
        expression = f"{expression}([{', '.join(f'FILL({name}, 0)' for name in metric_by_id)}])"
    return cloudwatch.MathExpression(
        expression=expression, using_metrics=metric_by_id, period=period, label=spec.name
    )


def _publish_statement(topic: sns.Topic) -> iam.PolicyStatement:
    """Returns the statement that lets CloudWatch publish to the topic.

    A topic with its own policy loses the default policy of SNS.
    """
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=["sns:Publish"],
        resources=[topic.topic_arn],
        conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
    )
