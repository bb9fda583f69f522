"""The states of the template's alarms on the local AWS, evaluated as CloudWatch does.

The values come from where CloudWatch takes them: the lines of metrics that the functions print, the
attributes of the queues, and the invocations that ended without an answer.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from local.aws import LocalAws
from local.stack import STACK, TEMPLATE

WITHIN = timedelta(hours=12)


class AlarmStates:
    """What the alarms of the stack see, from when this was made."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        template = json.loads(TEMPLATE.read_text(encoding="utf-8"))
        self._alarms = {
            key.removeprefix("Alarms")[:-8]: resource["Properties"]
            for key, resource in template["Resources"].items()
            if resource["Type"] == "AWS::CloudWatch::Alarm"
        }
        self._read: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._invoked: dict[str, int] = {}
        self._mark()

    def becomes(self, name: str, *, raised: bool, within: timedelta = WITHIN) -> bool:
        """Lets time pass until the alarm has this state; False where it never has."""
        alarm = self._alarms[name]
        periods, period_s = int(alarm["EvaluationPeriods"]), _period_s(alarm)
        needed = int(alarm.get("DatapointsToAlarm", periods))
        last: deque[bool] = deque(maxlen=periods)
        end = self._aws.clock.now() + within
        while self._aws.clock.now() < end:
            self._mark()
            self._aws.advance(self._aws.clock.now() + timedelta(seconds=period_s))
            last.append(self._breaches(self._value(alarm), alarm))
            if raised and sum(last) >= needed:
                return True
            if not raised and len(last) == periods and sum(last) < needed:
                return True
        return False

    def breaching(self) -> set[str]:
        """Which alarms a value of all the time since this was made, or of now, breaches."""
        local = {name: alarm for name, alarm in self._alarms.items() if not _not_local(alarm)}
        values = {name: self._value(alarm) for name, alarm in local.items()}
        return {
            name
            for name, value in values.items()
            if value is not None and self._breaches(value, self._alarms[name])
        }

    @staticmethod
    def _breaches(value: float | None, alarm: Mapping[str, Any]) -> bool:
        if value is None:  # one that is told of missing data has no other data to be told of
            return "InsufficientDataActions" in alarm
        if alarm["ComparisonOperator"] == "LessThanThreshold":
            return bool(value < alarm["Threshold"])
        return bool(value > alarm["Threshold"])

    def _mark(self) -> None:
        for name, function in self._aws.functions.items():
            self._read[name] = len(function.log.getvalue())
            self._failures[name] = len(function.failures)
            self._invoked[name] = function.invocation_count

    def _value(self, alarm: Mapping[str, Any]) -> float | None:
        """Of one metric, or of an expression about several."""
        if "Metrics" not in alarm:
            return self._of_metric(alarm, alarm["Statistic"])
        stats = {
            metric["Id"]: metric["MetricStat"]
            for metric in alarm["Metrics"]
            if "MetricStat" in metric
        }
        [expression] = [
            metric["Expression"] for metric in alarm["Metrics"] if "Expression" in metric
        ]
        values = [self._of_metric(stat["Metric"], stat["Stat"]) for stat in stats.values()]
        known_values = [value or 0.0 for value in values]
        if expression.startswith("SUM"):
            return sum(known_values)
        if expression.startswith("MAX"):
            return max(known_values)
        first, second = known_values
        return first - second if " - " in expression else float(first > 0 and second < 1)

    def _of_metric(self, metric_query: Mapping[str, Any], statistic: str) -> float | None:
        dimensions = {d["Name"]: self._physical(d["Value"]) for d in metric_query["Dimensions"]}
        metric, namespace = metric_query["MetricName"], self._physical(metric_query["Namespace"])
        values: list[float]
        if namespace == "AWS/SQS":
            values = [self._of_queue(metric, dimensions["QueueName"])]
        elif namespace == "AWS/Lambda":
            values = [*self._of_function(metric, dimensions["FunctionName"])]
        else:
            values = list(self._printed(namespace, metric, dimensions))
        if not values:
            return None
        statistics: dict[str, Callable[[list[float]], float]] = {"Sum": sum, "Maximum": max}
        return float(statistics[statistic](values))

    def _printed(
        self, namespace: str, metric: str, dimensions: Mapping[str, str]
    ) -> Iterator[float]:
        """Values that were printed for exactly these dimensions."""
        for name, function in self._aws.functions.items():
            for line in function.log.getvalue()[self._read[name] :].splitlines():
                printed = (
                    json.loads(line) if line.startswith('{"_aws"') or '"_aws":' in line else {}
                )
                for directive in printed.get("_aws", {}).get("CloudWatchMetrics", ()):
                    exact = any(set(names) == set(dimensions) for names in directive["Dimensions"])
                    same = all(printed.get(key) == value for key, value in dimensions.items())
                    counted = {metric["Name"] for metric in directive["Metrics"]}
                    if directive["Namespace"] == namespace and exact and same and metric in counted:
                        value = printed[metric]
                        yield from map(float, value if isinstance(value, list) else [value])

    def _of_queue(self, metric: str, name: str) -> float:
        sqs = self._aws.session.client("sqs")
        url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
        if metric == "ApproximateNumberOfMessagesVisible":
            [count] = sqs.get_queue_attributes(
                QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]
            )["Attributes"].values()
            return float(count)
        assert metric == "ApproximateAgeOfOldestMessage"
        messages = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=0,
            AttributeNames=["SentTimestamp"],
        ).get("Messages", [])
        sent = [int(message["Attributes"]["SentTimestamp"]) / 1000 for message in messages]
        return self._aws.clock.now().timestamp() - min(sent) if sent else 0.0

    def _of_function(self, metric: str, name: str) -> Iterator[float]:
        """Of `Invocations`, none where there was none, as of a function that is not started."""
        [function] = [f for f in self._aws.functions.values() if f.arn.endswith(f":{name}")]
        if metric == "Errors":
            yield len(function.failures) - self._failures[function.name]
        elif started := function.invocation_count - self._invoked[function.name]:
            assert metric == "Invocations", f"{metric} is not of the local AWS"
            yield started

    def _physical(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if value == {"Ref": "AWS::StackName"}:
            return STACK
        if "Ref" in value:
            return self._aws.resources[value["Ref"]]
        [logical, attribute] = value["Fn::GetAtt"]
        assert attribute == "QueueName"
        return self._aws.resources[logical].rpartition("/")[2]


def _not_local(alarm: Mapping[str, Any]) -> bool:
    """Whether it watches what the local AWS has not: nothing runs beside, or for long, there."""
    return any(metric in json.dumps(alarm) for metric in ("Throttles", "IteratorAge"))


def _period_s(alarm: Mapping[str, Any]) -> int:
    """All metrics of an alarm have one period."""
    periods = {
        metric["MetricStat"]["Period"]
        for metric in alarm.get("Metrics", ())
        if "MetricStat" in metric
    } or {alarm["Period"]}
    [period] = periods
    return int(period)
