"""The idle ends of a run: of all its hosts together, and of hosts that ended before the others."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.usage.edges import host_ends, idle_tail, opening_periods
from sageaudit.rules import api


@dataclass(frozen=True, slots=True)
class IdleEnds:
    """Idle seconds at the end: of all hosts, and of each `early` host before those, longest first.

    `throughout`: no host ever worked.
    """

    idle_s: int
    early: tuple[tuple[str, int], ...]
    hosts: int
    throughout: bool

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
    return IdleEnds(
        idle_s=common * period_s,
        early=tuple(sorted(early, key=lambda host: (-host[1], host[0]))),
        hosts=max(whole.hosts_expected or 0, len(whole.hosts)),
        throughout=not worked and idle.start <= opening_periods(whole),
    )
