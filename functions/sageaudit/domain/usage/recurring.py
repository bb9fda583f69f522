"""Standstills that may be a phase of the program: of similar length, with one core at work.

An evaluation or a save on one core comes again and again, and takes about as long each time. A
process that hangs does so once, or for any length of time. A standstill in which no core is busy is
never such a phase: nothing worked in it. Whether the minutes were needed cannot be told from the
metrics, so what recurs is worth a look and no certain saving.
"""

from __future__ import annotations

from statistics import median

from sageaudit.domain.usage.measurements import Measurements, Metric

RECURS_FROM = 2
"""The least number of standstills of similar length. Our choice: one is a hang as far as metrics
tell, and a short training has two epochs."""
_LENGTH_TIMES = 1.5
"""How many times as long, or as short, as the middle one another may be: an evaluation varies with
its data and with other jobs on the storage, and a first one also loads. Our choice."""
_AT_WORK_CORES = 0.5
"""The mean of the busiest host in a standstill that one process works in; our choice. It waits for
storage at times, and a host that sleeps uses under 0.2 cores."""


def recurring_standstills(usage: Measurements) -> tuple[range, ...]:
    """The standstills of a run that may be one phase of its program, in order; empty without one.

    The last one may be cut short by the end of the run.
    """
    busy = [still for still in usage.standstills() if _cores(usage, still) >= _AT_WORK_CORES]
    if len(busy) < RECURS_FROM:
        return ()
    middle = median(map(len, busy))
    alike = [still for still in busy if _is_alike(len(still), middle)]
    if len(alike) < RECURS_FROM:
        return ()
    last = busy[-1]
    is_cut = last not in alike and last.stop == usage.points and len(last) < middle
    return (*alike, last) if is_cut else tuple(alike)


def _is_alike(periods: int, middle: float) -> bool:
    return middle <= _LENGTH_TIMES * periods and periods <= _LENGTH_TIMES * middle


def _cores(usage: Measurements, still: range) -> float:
    """The mean busy cores of the busiest host."""
    lines = (line.cut(still.start, still.stop) for line in usage.series[Metric.CPU].values())
    return max((line.mean for line in lines if line.present), default=0.0) * (usage.vcpu or 0) / 100
