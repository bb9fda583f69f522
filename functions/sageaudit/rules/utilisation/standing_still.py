"""What the rules about idle starts, middles and ends share: durations, evidence and cautions.

The rules about lost runs use `IdleRun` too.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.usage.edges import (
    HostActivity,
    busiest_mean_cores,
    gpu_recording_gap,
    host_activities,
    idle_middle,
    idle_tail,
    opening_periods,
    periods_after_gpu,
)
from sageaudit.domain.usage.series import (
    ACTIVE,
    COARSEST_PERIOD_S,
    IDLE,
    MIN_STANDSTILL_S,
    ONE_PROCESS_MAX_CORES,
    state_ranges,
)
from sageaudit.rules import api

WAITING_RUN_CAUTION = "A run that waits for a query or for another job looks the same."
IDLE_HOSTS_UNNEEDED_CAUTION = (
    "This assumes that the other hosts need nothing from them, such as data in their memory."
)
"""The caution of fixes that remove hosts which did no work."""
NO_GPU_NEEDED_CAUTION = "This assumes that the work of that one core did not need the GPUs."
CPU_WORKED_CAUTION = (
    "No dollars are counted, because a CPU worked meanwhile. Long work without the GPU costs less "
    "in a processing job on a CPU type."
)
_MIN_STRETCH_S = 600
"""The shortest idle period that counts. An idle end must last as long."""
_MIN_HANG_S = 3600
"""A run that was idle this long at its end waited for something. Our choice."""
_MAX_MINUTE_NUMBER = 100
"""Sentences name earlier minutes as `minute 42`, later ones as a duration."""


def run_evidence(whole: api.Measurements) -> dict[str, api.Scalar]:
    """Returns the evidence about the run that findings on idle time contain."""
    return {"vcpu": whole.vcpu, "minutes": round(whole.minutes), "period_s": whole.period_s}


def is_all_idle(whole: api.Measurements, stretches: Iterable[range]) -> bool:
    """Returns True if every host is known to be idle in all these periods, without even one busy
    core.
    """
    return all(
        whole.states.count(IDLE, stretch.start, stretch.stop) == len(stretch)
        for stretch in stretches
    )


def hosts_without_work(whole: api.Measurements, ends: Iterable[HostActivity]) -> set[str]:
    """Returns the hosts that did no work.

    Such a host was idle after its start. Or its GPUs were idle and it kept at most one core busy,
    as a waiting process does.
    """
    hosts = {end.host for end in ends if not end.has_worked}
    cpu, vcpu = whole.series.get(api.Metric.CPU, {}), whole.vcpu or 0
    for host in whole.hosts if whole.gpus and vcpu else ():
        gpu_line, cpu_line = whole.series[api.Metric.GPU].get(host), cpu.get(host)
        if gpu_line is None or cpu_line is None or ACTIVE in whole.gpu_states[host]:
            continue
        if cpu_line.mean * vcpu / 100 <= ONE_PROCESS_MAX_CORES:
            hosts.add(host)
    return hosts


class IdleEnds(Struct, frozen=True):
    """The idle seconds at the end of a run.

    `idle_s`: all hosts were idle. `early_hosts`: each host that ended early, with its additional
    idle seconds, longest first. `is_idle_throughout`: no host ever worked. `is_all_idle`: no host
    kept even a core busy in `idle_s`.

    `without_gpu_s`: the seconds after the last GPU work, if a CPU then worked for half an hour or
    more; else 0. `cores_after_gpu`: the mean cores of the busiest host in these seconds.
    """

    idle_s: int
    early_hosts: tuple[tuple[str, int], ...]
    host_count: int
    is_idle_throughout: bool
    is_all_idle: bool
    without_gpu_s: int
    cores_after_gpu: float

    @property
    def saving_if_shared_s(self) -> Decimal:
        """The seconds that the run saves if early hosts share the others' work."""
        return (
            self.idle_s + Decimal(sum(seconds for _, seconds in self.early_hosts)) / self.host_count
        )


def idle_ends(case: api.JobCase, min_s: float) -> IdleEnds:
    """Returns how long hosts were idle at the end of the run.

    A host is early if it ends at least `min_s` seconds before the last host. If the hosts are of
    several types, no host counts as early.
    """
    usage = case.whole_run
    tail = idle_tail(usage)
    period_s, tail_periods = usage.period_s or 0, len(tail)
    ends = host_activities(usage) if len(case.job.groups) == 1 else []
    early_hosts = [
        (end.host, seconds)
        for end in ends
        if end.has_worked
        and (seconds := (end.idle_tail_periods - tail_periods) * period_s) >= min_s
    ]
    has_worked = ACTIVE in usage.states[: tail.start]
    periods_without_gpu = periods_after_gpu(usage)
    on_cpu_s = (len(periods_without_gpu) - tail_periods) * period_s
    return IdleEnds(
        idle_s=tail_periods * period_s,
        early_hosts=tuple(sorted(early_hosts, key=lambda host: (-host[1], host[0]))),
        host_count=max(usage.hosts_expected or 0, len(usage.hosts)),
        is_idle_throughout=not has_worked and tail.start <= opening_periods(usage),
        is_all_idle=is_all_idle(usage, [tail]),
        without_gpu_s=len(periods_without_gpu) * period_s if on_cpu_s >= MIN_STANDSTILL_S else 0,
        cores_after_gpu=busiest_mean_cores(usage, periods_without_gpu),
    )


class IdleRun(Struct, frozen=True):
    """A run that was idle for more than half of its time, or for its last hour.

    `idle_from_s`: the seconds until it stayed idle; None if most of the idle time was earlier.
    `is_all_idle`: no host kept even a core busy meanwhile.
    """

    idle_s: int
    idle_from_s: int | None
    is_all_idle: bool

    @property
    def sentence(self) -> str:
        """A sentence about how long the run was idle."""
        idle_text = (
            "was idle" if self.is_all_idle else "used no GPU, and at most one core of a host,"
        )
        duration_text = api.duration_text(Decimal(self.idle_s))
        if self.idle_from_s is None:
            return f"The run {idle_text} for {duration_text}."
        if self._minutes < _MAX_MINUTE_NUMBER:
            return f"The run {idle_text} from minute {self._minutes} on, for {duration_text}."
        return (
            f"The run {idle_text} after its first {api.minutes_text(self._minutes)}, for "
            f"{duration_text}."
        )

    @property
    def first_step(self) -> str:
        """The first step to take, without a full stop."""
        time_text = "" if self.idle_from_s is None else f" after {api.minutes_text(self._minutes)}"
        return f"Read its log{time_text} to see what it waited for, and set a timeout there"

    @property
    def evidence(self) -> dict[str, api.Scalar]:
        """The idle seconds as evidence of a finding."""
        start = {} if self.idle_from_s is None else {"idle_from_s": self.idle_from_s}
        return {"idle_s": self.idle_s, **start}

    @property
    def _minutes(self) -> int:
        return (self.idle_from_s or 0) // 60


def idle_run(case: api.JobCase) -> IdleRun | None:
    """Returns the idle time of a run that was idle for more than half of its time or its last hour.

    None for any other run, or if that is not known.
    """
    usage, period_s = case.whole_run, case.whole_run.period_s or 0
    if not period_s or period_s > COARSEST_PERIOD_S or not case.job.elapsed_s:
        return None
    if usage.missing_hosts(api.Metric.CPU) or gpu_recording_gap(usage):
        return None
    if usage.gpus and usage.missing_hosts(api.Metric.GPU):
        return None
    tail = idle_tail(usage)
    states = bytearray(usage.states)
    for stretch in (tail, *idle_middle(usage)):
        states[stretch.start : stretch.stop] = bytes([IDLE]) * len(stretch)
    stretches = [
        stretch
        for stretch in state_ranges(states, IDLE, range(usage.points))
        if len(stretch) * period_s >= _MIN_STRETCH_S
    ]
    if not stretches:
        return None
    idle_s = sum(map(len, stretches)) * period_s
    last = stretches[-1]
    last_s = len(last) * period_s if last.stop == usage.points else 0
    if 2 * idle_s <= case.job.elapsed_s and last_s < _MIN_HANG_S:
        return None
    is_idle_to_end = 2 * last_s > idle_s
    if is_idle_to_end:
        stretches, idle_s = [last], len(last) * period_s
    idle_from_s = last.start * period_s if is_idle_to_end else None
    return IdleRun(idle_s, idle_from_s, is_all_idle(usage, stretches))
