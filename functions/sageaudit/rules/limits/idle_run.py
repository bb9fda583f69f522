"""What rules on lost runs say first of one that was idle for most of its time, or at its end."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.usage.edges import gpu_unrecorded, idle_middle, idle_tail
from sageaudit.domain.usage.series import COARSEST_PERIOD_S, runs
from sageaudit.rules import api

_FROM_S = 600
"""Shorter stretches are ordinary: 10 minutes, as for an idle end."""
_HANGS_FROM_S = 3600
"""Idle for so long until it was ended, a run waited for something. Our choice."""
_IN_MINUTES_BELOW = 100
"""A moment is given as a minute of the run up to here."""


class IdleRun(Struct, frozen=True):
    """Idle stretches that together are more than half of a run, or the last one of an hour.

    `idle_s`: their seconds. `since_s`: from when on the rest of the run was idle, in seconds after
    the first point; None where it worked again after most of them. `asleep`: no host kept even one
    core busy in any of them.
    """

    idle_s: int
    since_s: int | None
    asleep: bool

    @property
    def sentence(self) -> str:
        """How long the run was idle, with a full stop."""
        idle = "was idle" if self.asleep else "used no GPU, and at most one core of a host,"
        long = api.duration(Decimal(self.idle_s))
        if self.since_s is None:
            return f"The run {idle} for {long}."
        if self._minutes < _IN_MINUTES_BELOW:
            return f"The run {idle} from minute {self._minutes} on, for {long}."
        return f"The run {idle} after its first {api.duration_min(self._minutes)}, for {long}."

    @property
    def first_step(self) -> str:
        """What to do first, without a full stop."""
        when = "" if self.since_s is None else f" after {api.duration_min(self._minutes)}"
        return f"Read its log{when} for what it waited for, and set a timeout there"

    @property
    def evidence(self) -> dict[str, api.Scalar]:
        """The numbers of the sentence."""
        since = {} if self.since_s is None else {"idle_from_s": self.since_s}
        return {"idle_s": self.idle_s, **since}

    @property
    def _minutes(self) -> int:
        return (self.since_s or 0) // 60


def idle_run(case: api.JobCase) -> IdleRun | None:
    """None for a run that worked for half of its time and until its end, or if that is unknown."""
    whole, period_s = case.whole, case.whole.period_s or 0
    if not period_s or period_s > COARSEST_PERIOD_S or not case.job.elapsed_s:
        return None
    if whole.without_hosts(api.Metric.CPU) or gpu_unrecorded(whole):
        return None
    if whole.gpus and whole.without_hosts(api.Metric.GPU):
        return None
    tail = idle_tail(whole)
    still = {at for stretch in (tail, *idle_middle(whole)) for at in stretch}
    flags = [at in still or whole.idle(at) for at in range(whole.points)]
    stretches = [stretch for stretch in runs(flags) if len(stretch) * period_s >= _FROM_S]
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
    asleep = all(whole.idle(at) for stretch in stretches for at in stretch)
    return IdleRun(idle_s, last.start * period_s if to_the_end else None, asleep)
