"""The idle start and end of a run, as a whole and for each host.

Only periods that are known to be idle count; short gaps of missing points between idle points count
as idle too (`series.states`).

Standstills of similar length with one core at work may be a phase of the program. An evaluation or
a save on one core recurs, and takes about as long each time. A process that hangs does so once, or
for any length of time. A standstill without a busy core is never such a phase: nothing worked in
it. Metrics cannot show whether the minutes were needed, so a recurring standstill is only worth a
check, and not a certain saving.
"""

from __future__ import annotations

from itertools import takewhile
from statistics import median

from msgspec import Struct

from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from sageaudit.domain.usage.series import (
    IDLE_BELOW_CORES,
    MAX_FIRST_POINT_DELAY_S,
    MIN_STANDSTILL_S,
    ONE_PROCESS_MAX_CORES,
    States,
    combine_states,
    mean,
    select_points,
    states,
)
from sageaudit.structs import replace

RECURS_FROM = 2
"""The least number of standstills of similar length. Our choice: one is a hang as far as metrics
show, and a short training has two epochs."""
_LENGTH_TIMES = 1.5
"""The factor by which a length may differ from the middle one: an evaluation varies with its data
and with other jobs on the storage, and the first one also loads. Our choice."""
_AT_WORK_CORES = 0.5
"""The mean of the busiest host in a standstill that one process works in; our choice. The process
waits for storage at times, and a sleeping host uses under 0.2 cores."""


def gpu_recording_gap(usage: Measurements) -> Missing | None:
    """Returns why GPU work may not have been recorded, or None. For rules that judge by the CPU."""
    missing = usage.missing.get(Metric.GPU)
    if missing is None or usage.gpus == 0:
        return None
    if usage.gpus is None:
        return missing
    return Missing(missing.code, f"{Metric.GPU.value}: {missing.reason}", missing.remedy)


def work_metric(usage: Measurements) -> Metric | Missing:
    """Returns the metric that shows a host's activity: its GPU, else its CPU; or why none does."""
    if missing := gpu_recording_gap(usage):
        return missing
    if not usage.gpus:
        return Metric.CPU
    return usage.sparse_points(Metric.GPU) or Metric.GPU


def activity_by_host(usage: Measurements) -> dict[str, States]:
    """Returns for each host and period: active (True), known to be idle (False), unknown (None)."""
    no_cpu: States = [None] * usage.points
    no_gpu: States = [None if usage.gpus else False] * usage.points
    return {
        host: combine_states(
            (usage.cpu_states.get(host, no_cpu), usage.gpu_states.get(host, no_gpu))
        )
        for host in usage.hosts
    }


class HostActivity(Struct, frozen=True):
    """How one host began and ended: the period from which it worked, its idle periods up to the
    end, and whether it took part in the work.

    Its own standstill up to the end, in which it may keep one core busy, is idle too. Every host is
    active in the first minutes. A host that was active only then took no part. If it was idle
    after them, its work did not begin there.
    """

    host: str
    first_work_period: int
    idle_tail_periods: int
    has_worked: bool


def host_activities(usage: Measurements) -> list[HostActivity]:
    """Returns one activity for each host with points."""
    opening = opening_periods(usage)
    ends = []
    for host, works in activity_by_host(usage).items():
        tail = len(_idle_end(works))
        took_part = any(at is not False for at in works[opening:])
        begins = next((at for at in range(opening, usage.points) if works[at]), opening)
        begins -= sum(1 for _ in takewhile(lambda at: at is not False, works[:begins][::-1]))
        ends.append(
            HostActivity(host, begins, max(tail, _host_standstill_tail(usage, host)), took_part)
        )
    return ends


def _idle_end(works: States) -> range:
    """Returns the periods up to the end that are known to be idle."""
    length = sum(1 for _ in takewhile(lambda at: at is False, reversed(works)))
    return range(len(works) - length, len(works))


def _host_standstill_tail(usage: Measurements, host: str) -> int:
    """Returns how many periods one host's final standstill has; few hosts have idle GPUs there."""
    if usage.gpu_states.get(host, [None])[-1:] != [False]:
        return 0
    series = {m: {host: hosts[host]} for m, hosts in usage.series.items() if host in hosts}
    return len(_final_standstill(replace(usage, hosts_expected=1, series=series)))


def _final_standstill(usage: Measurements) -> range:
    """Returns the standstill that lasts to the end, unless it is a phase of the program."""
    final = next((still for still in usage.standstills() if still.stop == usage.points), range(0))
    return range(0) if final and final in recurring_standstills(usage) else final


def opening_periods(usage: Measurements) -> int:
    """Returns how many first periods prove nothing: points come late, and imports use the CPU."""
    return min(MAX_FIRST_POINT_DELAY_S // (usage.period_s or MAX_FIRST_POINT_DELAY_S), usage.points)


def idle_tail(usage: Measurements) -> range:
    """Returns the longer of two: the last periods in which every host is known to be idle, and the
    standstill that lasts to the end, in which a host may keep one core busy.
    """
    length = sum(1 for _ in takewhile(usage.idle, reversed(range(usage.points))))
    return max(range(usage.points - length, usage.points), _final_standstill(usage), key=len)


def trim_to_last_points(usage: Measurements) -> Measurements | None:
    """Cuts after the last period in which every host has points of CPU and GPU; None without one.

    The last minutes of a running job have no points yet. None, too, if a host has no points at all.
    """
    metrics = [Metric.CPU, *([Metric.GPU] if usage.gpus else [])]
    if usage.gpus is None or any(usage.missing_hosts(metric) for metric in metrics):
        return None
    lines = [line.values for metric in metrics for line in usage.series.get(metric, {}).values()]
    stops = (
        at + 1 for at in range(usage.points)[::-1] if all(line[at] is not None for line in lines)
    )
    stop = next(stops, 0) if lines else 0
    cut = {metric: select_points(hosts, range(stop)) for metric, hosts in usage.series.items()}
    return replace(usage, points=stop, series=cut) if stop else None


QUIET_SHARE = 0.01
"""Share of a host's vCPUs that its agents may use; they use more on a large host. Our choice; the
idle hosts in the recordings are small, and IDLE_BELOW_CORES is right there."""


def quiet_cores(vcpu: int) -> float:
    """Returns the busy cores below which a host does nothing; less than 1, which is a program."""
    return min(max(IDLE_BELOW_CORES, QUIET_SHARE * vcpu), 1.0)


def idle_tail_so_far(usage: Measurements) -> range:
    """Returns the longer of two for a running job: the standstill that lasts to the end, and the
    last periods in which every host is quiet and no GPU works.
    """
    vcpu = usage.vcpu or 1
    limit = quiet_cores(vcpu) * 100 / vcpu
    lines = usage.series.get(Metric.CPU, {}).values()
    cpus = [
        states(line, lambda percents: [value >= limit for value in percents], usage.period_s)
        for line in lines
    ]
    works = combine_states([*cpus, *usage.gpu_states.values()])
    return max(_idle_end(works), idle_tail(usage), key=len)


def does_real_work(usage: Measurements) -> list[bool]:
    """Returns for each period whether a host is known to do more than a waiting process.

    That is GPU work or more than one busy core. Hosts without GPUs need only not be quiet.
    """
    cores = ONE_PROCESS_MAX_CORES if usage.gpus else quiet_cores(usage.vcpu or 1)
    limit = cores * 100 / (usage.vcpu or 1)
    cpus = usage.series.get(Metric.CPU, {}).values()
    return [
        any(host[at] for host in usage.gpu_states.values())
        or any((line.values[at] or 0) > limit for line in cpus)
        for at in range(usage.points)
    ]


def recurring_standstills(usage: Measurements) -> tuple[range, ...]:
    """Returns the standstills that may be one phase of the program, in order; empty without one.

    The end of the run may have cut the last one short.
    """
    busy = [
        still for still in usage.standstills() if busiest_mean_cores(usage, still) >= _AT_WORK_CORES
    ]
    if len(busy) < RECURS_FROM:
        return ()
    middle = median(map(len, busy))
    alike = [still for still in busy if _is_alike(len(still), middle)]
    if len(alike) < RECURS_FROM:
        return ()
    final = busy[-1]
    is_cut = final not in alike and final.stop == usage.points and len(final) < middle
    return (*alike, final) if is_cut else tuple(alike)


def _is_alike(periods: int, middle: float) -> bool:
    return middle <= _LENGTH_TIMES * periods and periods <= _LENGTH_TIMES * middle


def idle_middle(usage: Measurements) -> tuple[range, ...]:
    """Returns the standstills after which a host worked again, without phases of the program."""
    phase = recurring_standstills(usage)
    middle = (still for still in usage.standstills() if still.stop < usage.points)
    return tuple(still for still in middle if still not in phase)


def idle_head(usage: Measurements) -> range:
    """Returns the longest idle stretch that begins in the first periods and precedes work.

    Empty if a GPU was active before it, or if no host is known to be active after it.
    """
    starts = [
        minute
        for minute in range(min(opening_periods(usage) + 1, usage.points))
        if usage.idle(minute) and (minute == 0 or not usage.idle(minute - 1))
    ]
    heads = [range(0)]
    for start in starts:
        if any(True in gpus[:start] for gpus in usage.gpu_states.values()):
            break
        length = sum(1 for _ in takewhile(usage.idle, range(start, usage.points)))
        if any(usage.worked(minute) for minute in range(start + length, usage.points)):
            heads.append(range(start, start + length))
    return max(heads, key=len)


def periods_before_gpu(usage: Measurements) -> range:
    """Returns the periods before the first GPU work, all known to have none; skips late points.

    Empty without a GPU, if the GPU never works, or if points are missing in between.
    """
    works = combine_states(list(usage.gpu_states.values()))
    start = next((minute for minute, at in enumerate(works) if at is not None), usage.points)
    end = start + sum(1 for _ in takewhile(lambda at: at is False, works[start:]))
    if start > opening_periods(usage) or end >= usage.points or not works[end]:
        return range(0)
    return range(start, end)


def periods_after_gpu(usage: Measurements) -> range:
    """Returns the periods after the last GPU work, known to have none. Empty without GPU work."""
    if not usage.gpus or not usage.gpu_states or usage.missing_hosts(Metric.GPU):
        return range(0)
    works = combine_states(list(usage.gpu_states.values()))
    return _idle_end(works) if True in works else range(0)


def trim_to_gpu_work(usage: Measurements) -> Measurements:
    """Cuts the first and last stretch without GPU work, if it is half an hour or more.

    Unchanged without GPU work. CPU work there is not part of the loop that feeds a GPU.
    """
    period_s = usage.period_s or 0
    head, tail = periods_before_gpu(usage), periods_after_gpu(usage)
    start = head.stop if len(head) * period_s >= MIN_STANDSTILL_S else 0
    stop = tail.start if len(tail) * period_s >= MIN_STANDSTILL_S else usage.points
    if (start, stop) == (0, usage.points):
        return usage
    span = range(start, stop)
    series = {metric: select_points(hosts, span) for metric, hosts in usage.series.items()}
    return replace(usage, points=len(span), series=series)


def busiest_mean_cores(usage: Measurements, periods: range) -> float:
    """Returns the mean of the host whose CPU was busiest in these periods; 0 for no periods."""
    hosts = usage.series[Metric.CPU].values()
    lines = [line.slice(periods.start, periods.stop).present for line in hosts]
    busiest = max((mean(points) for points in lines if points), default=0.0)
    return busiest * (usage.vcpu or 0) / 100


def peak_memory_gib(usage: Measurements, periods: range, host_memory_gib: float) -> float:
    """Returns the most memory that a host used in these periods; `host_memory_gib` if unknown."""
    return _peak(usage, Metric.MEMORY, periods, unknown=100) / 100 * host_memory_gib


def peak_cores(usage: Measurements, periods: range) -> float:
    """Returns the most cores that a host kept busy in one of these periods; 0 for no periods."""
    return _peak(usage, Metric.CPU, periods, unknown=0) * (usage.vcpu or 0) / 100


def _peak(usage: Measurements, metric: Metric, periods: range, *, unknown: float) -> float:
    hosts = usage.series.get(metric, {}).values()
    points = [point for line in hosts for point in line.slice(periods.start, periods.stop).present]
    return max(points, default=unknown)
