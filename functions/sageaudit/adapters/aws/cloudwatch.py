"""Reads a job's CloudWatch metrics in few calls, and notes which could not be read."""

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
    Missing,
    RawSeries,
    RawUsage,
)
from sageaudit.errors import AccessDenied

PERMISSIONS = ("cloudwatch:GetMetricData", "cloudwatch:ListMetrics")

MAX_POINTS_PER_SERIES = 1440
"""Most points of a series: one day of minutes. Longer runs are read with a longer period."""
MAX_HOSTS = 1_000
"""Most hosts of a job that are read: our choice."""
MAX_TOTAL_POINTS = 1_440_000
"""Most points of a job: 200 hosts of five metrics over a day of minutes, 1,000 over one of five
minutes. They take 15 calls, 200 MB and about 45 s of an audit's 120: our choice. A larger run is
read at a longer period."""
_QUERIES_PER_CALL = 500
_POINTS_PER_CALL = 100_800
_MAX_ALGORITHM_METRICS = 40
"""The most that a training job can define."""
_MAX_LISTED_METRICS = 20_000
"""Number of metrics of a job kind that ListMetrics is searched for one job's hosts."""
_MAX_LISTED_METRICS_ONCE = 250_000
"""Number of metrics that it is searched for the hosts of all jobs: 500 pages."""
_MAX_PAGES = 200
"""A cap on NextToken loops: 500 queries of 1,440 points are 8 pages."""
_SeriesKey = tuple[str, str, str]
"""Name and value of its dimension, and the metric."""
_RETENTION = ((timedelta(days=15), 60), (timedelta(days=63), 300), (timedelta(days=455), 3600))


class CloudWatchMetrics:
    """Implements Metrics. `client_of` returns the CloudWatch client for an account and region.

    `list_hosts_once`: the hosts of all jobs are listed once, for callers that read many jobs that
    ended earlier. `metrics`: only these are read and paid for.
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
        self._wanted = metrics
        self._types = types
        self._lists_once = list_hosts_once
        self._listed: dict[tuple[str | None, str | None, str], tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def read(self, job: Job, now: datetime) -> Measurements:
        """Returns the measurements of a job. Raises Throttled or Unavailable."""
        read = self.read_series(job, now)
        return measure(
            job, read.series, self._types, missing_reason=read.missing_reason, notes=read.notes
        )

    def read_series(self, job: Job, now: datetime) -> RawUsage:
        """Reads every host and metric, with the shortest period that the run's age and size allow.

        Metrics that are absent or denied are reported as missing; other AWS errors are raised.
        """
        windows = list(work_windows(job))
        published = job.kind.spec.metrics
        if published is None or not windows:
            return _unread(_no_run_time_reason(job))
        if job.account is None or job.region is None:
            return _unread("the job's account or region is not known")
        start, end = windows[0][0], windows[-1][1]
        if (kept_s := finest_period_s(start, now)) is None:
            return _unread("CloudWatch keeps metrics for 455 days")
        absent = Missing("metric_missing", "CloudWatch has no points", _later(job, now))
        try:
            with aws_errors("cloudwatch"), parse_errors("cloudwatch"):
                client = self._client_of(job.account, job.region)
                hosts = self._hosts(client, job, published, now)
                series = self._series(job, published, hosts)
                period_s = choose_period_s(start, end, kept_s, len(series))
                queries = _queries(published, series, period_s)
                raw, notes = _read(client, queries, start, end, period_s)
        except AccessDenied as denied:
            allow = f"Allow {denied.action}."
            return RawUsage((), Missing(METRIC_DENIED_CODE, str(denied).rstrip("."), allow))
        if published.has_numbered_hosts and (job.instance_count or 0) > MAX_HOSTS:
            notes.append(f"the metrics of {MAX_HOSTS} of {job.instance_count} hosts were read")
        if period_s > kept_s:
            rarer = f"one point every {period_s} s was read, not every {kept_s} s"
            notes.append(f"{rarer}: the run has so many days or hosts")
        return RawUsage(tuple(raw), absent, tuple(notes))

    def _hosts(self, client: Any, job: Job, published: JobMetrics, now: datetime) -> list[str]:
        """Returns the names of the job's hosts.

        ListMetrics returns the hosts of all jobs of a kind. For a job that ended lately, it is
        asked for recently active metrics only.
        """
        if published.has_numbered_hosts:
            read = min(job.instance_count or 0, MAX_HOSTS)
            return [f"{job.name}/algo-{n}" for n in range(1, read + 1)]
        if self._lists_once:
            hosts = self._list_all_hosts(client, job, published)
        else:
            recent = {"RecentlyActive": "PT3H"} if _has_ended_recently(job, now) else {}
            hosts = tuple(_list_hosts(client, published, _MAX_LISTED_METRICS, **recent))
        return sorted({host for host in hosts if host.startswith(f"{job.name}/")})

    def _list_all_hosts(self, client: Any, job: Job, published: JobMetrics) -> tuple[str, ...]:
        """Returns the hosts of all jobs of a kind; other threads wait for the listing one."""
        key = (job.account, job.region, published.namespace)
        with self._lock:
            if key not in self._listed:
                self._listed[key] = tuple(_list_hosts(client, published, _MAX_LISTED_METRICS_ONCE))
            return self._listed[key]

    def _series(self, job: Job, published: JobMetrics, hosts: list[str]) -> list[_SeriesKey]:
        """Returns one series per host and metric, and one per algorithm metric of the job.

        Algorithm metrics: aws/sagemaker-python-sdk, analytics.py, TrainingJobAnalytics.
        """
        instance_types = [self._types.get(group.instance_type) for group in job.groups]
        gpus = any(instance_type is None or instance_type.gpus for instance_type in instance_types)
        absent = {*(() if gpus else (Metric.GPU, Metric.GPU_MEMORY))}
        if not (published.has_disk_metric and is_disk_judged(job, self._types)):
            absent.add(Metric.DISK)
        metrics = [metric for metric in self._wanted if metric not in absent]
        series = [("Host", host, metric.value) for host in hosts for metric in metrics]
        if published.algorithm_dimension is not None and job.status == "Completed":
            names = job.metric_names[:_MAX_ALGORITHM_METRICS]
            series += [(published.algorithm_dimension, job.name, name) for name in names]
        return series


def _queries(
    published: JobMetrics, series: list[_SeriesKey], period_s: int
) -> list[dict[str, Any]]:
    return [
        {
            "Id": f"q{number}",
            "MetricStat": {
                "Metric": {
                    "Namespace": published.namespace,
                    "MetricName": metric,
                    "Dimensions": [{"Name": dimension, "Value": value}],
                },
                "Period": period_s,
                "Stat": "Average",
            },
        }
        for number, (dimension, value, metric) in enumerate(series)
    ]


def _list_hosts(client: Any, published: JobMetrics, limit: int, **recent: str) -> Iterator[str]:
    """Returns the hosts that ListMetrics names, of all jobs of a kind."""
    pages = client.get_paginator("list_metrics").paginate(
        Namespace=published.namespace,
        MetricName=Metric.CPU.value,
        Dimensions=[{"Name": "Host"}],
        PaginationConfig={"MaxItems": limit},
        **recent,
    )
    for page in pages:
        for metric in require_key(page, "Metrics"):
            for dimension in metric["Dimensions"]:
                if dimension["Name"] == "Host":
                    yield read_text(dimension, "Value")


def _unread(reason: str) -> RawUsage:
    return RawUsage((), Missing("metric_missing", reason))


def _no_run_time_reason(job: Job) -> str:
    """Says why a job has no time in which its own code ran."""
    if not job.finished:
        return "the job's own code has not run yet"
    if job.started_at is not None and all(phase.seconds is None for phase in job.phases):
        return "when the job's own code ran is not known"
    return "the job's own code did not run"


def _later(job: Job, now: datetime) -> str | None:
    """Advises to wait for the points of a job that ended minutes ago."""
    return "Audit it again in some minutes." if _has_ended_recently(job, now) else None


def _has_ended_recently(job: Job, now: datetime) -> bool:
    """Whether the job ended under 2 hours ago: ListMetrics counts 3 hours as recently active.

    A job that was read while it ran counts as ended then.
    """
    end = job.ended_at or job.observed_until
    return end is not None and now - end < timedelta(hours=2)


def finest_period_s(start: datetime, now: datetime) -> int | None:
    """Returns the finest period in seconds that is still stored for `start`; None if none is."""
    return next((period for age, period in _RETENTION if now - start <= age), None)


def choose_period_s(start: datetime, end: datetime, finest_period_s: int, series: int) -> int:
    """Returns a period in seconds: a multiple of `finest_period_s` with at most 1,440 points of
    each series, and MAX_TOTAL_POINTS in all.
    """
    most = min(MAX_POINTS_PER_SERIES, MAX_TOTAL_POINTS // max(series, 1))
    return (
        max(1, math.ceil((end - start).total_seconds() / most / finest_period_s)) * finest_period_s
    )


def _read(
    client: Any, queries: list[dict[str, Any]], start: datetime, end: datetime, period_s: int
) -> tuple[list[RawSeries], list[str]]:
    first = math.floor(start.timestamp() / period_s) * period_s
    points = math.ceil((end.timestamp() - first) / period_s)
    batch = max(1, min(_QUERIES_PER_CALL, _POINTS_PER_CALL // max(points, 1)))
    values: dict[str, list[float | None]] = {q["Id"]: [None] * points for q in queries}
    notes: dict[str, None] = {}
    for position in range(0, len(queries), batch):
        call = {
            "MetricDataQueries": queries[position : position + batch],
            "StartTime": datetime.fromtimestamp(first, UTC),
            "EndTime": datetime.fromtimestamp(first + points * period_s, UTC),
            "ScanBy": "TimestampAscending",
        }
        for result in _results(client, call, notes):
            _place_points(
                result["Timestamps"], result["Values"], values[result["Id"]], first, period_s
            )
            if result.get("StatusCode") in {"InternalError", "Forbidden"}:
                notes[f"CloudWatch returned {result['StatusCode']} for some series"] = None
    raw = [
        RawSeries(
            host=query["MetricStat"]["Metric"]["Dimensions"][0]["Value"],
            metric=query["MetricStat"]["Metric"]["MetricName"],
            start=datetime.fromtimestamp(first, UTC),
            period_s=period_s,
            values=tuple(values[query["Id"]]),
        )
        for query in queries
        if any(value is not None for value in values[query["Id"]])
    ]
    return raw, list(notes)


def _place_points(
    moments: Sequence[datetime],
    found: Sequence[object],
    values: list[float | None],
    first: int,
    period_s: int,
) -> None:
    """Places an answer's points in their periods, counted from the second `first` on.

    The answer ascends, one point a period. If it has as many as fit between its first and its last,
    none is missing. Then only three more moments are checked, each a quarter further: to check all
    of them costs more than everything else.
    """
    if not moments:
        return
    start, stop = (_index(moments[at], first, period_s) for at in (0, -1))
    count = len(moments)
    whole = count == len(found) == stop + 1 - start and 0 <= start <= stop < len(values)
    quarters = (count * part // 4 for part in (1, 2, 3))
    whole = whole and all(_index(moments[at], first, period_s) == start + at for at in quarters)
    if whole and set(map(type, found)) == {float}:
        values[start : stop + 1] = cast(Sequence[float], found)
        return
    for moment, value in zip(moments, found, strict=False):
        index = _index(moment, first, period_s)
        if 0 <= index < len(values):
            values[index] = _number(value)


def _index(moment: datetime, first: int, period_s: int) -> int:
    return int(moment.timestamp() - first) // period_s


def _number(value: object) -> float:
    """Returns a number. Raises TypeError for anything else in CloudWatch's answer."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a value is not a number")
    return float(value)


def _results(client: Any, call: dict[str, Any], notes: dict[str, None]) -> Iterator[dict[str, Any]]:
    """Yields the results of all pages; PartialData means that more pages follow."""
    token: str | None = None
    for _ in range(_MAX_PAGES):
        answer = client.get_metric_data(**call, **({"NextToken": token} if token else {}))
        yield from require_key(answer, "MetricDataResults")
        following = answer.get("NextToken")
        if not following:
            return
        if following == token:
            break
        token = following
    notes["CloudWatch's pages did not end: some points were not read"] = None
