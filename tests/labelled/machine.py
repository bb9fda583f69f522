"""A made-up SageMaker job from what its programs did, minute by minute, as a recording.

It knows machines and work, and none of this project's thresholds: a loader that starves the GPU, a
process that never exits, a host with a third of the data. Noise is drawn from the names of the job
and the host, so that a job is the same each time.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct, field

from sageaudit.adapters.prices import packaged
from sageaudit.domain.prices.market import InstanceType

Json = dict[str, Any]
Series = list[Json]

BEGIN = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
REGION, ACCOUNT = "us-east-1", "111122223333"
BUCKET = f"s3://sagemaker-{REGION}-{ACCOUNT}"
PYTORCH = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.1-gpu-py310"
SKLEARN = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1"
_MINUTE = timedelta(minutes=1)
_SETTLES = 0.3
"""How far a minute's mean strays from what the program does on average, as a share of the idle
part: a busy core is never more than busy."""
_MEMORY_SPREAD = 0.006
_DISK_SPREAD = 0.01
_GPU_MEMORY_SPREAD = 0.004
"""How unsteady each is from minute to minute, as a share of itself."""
_BATCH_STARTING_S = 150
_SLUGS = {"Processing": "processing-job", "Transform": "transform-job"}


class _Shown(Struct, frozen=True):
    """What CloudWatch shows of each minute of a stretch, in percent.

    `gpu`, `cpu` and `gpu_memory` are sums over devices: 350 of 400 for four. `gpu_spread` and
    `cpu_spread`: how unsteady they are, as a share of themselves. `gpu_ceiling`: of the GPUs at
    work, if they are fewer than all.
    """

    minutes: int
    cpu: float
    cpu_spread: float
    memory: float
    disk: float
    gpu: float
    gpu_spread: float
    gpu_memory: float
    gpu_ceiling: float | None


class Doing(Struct, frozen=True):
    """What one host's program does for some minutes.

    `cores`: how many are busy; `gpus`: the busy share (0..1) of each GPU; `gib`: host memory in
    use; `gpu_gib`: memory in use on each GPU; `jitter`: how unsteady all this is, as a share of
    itself; `disk`: percent of the volume in use.
    """

    minutes: int
    cores: float = 0.1
    gpus: Sequence[float] = ()
    gib: float = 3.0
    gpu_gib: Sequence[float] = ()
    jitter: float = 0.05
    disk: float = 2.0

    def on(self, machine: InstanceType) -> _Shown:
        """What that looks like on a machine."""
        device_gib = float(machine.gpu_memory_gib or 16)
        at_work = sum(share > 0 for share in self.gpus)
        return _Shown(
            minutes=self.minutes,
            cpu=100 * self.cores,
            cpu_spread=self._spread(self.cores, machine.vcpu),
            memory=min(100 * self.gib / float(machine.memory_gib), 100),
            disk=self.disk,
            gpu=100 * sum(self.gpus),
            gpu_spread=self._spread(sum(self.gpus), at_work),
            gpu_memory=sum(min(100 * gib / device_gib, 100) for gib in self.gpu_gib),
            gpu_ceiling=100.0 * at_work if at_work < machine.gpus else None,
        )

    def _spread(self, wanted: float, there: float) -> float:
        """As a share of itself: never far over what there is."""
        if not wanted:
            return 0.0
        return min(self.jitter, _SETTLES * (there - wanted) / wanted + 0.01)


Host = tuple[Doing, ...]
"""What one host does, from the first minute of the work to its last."""


def idle(minutes: int) -> Doing:
    """Nothing: the operating system alone."""
    return Doing(minutes, cores=0.05, gib=2.0, jitter=0.3)


class Phase(Struct, frozen=True):
    """One secondary status of a training job."""

    status: str
    seconds: int
    message: str = ""


class Plot(Struct, frozen=True):
    """A training job: where it runs, what each host does, and what surrounds it.

    `phases` replaces the usual ones, which have the given seconds and the minutes of the longest
    host. `describe` and `resources` add to the answer and to its ResourceConfig. All seconds from
    the first download on are billed, or `billable` of them, or `spot_billed_share`.
    """

    instance: str
    hosts: tuple[Host, ...]
    image: str = PYTORCH
    starting_s: int = 90
    downloading_s: int = 60
    uploading_s: int = 20
    phases: tuple[Phase, ...] | None = None
    status: str = "Completed"
    closing: str = ""
    artifact: bool = True
    failure: str = ""
    curves: dict[str, list[float | None]] = field(default_factory=dict)
    describe: Json = field(default_factory=dict)
    resources: Json = field(default_factory=dict)
    hyperparameters: dict[str, str] = field(default_factory=dict)
    channels: tuple[Json, ...] | None = None
    mode: str = "FastFile"
    billable: int | None = None
    spot_billed_share: float | None = None
    tags: dict[str, str] = field(default_factory=dict)
    volume_gb: int = 30
    missing_share: float = 0.0
    """Of CloudWatch's points of the hosts."""
    has_metrics: bool = True
    begin: datetime = BEGIN
    name: str = "story"

    @property
    def timeline(self) -> tuple[Phase, ...]:
        """Its phases in order, without the closing one."""
        if self.phases is not None:
            return self.phases
        up = (Phase("Uploading", self.uploading_s, "Uploading generated training model"),)
        return (
            Phase("Starting", self.starting_s, "Preparing the instances for training"),
            Phase("Downloading", self.downloading_s),
            Phase("Training", 60 * longest(self.hosts), "Training image download completed."),
            *(up if self.uploading_s else ()),
        )

    @property
    def span_s(self) -> int:
        """Seconds from the first download to the end."""
        names = [phase.status for phase in self.timeline]
        first = names.index("Downloading") if "Downloading" in names else len(names)
        return sum(phase.seconds for phase in self.timeline[first:])

    @property
    def billed_s(self) -> int:
        """Seconds that AWS bills."""
        if self.billable is not None:
            return self.billable
        share = self.spot_billed_share
        return self.span_s if share is None else int(self.span_s * share)


def one_host(*doings: Doing) -> tuple[Host, ...]:
    """A host that does one thing after the other."""
    return (doings,)


def identical_hosts(hosts: int, *doings: Doing) -> tuple[Host, ...]:
    """Several hosts that all do the same, one thing after the other."""
    return (doings,) * hosts


def longest(hosts: Sequence[Host]) -> int:
    """Minutes of the host that works longest."""
    return max(sum(doing.minutes for doing in host) for host in hosts)


def channel(
    name: str = "train",
    mode: str = "FastFile",
    distribution: str = "FullyReplicated",
    uri: str | None = None,
) -> Json:
    """One S3 channel."""
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": uri or f"s3://bucket/{name}",
        "S3DataDistributionType": distribution,
    }
    return {
        "ChannelName": name,
        "InputMode": mode,
        "DataSource": {"S3DataSource": source},
        "CompressionType": "None",
        "RecordWrapperType": "None",
    }


def training(plot: Plot, seed: int) -> Json:
    """The recording of a training job, whose name ends in the seed.

    A GPU's first points come minutes late, and some points are missing.
    """
    name = f"{plot.name}-{seed}"
    work = plot.begin
    for phase in plot.timeline:
        if phase.status == "Training":
            break
        work += timedelta(seconds=phase.seconds)
    series: Series = []
    if plot.has_metrics:
        series = series_of(name, plot.instance, plot.hosts, work, plot.missing_share)
    series += [
        {"host": name, "metric": metric, "start": _first(work), "values": values}
        for metric, values in plot.curves.items()
    ]
    return recording(_answer(plot, name), series, plot.tags)


def _answer(plot: Plot, name: str) -> Json:
    """As DescribeTrainingJob gives it."""
    seconds, closing = plot.span_s, plot.closing or plot.status
    steps = list(_transitions(plot, closing))
    started = next((s["StartTime"] for s in steps if s["Status"] == "Downloading"), None)
    channels = (channel(),) if plot.channels is None else plot.channels
    answer: Json = {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}",
        "TrainingJobStatus": plot.status,
        "SecondaryStatus": closing,
        "HyperParameters": {
            "sagemaker_program": '"train.py"',
            "sagemaker_job_name": f'"{name}"',
            "sagemaker_region": f'"{REGION}"',
            "sagemaker_container_log_level": "20",
            **plot.hyperparameters,
        },
        "AlgorithmSpecification": {
            "TrainingImage": plot.image,
            "TrainingInputMode": plot.mode,
            "EnableSageMakerMetricsTimeSeries": True,
        },
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/SageMakerTrainingRole",
        "InputDataConfig": list(channels),
        "OutputDataConfig": {"KmsKeyId": "", "S3OutputPath": f"{BUCKET}/"},
        "ResourceConfig": {
            "InstanceType": plot.instance,
            "InstanceCount": len(plot.hosts),
            "VolumeSizeInGB": plot.volume_gb,
            **plot.resources,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": max(3600, 2 * seconds)},
        "CreationTime": stamp(plot.begin),
        "LastModifiedTime": steps[-1]["EndTime"],
        "SecondaryStatusTransitions": steps,
        "EnableNetworkIsolation": False,
        "EnableInterContainerTrafficEncryption": False,
        "EnableManagedSpotTraining": plot.spot_billed_share is not None,
        "ProfilingStatus": "Disabled",
    }
    if started:
        answer |= {
            "TrainingStartTime": started,
            "TrainingEndTime": steps[-1]["EndTime"],
            "TrainingTimeInSeconds": seconds,
            "BillableTimeInSeconds": plot.billed_s,
        }
    if plot.artifact and (plot.uploading_s or plot.phases):
        model = f"{BUCKET}/{name}/output/model.tar.gz"
        answer["ModelArtifacts"] = {"S3ModelArtifacts": model}
    if plot.failure:
        answer["FailureReason"] = plot.failure
    return answer | plot.describe


def _transitions(plot: Plot, closing: str) -> Iterator[Json]:
    clock = plot.begin
    for phase in plot.timeline:
        start, clock = clock, clock + timedelta(seconds=phase.seconds)
        yield transition(phase.status, start, clock, phase.message)
    yield transition(closing, clock, clock, plot.failure or f"Training job {closing.lower()}")


def transition(name: str, start: datetime, end: datetime, message: str = "") -> Json:
    """One secondary status transition."""
    times = {"StartTime": stamp(start), "EndTime": stamp(end)}
    return {"Status": name, **times, "StatusMessage": message}


def recording(answer: Json, series: Series, tags: dict[str, str]) -> Json:
    """The file's form."""
    return {
        "describe": answer,
        "tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "metrics": {"period_s": 60, "series": series},
        "region": REGION,
        "account": ACCOUNT,
    }


def stamp(moment: datetime) -> str:
    """As AWS prints a time."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}+00:00"


def machine(instance: str) -> InstanceType:
    """What the instance has."""
    return packaged.types()[instance]


def series_of(
    job: str, instance: str, hosts: Sequence[Host], work: datetime, missing_share: float = 0.0
) -> Series:
    """What CloudWatch has of each host and metric from the first full minute of the work on.

    A host that ends before the others is idle to the end.
    """
    on, minutes = machine(instance), longest(hosts)
    series = [
        {"host": host, "metric": metric, "start": _first(work), "values": values}
        for number, doings in enumerate(hosts, start=1)
        for host in (f"{job}/algo-{number}",)
        for metric, values in _values(
            on,
            [doing.on(on) for doing in (*doings, idle(minutes - longest([doings])))],
            random.Random(f"{job}|{host}"),
        ).items()
    ]
    return list(_with_holes(series, random.Random(f"{job} gaps"), missing_share))


def _first(work: datetime) -> str:
    return f"{work.replace(second=0) + _MINUTE:%Y-%m-%dT%H:%M:%SZ}"


def _values(
    on: InstanceType, stretches: Sequence[_Shown], dice: random.Random
) -> dict[str, list[float | None]]:
    """The points of each metric of one host."""
    points: dict[str, list[float | None]] = {
        "CPUUtilization": [],
        "MemoryUtilization": [],
        "DiskUtilization": [],
        **({"GPUUtilization": [], "GPUMemoryUtilization": []} if on.gpus else {}),
    }

    def draw(metric: str, mean: float, spread: float, most: float = 100.0) -> None:
        drawn = max(0.0, dice.gauss(mean, mean * spread)) if mean > 0 else 0.0
        points[metric].append(round(min(most, drawn), 3))

    for shown in (stretch for stretch in stretches for _ in range(stretch.minutes)):
        draw("CPUUtilization", shown.cpu, shown.cpu_spread, 100.0 * on.vcpu)
        draw("MemoryUtilization", shown.memory, _MEMORY_SPREAD)
        draw("DiskUtilization", shown.disk, _DISK_SPREAD)
        if on.gpus:
            gpus = 100.0 * on.gpus
            draw("GPUUtilization", shown.gpu, shown.gpu_spread, shown.gpu_ceiling or gpus)
            draw("GPUMemoryUtilization", shown.gpu_memory, _GPU_MEMORY_SPREAD, gpus)
    return points


def _with_holes(series: Series, dice: random.Random, missing_share: float) -> Iterator[Json]:
    """As CloudWatch gives points: a GPU's first ones minutes late, and some not at all."""
    late = {line["host"]: dice.choice((3, 4, 5, 6)) for line in series}
    for line in series:
        values = [None if dice.random() < missing_share else value for value in line["values"]]
        missing = min(late[line["host"]], len(values)) if "GPU" in line["metric"] else 0
        yield {**line, "values": [None] * missing + values[missing:]}


class Batchwork(Struct, frozen=True):
    """A processing or transform job: hosts as in a training job, and what its answer adds."""

    kind: str
    instance: str
    hosts: tuple[Host, ...]
    describe: Json = field(default_factory=dict)
    name: str = "story"


def batchwork(work: Batchwork, seed: int) -> Json:
    """The recording of a processing or transform job, whose name ends in the seed.

    A GPU's first points come minutes late. The hosts of a transform job are named by instance ids
    and have no disk metric.
    """
    name = f"{work.name}-{seed}"
    start = BEGIN + timedelta(seconds=_BATCH_STARTING_S)
    end = start + timedelta(minutes=longest(work.hosts))
    cluster = {"InstanceType": work.instance, "InstanceCount": len(work.hosts)}
    resources: Json = {"TransformResources": cluster}
    if work.kind == "Processing":
        resources = {
            "ProcessingResources": {"ClusterConfig": {**cluster, "VolumeSizeInGB": 30}},
            "AppSpecification": {"ImageUri": SKLEARN},
            "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
            "LastModifiedTime": stamp(end + timedelta(milliseconds=366)),
        }
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{_SLUGS[work.kind]}/{name}"
    answer = {
        f"{work.kind}JobName": name,
        f"{work.kind}JobArn": arn,
        f"{work.kind}JobStatus": "Completed",
        "CreationTime": stamp(BEGIN),
        f"{work.kind}StartTime": stamp(start),
        f"{work.kind}EndTime": stamp(end),
        **resources,
        **work.describe,
    }
    series = series_of(name, work.instance, work.hosts, start)
    if work.kind == "Transform":
        series = [line for line in series if line["metric"] != "DiskUtilization"]
        for line in series:
            number = int(line["host"].rpartition("-")[2])
            line["host"] = f"{name}/i-0c41d7a92be5f{number:04x}"
    return recording(answer, series, {})


def search(name: str, ended: datetime, answer: Json, trials: Sequence[Json]) -> Json:
    """The recording of a tuning job, whose trials then carry its ARN; `answer` adds to its own."""
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/{name}"
    for trial in trials:
        trial["describe"]["TuningJobArn"] = arn
    own: Json = {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobArn": arn,
        "HyperParameterTuningJobStatus": "Completed",
        "HyperParameterTuningEndTime": stamp(ended),
        "LastModifiedTime": stamp(ended),
        **answer,
    }
    return {"region": REGION, "account": ACCOUNT, "describe": own}
