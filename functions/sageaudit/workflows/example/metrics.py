"""What CloudWatch would show of a run of the example company, from what its program does."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import InstanceType
from sageaudit.workflows.example.company import Run, Work, Workload

_MINUTELY_UP_TO_MIN = 240
"""Longer runs have a point every 5 minutes, which makes the history in seconds."""
_COPIES = Work(1, cores=0.4, gib=2)
"""A minute of Downloading or Uploading."""
_SPREADS = {
    "CPUUtilization": 0.04,
    "MemoryUtilization": 0.01,
    "DiskUtilization": 0.01,
    "GPUUtilization": 0.03,
    "GPUMemoryUtilization": 0.01,
}
"""The noise of each metric, as a share of its mean."""


def series(run: Run) -> Iterator[dict[str, Any]]:
    """The series of each host and metric, as recordings have them."""
    workload, dice = run.workload, run.dice
    minutes = [*_minutes(run)]
    period_min = 1 if len(minutes) <= _MINUTELY_UP_TO_MIN else 5
    begin = run.phases[0].end.replace(second=0) + timedelta(minutes=1)
    for number in range(1, workload.hosts + 1):
        for metric, values in _values(workload, minutes[::period_min], dice).items():
            yield {
                "host": f"{run.name}/{_host(workload.kind, number)}",
                "metric": metric,
                "start": f"{begin:%Y-%m-%dT%H:%M:%SZ}",
                "period_s": 60 * period_min,
                "values": values,
            }


def _host(kind: JobKind, number: int) -> str:
    metrics = kind.row.metrics
    numbered = metrics is not None and metrics.hosts_numbered
    return f"algo-{number}" if numbered else f"i-0c41d7a92be5f{number:04x}"


def _minutes(run: Run) -> Iterator[Work | None]:
    """What each minute has from the first download on; None while there is no instance."""
    phases, work = run.phases[1:], run.workload.work
    work_s = sum(phase.seconds for phase in phases if phase.name == "Training")
    stretch = work_s / (60 * run.workload.minutes)
    ahead = iter([one for one in work for _ in range(round(one.minutes * stretch))])
    for phase in phases:
        for _ in range(round(phase.seconds / 60)):
            if phase.name == "Training":
                yield next(ahead, work[-1])
            else:
                yield None if phase.name in {"Interrupted", "Starting"} else _COPIES


def _values(
    workload: Workload, minutes: Sequence[Work | None], dice: random.Random
) -> dict[str, list[float | None]]:
    """The points of one host. CPU and GPU are sums: 100 for each core and each GPU."""
    on = packaged.types()[workload.instance]
    most = {"CPUUtilization": 100 * on.vcpu, "MemoryUtilization": 100}
    if workload.kind is not JobKind.TRANSFORM:
        most |= {"DiskUtilization": 100}
    if on.gpus:
        most |= {"GPUUtilization": 100 * on.gpus, "GPUMemoryUtilization": 100 * on.gpus}
    points: dict[str, list[float | None]] = {metric: [] for metric in most}
    for work in minutes:
        means = {} if work is None else _means(work, on)
        for metric, values in points.items():
            mean, spread = means.get(metric), _SPREADS[metric]
            value = None if mean is None else dice.gauss(mean, mean * spread)
            values.append(None if value is None else round(min(max(value, 0), most[metric]), 2))
    return points


def _means(work: Work, on: InstanceType) -> dict[str, float]:
    return {
        "CPUUtilization": 100 * work.cores,
        "MemoryUtilization": 100 * work.gib / float(on.memory_gib),
        "DiskUtilization": 12.0,
        "GPUUtilization": 100 * work.gpus,
        "GPUMemoryUtilization": 100 * work.gpu_gib / float(on.gpu_memory_gib or 1),
    }
