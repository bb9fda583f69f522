"""What the rules on idle starts, middles and ends share: how long, how sure, and in which words."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.usage.edges import (
    after_gpu,
    cores_busy,
    host_ends,
    idle_tail,
    opening_periods,
)
from sageaudit.domain.usage.series import FROM_S
from sageaudit.rules import api

WAITS = "A run that waits for a query or for another job looks the same."
NEEDS_NO_GPU = "Assumes that what one core did meanwhile, if anything, needs none of these GPUs."
ON_CPU = (
    "No dollars are counted, because something worked meanwhile. Long work without the GPU costs "
    "less in a processing job on a CPU type."
)


def run_evidence(whole: api.Measurements) -> dict[str, api.Scalar]:
    """Of which run all these numbers are."""
    return {"vcpu": whole.vcpu, "minutes": round(whole.minutes), "period_s": whole.period_s}


def asleep(whole: api.Measurements, stretches: Iterable[range]) -> bool:
    """Whether every host is known to be idle in all these periods: none kept even a core busy."""
    return all(whole.idle(minute) for stretch in stretches for minute in stretch)


class IdleEnds(Struct, frozen=True):
    """Idle seconds at the end: of all hosts, and of each `early` host before those, longest first.

    `throughout`: no host ever worked. `asleep`: none kept even a core busy in `idle_s`.
    `without_gpu_s`: the time after the last GPU work, where it is half an hour longer than `idle_s`
    and a CPU worked: `cores_after_gpu`, the mean of the busiest host.
    """

    idle_s: int
    early: tuple[tuple[str, int], ...]
    hosts: int
    throughout: bool
    asleep: bool
    without_gpu_s: int
    cores_after_gpu: float

    @property
    def shared_s(self) -> Decimal:
        """What a run would be shorter by if the early hosts had shared the others' work."""
        return self.idle_s + Decimal(sum(seconds for _, seconds in self.early)) / self.hosts


def idle_ends(case: api.JobCase, from_s: float) -> IdleEnds:
    """A host is early when it ended at least `from_s` seconds before the last one.

    No host counts as early when hosts are of several types.
    """
    whole = case.whole
    idle = idle_tail(whole)
    period_s, common = whole.period_s or 0, len(idle)
    ends = host_ends(whole) if len(case.job.groups) == 1 else []
    early = [
        (end.host, seconds)
        for end in ends
        if end.took_part and (seconds := (end.idle_tail - common) * period_s) >= from_s
    ]
    worked = any(whole.worked(minute) for minute in range(idle.start))
    without_gpu = after_gpu(whole)
    on_cpu_s = (len(without_gpu) - common) * period_s
    return IdleEnds(
        idle_s=common * period_s,
        early=tuple(sorted(early, key=lambda host: (-host[1], host[0]))),
        hosts=max(whole.hosts_expected or 0, len(whole.hosts)),
        throughout=not worked and idle.start <= opening_periods(whole),
        asleep=asleep(whole, [idle]),
        without_gpu_s=len(without_gpu) * period_s if on_cpu_s >= FROM_S else 0,
        cores_after_gpu=cores_busy(whole, without_gpu),
    )
