"""What the rules on idle starts, middles and ends share: how long, how sure, and in which words.

Also what the rules on lost runs say first of one that was idle for most of its time, or at its end.
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
NEED_NOTHING = "Assumes that the other hosts need nothing from them, such as data in their memory."
"""Of hosts that took no part."""
NO_GPU_NEEDED_CAUTION = (
    "Assumes that what one core did meanwhile, if anything, needs none of these GPUs."
)
CPU_WORKED_CAUTION = (
    "No dollars are counted, because something worked meanwhile. Long work without the GPU costs "
    "less in a processing job on a CPU type."
)
_STRETCH_FROM_S = 600
"""Shorter stretches are ordinary: 10 minutes, as for an idle end."""
_HANGS_FROM_S = 3600
"""Idle for so long until it was ended, a run waited for something. Our choice."""
_IN_MINUTES_BELOW = 100
"""A moment is given as a minute of the run up to here."""


def run_evidence(whole: api.Measurements) -> dict[str, api.Scalar]:
    """Of which run all these numbers are."""
    return {"vcpu": whole.vcpu, "minutes": round(whole.minutes), "period_s": whole.period_s}


def is_all_idle(whole: api.Measurements, stretches: Iterable[range]) -> bool:
    """Whether every host is known to be idle in all these periods: none kept even a core busy."""
    return all(whole.idle(minute) for stretch in stretches for minute in stretch)


def hosts_without_part(whole: api.Measurements, ends: Iterable[HostActivity]) -> set[str]:
    """The hosts that were idle after their start, by their `ends`, or whose GPUs did nothing, with
    no more than a core busy: a process that only waits.
    """
    hosts = {end.host for end in ends if not end.has_worked}
    cpu, vcpu = whole.series.get(api.Metric.CPU, {}), whole.vcpu or 0
    for host in whole.hosts if whole.gpus and vcpu else ():
        gpu, line = whole.series[api.Metric.GPU].get(host), cpu.get(host)
        if gpu is None or line is None or True in gpu_states(gpu.present, whole.gpus):
            continue
        if line.mean * vcpu / 100 <= ONE_PROCESS_MAX_CORES:
            hosts.add(host)
    return hosts


class IdleEnds(Struct, frozen=True):
    """Idle seconds at the end: of all hosts, and of each `early` host before those, longest first.

    `throughout`: no host ever worked. `asleep`: none kept even a core busy in `idle_s`.
    `without_gpu_s`: the time after the last GPU work, where it is half an hour longer than `idle_s`
    and a CPU worked: `cores_after_gpu`, the mean of the busiest host.
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
        """What a run would be shorter by if the early hosts had shared the others' work."""
        return (
            self.idle_s + Decimal(sum(seconds for _, seconds in self.early_hosts)) / self.host_count
        )


def idle_ends(case: api.JobCase, min_s: float) -> IdleEnds:
    """A host is early when it ended at least `from_s` seconds before the last one.

    No host counts as early when hosts are of several types.
    """
    whole = case.whole_run
    idle = idle_tail(whole)
    period_s, common = whole.period_s or 0, len(idle)
    ends = host_activities(whole) if len(case.job.groups) == 1 else []
    early = [
        (end.host, seconds)
        for end in ends
        if end.has_worked and (seconds := (end.idle_tail_periods - common) * period_s) >= min_s
    ]
    worked = any(whole.worked(minute) for minute in range(idle.start))
    without_gpu = periods_after_gpu(whole)
    on_cpu_s = (len(without_gpu) - common) * period_s
    return IdleEnds(
        idle_s=common * period_s,
        early_hosts=tuple(sorted(early, key=lambda host: (-host[1], host[0]))),
        host_count=max(whole.hosts_expected or 0, len(whole.hosts)),
        is_idle_throughout=not worked and idle.start <= opening_periods(whole),
        is_all_idle=is_all_idle(whole, [idle]),
        without_gpu_s=len(without_gpu) * period_s if on_cpu_s >= MIN_STANDSTILL_S else 0,
        cores_after_gpu=busiest_mean_cores(whole, without_gpu),
    )


class IdleRun(Struct, frozen=True):
    """Idle stretches that together are more than half of a run, or the last one of an hour.

    `idle_s`: their seconds. `since_s`: from when on the rest of the run was idle, in seconds after
    the first point; None where it worked again after most of them. `asleep`: no host kept even one
    core busy in any of them.
    """

    idle_s: int
    idle_from_s: int | None
    is_all_idle: bool

    @property
    def sentence(self) -> str:
        """How long the run was idle, with a full stop."""
        idle = "was idle" if self.is_all_idle else "used no GPU, and at most one core of a host,"
        long = api.duration_text(Decimal(self.idle_s))
        if self.idle_from_s is None:
            return f"The run {idle} for {long}."
        if self._minutes < _IN_MINUTES_BELOW:
            return f"The run {idle} from minute {self._minutes} on, for {long}."
        return f"The run {idle} after its first {api.minutes_text(self._minutes)}, for {long}."

    @property
    def first_step(self) -> str:
        """What to do first, without a full stop."""
        when = "" if self.idle_from_s is None else f" after {api.minutes_text(self._minutes)}"
        return f"Read its log{when} for what it waited for, and set a timeout there"

    @property
    def evidence(self) -> dict[str, api.Scalar]:
        """The numbers of the sentence."""
        since = {} if self.idle_from_s is None else {"idle_from_s": self.idle_from_s}
        return {"idle_s": self.idle_s, **since}

    @property
    def _minutes(self) -> int:
        return (self.idle_from_s or 0) // 60


def idle_run(case: api.JobCase) -> IdleRun | None:
    """None for a run that worked for half of its time and until its end, or if that is unknown."""
    whole, period_s = case.whole_run, case.whole_run.period_s or 0
    if not period_s or period_s > COARSEST_PERIOD_S or not case.job.elapsed_s:
        return None
    if whole.missing_hosts(api.Metric.CPU) or gpu_recording_gap(whole):
        return None
    if whole.gpus and whole.missing_hosts(api.Metric.GPU):
        return None
    tail = idle_tail(whole)
    still = {at for stretch in (tail, *idle_middle(whole)) for at in stretch}
    flags = [at in still or whole.idle(at) for at in range(whole.points)]
    stretches = [
        stretch for stretch in true_ranges(flags) if len(stretch) * period_s >= _STRETCH_FROM_S
    ]
    if not stretches:
        return None
    idle_s = sum(map(len, stretches)) * period_s
    last = stretches[-1]
    last_s = len(last) * period_s if last.stop == whole.points else 0
    if 2 * idle_s <= case.job.elapsed_s and last_s < _HANGS_FROM_S:
        return None
    to_the_end = 2 * last_s > idle_s
    if to_the_end:
        stretches, idle_s = [last], len(last) * period_s
    since_s = last.start * period_s if to_the_end else None
    return IdleRun(idle_s, since_s, is_all_idle(whole, stretches))
