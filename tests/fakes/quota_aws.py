"""SageMaker and CloudWatch clients with latencies and quotas, in virtual time, without botocore."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from tests.fakes.jobs import ACCOUNT
from tests.fakes.virtual_time import VirtualTime

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LATENCIES_S = {"ListTrainingJobs": 0.4, "DescribeTrainingJob": 0.15, "GetMetricData": 0.7}
QUOTAS = {"ListTrainingJobs": 2, "DescribeTrainingJob": 10, "ListTags": 10, "GetMetricData": 50}
_OTHER_S = 0.1
_POINTS_A_SECOND = 90_000
_TRIES = 8
_BACKOFF_S = 1.0


@dataclass
class QuotaAws:
    """An account with `jobs` consecutive training jobs of `minutes` on `hosts`.

    A request above an API's quota is throttled, and the SDK retries it.
    """

    time: VirtualTime
    jobs: int
    minutes: int = 20
    hosts: int = 1
    quotas: Mapping[str, int] = field(default_factory=lambda: QUOTAS)
    requests: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    throttled: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    points: int = 0
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def client(self, service: str) -> Callable[[str, str], Any]:
        clients: dict[str, _Client] = {}
        return lambda _, region: clients.setdefault(region, _Client(self, service, region))

    def name(self, number: int) -> str:
        return f"bert-{number % 40:02}-{number:06}"

    def created_at(self, number: int) -> datetime:
        """Returns the creation time of a job; the jobs cover 30 days, newest last."""
        return NOW - timedelta(days=30) * (self.jobs - number) / (self.jobs + 1)

    def row(self, number: int, region: str) -> dict[str, Any]:
        created_at, name = self.created_at(number), self.name(number)
        ended_at = created_at + timedelta(minutes=self.minutes + 2)
        return {
            "TrainingJobName": name,
            "TrainingJobArn": f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-job/{name}",
            "CreationTime": created_at,
            "TrainingEndTime": ended_at,
            "LastModifiedTime": ended_at,
            "TrainingJobStatus": "Completed",
        }

    def described(self, number: int, region: str) -> dict[str, Any]:
        row = self.row(number, region)
        begun, ended_at = row["CreationTime"] + timedelta(minutes=2), row["TrainingEndTime"]
        seconds = self.minutes * 60
        return {
            **row,
            "SecondaryStatus": "Completed",
            "TrainingStartTime": begun,
            "TrainingTimeInSeconds": seconds,
            "BillableTimeInSeconds": seconds,
            "ResourceConfig": {
                "InstanceType": "ml.m5.4xlarge",
                "InstanceCount": self.hosts,
                "VolumeSizeInGB": 30,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
            "AlgorithmSpecification": {
                "TrainingImage": f"{ACCOUNT}.dkr.ecr.{region}.amazonaws.com/bert:1",
                "TrainingInputMode": "File",
            },
            "SecondaryStatusTransitions": [
                {
                    "Status": "Training",
                    "StartTime": begun,
                    "EndTime": ended_at,
                    "StatusMessage": "Training",
                }
            ],
        }

    def take(self, api: str, place: str, limit: int, amount: int = 1) -> bool:
        """Whether the quota grants a request: a token bucket with one second's requests."""
        now = self.time.now_s
        tokens, seen_at = self._buckets.get(place + api, (float(limit), now))
        tokens = min(float(limit), tokens + (now - seen_at) * limit)
        granted = tokens + 1e-6 >= amount
        self._buckets[place + api] = (tokens - amount if granted else tokens, now)
        return granted


class _Events:
    def __init__(self) -> None:
        self._handlers: list[tuple[str, Callable[..., Any]]] = []

    def register(self, name: str, handler: Callable[..., Any]) -> None:
        self._handlers.append((name, handler))

    register_first = register

    def emit(self, name: str, **values: Any) -> None:
        for start, handler in self._handlers:
            if f"{name}.".startswith(f"{start}."):
                handler(event_name=name, **values)


class _Client:
    def __init__(self, aws: QuotaAws, service: str, region: str) -> None:
        self._aws, self._service, self._region = aws, service, region
        self.meta = SimpleNamespace(
            service_model=SimpleNamespace(service_name=service), events=_Events()
        )

    def list_training_jobs(self, **call: Any) -> dict[str, Any]:
        self._call("ListTrainingJobs", call)
        last = int(call.get("NextToken", self._aws.jobs))
        first = max(last - call["MaxResults"], 0)
        rows = [self._aws.row(number, self._region) for number in range(last - 1, first - 1, -1)]
        rows = [row for row in rows if row["CreationTime"] > call["CreationTimeAfter"]]
        more = {"NextToken": str(first)} if first else {}
        return {"TrainingJobSummaries": rows, **more}

    def describe_training_job(self, **call: Any) -> dict[str, Any]:
        self._call("DescribeTrainingJob", call)
        return self._aws.described(int(call["TrainingJobName"][-6:]), self._region)

    def get_paginator(self, _: str) -> Any:
        def paginate(**call: Any) -> Iterator[dict[str, Any]]:
            self._call("ListTags", call)
            yield {"Tags": [{"Key": "owner", "Value": f"owner-{call['ResourceArn'][-1]}"}]}

        return SimpleNamespace(paginate=paginate)

    def get_metric_data(self, **call: Any) -> dict[str, Any]:
        queries = call["MetricDataQueries"]
        step = timedelta(seconds=queries[0]["MetricStat"]["Period"])
        points = int((call["EndTime"] - call["StartTime"]) / step)
        self._call("GetMetricData", call, points * len(queries))
        times = [call["StartTime"] + number * step for number in range(points)]
        return {
            "MetricDataResults": [
                {"Id": query["Id"], "Timestamps": times, "Values": [35.0] * points}
                for query in queries
            ]
        }

    def _call(self, api: str, params: Mapping[str, Any], points: int = 0) -> None:
        """Makes a request as the SDK does: events, latency, quota, and retries after a throttle."""
        aws, name = self._aws, f"{self._service}.{api}"
        self.meta.events.emit(f"before-parameter-build.{name}", params=params)
        for attempt in range(_TRIES):
            self.meta.events.emit(f"before-send.{name}")
            aws.requests[api] += 1
            granted = aws.take(api, self._region, aws.quotas.get(api, 10)) and (
                not points or aws.take("points", self._region, _POINTS_A_SECOND, points)
            )
            aws.time.sleep(LATENCIES_S.get(api, _OTHER_S))
            error = {} if granted else {"Error": {"Code": "ThrottlingException", "Message": ""}}
            self.meta.events.emit(f"needs-retry.{name}", response=(None, error))
            if granted:
                aws.points += points
                return
            aws.throttled[api] += 1
            aws.time.sleep(_BACKOFF_S * (attempt + 1))
        raise ClientError(error, api)
