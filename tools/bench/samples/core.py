"""The core: three audits of jobs of one host and one hour, and an answer of CloudWatch.

The jobs are audited with the shipped rules, as a warm Lambda does it: prices are known from earlier
jobs, and the job's own measurements are new each time.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

from dateutil.tz import tzutc  # type: ignore[import-untyped]

from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.files import recording
from sageaudit.domain.job.course import work_windows
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import MissingMetrics, RawSeries
from sageaudit.domain.usage.series import Series
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.recordings.jobs import MeasuredJob, measure_recording
from tests.labelled.machine import Doing, identical_hosts, one_host
from tests.labelled.made_up_job import Phase, Plot, training

HOUR = 60
DAYS, PERIOD_S, HOSTS = 28, 300, 64
PLOTS: Mapping[str, Plot] = {
    "busy GPU": Plot(
        "ml.g5.xlarge",
        one_host(Doing(HOUR, cores=2, gpus=(0.9,), gib=9, gpu_gib=(10,))),
    ),
    "low-use GPU": Plot(
        "ml.g5.xlarge",
        one_host(Doing(HOUR, cores=2, gpus=(0.1,), gib=9, gpu_gib=(10,))),
    ),
    "low-use CPU": Plot("ml.m5.4xlarge", one_host(Doing(HOUR, cores=3, gib=9))),
    "large": Plot(
        "ml.g5.12xlarge",
        identical_hosts(HOSTS, Doing(HOUR, cores=6, gpus=(0.3,) * 4, gib=40, gpu_gib=(8,) * 4)),
        phases=(Phase("Downloading", 60), Phase("Training", DAYS * 86_400), Phase("Uploading", 20)),
    ),
}
LEVELS = {"CPUUtilization": 600.0, "MemoryUtilization": 21.0, "GPUUtilization": 120.0,
          "GPUMemoryUtilization": 133.0, "DiskUtilization": 2.0}  # fmt: skip
"""The mean values of each host of the large job."""
ASKED_HOSTS, ASKED_PERIOD_S = 200, 1800
"""Hosts whose 28 days are read at this period. For more hosts, fewer points are read."""
AUDITS = 20
"""Audits of one job in one sample."""
_ABSENT = MissingMetrics("metric_missing", "no points")


def audits_a_second(name: str) -> float:
    """Returns how many audits of this job are made in a second of CPU. No audit reuses series."""
    run = _run(name)
    policy, rules = Policy(), catalogue.ruleset()
    usages = [
        replace(
            run.usage,
            series={
                metric: {host: Series(line.values) for host, line in hosts.items()}
                for metric, hosts in run.usage.series.items()
            },
        )
        for _ in range(AUDITS)
    ]
    begin = time.process_time()
    for usage in usages:
        audit_job(run.job, usage, run.market, policy, rules, now=run.now)
    return AUDITS / (time.process_time() - begin)


@cache
def _run(name: str) -> MeasuredJob:
    """Returns the job with its market, for which an audit has already read the rates."""
    run = measure_recording(recording.parse_job(training(PLOTS[name], 1)))
    audit_job(run.job, run.usage, run.market, Policy(), catalogue.ruleset(), now=run.now)
    return run


@cache
def _noise(points: int) -> Mapping[str, tuple[float, ...]]:
    dice = random.Random(1)
    return {
        metric: tuple(level * min(max(dice.gauss(1, 0.1), 0), 1.5) for _ in range(points))
        for metric, level in LEVELS.items()
    }


@cache
def _points(hosts: int, period_s: int) -> tuple[RawSeries, ...]:
    """Returns series of the large job. Each host begins elsewhere in the same noise, a little
    busier.
    """
    job = _run("large").job
    start, end = next(work_windows(job))
    first = math.ceil(start.timestamp() / period_s) * period_s
    points = int(end.timestamp() - first) // period_s
    start_time = datetime.fromtimestamp(first, UTC)
    return tuple(
        RawSeries(
            f"{job.name}/algo-{number}",
            metric,
            start_time,
            period_s,
            tuple(
                value * (1 + number * 7 % 64 / 1000) for value in values[number:] + values[:number]
            ),
        )
        for number in range(1, hosts + 1)
        for metric, values in _noise(points).items()
    )


def large_ms(hosts: int) -> float:
    """Returns the CPU time from the parsed points of this many hosts to the audit, in ms."""
    run, raw = _run("large"), _points(HOSTS, PERIOD_S)[: len(LEVELS) * hosts]
    job = replace(run.job, groups=(replace(run.job.groups[0], count=hosts),))
    policy, rules = Policy(), catalogue.ruleset()
    begin = time.process_time()
    usage = measure(job, raw, run.market.types, missing_reason=_ABSENT)
    audit_job(job, usage, run.market, policy, rules, now=run.now)
    return 1000 * (time.process_time() - begin)


class _Client:
    """A CloudWatch client that has every point of every query, in pages of 100,800 points."""

    def __init__(self, lines: Sequence[RawSeries]) -> None:
        first = lines[0]
        self._stamps = [
            first.start.replace(tzinfo=tzutc()) + timedelta(seconds=index * first.period_s)
            for index in range(len(first.values))
        ]
        self._values = {(line.host, line.metric): list(line.values) for line in lines}

    def get_metric_data(self, **call: Any) -> dict[str, Any]:
        """Returns an answer as boto3 parses it, with separate timestamps for each series."""
        results = []
        for query in call["MetricDataQueries"]:
            if query["MetricStat"]["Period"] != ASKED_PERIOD_S:
                raise ValueError(f"CloudWatch is asked for another period: {query}")
            metric = query["MetricStat"]["Metric"]
            name = (metric["Dimensions"][0]["Value"], metric["MetricName"])
            results.append({
                "Id": query["Id"],
                "Timestamps": [moment + timedelta(0) for moment in self._stamps],
                "Values": self._values[name],
                "StatusCode": "Complete",
            })  # fmt: skip
        return {"MetricDataResults": results}


def parsing_ms() -> float:
    """Returns the CPU time from the answers about all hosts to their series, in ms."""
    run = _run("large")
    job = replace(run.job, groups=(replace(run.job.groups[0], count=ASKED_HOSTS),))
    client, answers = _Client(_points(ASKED_HOSTS, ASKED_PERIOD_S)), []
    answer = client.get_metric_data

    def recorded(**call: Any) -> dict[str, Any]:
        answers.append(-time.process_time())
        series = answer(**call)
        answers[-1] += time.process_time()
        return series

    client.get_metric_data = recorded  # type: ignore[method-assign]
    metrics = CloudWatchMetrics(lambda *_: client, run.market.types)
    begin = time.process_time()
    metrics.read(job, job.ended_at or run.now)
    return 1000 * (time.process_time() - begin - sum(answers))


MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    **{f"{name}, 1 host x 1 h": ("audits/s", partial(audits_a_second, name))
       for name in PLOTS if name != "large"},
    **{f"{hosts} hosts x {DAYS} days x 5 series": ("ms", partial(large_ms, hosts))
       for hosts in (HOSTS // 4, HOSTS)},
    f"CloudWatch's answers, {ASKED_HOSTS} hosts x 1,344 points x 5": ("ms", parsing_ms),
}  # fmt: skip
