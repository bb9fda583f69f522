"""A made-up SageMaker job from what its programs did, minute by minute, as a recording.

It knows machines and work, and none of this project's thresholds: a loader that starves the GPU, a
process that never exits, a host with a third of the data. A stretch of minutes is told by what the
program does (`Doing`) or by what CloudWatch then shows (`Shown`). Noise is drawn from the names of
the job and the host, so that a job is the same each time.
"""

import random
from collections.abc import Callable, Iterator, Sequence
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
_ONE_CORE = 110
"""Percent of a core: a single core that spins hardly varies."""
_SLUGS = {"Processing": "processing-job", "Transform": "transform-job"}


class Shown(Struct, frozen=True):
    """What CloudWatch shows of each minute of a stretch, in percent.

    `gpu`, `cpu` and `gmem` are sums over devices: 350 of 400 for four. `wobble`: how unsteady the
    GPU is, as a share of itself; `unsteady`: the same of the CPU. `gone`: no machine, no points.
    `top`: the ceiling of the GPUs at work, where they are fewer than all.
    """

    minutes: int
    gpu: float
    cpu: float
    mem: float
    gmem: float
    wobble: float = 0.03
    disk: float = 0.4
    gone: bool = False
    top: float | None = None
    unsteady: float | None = None

    def on(self, machine: InstanceType) -> "Shown":
        """On any machine."""
        return self


class Doing(Struct, frozen=True):
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
    disk: float = 2.0

    def on(self, machine: InstanceType) -> Shown:
        """What that looks like on a machine."""
        device_gib = float(machine.gpu_memory_gib or 16)
        at_work = sum(share > 0 for share in self.gpus)
        return Shown(
            self.minutes,
            gpu=100 * sum(self.gpus),
            cpu=100 * self.cores,
            mem=min(100 * self.gib / float(machine.memory_gib), 100),
            gmem=sum(min(100 * gib / device_gib, 100) for gib in self.gpu_gib),
            wobble=self._spread(sum(self.gpus), at_work),
            unsteady=self._spread(self.cores, machine.vcpu),
            disk=self.disk,
            top=100.0 * at_work if at_work < machine.gpus else None,
        )

    def _spread(self, wanted: float, there: float) -> float:
        """As a share of itself: never far over what there is."""
        if not wanted:
            return 0.0
        return min(self.jitter, _SETTLES * (there - wanted) / wanted + 0.01)


Host = tuple[Doing | Shown, ...]


def idle(minutes: int) -> Doing:
    """Nothing: the operating system alone."""
    return Doing(minutes, cores=0.05, gib=2.0, jitter=0.3)


class Phase(Struct, frozen=True):
    """One secondary status of a training job."""

    status: str
    seconds: int
    message: str = ""


class Plot(Struct, frozen=True):
    """A training job to be told: where it runs, what each host does, and what surrounds it.

    `phases` stands for the usual ones of so many seconds, which have the length of the longest
    host. `describe` and `resources` add to the answer and to its ResourceConfig; `edit` changes the
    series. Billed are all seconds from the first download on, `billable` of them or a share.
    """

    instance: str
    hosts: tuple[Host, ...]
    image: str = PYTORCH
    starting_s: int = 90
    downloading_s: int = 60
    uploading_s: int = 20
    pulls: str = ""
    phases: tuple[Phase, ...] | None = None
    status: str = "Completed"
    closing: str = ""
    artifact: bool = True
    failure: str = ""
    curves: dict[str, list[float | None]] = field(default_factory=dict)
    describe: Json = field(default_factory=dict)
    resources: Json = field(default_factory=dict)
    hyperparameters: dict[str, str] = field(default_factory=dict)
    script: str = "train.py"
    channels: tuple[Json, ...] | None = None
    mode: str = "FastFile"
    max_runtime_s: int | None = None
    billable: int | None = None
    tell_billable: bool = True
    spot_billed_share: float | None = None
    tags: dict[str, str] = field(default_factory=dict)
    volume_gb: int | None = 30
    missing_share: float = 0.0
    """Of CloudWatch's points of the hosts."""
    edit: Callable[[Series], Series] | None = None
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
            Phase("Downloading", self.downloading_s, self.pulls),
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


def alike(hosts: int, *doings: Doing | Shown) -> tuple[Host, ...]:
    """So many hosts that do the same."""
    return (doings,) * hosts


def longest(hosts: Sequence[Host]) -> int:
    """Minutes of the host that works longest."""
    return max(sum(doing.minutes for doing in host) for host in hosts)


def channel(
    name: str = "train",
    mode: str | None = "FastFile",
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
        **({} if mode is None else {"InputMode": mode}),
        "DataSource": {"S3DataSource": source},
        "CompressionType": "None",
        "RecordWrapperType": "None",
    }


def training(plot: Plot, seed: int | None = None) -> Json:
    """The recording of a training job.

    With a seed its name ends in it, a GPU's first points come minutes late, and points are missing.
    """
    name = plot.name if seed is None else f"{plot.name}-{seed}"
    answer = _answer(plot, name)
    work = plot.begin
    for phase in plot.timeline:
        if phase.status == "Training":
            break
        work += timedelta(seconds=phase.seconds)
    series = series_of(name, plot.instance, plot.hosts, work)
    if seed is not None:
        series = list(_with_holes(series, random.Random(f"{name} gaps"), plot.missing_share))
    series += [
        {"host": name, "metric": metric, "start": _first(work), "values": values}
        for metric, values in plot.curves.items()
    ]
    return recording(answer, plot.edit(series) if plot.edit else series, plot.tags)


def _answer(plot: Plot, name: str) -> Json:
    """As DescribeTrainingJob gives it."""
    running, seconds = plot.status == "InProgress", plot.span_s
    closing = plot.closing or plot.status
    steps = list(_transitions(plot, closing))
    started = next((s["StartTime"] for s in steps if s["Status"] == "Downloading"), None)
    channels = (channel(),) if plot.channels is None else plot.channels
    limit_s = plot.max_runtime_s or max(3600, 2 * seconds)
    answer: Json = {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}",
        "TrainingJobStatus": plot.status,
        "SecondaryStatus": plot.timeline[-1].status if running else closing,
        "HyperParameters": {
            "sagemaker_program": f'"{plot.script}"',
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
            **({} if plot.volume_gb is None else {"VolumeSizeInGB": plot.volume_gb}),
            **plot.resources,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": limit_s},
        "CreationTime": stamp(plot.begin),
        "LastModifiedTime": steps[-1].get("EndTime", stamp(plot.begin + _length(plot.timeline))),
        "SecondaryStatusTransitions": steps,
        "EnableNetworkIsolation": False,
        "EnableInterContainerTrafficEncryption": False,
        "EnableManagedSpotTraining": plot.spot_billed_share is not None,
        "ProfilingStatus": "Disabled",
    }
    if started:
        answer["TrainingStartTime"] = started
    if started and not running:
        answer |= {"TrainingEndTime": steps[-1]["EndTime"], "TrainingTimeInSeconds": seconds}
        if plot.tell_billable:
            answer["BillableTimeInSeconds"] = plot.billed_s
    if plot.artifact and (plot.uploading_s or plot.phases):
        model = f"{BUCKET}/{name}/output/model.tar.gz"
        answer["ModelArtifacts"] = {"S3ModelArtifacts": model}
    if plot.failure:
        answer["FailureReason"] = plot.failure
    return answer | plot.describe


def _length(phases: Sequence[Phase]) -> timedelta:
    return timedelta(seconds=sum(phase.seconds for phase in phases))


def _transitions(plot: Plot, closing: str) -> Iterator[Json]:
    """Of a job that still runs the last phase is open."""
    clock, running = plot.begin, plot.status == "InProgress"
    for phase in plot.timeline:
        start, clock = clock, clock + timedelta(seconds=phase.seconds)
        step = transition(phase.status, start, clock, phase.message)
        if running and phase is plot.timeline[-1]:
            del step["EndTime"]
        yield step
    if not running:
        message = plot.failure or f"Training job {closing.lower()}"
        yield transition(closing, clock, clock, message)


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


def series_of(job: str, instance: str, hosts: Sequence[Host], work: datetime) -> Series:
    """What CloudWatch has of each host and metric from the first full minute of the work on.

    A host that ends before the others is idle to the end.
    """
    on, minutes = machine(instance), longest(hosts)
    return [
        {"host": host, "metric": metric, "start": _first(work), "values": values}
        for number, doings in enumerate(hosts, start=1)
        for host in (f"{job}/algo-{number}",)
        for metric, values in _values(
            on,
            [doing.on(on) for doing in (*doings, idle(minutes - longest([doings])))],
            random.Random(f"{job}|{host}"),
        ).items()
    ]


def _first(work: datetime) -> str:
    return f"{work.replace(second=0) + _MINUTE:%Y-%m-%dT%H:%M:%SZ}"


def _values(
    on: InstanceType, shown: Sequence[Shown], dice: random.Random
) -> dict[str, list[float | None]]:
    """The points of each metric of one host."""
    metrics = ["CPUUtilization", "MemoryUtilization", "DiskUtilization"]
    metrics += ["GPUUtilization", "GPUMemoryUtilization"] if on.gpus else []
    points: dict[str, list[float | None]] = {metric: [] for metric in metrics}

    def draw(mean: float, wobble: float, most: float) -> float:
        return round(min(most, max(0.0, dice.gauss(mean, mean * wobble))), 3) if mean > 0 else 0.0

    for one in (stretch for stretch in shown for _ in range(stretch.minutes)):
        core = one.unsteady
        if core is None:
            core = 0.003 if one.cpu <= _ONE_CORE else 0.02
        drawn: list[float | None] = [None] * len(metrics)
        if not one.gone:
            drawn = [
                draw(one.cpu, core, 100.0 * on.vcpu),
                draw(one.mem, 0.006, 100.0),
                draw(one.disk, 0.01, 100.0),
            ]
            if on.gpus:
                drawn.append(draw(one.gpu, one.wobble, one.top or 100.0 * on.gpus))
                drawn.append(draw(one.gmem, 0.004, 100.0 * on.gpus))
        for metric, value in zip(metrics, drawn, strict=True):
            points[metric].append(value)
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
    begin: datetime = BEGIN
    starting_s: int = 150
    seconds: int | None = None
    volume_gb: int = 30
    image: str = SKLEARN
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def span_s(self) -> int:
        """Seconds on its instances."""
        return 60 * longest(self.hosts) if self.seconds is None else self.seconds


def batchwork(work: Batchwork, seed: int | None = None) -> Json:
    """The recording of a processing or transform job; with a seed as `training`.

    The hosts of a transform job are named by instance ids and have no disk metric.
    """
    name = work.name if seed is None else f"{work.name}-{seed}"
    start = work.begin + timedelta(seconds=work.starting_s)
    end = start + timedelta(seconds=work.span_s)
    cluster = {"InstanceType": work.instance, "InstanceCount": len(work.hosts)}
    resources: Json = {"TransformResources": cluster}
    if work.kind == "Processing":
        resources = {
            "ProcessingResources": {"ClusterConfig": {**cluster, "VolumeSizeInGB": work.volume_gb}},
            "AppSpecification": {"ImageUri": work.image},
            "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
            "LastModifiedTime": stamp(end + timedelta(milliseconds=366)),
        }
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{_SLUGS[work.kind]}/{name}"
    answer = {
        f"{work.kind}JobName": name,
        f"{work.kind}JobArn": arn,
        f"{work.kind}JobStatus": "Completed",
        "CreationTime": stamp(work.begin),
        f"{work.kind}StartTime": stamp(start),
        f"{work.kind}EndTime": stamp(end),
        **resources,
        **work.describe,
    }
    series = series_of(name, work.instance, work.hosts, start)
    if seed is not None:
        series = list(_with_holes(series, random.Random(f"{name} gaps"), 0.0))
    if work.kind == "Transform":
        series = [line for line in series if line["metric"] != "DiskUtilization"]
        for line in series:
            number = int(line["host"].rpartition("-")[2])
            line["host"] = f"{name}/i-0c41d7a92be5f{number:04x}"
    return recording(answer, series, work.tags)


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
