"""The idle start and end of a run, as a whole and for each host.

Only periods that are known to be idle count, and short gaps of missing points between them.

A standstill with one busy core may be a phase of the program, such as an evaluation or a save. A
phase recurs, and takes about as long each time; a hang does not. Metrics cannot show whether a
recurring standstill was needed, so it is not a certain saving.
"""

from __future__ import annotations

from functools import partial
from statistics import median

from msgspec import Struct

from sageaudit.domain.usage.measurements import Measurements, Metric, MissingMetrics
from sageaudit.domain.usage.series import (
    ACTIVE,
    IDLE,
    IDLE_BELOW_CORES,
    MAX_FIRST_POINT_DELAY_S,
    MIN_STANDSTILL_S,
    ONE_PROCESS_MAX_CORES,
    UNKNOWN,
    States,
    combine_states,
    leading_periods,
    mean,
    select_points,
    shared_periods,
    states,
    states_above,
)
from sageaudit.structs import replace

RECURS_FROM = 2
"""The fewest similar standstills that count as recurring. Our choice: a single standstill may be a
hang, and a short training has two epochs."""
_LENGTH_TIMES = 1.5
"""A standstill is similar if its length and the median length differ at most by this factor. Our
choice: an evaluation varies with its data and the storage, and the first one also loads."""
_AT_WORK_CORES = 0.5
"""One process works in a standstill if the mean is at least this many busy cores. Our choice: the
process waits for storage at times, and a sleeping host uses under 0.2 cores."""


def gpu_recording_gap(usage: Measurements) -> MissingMetrics | None:
    """Returns why GPU work may not have been recorded.

    Returns None if it was recorded, or if the hosts have no GPUs.
    """
    missing = usage.missing.get(Metric.GPU)
    if missing is None or usage.gpus == 0:
        return None
    if usage.gpus is None:
        return missing
    return MissingMetrics(missing.code, f"{Metric.GPU.value}: {missing.reason}", missing.remedy)


def work_metric(usage: Measurements) -> Metric | MissingMetrics:
    """Returns the metric that shows whether hosts work, or the reason if none does.

    It is the GPU's utilisation, or the CPU's on hosts without GPUs.
    """
    if missing := gpu_recording_gap(usage):
        return missing
    if not usage.gpus:
        return Metric.CPU
    return usage.sparse_points(Metric.GPU) or Metric.GPU


def activity_by_host(usage: Measurements) -> dict[str, States]:
    """Returns each host's state by period.

    The state is ACTIVE, IDLE or UNKNOWN.
    """
    no_cpu = bytes([UNKNOWN]) * usage.points
    no_gpu = bytes([UNKNOWN if usage.gpus else IDLE]) * usage.points
    return {
        host: combine_states(
            (usage.cpu_states.get(host, no_cpu), usage.gpu_states.get(host, no_gpu))
        )
        for host in usage.hosts
    }


class HostActivity(Struct, frozen=True):
    """When one host worked.

    `first_work_period`: the index of the first period in which the host may have worked.
    `idle_tail_periods`: the number of idle periods at the end; if the host ends in a longer
    standstill, the number of the standstill's periods. `has_worked`: whether the host may have
    worked after the opening periods, in which every host looks active.
    """

    host: str
    first_work_period: int
    idle_tail_periods: int
    has_worked: bool


def host_activities(usage: Measurements) -> list[HostActivity]:
    """Returns the activity of each host with points."""
    opening = opening_periods(usage)
    activities = []
    for host, host_states in activity_by_host(usage).items():
        idle_tail_periods = len(idle_end(host_states))
        first_work_period = max(host_states.find(ACTIVE, opening), opening)
        # Unknown periods right before the first work count as work.
        first_work_period = host_states.rfind(IDLE, 0, first_work_period) + 1
        activities.append(
            HostActivity(
                host,
                first_work_period,
                max(idle_tail_periods, _host_standstill_tail(usage, host, idle_tail_periods)),
                has_worked=idle_tail_periods < usage.points - opening,
            )
        )
    return activities


def idle_end(states: States) -> range:
    """Returns the last periods, in which the state is idle."""
    return range(len(states.rstrip(bytes([IDLE]))), len(states))


def _host_standstill_tail(usage: Measurements, host: str, idle_tail_periods: int) -> int:
    """Returns the length of the standstill at the end of a host's series.

    0 if it cannot be longer than `idle_tail_periods`.
    """
    if len(idle_end(usage.gpu_states.get(host, b""))) <= idle_tail_periods:
        return 0
    series = {
        metric: {host: hosts[host]} for metric, hosts in usage.series.items() if host in hosts
    }
    return len(_final_standstill(replace(usage, hosts_expected=1, series=series)))


def _final_standstill(usage: Measurements) -> range:
    """Returns an empty range if the standstill may be a phase of the program."""
    final = next(
        (standstill for standstill in usage.standstills() if standstill.stop == usage.points),
        range(0),
    )
    return range(0) if final and final in recurring_standstills(usage) else final


def opening_periods(usage: Measurements) -> int:
    """Returns the number of periods at the start that do not prove that a host works.

    In these periods, points arrive late, and imports use the CPU.
    """
    return min(MAX_FIRST_POINT_DELAY_S // (usage.period_s or MAX_FIRST_POINT_DELAY_S), usage.points)


def idle_tail(usage: Measurements) -> range:
    """Returns the last periods in which every host is known to be idle.

    If the run ends in a longer standstill, returns the standstill instead. In a standstill, each
    host may keep one core busy.
    """
    return max(idle_end(usage.states), _final_standstill(usage), key=len)


def trim_to_last_points(usage: Measurements) -> Measurements | None:
    """Returns the measurements up to the last period in which every host has points.

    Points of both CPU and GPU are needed. The last minutes of a running job have no points yet.
    Returns None if there is no such period.
    """
    metrics = [Metric.CPU, *([Metric.GPU] if usage.gpus else [])]
    if usage.gpus is None or any(usage.missing_hosts(metric) for metric in metrics):
        return None
    lines = [line for metric in metrics for line in usage.series.get(metric, {}).values()]
    shared = shared_periods(lines, range(usage.points)) if lines else []
    stop = shared[-1].stop if shared else 0
    periods = [range(stop)]
    series = {metric: select_points(hosts, periods) for metric, hosts in usage.series.items()}
    return replace(usage, points=stop, series=series) if stop else None


QUIET_SHARE = 0.01
"""A host counts as idle if it uses less than this share of its vCPUs, because its agents use more
on a large host. Our choice: all idle hosts in the recordings are small."""


def quiet_cores(vcpu: int) -> float:
    """Returns the number of busy cores below which a host counts as idle.

    The number is at most 1, because a program that really works may use only one core.
    """
    return min(max(IDLE_BELOW_CORES, QUIET_SHARE * vcpu), 1.0)


def idle_tail_so_far(usage: Measurements) -> range:
    """Returns the periods at the end of a running job in which it is idle.

    These are the idle tail, or a longer stretch in which all hosts are below `quiet_cores` and no
    GPU is busy.
    """
    vcpu = usage.vcpu or 1
    limit = quiet_cores(vcpu) * 100 / vcpu
    lines = usage.series.get(Metric.CPU, {}).values()
    cpu_states = [
        states(line, lambda percents: bytes([p >= limit for p in percents]), usage.period_s)
        for line in lines
    ]
    states_of_all = combine_states([*cpu_states, *usage.gpu_states.values()])
    return max(idle_end(states_of_all), idle_tail(usage), key=len)


def does_real_work(usage: Measurements) -> list[bool]:
    """Returns for each period whether a host is known to do real work.

    Real work is GPU work or more than one busy core. On hosts without GPUs, it is anything that is
    not quiet.
    """
    cores = ONE_PROCESS_MAX_CORES if usage.gpus else quiet_cores(usage.vcpu or 1)
    limit = cores * 100 / (usage.vcpu or 1)
    cpus = usage.series.get(Metric.CPU, {}).values()
    hosts = [states(line, partial(states_above, limit=limit), usage.period_s) for line in cpus]
    joined = combine_states([*hosts, *usage.gpu_states.values()])
    return [state == ACTIVE for state in joined] or [False] * usage.points


def recurring_standstills(usage: Measurements) -> tuple[range, ...]:
    """Returns the standstills that may be one phase of the program; empty if none recur.

    The last one may be shorter, because the run ended in it.
    """
    busy = [
        standstill
        for standstill in usage.standstills()
        if busiest_mean_cores(usage, standstill) >= _AT_WORK_CORES
    ]
    if len(busy) < RECURS_FROM:
        return ()
    median_length = median(map(len, busy))
    similar = [standstill for standstill in busy if _is_alike(len(standstill), median_length)]
    if len(similar) < RECURS_FROM:
        return ()
    final = busy[-1]
    is_cut = final not in similar and final.stop == usage.points and len(final) < median_length
    return (*similar, final) if is_cut else tuple(similar)


def _is_alike(periods: int, median_length: float) -> bool:
    return median_length <= _LENGTH_TIMES * periods and periods <= _LENGTH_TIMES * median_length


def idle_middle(usage: Measurements) -> tuple[range, ...]:
    """Returns the standstills that ended before the run and are no phases of the program."""
    recurring = recurring_standstills(usage)
    middle = (standstill for standstill in usage.standstills() if standstill.stop < usage.points)
    return tuple(standstill for standstill in middle if standstill not in recurring)


def idle_head(usage: Measurements) -> range:
    """Returns the longest idle stretch that begins in the first periods and precedes work.

    Empty if a GPU was active before it, or if no host is known to be active after it.
    """
    starts = [
        minute
        for minute in range(min(opening_periods(usage) + 1, usage.points))
        if usage.is_idle(minute) and (minute == 0 or not usage.is_idle(minute - 1))
    ]
    heads = [range(0)]
    for start in starts:
        if any(ACTIVE in gpus[:start] for gpus in usage.gpu_states.values()):
            break
        stop = start + leading_periods(usage.states[start:], IDLE)
        if ACTIVE in usage.states[stop:]:
            heads.append(range(start, stop))
    return max(heads, key=len)


def periods_before_gpu(usage: Measurements) -> range:
    """Returns the periods before the first GPU work, if they are known to be without GPU work.

    Empty if no GPU ever works, or if points are missing.
    """
    states = combine_states(list(usage.gpu_states.values()))
    start = leading_periods(states, UNKNOWN)
    end = start + leading_periods(states[start:], IDLE)
    if start > opening_periods(usage) or end >= len(states) or states[end] != ACTIVE:
        return range(0)
    return range(start, end)


def periods_after_gpu(usage: Measurements) -> range:
    """Returns the last periods that are known to be without GPU work; empty if no GPU worked."""
    if not usage.gpus or not usage.gpu_states or usage.missing_hosts(Metric.GPU):
        return range(0)
    states = combine_states(list(usage.gpu_states.values()))
    return idle_end(states) if ACTIVE in states else range(0)


def trim_to_gpu_work(usage: Measurements) -> Measurements:
    """Returns the measurements without a long first and last stretch without GPU work.

    A stretch is long if it lasts half an hour or more. Measurements without GPU work are not cut.
    """
    period_s = usage.period_s or 0
    head, tail = periods_before_gpu(usage), periods_after_gpu(usage)
    start = head.stop if len(head) * period_s >= MIN_STANDSTILL_S else 0
    stop = tail.start if len(tail) * period_s >= MIN_STANDSTILL_S else usage.points
    if (start, stop) == (0, usage.points):
        return usage
    span = range(start, stop)
    series = {metric: select_points(hosts, [span]) for metric, hosts in usage.series.items()}
    return replace(usage, points=len(span), series=series)


def busiest_mean_cores(usage: Measurements, periods: range) -> float:
    """Returns the mean busy cores of the busiest host in these periods; 0 for no periods."""
    hosts = usage.series[Metric.CPU].values()
    lines = [line.slice(periods.start, periods.stop).present for line in hosts]
    busiest = max((mean(points) for points in lines if points), default=0.0)
    return busiest * (usage.vcpu or 0) / 100


def peak_memory_gib(usage: Measurements, periods: range, host_memory_gib: float) -> float:
    """Returns the most GiB that a host used in these periods; `host_memory_gib` if unknown."""
    return _peak(usage, Metric.MEMORY, periods, unknown=100) / 100 * host_memory_gib


def peak_cores(usage: Measurements, periods: range) -> float:
    """Returns the most cores that a host kept busy in these periods; 0 for no periods."""
    return _peak(usage, Metric.CPU, periods, unknown=0) * (usage.vcpu or 0) / 100


def _peak(usage: Measurements, metric: Metric, periods: range, *, unknown: float) -> float:
    hosts = usage.series.get(metric, {}).values()
    points = [point for line in hosts for point in line.slice(periods.start, periods.stop).present]
    return max(points, default=unknown)
