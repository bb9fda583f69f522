"""Recordings of simulated SageMaker jobs: training, processing, transform and tuning jobs."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field

from tests.labelled.machine import Host, Json, Series, first_minute, longest, series_of

BEGIN = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
REGION, ACCOUNT = "us-east-1", "111122223333"
BUCKET = f"s3://sagemaker-{REGION}-{ACCOUNT}"
PYTORCH = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.1-gpu-py310"
SKLEARN = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1"
_BATCH_STARTING_S = 150
_SLUGS = {"Processing": "processing-job", "Transform": "transform-job"}


class Phase(Struct, frozen=True):
    """One secondary status of a training job."""

    status: str
    seconds: int
    message: str = ""


class Plot(Struct, frozen=True):
    """A training job: its instance type, what each host does, and its settings.

    `phases` replaces the usual ones, which have the given seconds and the minutes of the longest
    host. `describe` and `resources` add to the answer and to its ResourceConfig. All seconds from
    the first download on are billed, or `billable` of them, or the share `spot_billed_share`.
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
    """Share of the hosts' points that CloudWatch lacks."""
    has_metrics: bool = True
    begin: datetime = BEGIN
    name: str = "story"

    @property
    def timeline(self) -> tuple[Phase, ...]:
        """Its phases in order, without the final status."""
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


def channel(
    name: str = "train",
    mode: str = "FastFile",
    distribution: str = "FullyReplicated",
    uri: str | None = None,
) -> Json:
    """Returns one S3 channel."""
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
    """Returns the recording of a training job, whose name ends in the seed.

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
        {"host": name, "metric": metric, "start": first_minute(work), "values": values}
        for metric, values in plot.curves.items()
    ]
    return recording(_answer(plot, name), series, plot.tags)


def _answer(plot: Plot, name: str) -> Json:
    """Returns the answer of DescribeTrainingJob."""
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
    """Returns one secondary status transition."""
    times = {"StartTime": stamp(start), "EndTime": stamp(end)}
    return {"Status": name, **times, "StatusMessage": message}


def recording(answer: Json, series: Series, tags: dict[str, str]) -> Json:
    """Returns a recording in the format of its file."""
    return {
        "describe": answer,
        "tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "metrics": {"period_s": 60, "series": series},
        "region": REGION,
        "account": ACCOUNT,
    }


def stamp(moment: datetime) -> str:
    """Formats a time as AWS does."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}+00:00"


class Batchwork(Struct, frozen=True):
    """A processing or transform job: hosts as in a training job, and additions to its answer."""

    kind: str
    instance: str
    hosts: tuple[Host, ...]
    describe: Json = field(default_factory=dict)
    name: str = "story"


def batchwork(work: Batchwork, seed: int) -> Json:
    """Returns the recording of a processing or transform job, whose name ends in the seed.

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
    """Returns the recording of a tuning job, and sets its ARN in the trials.

    `answer` adds to the job's own answer.
    """
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
