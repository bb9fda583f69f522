"""How a run changes once a recommendation is followed.

The work stays the same: the same core-minutes and GPU-minutes on another type or fewer hosts, a
removed wait, or seconds that Spot does not bill. Nothing here knows a threshold.
"""

from collections.abc import Callable

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
from sageaudit.domain.bill.finding import Parameter
from tests.labelled.machine import Json, machine
from tests.labelled.tape import Line, Tape

GPU = "GPUUtilization"
GPU_MEMORY = "GPUMemoryUtilization"
CPU = "CPUUtilization"
MEMORY = "MemoryUtilization"
DISK = "DiskUtilization"
_CLUSTERS = ("ResourceConfig", "TransformResources", "ProcessingResources")


def cluster(answer: Json) -> Json:
    """Returns the part of the answer that has instance type and count."""
    part = next(answer[name] for name in _CLUSTERS if name in answer)
    resources: Json = part.get("ClusterConfig", part)
    return resources


def apply_change(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """Applies the effect that most changes have."""
    if isinstance(change, SetType):
        move_to_type(tape, change.instance_type, float(change.time_factor))
    elif isinstance(change, SetCount):
        run_on_fewer_hosts(tape, change.count, float(change.time_factor))
    elif isinstance(change, SetTypeCount):
        remove_idle_hosts(tape, change)
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
        _let_succeed(tape)


def move_to_type(tape: Tape, name: str, times: float) -> None:
    """Moves the same work to another type, where it takes `times` times as long.

    Cores and memory in use stay the same. If a weaker GPU makes the run longer, the GPU is busier:
    how much weaker it is follows from its busy share and the longer time.
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
        memory_ratio = float((before.gpu_memory_gib or 16) / (after.gpu_memory_gib or 16))
        tape.each(GPU_MEMORY, lambda value: min(value * memory_ratio, 100 * after.gpus))
    tape.stretch(times)
    cluster(tape.describe)["InstanceType"] = name


def _busy(tape: Tape, gpus: int) -> float:
    """Returns the mean busy share (0..1) of the GPUs of the busiest host."""
    means = []
    for line in tape.lines:
        known_values = [value for value in line.values if value is not None]
        if line.metric == GPU and known_values:
            means.append(sum(known_values) / len(known_values) / 100 / gpus)
    return max(means, default=0.0)


def _mean(tape: Tape, metric: str) -> float:
    """Returns the mean of all hosts' points of a metric."""
    known_values = [v for x in tape.lines if x.metric == metric for v in x.values if v is not None]
    return sum(known_values) / len(known_values)


def run_on_fewer_hosts(tape: Tape, count: int, times: float) -> None:
    """Runs the same work on fewer hosts, evenly spread over the remaining ones."""
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


def remove_idle_hosts(tape: Tape, change: SetTypeCount) -> None:
    """Removes the hosts of a type that did least; the others stay as they are."""
    on_gpus = {line.host for line in tape.lines if line.metric == GPU}
    has_gpus = machine(change.instance_type).gpus > 0
    work = {
        line.host: sum(value or 0 for value in line.values)
        for line in tape.lines
        if line.metric == CPU and (line.host in on_gpus) == has_gpus
    }
    tape.drop(hosts=sorted(work, key=lambda host: -work[host])[change.count :])


def _sum(lines: list[Line]) -> list[float | None]:
    """Returns the sum over all hosts by minute; None if one has no point."""
    total: list[float | None] = []
    for values in zip(*(line.values for line in lines), strict=True):
        known_values = [value for value in values if value is not None]
        total.append(sum(known_values) if len(known_values) == len(values) else None)
    return total


def _let_succeed(tape: Tape) -> None:
    """Lets the next run complete with a model."""
    tape.describe.pop("FailureReason", None)
    tape.phases[-1] = ("Completed", 0)
    tape.describe |= {
        f"{tape.kind}JobStatus": "Completed",
        "SecondaryStatus": "Completed",
        "ModelArtifacts": {"S3ModelArtifacts": "s3://bucket/out/model.tar.gz"},
    }


def _balance_hosts(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """Balances the load, which shortens the run; or removes idle hosts."""
    if not isinstance(change, CutPhase):
        apply_change(tape, change, fix)
        return
    work_s = sum(s for name, s in tape.phases if name == change.phase)
    run_on_fewer_hosts(tape, len(tape.hosts), 1 - float(change.seconds) / work_s)


def _cut_head(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    assert isinstance(change, CutPhase)
    tape.cut(float(change.seconds), head=True)


def _send_several_requests(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """Sends as many concurrent requests as the cores can serve, up to 80% use."""
    on = machine(cluster(tape.describe)["InstanceType"])
    concurrent = next((p.new for p in fix if p.path == "MaxConcurrentTransforms"), 4)
    assert isinstance(concurrent, int)
    times = max(min(concurrent, 80 * on.vcpu / _mean(tape, CPU)), 1.0)
    tape.each(CPU, lambda value: min(value * times, 100 * on.vcpu))
    tape.stretch(1 / times)


def _feed_gpus(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """Speeds up the loader, with more workers or cores, until the GPU or the cores are busy."""
    before = machine(cluster(tape.describe)["InstanceType"])
    if isinstance(change, SetType):
        move_to_type(tape, change.instance_type, 1.0)
    after = machine(cluster(tape.describe)["InstanceType"])
    busy, cores = _busy(tape, before.gpus), _mean(tape, CPU) / 100
    times = max(min(0.9 / busy, 0.97 * after.vcpu / cores), 1.0)
    tape.each(CPU, lambda value: min(value * times, 100 * after.vcpu))
    tape.each(GPU, lambda value: min(value * times, 100 * after.gpus))
    tape.stretch(1 / times)


def _use_all_gpus(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """Starts one process per GPU: each does what the used ones did, in that much less time."""
    if isinstance(change, SetType):
        apply_change(tape, change, fix)
        return
    on = machine(cluster(tape.describe)["InstanceType"])
    used = max(round(on.gpus * _busy(tape, on.gpus)), 1)
    times = on.gpus / used
    tape.each(CPU, lambda value: min(value * times, 100 * on.vcpu))
    for metric in (GPU, GPU_MEMORY):
        tape.each(metric, lambda value: min(value * times, 100 * on.gpus))
    tape.stretch(1 / times)


def _remove_pool(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    tape.describe.pop("WarmPoolStatus", None)


def _remove_interruptions(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """Removes repeated work: on demand only the last attempt runs; on Spot checkpoints keep it."""
    on_spot = all(parameter.path != "EnableManagedSpotTraining" for parameter in fix)
    names = [name for name, _ in tape.phases]
    last = len(names) - 1 - names[::-1].index("Interrupted")
    tape.phases = [("Starting", 90), *tape.phases[last + 1 :]]
    tape.billed_share = 0.4 if on_spot else 1.0


def _stop_early(tape: Tape, change: Change | None, fix: tuple[Parameter, ...]) -> None:
    """Stops the run early: by a limit, which leaves a model, or by the program itself."""
    apply_change(tape, change, fix)
    if any(parameter.path == "StoppingCondition.MaxRuntimeInSeconds" for parameter in fix):
        tape.phases[-1] = ("MaxRuntimeExceeded", 0)
        tape.describe |= {"TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxRuntimeExceeded"}


Effect = Callable[[Tape, Change | None, tuple[Parameter, ...]], None]
EFFECTS: dict[str, Effect] = {
    "cpu-bottleneck": _feed_gpus,
    "gpu-starved": _feed_gpus,
    "idle-start": _cut_head,
    "metric-plateau": _stop_early,
    "some-gpus-unused": _use_all_gpus,
    "spot-interrupted-much": _remove_interruptions,
    "transform-serial": _send_several_requests,
    "transform-single-record": _send_several_requests,
    "uneven-hosts": _balance_hosts,
    "warm-pool-idle": _remove_pool,
}
"""Effects by rule, if the change alone does not describe them."""
