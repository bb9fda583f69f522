"""Advice that is followed: the ways to do so, and the recording of the run that does.

The same work is done: the same core-minutes and GPU-minutes on another type or on fewer hosts, a
wait that is gone, seconds that spot does not bill. Nothing here knows a threshold.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct

from sageaudit.domain.bill.change import (
    Change,
    CutPhase,
    DropRun,
    SetCount,
    SetPurchase,
    SetType,
    SetTypeCount,
    SetVolume,
)
from sageaudit.domain.bill.finding import Finding, Parameter, Scalar
from sageaudit.output.text.fix_code import ELEMENT_NAMES
from tests.fakes import request
from tests.labelled.machine import Json, machine
from tests.labelled.tape import Line, Tape, put_together, taken_apart

_NUMBER = re.compile(r"\d+")
_STEP = re.compile(r"(\w+)(?:\[(.+)\])?\Z")
GPU, GPU_MEMORY = "GPUUtilization", "GPUMemoryUtilization"
CPU, MEMORY, DISK = "CPUUtilization", "MemoryUtilization", "DiskUtilization"
_CLUSTERS = ("ResourceConfig", "TransformResources", "ProcessingResources")


class Way(Struct, frozen=True):
    """One way to follow a finding: the parameters that are set, and what the run is then."""

    rule: str
    fix: tuple[Parameter, ...]
    change: Change | None

    def __str__(self) -> str:
        told = ", ".join(f"{one.path} {one.old} -> {one.new}" for one in self.fix)
        return f"{self.rule}: {told}"


def ways(finding: Finding) -> Iterator[Way]:
    """The fix at both ends of its range, then its alternatives.

    Left out: the end at which the advice did nothing, and a way that leaves a value open.
    """
    name, found = finding.rule.name, finding.found
    last = found.best or found.change
    if found.fix and not left_open(found.fix):
        nothing = isinstance(found.change, CutPhase) and found.change.seconds == 0
        if not nothing:
            yield Way(name, found.fix, found.change)
        if found.best is not None:
            yield Way(name, found.fix, found.best)
    for fix in found.alternatives:
        if not left_open(fix):
            yield Way(name, fix, None if isinstance(last, SetType | SetCount) else last)


def followed(recorded: Json, taken: Iterable[Way], *, later: timedelta) -> Json:
    """The recording of the next run, so much later, in which these ways were gone together."""
    tape = taken_apart(recorded)
    for way in taken:
        change = way.change or _moved(tape, way.fix)
        HAPPENS.get(way.rule, changed)(tape, change, way.fix)
        for parameter in way.fix:
            put(tape.describe, parameter.path, _chosen(parameter))
    return put_together(tape, later)


def put(answer: Json, path: str, value: Scalar) -> None:
    """Sets one parameter of the request in the answer, which has the same form; None removes it."""
    *way, last = path.split(".")
    place: Any = answer
    for step in way:
        match = _STEP.match(step)
        assert match, path
        name, element = match.groups()
        if element is None:
            place = place.setdefault(name, {})
            continue
        label, elements = ELEMENT_NAMES[name], place.setdefault(name, [])
        named = next((one for one in elements if one.get(label) == element), None)
        if named is None:
            named = {label: element}
            elements.append(named)
        place = named
    if value is None:
        place.pop(last, None)
    else:
        place[last] = value


def left_open(fix: tuple[Parameter, ...]) -> bool:
    """Does it leave a value to the reader that nobody can make up, such as "<another type>"?

    Any word does for a bucket; for a size, the number that the advice names.
    """
    return any(_blank(one) and not (request.free_text(one.path) or _number(one)) for one in fix)


def _blank(parameter: Parameter) -> bool:
    return isinstance(parameter.new, str) and "<" in parameter.new


def _number(parameter: Parameter) -> int | None:
    """The number in the words for a parameter that takes one."""
    match = _NUMBER.search(str(parameter.new)) if request.number(parameter.path) else None
    return int(match.group()) if match else None


def _chosen(parameter: Parameter) -> Scalar:
    """What a person writes for it: a value of their own where the advice leaves a blank."""
    new = parameter.new
    if not _blank(parameter):
        return new
    if (number := _number(parameter)) is not None:
        return number + 5
    if str(new).startswith("<"):
        return parameter.old
    return str(new).replace("<", "").replace(">", "")


def _moved(tape: Tape, fix: tuple[Parameter, ...]) -> Change | None:
    """Another type or count without a figure: taken as long as the work needs there."""
    for parameter in fix:
        if parameter.path.endswith("InstanceType") and "[" not in parameter.path:
            return SetType(str(parameter.new))
        if parameter.path.endswith("InstanceCount") and isinstance(parameter.new, int):
            return SetCount(parameter.new, Decimal(len(tape.hosts)) / parameter.new)
    return None


def cluster(answer: Json) -> Json:
    """Where the answer has type and count."""
    part = next(answer[name] for name in _CLUSTERS if name in answer)
    found: Json = part.get("ClusterConfig", part)
    return found


def changed(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """What most changes do by themselves."""
    if isinstance(change, SetType):
        on_type(tape, change.instance_type, float(change.slower))
    elif isinstance(change, SetCount):
        on_fewer(tape, change.count, float(change.slower))
    elif isinstance(change, SetTypeCount):
        without_idle_hosts(tape, change)
    elif isinstance(change, SetPurchase):
        tape.billed_share *= float(change.billed_share)
    elif isinstance(change, SetVolume):
        grown = cluster(tape.describe)["VolumeSizeInGB"] / change.volume_gb
        tape.each(DISK, lambda value: min(value * grown, 100))
    elif isinstance(change, CutPhase):
        if change.phase in {"Training", "Processing", "Transform"}:
            tape.cut(float(change.seconds), head=False)
        else:
            tape.take(change.phase, float(change.seconds))
    elif isinstance(change, DropRun):
        _succeeds(tape)


def on_type(tape: Tape, name: str, times: float) -> None:
    """The same work on another machine, in so many times the minutes.

    Cores and memory in use are the same. A GPU that makes the run longer by its weakness works the
    more; how many times weaker it is follows from the busy share and the longer time.
    """
    before, after = machine(cluster(tape.describe)["InstanceType"]), machine(name)
    tape.each(CPU, lambda value: min(value / times, 100 * after.vcpu))
    share = float(before.memory_gib / after.memory_gib)
    tape.each(MEMORY, lambda value: min(value * share, 100))
    if not after.gpus:
        tape.drop((GPU, GPU_MEMORY))
    elif before.gpus:
        busy = _busy(tape, before.gpus)
        weaker = 1 + (times - 1) / busy if busy else 1.0
        tape.each(GPU, lambda value: min(value * weaker / times, 100 * after.gpus))
        held = float((before.gpu_memory_gib or 16) / (after.gpu_memory_gib or 16))
        tape.each(GPU_MEMORY, lambda value: min(value * held, 100 * after.gpus))
    tape.stretch(times)
    cluster(tape.describe)["InstanceType"] = name


def _busy(tape: Tape, gpus: int) -> float:
    """The mean busy share of the GPUs of the busiest host (0..1)."""
    means = []
    for line in tape.lines:
        known = [value for value in line.values if value is not None]
        if line.metric == GPU and known:
            means.append(sum(known) / len(known) / 100 / gpus)
    return max(means, default=0.0)


def _mean(tape: Tape, metric: str) -> float:
    """Of all hosts' points."""
    known = [v for x in tape.lines if x.metric == metric for v in x.values if v is not None]
    return sum(known) / len(known)


def on_fewer(tape: Tape, count: int, times: float) -> None:
    """The same work on fewer hosts: each that stays does and holds an even part of it all."""
    on, stay = machine(cluster(tape.describe)["InstanceType"]), tape.hosts[:count]
    for metric, most, lasts in (
        (CPU, 100 * on.vcpu, times),
        (GPU, 100 * on.gpus, times),
        (MEMORY, 100, 1),
    ):
        lines = [line for line in tape.lines if line.metric == metric and "/" in line.host]
        total = _sum(lines)
        for line in lines:
            line.values = [
                None if v is None else min(v / count / lasts, most)
                for v in total[: len(line.values)]
            ]
    tape.drop(hosts=[host for host in tape.hosts if host not in stay])
    tape.stretch(times)


def without_idle_hosts(tape: Tape, change: SetTypeCount) -> None:
    """Only so many hosts of a type are left, those that did most; the others do what they did."""
    on_gpus = {line.host for line in tape.lines if line.metric == GPU}
    has_gpus = machine(change.instance_type).gpus > 0
    work = {
        line.host: sum(value or 0 for value in line.values)
        for line in tape.lines
        if line.metric == CPU and (line.host in on_gpus) == has_gpus
    }
    tape.drop(hosts=sorted(work, key=lambda host: -work[host])[change.count :])


def _sum(lines: list[Line]) -> list[float | None]:
    """Of all hosts, minute by minute; None where one has no point."""
    total: list[float | None] = []
    for values in zip(*(line.values for line in lines), strict=True):
        known = [value for value in values if value is not None]
        total.append(sum(known) if len(known) == len(values) else None)
    return total


def _succeeds(tape: Tape) -> None:
    """The next try ends well, with a model."""
    tape.describe.pop("FailureReason", None)
    tape.phases[-1] = ("Completed", 0)
    tape.describe |= {
        f"{tape.kind}JobStatus": "Completed",
        "SecondaryStatus": "Completed",
        "ModelArtifacts": {"S3ModelArtifacts": "s3://bucket/out/model.tar.gz"},
    }


def _evenly(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """An even load, by so much shorter; or the hosts that did nothing are gone."""
    if not isinstance(change, CutPhase):
        changed(tape, change, fix)
        return
    work_s = sum(s for name, s in tape.phases if name == change.phase)
    on_fewer(tape, len(tape.hosts), 1 - float(change.seconds) / work_s)


def _head_gone(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    assert isinstance(change, CutPhase)
    tape.cut(float(change.seconds), head=True)


def _several_at_a_time(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """As many requests as the cores can serve, with something left for the system."""
    on = machine(cluster(tape.describe)["InstanceType"])
    asked = next((p.new for p in fix if p.path == "MaxConcurrentTransforms"), 4)
    assert isinstance(asked, int)
    times = max(min(asked, 80 * on.vcpu / _mean(tape, CPU)), 1.0)
    tape.each(CPU, lambda value: min(value * times, 100 * on.vcpu))
    tape.stretch(1 / times)


def _better_fed(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """Workers on all cores, or more cores: the GPU works until it is busy or they are."""
    before = machine(cluster(tape.describe)["InstanceType"])
    if isinstance(change, SetType):
        on_type(tape, change.instance_type, 1.0)
    after = machine(cluster(tape.describe)["InstanceType"])
    busy, cores = _busy(tape, before.gpus), _mean(tape, CPU) / 100
    times = max(min(0.9 / busy, 0.97 * after.vcpu / cores), 1.0)
    tape.each(CPU, lambda value: min(value * times, 100 * after.vcpu))
    tape.each(GPU, lambda value: min(value * times, 100 * after.gpus))
    tape.stretch(1 / times)


def _on_all_gpus(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """One process a GPU: what one of them did, each does, in that much less time."""
    if isinstance(change, SetType):
        changed(tape, change, fix)
        return
    on = machine(cluster(tape.describe)["InstanceType"])
    used = max(round(on.gpus * _busy(tape, on.gpus)), 1)
    times = on.gpus / used
    tape.each(CPU, lambda value: min(value * times, 100 * on.vcpu))
    for metric in (GPU, GPU_MEMORY):
        tape.each(metric, lambda value: min(value * times, 100 * on.gpus))
    tape.stretch(1 / times)


def _no_pool(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    tape.describe.pop("WarmPoolStatus", None)


def _uninterrupted(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """On demand: the last attempt alone. On spot with checkpoints: nothing is done twice."""
    on_spot = all(parameter.path != "EnableManagedSpotTraining" for parameter in fix)
    names = [name for name, _ in tape.phases]
    last = len(names) - 1 - names[::-1].index("Interrupted")
    tape.phases = [("Starting", 90), *tape.phases[last + 1 :]]
    tape.billed_share = 0.4 if on_spot else 1.0


def _stopped_early(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """At the limit where a limit stops it, which it left a model by; else by its own word."""
    changed(tape, change, fix)
    if any(parameter.path == "StoppingCondition.MaxRuntimeInSeconds" for parameter in fix):
        tape.phases[-1] = ("MaxRuntimeExceeded", 0)
        tape.describe |= {"TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxRuntimeExceeded"}


Happens = Callable[[Tape, Change | None, tuple[Parameter, ...]], None]
HAPPENS: dict[str, Happens] = {
    "cpu-bottleneck": _better_fed,
    "gpu-starved": _better_fed,
    "idle-start": _head_gone,
    "metric-plateau": _stopped_early,
    "some-gpus-unused": _on_all_gpus,
    "spot-interrupted-much": _uninterrupted,
    "transform-serial": _several_at_a_time,
    "transform-single-record": _several_at_a_time,
    "uneven-hosts": _evenly,
    "warm-pool-idle": _no_pool,
}
"""Where more happens than the change says by itself."""
