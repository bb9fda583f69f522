"""The parts of SageMaker and CloudWatch that an audit calls, answered from recordings.

SageMaker's answers are HTTP answers: botocore validates the request, repeats it after a throttle
and parses the JSON as with AWS. CloudWatch's points are put into moto, which averages them over the
period of each request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from math import inf, isfinite
from typing import Any

import botocore.session
from botocore.awsrequest import AWSResponse

from local.recorded import RecordedJob
from local.requests import RequestRouter, http_answer
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind, JobMetrics, KindSpec, RollUp
from sageaudit.domain.usage.measurements import RawSeries

_POINTS_PER_CALL = 500
_URL = "https://api.sagemaker"


class RecordedSageMaker:
    """Answers Describe*, List*, ListTags and the lists of launched jobs, for the jobs that were
    added.

    A deleted job is only in the list of its roll-up. `session`: a boto3 session, or its
    RequestRouter. `clock`: a job that was added early is listed from its end, or from its creation
    if it was added as running. `page`: the number of rows of a page.
    """

    def __init__(
        self,
        session: Any,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        page: int = 100,
    ) -> None:
        self.page = page
        self._clock = clock
        self._jobs: dict[tuple[str, str], RecordedJob] = {}
        self._running_arns: set[str] = set()
        self._added_jobs: dict[str, RecordedJob] = {}
        """All jobs by ARN, including deleted jobs."""
        requests = session if isinstance(session, RequestRouter) else RequestRouter(session)
        self._model = botocore.session.get_session().get_service_model("sagemaker")
        for kind in JobKind:
            event = f"before-send.sagemaker.{kind.spec.describe_call}"
            requests.register_answer(event, self._describe(kind.spec))
            event = f"before-send.sagemaker.{kind.spec.list_call}"
            requests.register_answer(event, self._list(kind.spec))
            if (rollup := kind.spec.rollup) is not None:
                event = f"before-send.sagemaker.{rollup.child_list.action}"
                requests.register_answer(event, self._list_children(kind.spec, rollup))
        requests.register_answer("before-send.sagemaker.ListTags", self._list_tags)

    def add(self, job: RecordedJob) -> None:
        """Adds a job."""
        self._jobs[job.kind.spec.prefix, job.name] = self._added_jobs[job.arn] = job

    def add_running(self, job: RecordedJob) -> None:
        """Adds a job that Describe and lists show as running until its end."""
        self.add(job)
        self._running_arns.add(job.arn)

    def _describe_now(self, job: RecordedJob) -> Mapping[str, Any]:
        return job.describe_at(self._clock()) if job.arn in self._running_arns else job.describe

    def _is_listed(self, job: RecordedJob) -> bool:
        listed_from = job.key.created_at if job.arn in self._running_arns else job.ended_at
        return listed_from <= self._clock()

    def delete(self, job: RecordedJob) -> None:
        """Deletes a job."""
        del self._jobs[job.kind.spec.prefix, job.name]

    def _describe(self, spec: KindSpec) -> Callable[..., AWSResponse]:
        shape = self._shape(spec.describe_call)

        def answer(request: Any, **_: Any) -> AWSResponse:
            job = self._jobs.get((spec.prefix, json.loads(request.body)[spec.name_key]))
            return _answer(job and _to_service_json(self._describe_now(job), shape))

        return answer

    def _list(self, spec: KindSpec) -> Callable[..., AWSResponse]:
        """Returns a function that answers a list request.

        The newest creation comes first; the token is the number of earlier rows.
        """
        row_shape = self._shape(spec.list_call).members[spec.list_key].member

        def answer(request: Any, **_: Any) -> AWSResponse:
            request_body = json.loads(request.body)
            matching_jobs = [
                {**self._describe_now(job), "CreationTime": job.key.created_at.isoformat()}
                for (prefix, _), job in self._jobs.items()
                if prefix == spec.prefix and self._is_listed(job)
            ]
            rows = sorted(
                (_to_service_json(job, row_shape) for job in matching_jobs),
                key=lambda job: float(job["CreationTime"]),
                reverse=True,
            )
            after = request_body.get("CreationTimeAfter", 0)
            before = request_body.get("CreationTimeBefore", inf)
            rows = [job for job in rows if after < job["CreationTime"] < before]
            start = int(request_body.get("NextToken", 0))
            end = start + min(self.page, request_body["MaxResults"])
            next_token = {"NextToken": str(end)} if end < len(rows) else {}
            return _answer({spec.list_key: rows[start:end], **next_token})

        return answer

    def _list_children(self, spec: KindSpec, rollup: RollUp) -> Callable[..., AWSResponse]:
        """Returns a function that answers with the jobs that name the roll-up as parent, in one
        candidate.
        """
        listing = rollup.child_list

        def answer(request: Any, **_: Any) -> AWSResponse:
            parent = self._jobs.get((spec.prefix, json.loads(request.body)[spec.name_key]))
            if parent is None:
                return _answer(None)
            rows = [
                {listing.arn_key: job.arn, listing.name_key: job.name}
                for job in self._added_jobs.values()
                if job.kind is not parent.kind
                and job.describe.get(rollup.child_key) == parent.arn
                and job.key.created_at <= self._clock()
            ]
            return _answer(
                {listing.rows_key: [{listing.steps_key: rows}] if listing.steps_key else rows}
            )

        return answer

    def _list_tags(self, request: Any, **_: Any) -> AWSResponse:
        arn = json.loads(request.body)["ResourceArn"]
        job = next((job for job in self._jobs.values() if job.arn == arn), None)
        tags = [{"Key": key, "Value": value} for key, value in job.tags.items()] if job else []
        return _answer(job and {"Tags": tags})

    def _shape(self, operation: str) -> Any:
        return self._model.operation_model(operation).output_shape


def _answer(body: Any) -> AWSResponse:
    """Returns an HTTP answer; None means that there is no such job.

    SageMaker then answers with ValidationException, which its service model does not declare.
    """
    not_found = {"__type": "ValidationException", "message": "Requested resource not found."}
    return http_answer(_URL, 400 if body is None else 200, not_found if body is None else body)


def put_series(session: Any, job: RecordedJob) -> None:
    """Puts a job's series into CloudWatch, like its hosts during the run."""
    job_metrics = job.kind.spec.metrics
    if job_metrics is None:
        return
    cloudwatch = session.client("cloudwatch")
    points = [point for series in job.series for point in _points(series, job, job_metrics)]
    for position in range(0, len(points), _POINTS_PER_CALL):
        cloudwatch.put_metric_data(
            Namespace=job_metrics.namespace,
            MetricData=points[position : position + _POINTS_PER_CALL],
        )


def _points(
    series: RawSeries, job: RecordedJob, job_metrics: JobMetrics
) -> Iterator[dict[str, Any]]:
    """Yields the points of a series.

    An algorithm metric has the job's name as host, and no unit.
    """
    is_algorithm_metric = series.host == job.name
    for number, value in enumerate(series.values):
        if value is not None and isfinite(value):
            yield {
                "MetricName": series.metric,
                "Dimensions": [
                    {
                        "Name": job_metrics.algorithm_dimension if is_algorithm_metric else "Host",
                        "Value": series.host,
                    }
                ],
                "Timestamp": series.start + timedelta(seconds=number * series.period_s),
                "Value": value,
                "Unit": "None" if is_algorithm_metric else "Percent",
            }


def _to_service_json(value: Any, shape: Any) -> Any:
    """Converts an answer of the AWS CLI to the service's JSON, with epoch times."""
    if value is None:
        return None
    if shape.type_name == "structure":
        members = shape.members
        return {
            key: _to_service_json(item, members[key])
            for key, item in value.items()
            if key in members
        }
    if shape.type_name == "list":
        return [_to_service_json(item, shape.member) for item in value]
    if shape.type_name == "timestamp":
        return _epoch(value)
    return value


def _epoch(value: Any) -> float:
    moment = fields.parsed_time(value, "time") or datetime.fromtimestamp(0, UTC)
    return moment.timestamp()
