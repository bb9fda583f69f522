"""One point of utilisation moves the counted dollars by one step of the ladder of types at most."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.prices.market import InstanceType
from tests.labelled.machine import machine
from tests.properties.judged import (
    CENT,
    Document,
    dollars,
    held,
    judged,
    of_the_machine,
    savings,
    says,
    told_otherwise,
)
from tests.properties.programs import Run, runs

OFFERED: dict[str, Callable[[InstanceType], float]] = {
    "CPUUtilization": lambda on: on.vcpu,
    "MemoryUtilization": lambda on: float(on.memory_gib),
    "GPUUtilization": lambda on: on.gpus,
    "GPUMemoryUtilization": lambda on: on.gpus * float(on.gpu_memory_gib or 0),
}
"""What a type offers of the resource that a metric speaks of. The disk belongs to no type."""
_ZERO = Decimal(0)


def step(told: Document, host: str, metric: str, span: range, by: int) -> Document:
    """One series, moved by one percent of one core, one device or the memory in these minutes."""
    on = machine(told["describe"]["ResourceConfig"]["InstanceType"])
    units = {"CPUUtilization": on.vcpu, "MemoryUtilization": 1}.get(metric, on.gpus)

    def moved(one: Document) -> Document:
        if (one["host"], one["metric"]) == (host, metric):
            one["values"] = [
                min(max(value + by, 0), 100 * units)
                if value is not None and minute in span
                else value
                for minute, value in enumerate(one["values"])
            ]
        return one

    return told_otherwise(told, moved)


def allowed(before: dict[str, Decimal], after: dict[str, Decimal], metric: str) -> Decimal:
    """How far the counted dollars may move when one point of a metric does.

    The types that certainly save, before or after, stand on a ladder: a rung is what they offer of
    the metric's resource, and its worth is the best saving among all types on it and above it;
    above the last one is today's type, which saves nothing. One point moves the need past one rung
    at most, so the move is bounded by the dearest single rung among those whose types hold the run
    only before or only after: the gap between two neighbouring candidates. To it comes what the
    same point does smoothly: the largest change of the saving of a type that holds the run both
    times, since a busier GPU makes the run on a weaker one longer.
    """
    worth = {**after, **before}
    both = before.keys() & after.keys()
    drift = max((abs(before[name] - after[name]) for name in both), default=_ZERO)
    offered = OFFERED[metric]
    gaps = []
    for rung in {offered(machine(name)) for name in worth.keys() - both}:
        here = [usd for name, usd in worth.items() if offered(machine(name)) >= rung]
        above = [usd for name, usd in worth.items() if offered(machine(name)) > rung]
        gaps.append(max(here) - max(above, default=_ZERO))
    return max(gaps, default=_ZERO) + drift


@held(100)
@given(runs(pauses=False), st.data())
def test_one_point_moves_the_dollars_by_one_neighbouring_type_at_most(
    run: Run, data: st.DataObject
) -> None:
    """One percent of one core, device or memory, in some minutes of one host or in all of them.

    The program never waits: the dollars of a pause depend on where it begins and ends, and a pause
    of hours that one point ends is another run.
    """
    told = run.told()
    series = [
        (one["host"], one["metric"])
        for one in told["metrics"]["series"]
        if one["metric"] in OFFERED
    ]
    if not series:
        return
    host, metric = data.draw(st.sampled_from(series), label="series")
    first = data.draw(st.sampled_from((0, 0, 0, 10)), label="first minute")
    length = data.draw(st.sampled_from((1, 5, 600)), label="minutes")
    by = data.draw(st.sampled_from((1, -1)), label="points")
    other = step(told, host, metric, range(first, first + length), by)
    was, now = judged(told), judged(other)
    moved = abs(dollars(of_the_machine(was)) - dollars(of_the_machine(now)))
    most = allowed(savings(told), savings(other), metric)
    assert moved <= most + CENT, (
        f"{metric} {by:+} point: ${moved} moved, ${most} allowed\n{says(was)}\n{says(now)}"
    )
