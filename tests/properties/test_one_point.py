"""One point of utilisation changes the counted dollars by at most one step between types."""

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
    findings_line,
    judged,
    machine_findings,
    property_settings,
    savings,
    with_values,
)
from tests.properties.programs import Run, plain, runs

OFFERED: dict[str, Callable[[InstanceType], float]] = {
    "CPUUtilization": lambda on: on.vcpu,
    "MemoryUtilization": lambda on: float(on.memory_gib),
    "GPUUtilization": lambda on: on.gpus,
    "GPUMemoryUtilization": lambda on: on.gpus * float(on.gpu_memory_gib or 0),
}
"""How much a type has of the metric's resource. No type has a disk of its own."""
_ZERO = Decimal(0)


def step(job_recording: Document, host: str, metric: str, span: range, by: int) -> Document:
    """Shifts one series by `by` percent of one core, device or the memory in these minutes."""
    on = machine(job_recording["describe"]["ResourceConfig"]["InstanceType"])
    units = {"CPUUtilization": on.vcpu, "MemoryUtilization": 1}.get(metric, on.gpus)

    return with_values(
        job_recording,
        lambda line: (line["host"], line["metric"]) == (host, metric),
        lambda at, value: min(max(value + by, 0), 100 * units) if at in span else value,
    )


NO_GPU_WORK = 0
"""The GPU count of types without GPU.

A run fits there only while its GPUs did nothing, and then it needs no GPU memory. The first point
of work needs all of it, so this step can be as wide as the whole ladder of types.
"""


def rungs_of(before: dict[str, Decimal], after: dict[str, Decimal]) -> set[int]:
    """Returns the GPU counts of types that fit only before or only after the step."""
    if not any(machine(name).gpus for name in {*before, *after}):
        return set()
    return {machine(name).gpus for name in before.keys() ^ after.keys()}


def allowed(before: dict[str, Decimal], after: dict[str, Decimal], metric: str) -> Decimal:
    """Returns how far the counted dollars may move if one point of a metric does.

    All types that certainly save, before or after, are ordered by how much they have of the
    metric's resource. A rung's value is the best saving of the types on it or above; above the last
    rung is the current type, which saves nothing. One point moves the need past at most one rung.
    So the change is at most the widest gap at a rung whose types fit only before or only after.
    Added to it is the largest change of a saving of a type that fits both times, because a busier
    GPU makes the run on a weaker one longer.
    """
    worth = {**after, **before}
    if NO_GPU_WORK in rungs_of(before, after):
        return max(worth.values())
    both = before.keys() & after.keys()
    drift = max((abs(before[name] - after[name]) for name in both), default=_ZERO)
    offered = OFFERED[metric]
    gaps = []
    for rung in {offered(machine(name)) for name in worth.keys() - both}:
        best_from = [usd for name, usd in worth.items() if offered(machine(name)) >= rung]
        above = [usd for name, usd in worth.items() if offered(machine(name)) > rung]
        gaps.append(max(best_from) - max(above, default=_ZERO))
    return max(gaps, default=_ZERO) + drift


def one_host(before: AuditDocument, now: AuditDocument, run: Run) -> Decimal:
    """Returns one host's share of the bill if only one of the audits asks for fewer hosts, else 0.

    One host fewer is a neighbouring candidate too, but `what-if` does not rank it.
    """
    asks = [
        any(
            fix["parameter"].endswith("InstanceCount")
            for finding in machine_findings(audit)
            for fix in finding["fix"]
        )
        for audit in (before, now)
    ]
    total = before["bill"]["total_usd"] or _ZERO
    return total / len(run.paces) if asks[0] != asks[1] else _ZERO


def counts(job_recording: Document) -> Decimal:
    """Returns the counted dollars of findings on the machine's use."""
    return dollars(machine_findings(judged(job_recording)))


def steepest(moved: Callable[[int], Document], by: int) -> int:
    """Returns the point (0 to `by`) at which one step changes the dollars most.

    It repeatedly halves the interval, and keeps the half in which the dollars differ more.
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
    """A series, its minutes, and how many points it is moved, step by step."""

    metric: str
    far: int
    host: int = 1
    first: int = 0
    minutes: int = 600


def ways() -> st.SearchStrategy[Way]:
    """Returns a strategy for ways up and down, over the whole run, some minutes or one."""
    return st.builds(
        Way,
        st.sampled_from(tuple(OFFERED)),
        st.sampled_from((50, -50, 400, -400, 2000, -2000)),
        st.sampled_from((1, 1, 2, 8)),
        st.sampled_from((0, 0, 0, 10)),
        st.sampled_from((600, 5, 1)),
    )


@property_settings(60)
@given(runs(pauses=False), ways())
@example(plain("ml.c7i.xlarge", cores=1.62, gib=3.2), Way("CPUUtilization", -50))
@example(plain("ml.r5d.24xlarge", cores=0.5, gib=77), Way("MemoryUtilization", 50))
@example(plain("ml.r5.4xlarge", cores=9, gib=99.8), Way("MemoryUtilization", -50))
@example(plain("ml.m7i.xlarge", cores=1.1, gib=6.4, hosts=8), Way("CPUUtilization", 50))
@example(plain("ml.g5.12xlarge", 0.03, gpu_gib=21.2, cores=10, gib=54), Way("GPUUtilization", 50))
@example(plain("ml.g5.12xlarge", 0.9, gpu_gib=8, cores=4, gib=20), Way("GPUUtilization", -50))
@example(plain("ml.g5.12xlarge", 0.4, 0.4, 0.4, 0.4), Way("GPUUtilization", 400))
@example(plain("ml.p3.16xlarge", *[0.2] * 8), Way("GPUUtilization", 400))
def test_one_point_moves_the_dollars_by_one_neighbouring_type_at_most(run: Run, way: Way) -> None:
    """Moves one host by one percent of a core, device or memory in some minutes.

    The program never waits. The dollars of a pause depend on its start and end, and a point that
    ends a pause of hours makes another run.
    """
    job_recording = run.recording()
    host = f"{job_recording['describe']['TrainingJobName']}/algo-{min(way.host, len(run.paces))}"
    span = range(way.first, way.first + way.minutes)

    def moved(points: int) -> Document:
        return step(job_recording, host, way.metric, span, points)

    at = steepest(moved, way.far)
    before_step, after_step = moved(at), moved(at + 1)
    before, now = judged(before_step), judged(after_step)
    change = abs(dollars(machine_findings(before)) - dollars(machine_findings(now)))
    most = allowed(savings(before_step), savings(after_step), way.metric) + one_host(
        before, now, run
    )
    assert change <= most + CENT, (
        f"{way.metric} of {host}, moved by {at} and by {at + 1} points: ${change} moved, "
        f"${most} allowed\n{findings_line(before)}\n{findings_line(now)}"
    )
