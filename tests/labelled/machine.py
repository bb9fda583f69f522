"""CloudWatch's points of simulated hosts, from what their programs do minute by minute.

It knows machines and work, and none of this project's thresholds: for example a loader that starves
the GPU, a process that never exits, or a host with a third of the data. The noise depends only on
the names of job and host, so that a job is always the same.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from sageaudit.adapters.prices import packaged
from sageaudit.domain.prices.market import InstanceType

Json = dict[str, Any]
Series = list[Json]
_MINUTE = timedelta(minutes=1)
_SETTLES = 0.3
"""How much a minute's mean varies, as a share of the idle part: a core is never more than busy."""
_MEMORY_SPREAD = 0.006
_DISK_SPREAD = 0.01
_GPU_MEMORY_SPREAD = 0.004
"""How much each varies from minute to minute, as a share of its value."""


class _Shown(Struct, frozen=True):
    """CloudWatch's values for each minute of a stretch, in percent.

    `gpu`, `cpu` and `gpu_memory` are sums over devices: 350 of 400 for four. `gpu_spread` and
    `cpu_spread`: variation as a share of the value. `gpu_ceiling`: the maximum for the GPUs at
    work, if not all work.
    """

    minutes: int
    cpu: float
    cpu_spread: float
    memory: float
    disk: float
    gpu: float
    gpu_spread: float
    gpu_memory: float
    gpu_ceiling: float | None


class Doing(Struct, frozen=True):
    """What one host's program does for some minutes.

    `cores`: how many are busy. `gpus`: the busy share (0..1) of each GPU. `gib`: host memory in
    use. `gpu_gib`: memory in use on each GPU. `jitter`: variation of all this as a share of its
    value. `disk`: percent of the volume in use.
    """

    minutes: int
    cores: float = 0.1
    gpus: Sequence[float] = ()
    gib: float = 3.0
    gpu_gib: Sequence[float] = ()
    jitter: float = 0.05
    disk: float = 2.0

    def on(self, machine: InstanceType) -> _Shown:
        """Returns CloudWatch's values for this on a machine."""
        device_gib = float(machine.gpu_memory_gib or 16)
        at_work = sum(share > 0 for share in self.gpus)
        return _Shown(
            minutes=self.minutes,
            cpu=100 * self.cores,
            cpu_spread=self._spread(self.cores, machine.vcpu),
            memory=min(100 * self.gib / float(machine.memory_gib), 100),
            disk=self.disk,
            gpu=100 * sum(self.gpus),
            gpu_spread=self._spread(sum(self.gpus), at_work),
            gpu_memory=sum(min(100 * gib / device_gib, 100) for gib in self.gpu_gib),
            gpu_ceiling=100.0 * at_work if at_work < machine.gpus else None,
        )

    def _spread(self, wanted: float, available: float) -> float:
        """Returns the variation as a share of the value, limited by what the machine has."""
        if not wanted:
            return 0.0
        return min(self.jitter, _SETTLES * (available - wanted) / wanted + 0.01)


Host = tuple[Doing, ...]
"""What one host does, from the first to the last minute of the work."""


def idle(minutes: int) -> Doing:
    """Returns an idle program: only the operating system runs."""
    return Doing(minutes, cores=0.05, gib=2.0, jitter=0.3)


def one_host(*doings: Doing) -> tuple[Host, ...]:
    """Returns one host that does these things in turn."""
    return (doings,)


def identical_hosts(hosts: int, *doings: Doing) -> tuple[Host, ...]:
    """Returns several hosts that all do these things in turn."""
    return (doings,) * hosts


def longest(hosts: Sequence[Host]) -> int:
    """Returns the minutes of the host that works longest."""
    return max(sum(doing.minutes for doing in host) for host in hosts)


def machine(instance: str) -> InstanceType:
    """Returns the instance type."""
    return packaged.instance_types()[instance]


def series_of(
    job: str, instance: str, hosts: Sequence[Host], work: datetime, missing_share: float = 0.0
) -> Series:
    """Returns each host's series from the first full minute of the work on.

    A host that ends before the others is idle to the end.
    """
    on, minutes = machine(instance), longest(hosts)
    series = [
        {"host": host, "metric": metric, "start": first_minute(work), "values": values}
        for number, doings in enumerate(hosts, start=1)
        for host in (f"{job}/algo-{number}",)
        for metric, values in _values(
            on,
            [doing.on(on) for doing in (*doings, idle(minutes - longest([doings])))],
            random.Random(f"{job}|{host}"),
        ).items()
    ]
    return list(_with_holes(series, random.Random(f"{job} gaps"), missing_share))


def first_minute(work: datetime) -> str:
    """Returns the first full minute of the work, formatted for a recording."""
    return f"{work.replace(second=0) + _MINUTE:%Y-%m-%dT%H:%M:%SZ}"


def _values(
    on: InstanceType, stretches: Sequence[_Shown], dice: random.Random
) -> dict[str, list[float | None]]:
    """Returns the points of each metric of one host."""
    points: dict[str, list[float | None]] = {
        "CPUUtilization": [],
        "MemoryUtilization": [],
        "DiskUtilization": [],
        **({"GPUUtilization": [], "GPUMemoryUtilization": []} if on.gpus else {}),
    }

    def draw(metric: str, mean: float, spread: float, most: float = 100.0) -> None:
        drawn = max(0.0, dice.gauss(mean, mean * spread)) if mean > 0 else 0.0
        points[metric].append(round(min(most, drawn), 3))

    for shown in (stretch for stretch in stretches for _ in range(stretch.minutes)):
        draw("CPUUtilization", shown.cpu, shown.cpu_spread, 100.0 * on.vcpu)
        draw("MemoryUtilization", shown.memory, _MEMORY_SPREAD)
        draw("DiskUtilization", shown.disk, _DISK_SPREAD)
        if on.gpus:
            gpus = 100.0 * on.gpus
            draw("GPUUtilization", shown.gpu, shown.gpu_spread, shown.gpu_ceiling or gpus)
            draw("GPUMemoryUtilization", shown.gpu_memory, _GPU_MEMORY_SPREAD, gpus)
    return points


def _with_holes(series: Series, dice: random.Random, missing_share: float) -> Iterator[Json]:
    """Yields series with CloudWatch's gaps: late first GPU points, and some missing points."""
    late = {line["host"]: dice.choice((3, 4, 5, 6)) for line in series}
    for line in series:
        values = [None if dice.random() < missing_share else value for value in line["values"]]
        missing = min(late[line["host"]], len(values)) if "GPU" in line["metric"] else 0
        yield {**line, "values": [None] * missing + values[missing:]}
