"""A made-up SageMaker job from what its program does: cores, GPUs and bytes, minute by minute.

It knows machines and work, and none of this project's thresholds: a loader that starves the GPU, a
process that never exits, a host with a third of the data. Noise is drawn from a seed, so that a
story is the same each time. What it prints has the form of a recording.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.prices.market import InstanceType

BEGIN = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
REGION, ACCOUNT = "us-east-1", "111122223333"
PYTORCH = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.1-gpu-py310"
SKLEARN = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1"
_MINUTE = timedelta(minutes=1)
_SETTLES = 0.3
"""How far a minute's mean strays from what the program does on average, as a share of the idle
part: a busy core is never more than busy."""


@dataclass(frozen=True)
class Doing:
    """What one host's program does for some minutes.

    `cores` busy of those that are there; `gpus`: the busy share of each GPU (0..1); `gib` of host
    memory and `gpu_gib` on each GPU in use; `jitter`: how unsteady it is, as a share of itself.
    """

    minutes: int
    cores: float = 0.1
    gpus: Sequence[float] = ()
    gib: float = 3.0
    gpu_gib: Sequence[float] = ()
    jitter: float = 0.05


IDLE = Doing(1, cores=0.05, gib=2.0, jitter=0.3)


def idle(minutes: int) -> Doing:
    """Nothing: the operating system alone."""
    return Doing(minutes, cores=0.05, gib=2.0, jitter=0.3)


@dataclass(frozen=True)
class Plot:
    """A training job to be told: where it runs, what each host does, and what surrounds it.

    Seconds of the phases before and after the program's; `describe` adds to the answer.
    """

    instance: str
    hosts: tuple[tuple[Doing, ...], ...]
    image: str = PYTORCH
    starting_s: int = 90
    downloading_s: int = 60
    uploading_s: int = 20
    status: str = "Completed"
    closing: str = "Completed"
    curves: dict[str, list[float | None]] = field(default_factory=dict)
    describe: dict[str, Any] = field(default_factory=dict)
    hyperparameters: dict[str, str] = field(default_factory=dict)
    channels: tuple[dict[str, Any], ...] | None = None
    spot_billed_share: float | None = None
    tags: dict[str, str] = field(default_factory=dict)
    volume_gb: int | None = 30
    disk_percent: float = 2.0
    missing_share: float = 0.0
    """Of CloudWatch's points of the hosts."""
    begin: datetime = BEGIN
    name: str = "story"


def alike(hosts: int, *doings: Doing) -> tuple[tuple[Doing, ...], ...]:
    """So many hosts that do the same."""
    return (doings,) * hosts


def channel(
    name: str = "train", mode: str = "FastFile", distribution: str = "FullyReplicated"
) -> dict[str, Any]:
    """One S3 channel."""
    return {
        "ChannelName": name,
        "InputMode": mode,
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": f"s3://bucket/{name}",
                "S3DataDistributionType": distribution,
            }
        },
    }


def training(plot: Plot, seed: int) -> dict[str, Any]:
    """The recording of a training job."""
    dice = random.Random(f"{plot.name} {seed}")
    minutes = max(sum(doing.minutes for doing in host) for host in plot.hosts)
    start = plot.begin + timedelta(seconds=plot.starting_s)
    work = start + timedelta(seconds=plot.downloading_s)
    upload = work + timedelta(minutes=minutes, seconds=dice.randrange(50))
    end = upload + timedelta(seconds=plot.uploading_s)
    seconds = int((end - start).total_seconds())
    share = plot.spot_billed_share
    name = f"{plot.name}-{seed}"
    answer: dict[str, Any] = {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}",
        "TrainingJobStatus": plot.status,
        "SecondaryStatus": plot.closing,
        "AlgorithmSpecification": {"TrainingImage": plot.image, "TrainingInputMode": "FastFile"},
        "HyperParameters": {"sagemaker_program": '"train.py"', **plot.hyperparameters},
        "InputDataConfig": list((channel(),) if plot.channels is None else plot.channels),
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {
            "InstanceType": plot.instance,
            "InstanceCount": len(plot.hosts),
            **({} if plot.volume_gb is None else {"VolumeSizeInGB": plot.volume_gb}),
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": max(3600, 2 * seconds)},
        "CreationTime": iso(plot.begin),
        "TrainingStartTime": iso(start),
        "TrainingEndTime": iso(end),
        "LastModifiedTime": iso(end),
        "SecondaryStatusTransitions": [
            phase("Starting", plot.begin, start),
            phase("Downloading", start, work),
            phase("Training", work, upload),
            *([phase("Uploading", upload, end)] if plot.uploading_s else []),
            phase(plot.closing, end, end),
        ],
        "TrainingTimeInSeconds": seconds,
        "BillableTimeInSeconds": seconds if share is None else int(seconds * share),
        "EnableManagedSpotTraining": share is not None,
    }
    if plot.uploading_s:
        answer["ModelArtifacts"] = {"S3ModelArtifacts": "s3://bucket/out/model.tar.gz"}
    return recording(
        answer | plot.describe,
        [*_hosts(plot, name, work, minutes, dice), *_curves(plot, name, work)],
        plot.tags,
    )


def recording(
    answer: dict[str, Any], series: list[dict[str, Any]], tags: dict[str, str]
) -> dict[str, Any]:
    """The file's form."""
    return {
        "describe": answer,
        "tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "metrics": {"period_s": 60, "series": series},
        "region": REGION,
        "account": ACCOUNT,
    }


def phase(name: str, start: datetime, end: datetime) -> dict[str, Any]:
    """One secondary status transition."""
    return {"Status": name, "StartTime": iso(start), "EndTime": iso(end), "StatusMessage": ""}


def iso(moment: datetime) -> str:
    """As the CLI prints it."""
    return moment.isoformat().replace("+00:00", "Z")


def machine(instance: str) -> InstanceType:
    """What the instance has."""
    return packaged.types()[instance]


def _hosts(
    plot: Plot, name: str, work: datetime, minutes: int, dice: random.Random
) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for number, doings in enumerate(plot.hosts, start=1):
        host = f"{name}/algo-{number}"
        timeline = [doing for doing in doings for _ in range(doing.minutes)]
        timeline += [IDLE] * (minutes - len(timeline))
        lines += host_series(plot.instance, host, timeline, work, plot.disk_percent, dice)
    for line in lines:
        values = line["values"]
        line["values"] = [None if dice.random() < plot.missing_share else v for v in values]
    return lines


def host_series(
    instance: str,
    host: str,
    timeline: list[Doing],
    work: datetime,
    disk_percent: float,
    dice: random.Random,
) -> list[dict[str, Any]]:
    """What CloudWatch would have of one host; a GPU's first points come minutes late."""
    on = machine(instance)
    start = work.replace(second=0) + _MINUTE
    late = dice.choice((3, 4, 5, 6))

    def line(metric: str, of: Callable[[Doing], float], missing: int = 0) -> dict[str, Any]:
        values: list[float | None] = [round(of(doing), 3) for doing in timeline]
        values[:missing] = [None] * min(missing, len(values))
        return {"host": host, "metric": metric, "start": iso(start), "values": values}

    lines = [
        line("CPUUtilization", lambda doing: 100 * _busy(doing.cores, on.vcpu, doing, dice)),
        line(
            "MemoryUtilization",
            lambda doing: (
                100
                * _busy(doing.gib, float(on.memory_gib), doing, dice, steady=True)
                / float(on.memory_gib)
            ),
        ),
        line("DiskUtilization", lambda _: disk_percent),
    ]
    if on.gpus:
        memory = float(on.gpu_memory_gib or 16)
        lines += [
            line(
                "GPUUtilization",
                lambda doing: sum(100 * _busy(share, 1, doing, dice) for share in doing.gpus),
                late,
            ),
            line(
                "GPUMemoryUtilization",
                lambda doing: sum(
                    100 * _busy(gib, memory, doing, dice, steady=True) / memory
                    for gib in doing.gpu_gib
                ),
                late,
            ),
        ]
    return lines


def _busy(
    wanted: float, there: float, doing: Doing, dice: random.Random, *, steady: bool = False
) -> float:
    """What a program uses in one minute: never under nothing, never over what there is."""
    if not wanted:
        return 0.0
    spread = (0.01 if steady else doing.jitter) * wanted
    spread = min(spread, _SETTLES * (there - wanted) + 0.01 * wanted)
    return min(max(dice.gauss(wanted, spread), 0.0), there)


def _curves(plot: Plot, name: str, work: datetime) -> list[dict[str, Any]]:
    """Algorithm metrics carry the job's own name."""
    start = work.replace(second=0) + _MINUTE
    return [
        {"host": name, "metric": metric, "start": iso(start), "values": values}
        for metric, values in plot.curves.items()
    ]


@dataclass(frozen=True)
class Batchwork:
    """A processing or transform job: hosts as in a training job, and what its answer adds."""

    kind: str
    instance: str
    hosts: tuple[tuple[Doing, ...], ...]
    describe: dict[str, Any] = field(default_factory=dict)
    name: str = "story"


def batchwork(work: Batchwork, seed: int) -> dict[str, Any]:
    """The recording of a processing or transform job."""
    dice = random.Random(f"{work.name} {seed}")
    minutes = max(sum(doing.minutes for doing in host) for host in work.hosts)
    start, name = BEGIN + timedelta(seconds=150), f"{work.name}-{seed}"
    end = start + timedelta(minutes=minutes, seconds=dice.randrange(50))
    slug = {"Processing": "processing-job", "Transform": "transform-job"}[work.kind]
    cluster = {"InstanceType": work.instance, "InstanceCount": len(work.hosts)}
    resources: dict[str, Any] = (
        {"TransformResources": cluster}
        if work.kind == "Transform"
        else {
            "ProcessingResources": {"ClusterConfig": {**cluster, "VolumeSizeInGB": 30}},
            "AppSpecification": {"ImageUri": SKLEARN},
            "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
        }
    )
    answer = {
        f"{work.kind}JobName": name,
        f"{work.kind}JobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{slug}/{name}",
        f"{work.kind}JobStatus": "Completed",
        "CreationTime": iso(BEGIN),
        f"{work.kind}StartTime": iso(start),
        f"{work.kind}EndTime": iso(end),
        **resources,
        **work.describe,
    }
    series: list[dict[str, Any]] = []
    for number, doings in enumerate(work.hosts, start=1):
        own = f"i-{number:017x}" if work.kind == "Transform" else f"algo-{number}"
        timeline = [doing for doing in doings for _ in range(doing.minutes)]
        timeline += [IDLE] * (minutes - len(timeline))
        lines = host_series(work.instance, f"{name}/{own}", timeline, start, 2.0, dice)
        series += [
            line
            for line in lines
            if not (work.kind == "Transform" and line["metric"] == "DiskUtilization")
        ]
    return recording(answer, series, {})
