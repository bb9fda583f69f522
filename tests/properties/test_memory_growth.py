"""GPU memory of a made-up device, minute by minute: what leaks is told, what only grows is not.

The machine knows an allocator, batches and leaks. The truth is when its device would be full.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.finding import Clear, Found
from sageaudit.domain.usage.measurements import Metric
from tests.fakes.jobs import ran, series, usage
from tests.fakes.judging import outcome
from tests.properties.judged import held

RULE = "gpu-memory-growth"


@dataclass(frozen=True)
class Device:
    """A run of `hours` on one GPU. Memory in percent of the device.

    `cache`: what the allocator takes at most, within minutes of `tau_min`; `spread`: how much the
    longest batch so far may need beyond the usual one; `leak`: points an hour.
    """

    hours: int
    base: float
    cache: float
    tau_min: float
    spread: float
    leak: float
    limit_hours: float
    seed: int

    def minutes(self) -> list[float | None]:
        """What CloudWatch has: one mean a minute, of what the device still can hold."""
        dice, longest, values = random.Random(self.seed), 0.0, []
        for minute in range(60 * self.hours):
            longest = max(longest, dice.betavariate(2, 5))
            held_now = self.base + self.cache * (1 - math.exp(-minute / self.tau_min))
            held_now += self.spread * longest + self.leak * minute / 60 + dice.gauss(0, 0.2)
            values.append(min(max(held_now, 0.0), 100.0))
        return list(values)

    def full_after_hours(self) -> float:
        """From the start, once cache and longest batch are there."""
        return (100 - self.base - self.cache - self.spread * 0.7) / self.leak

    def said(self) -> object:
        """The rule's answer."""
        job = ran(3600 * self.hours, "ml.g4dn.xlarge", max_runtime_s=int(3600 * self.limit_hours))
        return outcome(RULE, job, usage(job, series(Metric.GPU_MEMORY, self.minutes())))


@st.composite
def devices(draw: st.DrawFn, leak: st.SearchStrategy[float]) -> Device:
    """Any program that has room at its start, and is over its warm-up before an eighth of it."""
    hours = draw(st.integers(3, 24))
    return Device(
        hours=hours,
        base=draw(st.integers(5, 40)),
        cache=draw(st.integers(0, 25)),
        tau_min=draw(st.integers(2, max(2, hours * 60 // 30))),
        spread=draw(st.integers(0, 20)),
        leak=draw(leak),
        limit_hours=hours * draw(st.sampled_from([1.1, 2, 3, 5])),
        seed=draw(st.integers(0, 10_000)),
    )


@held(150)
@given(devices(st.just(0.0)))
def test_what_does_not_leak_is_never_a_leak(device: Device) -> None:
    """Whatever cache and batches take: it stays."""
    assert device.said() == Clear()


@held(150)
@given(devices(st.floats(0.3, 12)))
def test_what_leaks_is_told_where_the_run_may_still_reach_the_limit(device: Device) -> None:
    """Clearly before the limit and within a run as long again: told, with the time that is left."""
    full = device.full_after_hours()
    leaks_much = device.leak * device.hours > 20 + device.cache + device.spread
    if not leaks_much or full < 1.05 * device.hours:
        return
    said = device.said()
    if full < 0.9 * min(device.limit_hours, 2 * device.hours):
        assert isinstance(said, Found)
        left = said.evidence["hours_until_full"]
        assert isinstance(left, float)
        assert abs(left - (full - device.hours)) <= 0.3 * full + 0.5
    if full > 1.3 * min(device.limit_hours, 3 * device.hours):
        assert said == Clear()
