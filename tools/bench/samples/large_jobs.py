"""Measures large jobs, in CPU time of this process: from points to the audit, and packing.

- "pack": `make_detail` of a job that was just audited, with five series of each host, as many
  points as CloudWatch is asked for, and all of 28 days. The peer is `audit_job` of the same job.
- "pack curves": the same for one host with curves of 1,440 points, or with one longer curve.
- "points to audit": `measure` and `audit_job` of five series of each host, a point every 5 minutes
  of 28 days. Points are missing, or hosts are idle. The peer is the job whose points are complete.
- "answers": CloudWatch's answers about 200 series of 1,344 points, from moments to series.
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

from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics, choose_period_s
from sageaudit.adapters.files import recording
from sageaudit.domain.job.course import work_windows
from sageaudit.domain.job.job import Job
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, MissingMetrics, RawSeries
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.audit.stored import make_detail
from sageaudit.workflows.recordings.jobs import MeasuredJob, measure_recording
from tests.labelled.machine import Doing, identical_hosts
from tests.labelled.made_up_job import Phase, Plot, training

HOUR_S, DAYS = 3600, 28
PACKED_HOSTS = (1, 4, 16, 32, 64, 200, 1_000)
CURVES = (1, 10, 40)
LONG_CURVE = 5_000
PERIOD_S, ANSWERED_SERIES = 300, 200
LEVELS = {"CPUUtilization": 600.0, "MemoryUtilization": 21.0, "GPUUtilization": 120.0,
          "GPUMemoryUtilization": 133.0, "DiskUtilization": 2.0}  # fmt: skip
"""The mean values of each host."""
_CUT_HOST = 2
IDLE = {"CPUUtilization": 4.0, "GPUUtilization": 0.0}
_ABSENT = MissingMetrics("metric_missing", "no points")
_RULES, _POLICY = catalogue.ruleset(), Policy()
Change = Callable[[int, str, list[float | None]], None]
"""Changes the points of a host (a number from 1 on) and metric."""


@cache
def _run(seconds: int) -> tuple[MeasuredJob, Mapping[str, Any]]:
    """Returns a job of this length, with a market whose rates are known, and its description."""
    plot = Plot(
        "ml.g5.12xlarge",
        identical_hosts(2, Doing(60, cores=6, gpus=(0.3,) * 4, gib=40, gpu_gib=(8,) * 4)),
        phases=(Phase("Downloading", 60), Phase("Training", seconds), Phase("Uploading", 20)),
    )
    recorded = recording.parse_job(training(plot, 1))
    run = measure_recording(recorded)
    audit_job(run.job, run.usage, run.market, _POLICY, _RULES, now=run.now)
    return run, recorded.describe


def _job(hosts: int, seconds: int) -> Job:
    job = _run(seconds)[0].job
    return replace(job, groups=(replace(job.groups[0], count=hosts),))


def _points(
    hosts: int, seconds: int, period_s: int | None = None, change: Change | None = None
) -> tuple[RawSeries, ...]:
    """Returns five series of each host; by default at the period that CloudWatch is asked for."""
    job, dice = _job(hosts, seconds), random.Random(1)
    start, end = next(iter(work_windows(job)))
    period_s = period_s or choose_period_s(start, end, 60, hosts * len(LEVELS))
    first_s = math.ceil(start.timestamp() / period_s) * period_s
    count = int(end.timestamp() - first_s) // period_s
    series = []
    for host in range(1, hosts + 1):
        for metric, level in LEVELS.items():
            values: list[float | None] = [
                level * min(max(dice.gauss(1, 0.1), 0), 1.5) for _ in range(count)
            ]
            if change is not None:
                change(host, metric, values)
            moment = datetime.fromtimestamp(first_s, UTC)
            name = f"{job.name}/algo-{host}"
            series.append(RawSeries(name, metric, moment, period_s, tuple(values)))
    return tuple(series)


def _cpu_ms(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return 1000 * (time.process_time() - begin)


def _audit(job: Job, usage: Measurements, seconds: int) -> None:
    run = _run(seconds)[0]
    audit_job(job, usage, run.market, _POLICY, _RULES, now=run.now)


def _measured(job: Job, series: Sequence[RawSeries], seconds: int) -> Measurements:
    return measure(job, series, _run(seconds)[0].market.types, missing_reason=_ABSENT)


def pack_ms(hosts: int, seconds: int, *, is_peer: bool = False) -> float:
    """Returns the CPU time of `make_detail`, or of the audit before it."""
    job = _job(hosts, seconds)
    usage = _measured(job, _packed_points(hosts, seconds), seconds)
    audit_ms = _cpu_ms(partial(_audit, job, usage, seconds))
    return audit_ms if is_peer else _cpu_ms(partial(make_detail, _run(seconds)[1], {}, usage))


@cache
def _packed_points(hosts: int, seconds: int) -> tuple[RawSeries, ...]:
    return _points(hosts, seconds)


def pack_curves_ms(curves: int, points: int, *, is_peer: bool = False) -> float:
    """Returns the CPU time of `make_detail` of one host with curves, or of the audit before it."""
    seconds = DAYS * 24 * HOUR_S
    job, dice = _job(1, seconds), random.Random(3)
    start, end = next(iter(work_windows(job)))
    period_s = int((end - start).total_seconds() // points)
    lines = tuple(
        RawSeries(
            job.name, f"validation:rmse-{number}", start, period_s,
            tuple(100 * math.exp(-point / 300) + dice.random() for point in range(points)),
        )
        for number in range(curves)
    )  # fmt: skip
    usage = _measured(job, _packed_points(1, seconds) + lines, seconds)
    audit_ms = _cpu_ms(partial(_audit, job, usage, seconds))
    return audit_ms if is_peer else _cpu_ms(partial(make_detail, _run(seconds)[1], {}, usage))


def _missing(share: float) -> Change:
    dice = random.Random(2)

    def change(_host: int, _metric: str, values: list[float | None]) -> None:
        values[:] = [None if dice.random() < share else value for value in values]

    return change


def _missing_tail(host: int, _metric: str, values: list[float | None]) -> None:
    count = len(values) // 5 if host == _CUT_HOST else 0
    values[len(values) - count :] = [None] * count


def _idle(begin: float, end: float, step: int = 0) -> Change:
    """Idles all hosts from `begin` to `end` (shares of the run), each host `step` points later."""

    def change(host: int, metric: str, values: list[float | None]) -> None:
        first, stop = (int(len(values) * share) + host * step for share in (begin, end))
        if metric in IDLE:
            stretch = values[first:stop]
            values[first:stop] = [IDLE[metric]] * len(stretch)

    return change


CHANGES: Mapping[str, Change | None] = {
    "complete": None,
    "0.1% missing": _missing(0.001),
    "1% missing": _missing(0.01),
    "10% missing": _missing(0.1),
    "one host's tail missing": _missing_tail,
    "idle at the begin": _idle(0, 0.1),
    "idle in the middle": _idle(0.4, 0.5),
    "idle at the end": _idle(0.9, 1),
    "idle at different times": _idle(0.2, 0.3, 17),
}


def points_to_audit_ms(hosts: int, change: str) -> float:
    """Returns the CPU time from parsed points to the audit."""
    seconds = DAYS * 24 * HOUR_S
    job, series = _job(hosts, seconds), _changed_points(hosts, change)
    return _cpu_ms(lambda: _audit(job, _measured(job, series, seconds), seconds))


@cache
def _changed_points(hosts: int, change: str) -> tuple[RawSeries, ...]:
    return _points(hosts, DAYS * 24 * HOUR_S, PERIOD_S, CHANGES[change])


class _Client:
    """A CloudWatch client that has all series, in one page."""

    def __init__(self, share_missing: float) -> None:
        dice = random.Random(4)
        start = datetime(2026, 5, 20, tzinfo=tzutc())
        self.answers = [
            [
                (start + timedelta(seconds=1800 * at), dice.random())
                for at in range(1344)
                if dice.random() >= share_missing
            ]
            for _ in range(ANSWERED_SERIES)
        ]

    def get_metric_data(self, **call: Any) -> dict[str, Any]:
        """Returns an answer as boto3 parses it."""
        shift = call["StartTime"].replace(tzinfo=tzutc()) - self.answers[0][0][0]
        return {
            "MetricDataResults": [
                {
                    "Id": query["Id"],
                    "Timestamps": [moment + shift for moment, _ in points],
                    "Values": [value for _, value in points],
                    "StatusCode": "Complete",
                }
                for query, points in zip(call["MetricDataQueries"], self.answers, strict=False)
            ]
        }


def answers_ms(share_missing: float) -> float:
    """Returns the CPU time of reading CloudWatch's answers, without that of the client."""
    client, client_ms = _client(share_missing), []
    answer = client.get_metric_data

    class Counted:
        def get_metric_data(self, **call: Any) -> dict[str, Any]:
            result: dict[str, Any] = {}
            client_ms.append(_cpu_ms(lambda: result.update(answer(**call))))
            return result

    run, job = _run(DAYS * 24 * HOUR_S)[0], _job(ANSWERED_SERIES // 4, DAYS * 24 * HOUR_S)
    reader = CloudWatchMetrics(lambda *_: Counted(), run.market.types)
    return _cpu_ms(lambda: reader.read_series(job, job.ended_at or run.now)) - sum(client_ms)


_client = cache(_Client)
_MONTH_S = DAYS * 24 * HOUR_S
PACK, AUDIT = "pack ", "peer: audit_job, "
"""The prefixes of the label of packing a job, and of its peer, the audit of the same job."""
MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    **{
        f"{prefix}1 host of {name}": ("ms", partial(pack_ms, 1, seconds, is_peer=prefix != PACK))
        for name, seconds in (("an hour", HOUR_S), ("a day", 24 * HOUR_S))
        for prefix in (PACK, AUDIT)
    },
    **{
        f"{prefix}by hosts, n={hosts}": (
            "ms",
            partial(pack_ms, hosts, _MONTH_S, is_peer=prefix != PACK),
        )
        for hosts in PACKED_HOSTS
        for prefix in (PACK, AUDIT)
    },
    **{
        f"{prefix}curves, n={curves}": (
            "ms",
            partial(pack_curves_ms, curves, 1440, is_peer=prefix != PACK),
        )
        for curves in CURVES
        for prefix in (PACK, AUDIT)
    },
    **{
        f"{prefix}a curve of {LONG_CURVE:,} points": (
            "ms",
            partial(pack_curves_ms, 1, LONG_CURVE, is_peer=prefix != PACK),
        )
        for prefix in (PACK, AUDIT)
    },
    **{
        f"{'' if CHANGES[change] else 'peer: '}points to audit, {hosts} hosts, {change}": (
            "ms",
            partial(points_to_audit_ms, hosts, change),
        )
        for hosts in (16, 64)
        for change in CHANGES
    },
    **{
        f"{'' if share else 'peer: '}answers, {share:.1%} missing": (
            "ms",
            partial(answers_ms, share),
        )
        for share in (0.0, 0.001, 0.01, 0.1)
    },
}
