"""The instances stay after their work is done.

What it checks: From some minute to the end of the work phase all hosts are known to be idle (under
    0.2 cores and 1% of the GPUs), for at least 10 minutes. On several hosts also: a host is idle
    for so long at the end while others still work. A run in which no host ever worked is one idle
    tail.
Why it costs: A job is billed until its last process ends, on all its instances: a hung exit, a
    thread that is never joined, a distributed group that waits for a peer; and a host that ends
    early is billed too.
Saving: Measured: the minutes in which every host was idle, which were billed and produced nothing.
    The minutes of a host that ended early are between 0 and all: its share of the others' work
    would end the run sooner. 0 of them is counted.
When it is wrong: A run that waits for something else (a query, another job, an upload by its own
    code) is idle too. A host without any point does not count as idle. Minutes without a point do,
    up to 3 in a row, between idle ones or at the end.
What to do: Exit when done: join threads, close data loaders, destroy the process group, give
    barriers a timeout; a stopping condition bounds what is left. Hosts that end early: spread their
    data evenly.
Sources: Recorded jobs: zeros trail the end for up to 3 minutes. Reported hung exits:
    sagemaker-python-sdk issue 1353; early hosts are billed to the end: issue 1067.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.usage.edges import (
    HostEnd,
    host_ends,
    idle_tail,
    opening_periods,
    unseen,
    work_phase,
)
from sageaudit.rules import api

FROM = api.Threshold(
    "from_s", 600, "seconds", "zeros trail the end of healthy jobs for 3 minutes", "recorded jobs"
)
_HOSTS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class _Tail:
    """Idle seconds at the end: of all hosts, and of hosts that ended at least so long earlier."""

    idle_s: int
    early: tuple[tuple[str, int], ...]
    hosts: int
    throughout: bool

    @property
    def best_s(self) -> Decimal:
        """The cut if the early hosts had shared the others' work."""
        return self.idle_s + Decimal(sum(seconds for _, seconds in self.early)) / self.hosts


@api.rule(
    id="SA211",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(FROM,),
    needs=(api.Metric.CPU,),
    coarsest_period_s=300,
    whole_run=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Looks back from the end of the whole run."""
    whole = case.whole
    if missing := unseen(whole):
        return api.unknown(missing)
    tail = _tail(case)
    counted_s = tail.idle_s if tail.idle_s >= case.limit(FROM) else 0
    if not counted_s and not tail.early:
        if len(case.job.groups) > 1:
            return api.HOSTS_UNMAPPED
        return api.Clear()
    if counted_s and len(whole.hosts) < (whole.hosts_expected or 0):
        have, want = len(whole.hosts), whole.hosts_expected
        return api.Unknown(
            "hosts_missing", f"{have} of {want} hosts have points: one may have worked"
        )
    evidence: dict[str, api.Evidence] = {
        "idle_s": tail.idle_s,
        "minutes": round(whole.minutes),
        "hosts": tail.hosts,
        "hosts_ended_early": len(tail.early),
        "period_s": whole.period_s,
    }
    longest_first = sorted(tail.early, key=lambda early: (-early[1], early[0]))
    for host, seconds in longest_first[:_HOSTS_SHOWN]:
        evidence[f"idle_before_s {host.rpartition('/')[2]}"] = seconds
    summary, phase = _summary(case, tail, counted_s), work_phase(case.job)
    change = api.CutPhase(phase, Decimal(counted_s))
    if not tail.early:
        waits = "A run that waits for a query or for another job looks the same."
        return api.measured(summary, evidence, change=change, caution=waits)
    shared = "Early hosts save only if they take over work of the others: none of it is counted."
    best = api.CutPhase(phase, tail.best_s)
    return api.derived(summary, evidence, change=change, best=best, caution=shared)


def _tail(case: api.JobCase) -> _Tail:
    whole = case.whole
    idle = idle_tail(whole)
    period_s, common = whole.period_s or 0, len(idle)
    hosts = max(whole.hosts_expected or 0, len(whole.hosts))
    ends: list[HostEnd] = host_ends(whole) if len(case.job.groups) == 1 else []
    early = [
        (end.host, seconds)
        for end in ends
        if end.took_part and (seconds := (end.idle_tail - common) * period_s) >= case.limit(FROM)
    ]
    worked = any(whole.worked(minute) for minute in range(idle.start))
    throughout = not worked and idle.start <= opening_periods(whole)
    return _Tail(common * period_s, tuple(early), hosts, throughout)


def _summary(case: api.JobCase, tail: _Tail, counted_s: int) -> str:
    minutes, what = f"{case.whole.minutes:.0f} minutes", case.job.instances
    if tail.throughout:
        return f"No host worked in {minutes} on {what}."
    said = f"All hosts were idle for the last {counted_s / 60:.0f} of {minutes} on {what}"
    if not tail.early:
        return f"{said}."
    longest = max(seconds for _, seconds in tail.early) / 60
    early = f"{len(tail.early)} of {tail.hosts} hosts ended up to {longest:.0f} minutes before"
    if counted_s:
        return f"{said}; {early} that."
    return f"{early} the last one, in {minutes} on {what}."
