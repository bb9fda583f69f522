"""One point of utilisation moves the counted dollars by one step of the ladder of types at most."""

from collections.abc import Callable
from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
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
    with_values,
)
from tests.properties.programs import Run, plain, runs

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

    return with_values(
        told,
        lambda one: (one["host"], one["metric"]) == (host, metric),
        lambda at, value: min(max(value + by, 0), 100 * units) if at in span else value,
    )


NO_GPU_WORK = 0
"""The rung of types without GPU. A run is on it while its GPUs did nothing, and then no GPU memory
is needed either: with the first point of work all of it is. That step is as wide as the ladder."""


def rungs_of(before: dict[str, Decimal], after: dict[str, Decimal]) -> set[int]:
    """The GPU counts that hold the run only before or only after the step."""
    if not any(machine(name).gpus for name in {*before, *after}):
        return set()
    return {machine(name).gpus for name in before.keys() ^ after.keys()}


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
    if NO_GPU_WORK in rungs_of(before, after):
        return max(worth.values())
    both = before.keys() & after.keys()
    drift = max((abs(before[name] - after[name]) for name in both), default=_ZERO)
    offered = OFFERED[metric]
    gaps = []
    for rung in {offered(machine(name)) for name in worth.keys() - both}:
        here = [usd for name, usd in worth.items() if offered(machine(name)) >= rung]
        above = [usd for name, usd in worth.items() if offered(machine(name)) > rung]
        gaps.append(max(here) - max(above, default=_ZERO))
    return max(gaps, default=_ZERO) + drift


def one_host(was: AuditDocument, now: AuditDocument, run: Run) -> Decimal:
    """One host's share of the bill, where only one of the two audits asks for fewer hosts.

    One host fewer is a neighbouring candidate too, which `what-if` does not rank.
    """
    asks = [
        any(
            fix["parameter"].endswith("InstanceCount")
            for one in of_the_machine(audit)
            for fix in one["fix"]
        )
        for audit in (was, now)
    ]
    total = was["bill"]["total_usd"] or _ZERO
    return total / len(run.paces) if asks[0] != asks[1] else _ZERO


def counts(told: Document) -> Decimal:
    """The counted dollars that speak of the machine."""
    return dollars(of_the_machine(judged(told)))


def steepest(moved: Callable[[int], Document], by: int) -> int:
    """The point, on the way from the recording to one moved `by` points, at which most happens.

    Halves the way to where the dollars differ more. The step is from there one point on.
    """
    near, far = 0, by
    dollars_of = {point: counts(moved(point)) for point in (near, far)}
    while abs(far - near) > 1:
        middle = (near + far) // 2
        dollars_of[middle] = counts(moved(middle))
        to_middle = abs(dollars_of[near] - dollars_of[middle])
        if to_middle >= abs(dollars_of[middle] - dollars_of[far]):
            far = middle
        else:
            near = middle
    return min(near, far)


class Way(Struct, frozen=True):
    """A series, the minutes in it, and how many points they are moved, one after the other."""

    metric: str
    far: int
    host: int = 1
    first: int = 0
    minutes: int = 600


def told_ways() -> st.SearchStrategy[Way]:
    """Up and down, for the whole run, a while, or one minute."""
    return st.builds(
        Way,
        st.sampled_from(tuple(OFFERED)),
        st.sampled_from((50, -50, 400, -400, 2000, -2000)),
        st.sampled_from((1, 1, 2, 8)),
        st.sampled_from((0, 0, 0, 10)),
        st.sampled_from((600, 5, 1)),
    )


@held(60)
@given(runs(pauses=False), told_ways())
@example(plain("ml.c7i.xlarge", cores=1.62, gib=3.2), Way("CPUUtilization", -50))
@example(plain("ml.r5d.24xlarge", cores=0.5, gib=77), Way("MemoryUtilization", 50))
@example(plain("ml.r5.4xlarge", cores=9, gib=99.8), Way("MemoryUtilization", -50))
@example(plain("ml.m7i.xlarge", cores=1.1, gib=6.4, hosts=8), Way("CPUUtilization", 50))
@example(plain("ml.g5.12xlarge", 0.03, gpu_gib=21.2, cores=10, gib=54), Way("GPUUtilization", 50))
@example(plain("ml.g5.12xlarge", 0.9, gpu_gib=8, cores=4, gib=20), Way("GPUUtilization", -50))
@example(plain("ml.g5.12xlarge", 0.4, 0.4, 0.4, 0.4), Way("GPUUtilization", 400))
@example(plain("ml.p3.16xlarge", *[0.2] * 8), Way("GPUUtilization", 400))
def test_one_point_moves_the_dollars_by_one_neighbouring_type_at_most(run: Run, way: Way) -> None:
    """One percent of one core, device or memory, in some minutes of one host.

    The program never waits: the dollars of a pause depend on where it begins and ends, and a pause
    of hours that one point ends is another run.
    """
    told = run.told()
    host = f"{told['describe']['TrainingJobName']}/algo-{min(way.host, len(run.paces))}"
    span = range(way.first, way.first + way.minutes)

    def moved(points: int) -> Document:
        return step(told, host, way.metric, span, points)

    at = steepest(moved, way.far)
    here, there = moved(at), moved(at + 1)
    was, now = judged(here), judged(there)
    change = abs(dollars(of_the_machine(was)) - dollars(of_the_machine(now)))
    most = allowed(savings(here), savings(there), way.metric) + one_host(was, now, run)
    assert change <= most + CENT, (
        f"{way.metric} of {host}, moved by {at} and by {at + 1} points: ${change} moved, "
        f"${most} allowed\n{says(was)}\n{says(now)}"
    )
