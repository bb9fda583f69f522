"""What the hosts of a job did, minute by minute, and the CloudWatch values that leaves."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from .machines import MACHINES


@dataclass(frozen=True)
class Seg:
    """What every minute of a stretch looks like; gpu, gmem and cpu are SUMS, as in CloudWatch."""

    minutes: int
    gpu: float
    cpu: float
    mem: float
    gmem: float
    wobble: float = 0.03
    disk: float = 0.4
    gone: bool = False  # no machine, no points (null)
    top: float | None = None  # the busy devices' ceiling, where fewer than all are busy


def draw(rnd: random.Random, mean: float, wobble: float, limit: float) -> float:
    """A value near its mean, within 0 and its limit."""
    if mean <= 0:
        return 0.0
    return round(min(limit, max(0.0, rnd.gauss(mean, mean * wobble))), 3)


METRICS = (
    "CPUUtilization",
    "MemoryUtilization",
    "DiskUtilization",
    "GPUUtilization",
    "GPUMemoryUtilization",
)


def host_values(
    name: str, host: str, kind: str, segs: tuple[Seg, ...]
) -> dict[str, list[float | None]]:
    """The points of each metric of one host."""
    rnd = random.Random(f"{name}|{host}")
    box = MACHINES[kind]
    out: dict[str, list[float | None]] = {m: [] for m in METRICS[: 5 if box.gpus else 3]}
    for seg in segs:
        for _ in range(seg.minutes):
            if seg.gone:
                for values in out.values():
                    values.append(None)
                continue
            core = 0.003 if seg.cpu <= 110 else 0.02  # a single spinning core hardly varies
            out["CPUUtilization"].append(draw(rnd, seg.cpu, core, 100.0 * box.vcpu))
            out["MemoryUtilization"].append(draw(rnd, seg.mem, 0.006, 100.0))
            out["DiskUtilization"].append(draw(rnd, seg.disk, 0.01, 100.0))
            if box.gpus:
                out["GPUUtilization"].append(
                    draw(rnd, seg.gpu, seg.wobble, seg.top or 100.0 * box.gpus)
                )
                out["GPUMemoryUtilization"].append(draw(rnd, seg.gmem, 0.004, 100.0 * box.gpus))
    return out


Load = tuple[Seg, ...]
Series = list[dict[str, Any]]


def series_of(job: str, kind: str, hosts: tuple[Load, ...], work: datetime) -> Series:
    """One series per host and metric, from the first full minute after `work` begins."""
    first = work.replace(second=0, microsecond=0) + timedelta(minutes=1)
    at = first.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        {"host": host, "metric": metric, "start": at, "values": values}
        for number, load in enumerate(hosts, start=1)
        for host in (f"{job}/algo-{number}",)
        for metric, values in host_values(job, host, kind, load).items()
    ]
