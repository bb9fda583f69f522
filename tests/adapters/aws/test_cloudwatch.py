"""What is asked of CloudWatch, and what becomes of each kind of answer."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.aws.cloudwatch import (
    MAX_TOTAL_POINTS,
    CloudWatchMetrics,
    _place_points,
    choose_period_s,
    finest_period_s,
)
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.usage.measure import NOT_REQUESTED
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.errors import Throttled, Unavailable
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from tests.fakes import jobs
from tests.fakes.jobs import ACCOUNT, REGION, START, job, phases, ran

_GPU = "ml.g4dn.xlarge"
TYPES = jobs.TYPES | {_GPU: replace(jobs.TYPES[_GPU], local_gb=125)}
Point = Callable[[str, str, int], float | None]
"""A value for host, metric and minute."""


def busy(host: str, metric: str, minute: int) -> float | None:
    """Something that tells every point from every other one."""
    return float(minute % 100)


@dataclass
class HandMade:
    """CloudWatch, as far as the adapter may lean on it; `page` points fit one page."""

    point: Point = busy
    page: int = 100_800
    order: int = 1
    status: str = "Complete"
    hosts: tuple[str, ...] = ()
    refusal: Exception | None = None
    tokens: Iterator[str] | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    listed: list[dict[str, Any]] = field(default_factory=list)

    def get_metric_data(self, **call: Any) -> dict[str, Any]:
        self.calls.append(call)
        if self.refusal:
            raise self.refusal
        if self.tokens is not None:
            return {"MetricDataResults": [], "NextToken": next(self.tokens)}
        rows = [row for query in call["MetricDataQueries"] for row in self._rows(query, call)]
        at = int(call.get("NextToken", "0"))
        results = [
            {
                "Id": name,
                "Timestamps": [moment for _, moment, _ in part],
                "Values": [value for _, _, value in part],
                "StatusCode": self.status,
            }
            for name, group in itertools.groupby(rows[at : at + self.page], key=lambda r: r[0])
            for part in [list(group)[:: self.order]]
        ]
        answer: dict[str, Any] = {"MetricDataResults": results}
        if at + self.page < len(rows):
            answer["NextToken"] = str(at + self.page)
        return answer

    def _rows(
        self, query: dict[str, Any], call: dict[str, Any]
    ) -> Iterator[tuple[str, datetime, float]]:
        metric, period_s = query["MetricStat"]["Metric"], query["MetricStat"]["Period"]
        host = metric["Dimensions"][0]["Value"]
        moment, number = call["StartTime"], 0
        while moment < call["EndTime"]:
            value = self.point(host, metric["MetricName"], number)
            if value is not None:
                yield query["Id"], moment, value
            moment, number = moment + timedelta(seconds=period_s), number + 1

    def get_paginator(self, name: str) -> "HandMade":
        assert name == "list_metrics"
        return self

    def paginate(self, **call: Any) -> Iterator[dict[str, Any]]:
        self.listed.append(call)
        if self.refusal:
            raise self.refusal
        for host in self.hosts:
            yield {"Metrics": [{"Dimensions": [{"Name": "Host", "Value": host}]}]}


def read(client: HandMade, job: Job, now: datetime | None = None) -> Measurements:
    """What the adapter makes of it, an hour after the job's end unless said otherwise."""
    requests: list[tuple[str, str]] = []

    def client_of(account: str, region: str) -> HandMade:
        requests.append((account, region))
        return client

    end = job.ended_at or START
    measured = CloudWatchMetrics(client_of, TYPES).read(job, now or end + timedelta(hours=1))
    assert set(requests) <= {(ACCOUNT, REGION)}
    return measured


def queries(client: HandMade) -> list[dict[str, Any]]:
    """All queries of all calls."""
    return [query["MetricStat"] for call in client.calls for query in call["MetricDataQueries"]]


def refused(code: str, operation: str = "GetMetricData", message: str = "no") -> ClientError:
    """botocore's way to say no."""
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


@pytest.mark.parametrize(
    ("ran_for", "age", "period_s"),
    [
        (timedelta(hours=1), timedelta(hours=1), 60),
        (timedelta(hours=1), timedelta(days=15), 60),
        (timedelta(hours=1), timedelta(days=15, seconds=1), 300),
        (timedelta(hours=1), timedelta(days=63), 300),
        (timedelta(hours=1), timedelta(days=63, seconds=1), 3600),
        (timedelta(hours=1), timedelta(days=455), 3600),
        (timedelta(hours=1), timedelta(days=455, seconds=1), None),
        # a day is 1,440 minutes; one minute more needs a coarser period
        (timedelta(days=1), timedelta(days=1), 60),
        (timedelta(days=1, minutes=1), timedelta(days=2), 120),
        # 28 days in 1,440 points are 1,680 s, and its start is kept at 300 s: 1,800
        (timedelta(days=28), timedelta(days=28), 1800),
        (timedelta(days=28), timedelta(days=80), 3600),
    ],
)
def test_the_period_is_the_smallest_that_age_and_length_allow(
    ran_for: timedelta, age: timedelta, period_s: int | None
) -> None:
    """60 s for 15 days, 300 for 63, 3600 for 455; at most 1,440 points; a multiple of each."""
    kept_s = finest_period_s(START, START + age)
    assert (kept_s and choose_period_s(START, START + ran_for, kept_s, series_count=1)) == period_s


@pytest.mark.parametrize(
    ("hosts", "hours", "period_s"),
    [
        (64, 24 * 28, 1800),
        (200, 24, 60),
        (201, 24, 120),
        (1000, 24, 300),
        pytest.param(1000, 24 * 28, 8400, marks=pytest.mark.more),
        pytest.param(5000, 24, 300, marks=pytest.mark.more),
    ],
)
def test_a_run_of_many_hosts_is_read_at_a_longer_period_and_the_audit_says_so(
    hosts: int, hours: int, period_s: int
) -> None:
    """All its points fit into one audit; what CloudWatch has more of is a note."""
    client = HandMade(point=lambda *_: None)
    run = ran(hours * 3600, "ml.g4dn.xlarge", hosts)
    notes = read(client, run).notes
    assert {query["Period"] for query in queries(client)} == {period_s}
    assert len(queries(client)) * -(-hours * 3600 // period_s) <= MAX_TOTAL_POINTS
    kept_s = 300 if hours > 24 * 15 else 60
    period_note = f"one point every {period_s} s was read, not one every {kept_s} s, because of "
    period_note += "the run's length or number of hosts"
    assert [note for note in notes if "point" in note] == [period_note] * (period_s > kept_s)


def test_one_call_reads_a_small_job() -> None:
    """Two hosts of five metrics over the Training phase, to the minute."""
    client = HandMade()
    run = job("ml.g4dn.xlarge", 2)
    measured = read(client, run)
    assert len(client.calls) == 1
    assert len(queries(client)) == 10
    assert client.calls[0]["StartTime"] == START + timedelta(minutes=20)
    assert client.calls[0]["EndTime"] == START + timedelta(minutes=179)
    hosts = {query["Metric"]["Dimensions"][0]["Value"] for query in queries(client)}
    assert hosts == {"train/algo-1", "train/algo-2"}
    assert {query["Metric"]["Namespace"] for query in queries(client)} == {
        "/aws/sagemaker/TrainingJobs"
    }
    assert {query["Stat"] for query in queries(client)} == {"Average"}
    assert measured.share(Metric.GPU) == 1.0
    assert measured.points == 159


_STREAMED = (InputChannel("train", DataSource.S3, "FastFile", None),)


@pytest.mark.parametrize(
    ("run", "disk"),
    [
        # its data is copied to a volume that is no fifth of the bill of any type
        (ran(3600), []),
        (ran(3600, volume_gb=59), []),
        (ran(3600, volume_gb=60), ["DiskUtilization"]),
        (ran(3600, volume_gb=1000, channels=()), []),
        (ran(3600, channels=()), []),
        (ran(3600, channels=_STREAMED), ["DiskUtilization"]),
        (ran(3600, kind=JobKind.PROCESSING), ["DiskUtilization"]),
    ],
)
def test_a_cpu_job_is_not_asked_for_gpus_nor_for_a_disk_that_no_rule_judges(
    run: Job, disk: list[str]
) -> None:
    """Each query costs; what was not asked for is not missing in the audit."""
    client = HandMade()
    measured = read(client, run)
    assert sorted(query["Metric"]["MetricName"] for query in queries(client)) == [
        "CPUUtilization",
        *disk,
        "MemoryUtilization",
    ]
    assert (Metric.DISK in measured.series) == bool(disk)
    assert measured.missing.get(Metric.DISK, NOT_REQUESTED) is NOT_REQUESTED


def test_a_call_has_at_most_500_queries_and_100800_points() -> None:
    """150 short hosts are split by queries, 30 hosts of a day by points.

    The ids of queries start lower case, hold letters and digits, and are unique in a call.
    """
    many = HandMade()
    measured = read(many, ran(3600, "ml.g4dn.xlarge", 150))
    assert [len(call["MetricDataQueries"]) for call in many.calls] == [500, 250]
    for call in many.calls:
        ids = [query["Id"] for query in call["MetricDataQueries"]]
        assert len(set(ids)) == len(ids)
        assert all(name[0].islower() and name.isalnum() for name in ids)
    assert len(measured.hosts) == 150
    long = HandMade()
    read(long, ran(86_400, "ml.g4dn.xlarge", 30))
    for call in long.calls:
        span = (call["EndTime"] - call["StartTime"]).total_seconds()
        points = span / call["MetricDataQueries"][0]["MetricStat"]["Period"]
        assert points * len(call["MetricDataQueries"]) <= 100_800
    assert sum(len(call["MetricDataQueries"]) for call in long.calls) == 150


def test_pages_are_read_to_the_end() -> None:
    """Every point arrives, wherever a page was cut."""
    whole, paged = HandMade(), HandMade(page=7)
    run = ran(3600, "ml.g4dn.xlarge")
    assert read(paged, run) == read(whole, run)
    assert len(paged.calls) == 43  # 5 x 60 points, 7 a page


@pytest.mark.parametrize("tokens", [["same"], ["a", "b"], ["a", "b", "c"]])
def test_pages_that_never_end_are_given_up_and_said(tokens: list[str]) -> None:
    """A token that comes back, or a ring of them: bounded work, and a note."""
    client = HandMade(tokens=itertools.cycle(tokens))
    measured = read(client, ran(3600))
    assert len(client.calls) <= 200
    assert any("did not end" in note for note in measured.notes)
    assert measured.missing[Metric.CPU].code == "metric_missing"


@pytest.mark.parametrize("order", [1, -1])
def test_points_may_come_in_any_order(order: int) -> None:
    """Descending is CloudWatch's default; a point that is not there stays missing, never 0."""
    measured = read(HandMade(order=order), ran(180))
    assert measured.series[Metric.CPU]["train/algo-1"].values == (0.0, 0.25, 0.5)
    client = HandMade(order=order, point=lambda _, __, minute: None if minute == 1 else 40.0)
    assert read(client, ran(180)).series[Metric.CPU]["train/algo-1"].values == (10.0, None, 10.0)


def test_a_host_that_never_reported_lowers_the_coverage() -> None:
    """One of two."""
    client = HandMade(point=lambda host, *_: 40.0 if host.endswith("-1") else None)
    assert read(client, ran(600, instances=2)).share(Metric.CPU) == 0.5


@pytest.mark.parametrize("status", ["InternalError", "Forbidden", "PartialData"])
def test_a_series_that_cannot_be_read_is_said(status: str) -> None:
    """What came with it is used, and the coverage tells; partial data means that pages follow."""
    measured = read(HandMade(status=status, page=11), ran(600))
    assert any(status in note for note in measured.notes) is (status != "PartialData")


@pytest.mark.parametrize("operation", ["GetMetricData", "ListMetrics"])
def test_denied_metrics_are_a_reason_not_a_failure(operation: str) -> None:
    """With the action that is missing, as AWS names it, or as the call was."""
    said = f"User: r is not authorized to perform: cloudwatch:{operation}"
    for message in (said, "no"):
        client = HandMade(refusal=refused("AccessDenied", operation, message))
        job = ran(600) if operation == "GetMetricData" else transform()
        missing = read(client, job).missing[Metric.CPU]
        assert missing.code == "metric_denied"
        assert missing.reason == f"cloudwatch:{operation} is not permitted"
        assert missing.remedy == f"Allow cloudwatch:{operation}."


@pytest.mark.parametrize(
    ("refusal", "raised"),
    [
        (refused("Throttling"), Throttled),
        (refused("ThrottlingException"), Throttled),
        (refused("InternalServiceFault"), Unavailable),
        (EndpointConnectionError(endpoint_url="https://monitoring"), Unavailable),
    ],
)
def test_a_passing_trouble_is_raised(refusal: Exception, raised: type[Exception]) -> None:
    """The message comes back later."""
    with pytest.raises(raised):
        read(HandMade(refusal=refusal), ran(600))


def test_a_job_too_old_for_cloudwatch_is_said() -> None:
    """No call is spent on it."""
    client = HandMade()
    measured = read(client, ran(3600), START + timedelta(days=500))
    assert "455 days" in measured.missing[Metric.CPU].reason
    assert client.calls == []


@pytest.mark.parametrize(
    ("idle", "why"),
    [
        (
            job(status="Failed", started_at=None, phases=phases(("Starting", -600))),
            "the job's own code did not run",
        ),
        (
            job(status="InProgress", phases=phases(("Downloading", 600))),
            "the job's own code has not run yet",
        ),
        (job(phases=()), "when the job's own code ran is not known"),
        (job(account=None), "the job's account or region is not known"),
        (job(region=None), "the job's account or region is not known"),
    ],
)
def test_a_job_whose_code_did_not_run_is_not_asked_for(idle: Job, why: str) -> None:
    """Nothing to read, or nowhere to read it."""
    client = HandMade()
    missing = read(client, idle).missing[Metric.CPU]
    assert (missing.code, missing.reason) == ("metric_missing", why)
    assert client.calls == []


def test_points_that_may_still_come_are_worth_another_try() -> None:
    """An hour after its end they may; a day after, they do not."""
    soon = read(HandMade(), transform(), START + timedelta(hours=1)).missing
    late = read(HandMade(), transform(), START + timedelta(days=1)).missing
    assert soon[Metric.MEMORY].remedy == "Audit it again in some minutes."
    assert late[Metric.MEMORY].remedy is None


def transform(instances: int = 1) -> Job:
    """Ten minutes of batch transform."""
    return ran(600, instances=instances, kind=JobKind.TRANSFORM, phases=phases(("Transform", 600)))


def test_a_transforms_hosts_are_found_by_their_jobs_name() -> None:
    """Instance ids are nowhere else; names that begin alike belong to other jobs."""
    client = HandMade(
        hosts=(
            "train/i-0b",
            "train-2/i-0c",
            "train2/i-0d",
            "Train/i-0e",
            "train/i-0a",
            "other/i-0f",
        )
    )
    measured = read(client, transform(2))
    assert measured.hosts == ("train/i-0a", "train/i-0b")
    assert {query["Metric"]["Namespace"] for query in queries(client)} == {
        "/aws/sagemaker/TransformJobs"
    }
    assert "DiskUtilization" not in {q["Metric"]["MetricName"] for q in queries(client)}


def test_a_transform_without_listed_hosts_has_no_metrics_yet() -> None:
    """ListMetrics may take a quarter of an hour: missing, so that it is asked again."""
    measured = read(HandMade(), transform())
    assert measured.missing[Metric.CPU].code == "metric_missing"


def test_a_reader_of_many_jobs_lists_their_hosts_once() -> None:
    """For each region; each job has its own hosts still."""
    client = HandMade(hosts=("train/i-0a", "other/i-0f"))
    metrics = CloudWatchMetrics(lambda *_: client, TYPES, list_hosts_once=True)
    first_job, second_job = transform(), replace(transform(), name="other")
    hosts = [
        metrics.read(job, START + timedelta(hours=1)).hosts
        for job in (first_job, second_job, first_job)
    ]
    assert hosts == [("train/i-0a",), ("other/i-0f",), ("train/i-0a",)]
    assert len(client.listed) == 1
    assert "RecentlyActive" not in client.listed[0]
    metrics.read(replace(first_job, region="eu-west-1"), START)
    assert len(client.listed) == 2


def test_an_old_job_is_read_on_the_grid_of_its_period() -> None:
    """Two hours at 300 s: 24 points, all inside."""
    client = HandMade(point=lambda *_: 40.0)
    measured = read(client, ran(7200), START + timedelta(days=30))
    assert (measured.period_s, measured.points) == (300, 24)
    assert measured.share(Metric.CPU) == 1.0
    assert client.calls[0]["StartTime"].tzinfo is UTC


@pytest.mark.parametrize("kind", [kind for kind in JobKind if kind.spec.metrics])
def test_each_metric_that_is_asked_for_is_needed_by_a_rule_of_the_kind(kind: JobKind) -> None:
    """CloudWatch is paid by the metric."""
    client, name = HandMade(hosts=("train/i-1",)), kind.spec.single_phase_name or ""
    ran_so = phases((name.replace("Running", "Training"), 180))
    read(client, ran(180, "ml.g4dn.xlarge", kind=kind, phases=ran_so))
    needed = {
        need.value
        for rule in catalogue.load()
        if kind in rule.kinds
        for need in rule.required_metrics
    }
    requested = {query["Metric"]["MetricName"] for query in queries(client)}
    assert len(requested) >= 4
    assert requested <= needed


def algorithm_queries(client: HandMade) -> list[dict[str, Any]]:
    """The queries for what the job's own code prints."""
    return [q for q in queries(client) if q["Metric"]["Dimensions"][0]["Name"] != "Host"]


def test_algorithm_metrics_are_asked_in_the_same_call() -> None:
    """By TrainingJobName, as the SDK's TrainingJobAnalytics does; they become curves."""

    def point(host: str, metric: str, minute: int) -> float | None:
        return minute / 8 if host == "train" else 40.0

    client = HandMade(point=point)
    measured = read(client, ran(180, metric_names=("validation:auc", "loss")))
    assert len(client.calls) == 1
    assert [q["Metric"]["MetricName"] for q in algorithm_queries(client)] == [
        "validation:auc",
        "loss",
    ]
    for query in algorithm_queries(client):
        assert query["Metric"]["Namespace"] == "/aws/sagemaker/TrainingJobs"
        assert query["Metric"]["Dimensions"] == [{"Name": "TrainingJobName", "Value": "train"}]
        assert query["Stat"] == "Average"
    assert set(measured.curves) == {"validation:auc", "loss"}
    assert [value for _, value in measured.curves["loss"].points] == [0.0, 0.125, 0.25]
    assert measured.hosts == ("train/algo-1",)


def test_few_algorithm_metrics_become_curves() -> None:
    """A job can define 40; one that was never printed is no curve. Processing jobs have none.

    Of a job that did not complete no rule reads them.
    """
    client = HandMade(point=lambda host, *_: None if host == "train" else 40.0)
    measured = read(client, ran(180, metric_names=tuple(f"m{n}" for n in range(60))))
    assert len(algorithm_queries(client)) == 40
    assert measured.curves == {}
    assert measured.share(Metric.CPU) == 1.0
    client = HandMade()
    read(client, ran(180, metric_names=("loss",), status="Stopped"))
    assert algorithm_queries(client) == []
    client, run = HandMade(), phases(("Processing", 180))
    read(client, ran(180, kind=JobKind.PROCESSING, phases=run, metric_names=("x",)))
    assert algorithm_queries(client) == []
    namespaces = {query["Metric"]["Namespace"] for query in queries(client)}
    assert namespaces == {"/aws/sagemaker/ProcessingJobs"}


@pytest.mark.parametrize(
    "change",
    [
        {"Values": None},
        {"Values": ["x"]},
        {"Values": [True]},
        {"Timestamps": 5},
        {"Timestamps": ["2026-05-20"]},
        {"Id": {}},
        {"Id": "none"},
    ],
)
def test_results_of_another_form_are_no_answer(change: dict[str, Any]) -> None:
    """They are asked again later."""

    class Broken(HandMade):
        def get_metric_data(self, **call: Any) -> dict[str, Any]:
            answer = super().get_metric_data(**call)
            first, *others = answer["MetricDataResults"]
            return {"MetricDataResults": [{**first, **change}, *others]}

    with pytest.raises(Unavailable, match="cannot be read"):
        read(Broken(), job("ml.g4dn.xlarge", 2))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@given(
    missing=st.sets(st.integers(0, 95)),
    first=st.integers(-3, 3),
    days=st.integers(0, 240),
    period_s=st.sampled_from((60, 1800, 3600)),
)
def test_points_are_placed_at_once_up_to_the_next_gap(
    missing: set[int], first: int, days: int, period_s: int, zone: str
) -> None:
    """As each of its points by itself, also if the clocks change. What lies outside is left out."""
    first_s = int(START.timestamp()) // 3600 * 3600 + days * 86_400
    numbers = [number for number in range(96) if number not in missing]
    moments = [
        datetime.fromtimestamp(first_s + (first + number) * period_s, ZoneInfo(zone))
        for number in numbers
    ]
    values: list[float | None] = [None] * 90
    _place_points(moments, [float(number) for number in numbers], values, first_s, period_s)
    by_place = {first + number: float(number) for number in numbers}
    assert values == [by_place.get(place) for place in range(90)]


def test_a_missing_point_costs_few_looks_at_timestamps() -> None:
    """Of a thousand points one is missing: the halves around it are copied."""
    looks = Counter[str]()

    class Looked(datetime):
        def __sub__(self, other: Any) -> Any:
            looks["at a timestamp"] += 1
            return super().__sub__(other)

    moments = [Looked.fromtimestamp(minute * 60, UTC) for minute in range(1000) if minute != 357]
    values: list[float | None] = [None] * 1000
    _place_points(moments, [1.0] * 999, values, 0, 60)
    assert values.index(None) == 357
    assert looks.total() <= 50
