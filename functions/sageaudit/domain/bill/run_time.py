"""How many times as long a run takes on another type, at most and at best.

The GPUs of a host are each busy for a share u of the time, on average. On a GPU that is r times
weaker the host takes at most 1 + u (r - 1) times as long. Where n GPUs become m < n of the same
model, k = n / m of them share one and take turns: at most 1 + u (k - 1) times as long; for m > 1
the work must be spread evenly over them. Both together: 1 + u (r k - 1). CloudWatch has no split,
so one GPU may have done all the work of n: then it takes 1 + min(n u, 1) (r - 1) times as long, and
the longer of both counts. If the sum of a host's GPUs lies at the ceiling of one GPU, one of them
did the work, and k is 1. The slowest host decides. This slow end is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from sageaudit.domain.bill.candidate import Constraint, Duration, Refusal
from sageaudit.domain.bill.compatibility import type_refused
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.gpu import Weaker, times_weaker
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.demand import Demand, HostGpus

MOST_TIMES_AS_LONG = Decimal(2)
"""A run that may take longer than this is no like-for-like alternative, however cheap: our choice.
Work that fits on fewer GPUs by its mean always takes less."""
_ONE = Decimal(1)
_PLACES = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Move:
    """A run on `today` with its demand, moved to `other`, which holds it."""

    job: Job
    today: InstanceType
    need: Demand
    headroom_percent: Decimal
    other: InstanceType

    def takes(self) -> Duration | Refusal:
        """The run time as a multiple of today's, or why it cannot be bounded or is too long."""
        if self.need.gpu_idle:
            return Duration(_ONE, _ONE, f"Assumes the same run time: {self._it_holds()}.")
        if unfit := type_refused(self.job, self.today, self.other):
            return Refusal(Constraint.GPU_MODEL, unfit)
        same = self._gpu(self.other) == self._gpu(self.today)
        weaker = None if same else self._weaker()
        if isinstance(weaker, Refusal):
            return weaker
        found = self._bounded(weaker)
        if found.counted > MOST_TIMES_AS_LONG and self.need.gpus.unknown:
            why = f"the use of the GPU was not recorded ({self.need.gpus.unknown})"
            return Refusal(Constraint.NOT_RECORDED, why)
        if found.counted > MOST_TIMES_AS_LONG:
            why = f"it may take {found.counted:.1f} times as long: {found.because[:-1]}"
            return Refusal(Constraint.RUN_TIME, why)
        return found

    @staticmethod
    def _gpu(row: InstanceType) -> tuple[str | None, Decimal | None]:
        return row.gpu_model, row.gpu_memory_gib

    @property
    def _share_one(self) -> int:
        """How many of today's GPUs share one of the other type: k."""
        return max(math.ceil(self.today.gpus / self.other.gpus), 1)

    def _weaker(self) -> Weaker | Refusal:
        today, other = self.today, self.other
        if today.gpu_peaks is None or other.gpu_peaks is None:
            nameless = today.gpu_model if today.gpu_peaks is None else other.gpu_model
            why = f"no published throughput of the {nameless} is known here"
            return Refusal(Constraint.GPU_MODEL, why)
        links = (today.gpu_peaks.link_gb_s, other.gpu_peaks.link_gb_s)
        linked = min(today.gpus, other.gpus) > 1
        if linked and None in links:
            models = f"{today.gpu_model} or {other.gpu_model}"
            why = f"how fast several {models} exchange data is not known here"
            return Refusal(Constraint.GPU_MODEL, why)
        return times_weaker(today.gpu_peaks, other.gpu_peaks, linked=linked)

    def _bounded(self, weaker: Weaker | None) -> Duration:
        times = weaker.times if weaker else _ONE
        slow = max((self._slow_end(host, times) for host in self.need.hosts), default=_ONE)
        slow = slow.quantize(_PLACES, ROUND_UP)
        busy = max((host.busy for host in self.need.hosts), default=_ONE)
        fast = min(_ONE, (1 + busy * (times - 1)).quantize(_PLACES, ROUND_UP))
        return Duration(max(slow, _ONE), fast, self._because(weaker, busy))

    def _slow_end(self, host: HostGpus, times: Decimal) -> Decimal:
        one = 1 + min(host.busy * self.today.gpus, _ONE) * (times - 1)
        if host.one_at_work:
            return one
        shared = 1 + host.busy * (times * self._share_one - 1)
        return shared if self.job.hints.copies else max(one, shared)

    def _because(self, weaker: Weaker | None, busy: Decimal) -> str:
        said = []
        if weaker is not None:
            said.append(self._compared(weaker))
        if self._share_one > 1:
            said.append(self._shared())
        if not said:
            return f"Assumes the same run time: {self._it_holds()}."
        if self.need.gpus.unknown:
            said[-1] += "; its use was not recorded, so it is counted as always busy"
            return f"{_started(', and '.join(said))}."
        used = f"the GPU was busy for {busy:.0%} of the time"
        if self.today.gpus > 1:
            used = f"the GPUs were busy for {busy:.0%} of the time on average"
        return f"{_started(', and '.join(said))}; {used}."

    def _compared(self, weaker: Weaker) -> str:
        today, other = self.today.gpu_model, self.other.gpu_model
        if weaker.times > 1:
            return (
                f"{other} is up to {weaker.times:.2f} times slower than {today} ({weaker.respect})"
            )
        if other == today:
            gib, today_gib = self.other.gpu_memory_gib, self.today.gpu_memory_gib
            return f"its {other} has {gib} GiB of memory, today's has {today_gib} GiB"
        return f"{other} is no slower than {today} in any respect"

    def _shared(self) -> str:
        if all(host.one_at_work for host in self.need.hosts):
            return (
                f"the {self.today.gpus} GPUs together never did more than one GPU can, "
                "and often as much: one of them did the work"
            )
        on = "one" if self.other.gpus == 1 else f"{self.other.gpus}, spread evenly"
        return f"the work of {self.today.gpus} GPUs takes turns on {on}"

    def _it_holds(self) -> str:
        need, today = self.need, self.today
        held = f"the new type covers peak use plus {float(self.headroom_percent):g}%"
        resources = (need.vcpu, need.memory_gib, need.gpus, need.gpu_memory_gib)
        if any(resource.unknown for resource in resources):
            held = f"what was not recorded does not shrink, and {held}"
        if today.gpus and need.gpu_idle:
            held = f"the GPU did nothing, and {held}"
        if self.other.family == today.family:
            return held
        return f"{held} (a vCPU of {self.other.family} counts as one of {today.family})"


def _started(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"
