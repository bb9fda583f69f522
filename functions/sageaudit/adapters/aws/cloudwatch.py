"""Reads a job's CloudWatch metrics in few calls, and reports which could not be read."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sageaudit.adapters.aws.clients import aws_errors, parse_errors, read_text, require_key
from sageaudit.domain.job.course import work_windows
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobMetrics
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measure import is_disk_judged, measure
from sageaudit.domain.usage.measurements import (
    METRIC_DENIED_CODE,
    Measurements,
    Metric,
    MissingMetrics,
    RawSeries,
    RawUsage,
)
from sageaudit.errors import AccessDenied

PERMISSIONS = ("cloudwatch:GetMetricData", "cloudwatch:ListMetrics")

MAX_POINTS_PER_SERIES = 1440
"""The maximum number of points in a series: one day of minutes. Longer runs need a longer period.
"""
MAX_HOSTS = 1_000
"""The maximum number of hosts that are read for a job (our choice)."""
MAX_TOTAL_POINTS = 1_440_000
"""The maximum number of points that are read for a job (our choice).

It allows five metrics of 200 hosts for a day at one-minute periods. Reading that many takes 15
calls, 200 MB and about 45 s of the 120 s that an audit has.
"""
_QUERIES_PER_CALL = 500
_POINTS_PER_CALL = 100_800
_MAX_ALGORITHM_METRICS = 40
"""The maximum number of metrics that a training job can define."""
_MAX_LISTED_METRICS = 20_000
"""The maximum number of listed metrics in which one job's hosts are searched."""
_MAX_LISTED_METRICS_ONCE = 250_000
"""The maximum number of listed metrics in which all jobs' hosts are searched: 500 pages."""
_MAX_PAGES = 200
"""The maximum number of pages per answer, in case NextToken never ends.

500 queries of 1,440 points have only 8 pages.
"""
_DAY_S = 86_400
_SeriesKey = tuple[str, str, str]
"""The name of a dimension, its value, and a metric."""
_PERIOD_BY_AGE = ((timedelta(days=15), 60), (timedelta(days=63), 300), (timedelta(days=455), 3600))


class CloudWatchMetrics:
    """Implements Metrics. `client_of` returns the CloudWatch client for an account and region.

    With `list_hosts_once`, the hosts of all jobs are listed once, for callers that read many past
    jobs. `metrics` are the metrics to read; AWS bills each.
    """

    def __init__(
        self,
        client_of: Callable[[str, str], Any],
        types: Mapping[str, InstanceType],
        *,
        list_hosts_once: bool = False,
        metrics: Collection[Metric] = tuple(Metric),
    ) -> None:
        self._client_of = client_of
        self._metrics = metrics
        self._types = types
        self._list_hosts_once = list_hosts_once
        self._hosts_by_kind: dict[tuple[str | None, str | None, str], tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def read(self, job: Job, now: datetime) -> Measurements:
        """Returns the measurements of a job. Raises Throttled or Unavailable."""
        raw_usage = self.read_series(job, now)
        return measure(
            job,
            raw_usage.series,
            self._types,
            missing_reason=raw_usage.missing_reason,
            notes=raw_usage.notes,
        )

    def read_series(self, job: Job, now: datetime) -> RawUsage:
        """Reads every host and metric. The run's age and size determine the period.

        Metrics that are absent or denied are missing from the result. Raises other AWS errors.
        """
        windows = list(work_windows(job))
        published_metrics = job.kind.spec.metrics
        if published_metrics is None or not windows:
            return _nothing_read(_no_run_time_reason(job))
        if job.account is None or job.region is None:
            return _nothing_read("the job's account or region is not known")
        start, end = windows[0][0], windows[-1][1]
        if (finest_s := finest_period_s(start, now)) is None:
            return _nothing_read("CloudWatch keeps metrics for 455 days")
        missing = MissingMetrics("metric_missing", "CloudWatch has no points", _wait_hint(job, now))
        try:
            with aws_errors("cloudwatch"), parse_errors("cloudwatch"):
                client = self._client_of(job.account, job.region)
                hosts = self._hosts(client, job, published_metrics, now)
                series = self._series(job, published_metrics, hosts)
                period_s = choose_period_s(start, end, finest_s, len(series))
                queries = _queries(published_metrics, series, period_s)
                all_series, notes = _read_queries(client, queries, start, end, period_s)
        except AccessDenied as error:
            hint = f"Allow {error.action}."
            return RawUsage((), MissingMetrics(METRIC_DENIED_CODE, str(error).rstrip("."), hint))
        if published_metrics.has_numbered_hosts and (job.instance_count or 0) > MAX_HOSTS:
            notes.append(f"the metrics of {MAX_HOSTS} of {job.instance_count} hosts were read")
        if period_s > finest_s:
            period_text = f"one point every {period_s} s was read, not one every {finest_s} s"
            notes.append(f"{period_text}, because of the run's length or number of hosts")
        return RawUsage(tuple(all_series), missing, tuple(notes))

    def _hosts(
        self, client: Any, job: Job, published_metrics: JobMetrics, now: datetime
    ) -> list[str]:
        # ListMetrics returns the hosts of all jobs of a kind. For a job that has just ended, only
        # recently active metrics are requested.
        if published_metrics.has_numbered_hosts:
            host_count = min(job.instance_count or 0, MAX_HOSTS)
            return [f"{job.name}/algo-{number}" for number in range(1, host_count + 1)]
        if self._list_hosts_once:
            hosts = self._list_all_hosts(client, job, published_metrics)
        else:
            recency_filter = {"RecentlyActive": "PT3H"} if _has_ended_recently(job, now) else {}
            hosts = tuple(
                _list_hosts(client, published_metrics, _MAX_LISTED_METRICS, **recency_filter)
            )
        return sorted({host for host in hosts if host.startswith(f"{job.name}/")})

    def _list_all_hosts(
        self, client: Any, job: Job, published_metrics: JobMetrics
    ) -> tuple[str, ...]:
        # One thread lists the hosts while others wait.
        key = (job.account, job.region, published_metrics.namespace)
        with self._lock:
            if key not in self._hosts_by_kind:
                self._hosts_by_kind[key] = tuple(
                    _list_hosts(client, published_metrics, _MAX_LISTED_METRICS_ONCE)
                )
            return self._hosts_by_kind[key]

    def _series(
        self, job: Job, published_metrics: JobMetrics, hosts: list[str]
    ) -> list[_SeriesKey]:
        # The source for algorithm metrics is TrainingJobAnalytics in aws/sagemaker-python-sdk,
        # analytics.py.
        instance_types = [self._types.get(group.instance_type) for group in job.groups]
        has_gpus = any(
            instance_type is None or instance_type.gpus for instance_type in instance_types
        )
        absent_metrics = {*(() if has_gpus else (Metric.GPU, Metric.GPU_MEMORY))}
        if not (published_metrics.has_disk_metric and is_disk_judged(job, self._types)):
            absent_metrics.add(Metric.DISK)
        metrics = [metric for metric in self._metrics if metric not in absent_metrics]
        series = [("Host", host, metric.value) for host in hosts for metric in metrics]
        if published_metrics.algorithm_dimension is not None and job.status == "Completed":
            names = job.metric_names[:_MAX_ALGORITHM_METRICS]
            series += [(published_metrics.algorithm_dimension, job.name, name) for name in names]
        return series


def _queries(
    published_metrics: JobMetrics, series: list[_SeriesKey], period_s: int
) -> list[dict[str, Any]]:
    return [
        {
            "Id": f"q{number}",
            "MetricStat": {
                "Metric": {
                    "Namespace": published_metrics.namespace,
                    "MetricName": metric,
                    "Dimensions": [{"Name": dimension, "Value": value}],
                },
                "Period": period_s,
                "Stat": "Average",
            },
        }
        for number, (dimension, value, metric) in enumerate(series)
    ]


def _list_hosts(
    client: Any, published_metrics: JobMetrics, limit: int, **recency_filter: str
) -> Iterator[str]:
    pages = client.get_paginator("list_metrics").paginate(
        Namespace=published_metrics.namespace,
        MetricName=Metric.CPU.value,
        Dimensions=[{"Name": "Host"}],
        PaginationConfig={"MaxItems": limit},
        **recency_filter,
    )
    for page in pages:
        for metric in require_key(page, "Metrics"):
            for dimension in metric["Dimensions"]:
                if dimension["Name"] == "Host":
                    yield read_text(dimension, "Value")


def _nothing_read(reason: str) -> RawUsage:
    return RawUsage((), MissingMetrics("metric_missing", reason))


def _no_run_time_reason(job: Job) -> str:
    if not job.finished:
        return "the job's own code has not run yet"
    if job.started_at is not None and all(phase.seconds is None for phase in job.phases):
        return "when the job's own code ran is not known"
    return "the job's own code did not run"


def _wait_hint(job: Job, now: datetime) -> str | None:
    """Returns advice to audit again later; None for a job that did not end in the last 2 hours."""
    return "Audit it again in some minutes." if _has_ended_recently(job, now) else None


def _has_ended_recently(job: Job, now: datetime) -> bool:
    # ListMetrics lists metrics of the last 3 hours as recently active; 2 hours leave a margin. For
    # a job that was read while it ran, the time of reading counts as its end.
    end = job.ended_at or job.observed_until
    return end is not None and now - end < timedelta(hours=2)


def finest_period_s(start: datetime, now: datetime) -> int | None:
    """Returns the finest period in seconds that CloudWatch still has for `start`; None if none."""
    return next((period for age, period in _PERIOD_BY_AGE if now - start <= age), None)


def choose_period_s(start: datetime, end: datetime, finest_period_s: int, series_count: int) -> int:
    """Returns a period in seconds, a multiple of `finest_period_s`.

    The period keeps each series within MAX_POINTS_PER_SERIES, and all series within
    MAX_TOTAL_POINTS.
    """
    max_points = min(MAX_POINTS_PER_SERIES, MAX_TOTAL_POINTS // max(series_count, 1))
    return (
        max(1, math.ceil((end - start).total_seconds() / max_points / finest_period_s))
        * finest_period_s
    )


def _read_queries(
    client: Any, queries: list[dict[str, Any]], start: datetime, end: datetime, period_s: int
) -> tuple[list[RawSeries], list[str]]:
    first_s = math.floor(start.timestamp() / period_s) * period_s
    point_count = math.ceil((end.timestamp() - first_s) / period_s)
    batch_size = max(1, min(_QUERIES_PER_CALL, _POINTS_PER_CALL // max(point_count, 1)))
    values: dict[str, list[float | None]] = {q["Id"]: [None] * point_count for q in queries}
    notes: dict[str, None] = {}
    for position in range(0, len(queries), batch_size):
        request = {
            "MetricDataQueries": queries[position : position + batch_size],
            "StartTime": datetime.fromtimestamp(first_s, UTC),
            "EndTime": datetime.fromtimestamp(first_s + point_count * period_s, UTC),
            "ScanBy": "TimestampAscending",
        }
        for result in _results(client, request, notes):
            _place_points(
                result["Timestamps"], result["Values"], values[result["Id"]], first_s, period_s
            )
            if result.get("StatusCode") in {"InternalError", "Forbidden"}:
                notes[f"CloudWatch returned {result['StatusCode']} for some series"] = None
    all_series = [
        RawSeries(
            host=query["MetricStat"]["Metric"]["Dimensions"][0]["Value"],
            metric=query["MetricStat"]["Metric"]["MetricName"],
            start=datetime.fromtimestamp(first_s, UTC),
            period_s=period_s,
            values=tuple(values[query["Id"]]),
        )
        for query in queries
        if any(value is not None for value in values[query["Id"]])
    ]
    return all_series, list(notes)


def _place_points(
    moments: Sequence[datetime],
    new_values: Sequence[object],
    values: list[float | None],
    first_s: int,
    period_s: int,
) -> None:
    """Writes an answer's points into `values`. Index 0 is the period that begins at `first_s`.

    The points ascend, one per period. If their number fits the first and last period, no point is
    missing in between. Then only three more timestamps are checked, since checking all would
    dominate the cost. If points are missing, each half is placed in the same way.
    """
    count = min(len(moments), len(new_values))
    if not count:
        return
    # Moments of one zone are subtracted as its clocks show them, in a quarter of the time.
    start = datetime.fromtimestamp(first_s, moments[0].tzinfo)
    if len({moment.utcoffset() for moment in (start, moments[0], moments[-1])}) > 1:
        start, *moments = (moment.astimezone(UTC) for moment in (start, *moments))
    numbers: Sequence[float] = (
        cast(Sequence[float], new_values)
        if set(map(type, new_values)) == {float}
        else [_number(value) for value in new_values]
    )

    def index(at: int) -> int:
        since = moments[at] - start
        return (since.days * _DAY_S + since.seconds) // period_s

    first, last = index(0), index(count - 1)
    is_even = all(index(at) == first + at for at in (count * part // 4 for part in (1, 2, 3)))
    stretches = [(0, count - 1, first, last)]
    while stretches:
        at, end, first, last = stretches.pop()
        is_gapless = last - first == end - at and (is_even or end - at < count - 1)
        if is_gapless and first >= 0 and last < len(values):
            values[first : last + 1] = numbers[at : end + 1]
        elif at < end:
            half = (at + end) // 2
            stretches += [
                (half + 1, end, index(half + 1), last),
                (at, half, first, index(half)),
            ]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a value is not a number")
    return float(value)


def _results(
    client: Any, request: dict[str, Any], notes: dict[str, None]
) -> Iterator[dict[str, Any]]:
    # PartialData means that more pages follow.
    token: str | None = None
    for _ in range(_MAX_PAGES):
        answer = client.get_metric_data(**request, **({"NextToken": token} if token else {}))
        yield from require_key(answer, "MetricDataResults")
        next_token = answer.get("NextToken")
        if not next_token:
            return
        if next_token == token:
            break
        token = next_token
    notes["CloudWatch's pages did not end: some points were not read"] = None
