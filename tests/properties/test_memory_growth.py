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
def devices(
    draw: st.DrawFn, rise: tuple[int, int], room: tuple[int, int], limits: tuple[float, ...]
) -> Device:
    """Any program whose warm-up is over before an eighth of it.

    It leaks so many points over its run; cache and spread of batches take up to `room`, and
    MaxRuntime is one of so many times its run.
    """
    hours = draw(st.integers(3, 24))
    return Device(
        hours=hours,
        base=draw(st.integers(5, 25)),
        cache=draw(st.integers(*room)),
        tau_min=draw(st.integers(2, max(2, hours * 60 // 30))),
        spread=draw(st.integers(*room)),
        leak=draw(st.integers(*rise)) / hours,
        limit_hours=hours * draw(st.sampled_from(limits)),
        seed=draw(st.integers(0, 10_000)),
    )


@held(150, money=False)
@given(devices((0, 0), (0, 30), (1.1, 2, 5)))
def test_what_does_not_leak_is_never_a_leak(device: Device) -> None:
    """Whatever cache and batches take: it stays."""
    assert device.said() == Clear()


@held(150, money=False)
@given(devices((38, 60), (0, 8), (3, 5)))
def test_what_leaks_is_told_with_the_time_that_is_left(device: Device) -> None:
    """It would be full within a run as long again, and before the limit."""
    said = device.said()
    assert device.hours < device.full_after_hours() < 2.9 * device.hours
    assert isinstance(said, Found)
    left = said.evidence["hours_until_full"]
    assert isinstance(left, float)
    assert abs(left - (device.full_after_hours() - device.hours)) <= 0.25 * device.hours


@held(100, money=False)
@given(devices((1, 18), (0, 8), (5, 9)))
def test_what_would_be_full_only_after_several_runs_is_not_told(device: Device) -> None:
    """However long it may run: over three times as long as it did."""
    assert device.full_after_hours() > 3.2 * device.hours
    assert device.said() == Clear()


@held(100, money=False)
@given(devices((20, 40), (0, 8), (1.05, 1.1)))
def test_what_the_limit_ends_first_is_not_told(device: Device) -> None:
    """The limit comes within a tenth of the run, and the device has more room than that."""
    assert device.full_after_hours() > 1.2 * device.limit_hours
    assert device.said() == Clear()
