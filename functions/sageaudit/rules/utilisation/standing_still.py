"""Shared by the rules on idle starts, middles and ends: durations, evidence and cautions.

Also the sentence with which the rules on lost runs begin, if a run was idle for most of its time or
at its end.
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
    COARSEST_PERIOD_S,
    MIN_STANDSTILL_S,
    ONE_PROCESS_MAX_CORES,
    gpu_states,
    true_ranges,
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
"""Shorter idle stretches are ordinary: 10 minutes, as for an idle end."""
_MIN_HANG_S = 3600
"""If a run was idle this long until it was ended, it waited for something; our choice."""
_MAX_MINUTE_NUMBER = 100
"""Below this, a time is given as a minute of the run."""


def run_evidence(whole: api.Measurements) -> dict[str, api.Scalar]:
    """Returns the evidence about the run that all these rules have."""
    return {"vcpu": whole.vcpu, "minutes": round(whole.minutes), "period_s": whole.period_s}


def is_all_idle(whole: api.Measurements, stretches: Iterable[range]) -> bool:
    """Whether every host is known to be idle in all these periods, so that none kept even a core
    busy.
    """
    return all(whole.idle(minute) for stretch in stretches for minute in stretch)


def hosts_without_work(whole: api.Measurements, ends: Iterable[HostActivity]) -> set[str]:
    """Returns the hosts that did no work.

    By `ends` they were idle after their start. Or their GPUs did nothing and at most a core was
    busy, as in a process that only waits.
    """
    hosts = {end.host for end in ends if not end.has_worked}
    cpu, vcpu = whole.series.get(api.Metric.CPU, {}), whole.vcpu or 0
    for host in whole.hosts if whole.gpus and vcpu else ():
        gpu_line, cpu_line = whole.series[api.Metric.GPU].get(host), cpu.get(host)
        if gpu_line is None or cpu_line is None or True in gpu_states(gpu_line.present, whole.gpus):
            continue
        if cpu_line.mean * vcpu / 100 <= ONE_PROCESS_MAX_CORES:
            hosts.add(host)
    return hosts


class IdleEnds(Struct, frozen=True):
    """Idle seconds at the end: of all hosts, and of each early host before those, longest first.

    `is_idle_throughout`: no host ever worked. `is_all_idle`: no host kept even a core busy in
    `idle_s`. `without_gpu_s`: the time after the last GPU work, if it is half an hour longer than
    `idle_s` and a CPU worked; else 0. `cores_after_gpu`: the mean of the busiest host in that time.
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
        """Seconds by which the run would be shorter if early hosts had shared the others' work."""
        return (
            self.idle_s + Decimal(sum(seconds for _, seconds in self.early_hosts)) / self.host_count
        )


def idle_ends(case: api.JobCase, min_s: float) -> IdleEnds:
    """Returns the idle ends. A host is early if it ended at least `min_s` seconds before the last
    one.

    If the hosts are of several types, none counts as early.
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
    has_worked = any(usage.worked(minute) for minute in range(tail.start))
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
    """Idle stretches that together are more than half of a run, or the last one of an hour.

    `idle_s`: their seconds. `idle_from_s`: seconds from the first point until the run stayed idle;
    None if it worked again after most of the stretches. `is_all_idle`: no host kept even one core
    busy in any of them.
    """

    idle_s: int
    idle_from_s: int | None
    is_all_idle: bool

    @property
    def sentence(self) -> str:
        """How long the run was idle, with a full stop."""
        idle_text = (
            "was idle" if self.is_all_idle else "used no GPU, and at most one core of a host,"
        )
        duration = api.duration_text(Decimal(self.idle_s))
        if self.idle_from_s is None:
            return f"The run {idle_text} for {duration}."
        if self._minutes < _MAX_MINUTE_NUMBER:
            return f"The run {idle_text} from minute {self._minutes} on, for {duration}."
        return (
            f"The run {idle_text} after its first {api.minutes_text(self._minutes)}, for "
            f"{duration}."
        )

    @property
    def first_step(self) -> str:
        """What to do first, without a full stop."""
        time_text = "" if self.idle_from_s is None else f" after {api.minutes_text(self._minutes)}"
        return f"Read its log{time_text} to see what it waited for, and set a timeout there"

    @property
    def evidence(self) -> dict[str, api.Scalar]:
        """The numbers of the sentence."""
        start = {} if self.idle_from_s is None else {"idle_from_s": self.idle_from_s}
        return {"idle_s": self.idle_s, **start}

    @property
    def _minutes(self) -> int:
        return (self.idle_from_s or 0) // 60


def idle_run(case: api.JobCase) -> IdleRun | None:
    """Returns the idle stretches; None if the run worked for half of its time and until its end, or
    if that is unknown.
    """
    usage, period_s = case.whole_run, case.whole_run.period_s or 0
    if not period_s or period_s > COARSEST_PERIOD_S or not case.job.elapsed_s:
        return None
    if usage.missing_hosts(api.Metric.CPU) or gpu_recording_gap(usage):
        return None
    if usage.gpus and usage.missing_hosts(api.Metric.GPU):
        return None
    tail = idle_tail(usage)
    standstill_periods = {period for stretch in (tail, *idle_middle(usage)) for period in stretch}
    is_idle = [period in standstill_periods or usage.idle(period) for period in range(usage.points)]
    stretches = [
        stretch for stretch in true_ranges(is_idle) if len(stretch) * period_s >= _MIN_STRETCH_S
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
