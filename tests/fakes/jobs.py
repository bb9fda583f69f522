"""Builders of small jobs, series and price books. Times are UTC, rates are made up."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from msgspec import Struct, field

from sageaudit.domain.job.failure_words import parse_failure
from sageaudit.domain.job.job import InstanceGroup, Job, Phase
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.prices.market import InstanceType, Market, Rate
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, MissingMetrics, RawSeries
from sageaudit.structs import replace

ACCOUNT, REGION = "111122223333", "us-east-1"
START = datetime(2026, 5, 20, 10, 0, tzinfo=UTC)
"""When the billed time of `job` begins."""

Points = Sequence[float | None]
_T = TypeVar("_T")


def not_none(value: _T | None) -> _T:
    """Returns the value, which must not be None."""
    assert value is not None
    return value


def instance_type(name: str, vcpu: int, memory_gib: int, **changes: Any) -> InstanceType:
    """Returns a CPU type with EBS storage, with changes."""
    plain = InstanceType(
        name=name,
        family=name.split(".")[1],
        category="general",
        vcpu=vcpu,
        memory_gib=Decimal(memory_gib),
        gpus=0,
        gpu_model=None,
        gpu_memory_gib=None,
        accelerator=None,
        is_ebs_billed=True,
        is_legacy=False,
        network_gbps=Decimal(10),
    )
    return replace(plain, **changes)


def gpu_type(name: str, vcpu: int, memory_gib: int, gpus: int, model: str) -> InstanceType:
    """Returns a GPU type with local NVMe and 16 GiB per GPU."""
    return instance_type(
        name,
        vcpu,
        memory_gib,
        category="gpu",
        gpus=gpus,
        gpu_model=model,
        gpu_memory_gib=Decimal(16),
        accelerator="nvidia",
        is_ebs_billed=False,
    )


TYPES = {
    kind.name: kind
    for kind in (
        instance_type("ml.m5.large", 2, 8),
        instance_type("ml.m5.xlarge", 4, 16),
        instance_type("ml.m5.2xlarge", 8, 32),
        instance_type("ml.m5.4xlarge", 16, 64),
        gpu_type("ml.g4dn.xlarge", 4, 16, 1, "T4"),
        gpu_type("ml.g4dn.2xlarge", 8, 32, 1, "T4"),
        gpu_type("ml.g4dn.4xlarge", 16, 64, 1, "T4"),
        gpu_type("ml.g4dn.12xlarge", 48, 192, 4, "T4"),
        gpu_type("ml.g5.2xlarge", 8, 32, 1, "A10G"),
        instance_type("ml.odd.xlarge", 4, 16, is_ebs_billed=None),
        instance_type("ml.unpriced.xlarge", 4, 16),
    )
}
HOURLY_USD = {
    "ml.m5.large": "0.115",
    "ml.m5.xlarge": "0.23",
    "ml.m5.2xlarge": "0.46",
    "ml.m5.4xlarge": "0.92",
    "ml.g4dn.xlarge": "0.736",
    "ml.g4dn.2xlarge": "0.94",
    "ml.g4dn.4xlarge": "1.505",
    "ml.g4dn.12xlarge": "4.89",
    "ml.g5.2xlarge": "1.515",
    "ml.odd.xlarge": "0.50",
}

TRAINIUM = instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron")
"""A type for whose accelerator CloudWatch has no metric."""


class FixedPrices(Struct, frozen=True):
    """Fixed rates in one region, equal for all components except Processing's storage.

    `estimated`: types whose rate is an estimate.
    """

    hourly_usd: Mapping[str, str] = field(default_factory=lambda: HOURLY_USD)
    storage_usd: str | None = "0.14"
    region: str = REGION
    estimated: frozenset[str] = frozenset()

    @property
    def version(self) -> str:
        return "fixed"

    def hourly_rate(self, region: str, component: Component, instance_type: str) -> Rate | None:
        usd = self.hourly_usd.get(instance_type) if region == self.region else None
        if usd is not None and instance_type in self.estimated:
            how = estimate_note(instance_type)
            return Rate(Decimal(usd), "2026-05-20", "fixed", kind="estimate", estimate_basis=how)
        return None if usd is None else Rate(Decimal(usd), "2026-05-20", "fixed")

    def newest_hourly_rate(
        self, region: str, component: Component, instance_type: str
    ) -> Rate | None:
        return self.hourly_rate(region, component, instance_type)

    def storage_rate(self, region: str, component: Component) -> Rate | None:
        if self.storage_usd is None or region != self.region:
            return None
        usd = "0.10" if component is Component.PROCESSING else self.storage_usd
        return Rate(Decimal(usd), "2026-05-20", "fixed")

    def usage_type(self, region: str, component: Component, product: str) -> str | None:
        return f"USE1-{component.value}:{product}" if region == self.region else None

    def absence_reason(self, region: str, component: Component, product: str) -> str | None:
        return None


def estimate_note(instance_type: str) -> str:
    """Returns a bill's note about an estimated rate."""
    return (
        f"SageMaker's rate for {instance_type} is not known here; estimated from EC2's rate x 1.20"
    )


def market(**changes: Any) -> Market:
    """Returns a market of TYPES at HOURLY_USD; `changes` are those of FixedPrices."""
    return Market(TYPES, FixedPrices(**changes))


def job(instance: str = "ml.g5.2xlarge", instances: int = 1, **changes: Any) -> Job:
    """Returns an on-demand job of 3 billed hours.

    It downloads for 20 minutes, trains for 159 and uploads for 1.
    """
    plain = Job(
        kind=JobKind.TRAINING,
        name="train",
        arn=f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/train",
        account=ACCOUNT,
        region=REGION,
        status="Completed",
        secondary_status="Completed",
        created_at=START - timedelta(minutes=2),
        started_at=START,
        ended_at=START + timedelta(hours=3),
        last_modified_at=START + timedelta(hours=3),
        phases=phases(
            ("Starting", -120), ("Downloading", 1200), ("Training", 9540), ("Uploading", 60)
        ),
        groups=(InstanceGroup(instance, instances),),
        training_s=Decimal(10800),
        billable_s=Decimal(10800),
        volume_gb=30,
        channels=(InputChannel("train", DataSource.S3, "File", "FullyReplicated"),),
        image="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.0",
        max_runtime_s=86400,
        has_artifact=True,
    )
    return replace(plain, **changes)


def ran(
    seconds: int,
    instance: str = "ml.m5.xlarge",
    instances: int = 1,
    *,
    at: datetime = START,
    **changes: Any,
) -> Job:
    """Returns a job that trained for this many seconds, without other phases.

    `failure` may be a text.
    """
    plain: dict[str, Any] = {
        "started_at": at,
        "ended_at": at + timedelta(seconds=seconds),
        "phases": phases(("Training", seconds), at=at),
        "training_s": Decimal(seconds),
        "billable_s": Decimal(seconds),
    }
    if isinstance(text := changes.get("failure"), str):
        changes["failure"] = parse_failure(text)
    return job(instance, instances, **plain | changes)


def phased_job(
    *parts: tuple[str, int], instance: str = "ml.g5.2xlarge", instances: int = 1, **changes: Any
) -> Job:
    """Returns a training job of these phases, in billed seconds, after a minute of Starting."""
    seconds = Decimal(sum(part_s for _, part_s in parts if part_s > 0))
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), *parts),
        "training_s": seconds,
        "billable_s": seconds,
    }
    return job(instance, instances, **plain | changes)


def never_started(status: str = "Failed") -> Job:
    """Returns a job that ended before an instance started: nothing is billed."""
    return job(
        status=status,
        started_at=None,
        ended_at=None,
        training_s=None,
        billable_s=None,
        phases=phases(("Starting", -600)),
    )


def batch_job(
    kind: JobKind, seconds: int, instance: str = "ml.m5.xlarge", instances: int = 1, **changes: Any
) -> Job:
    """Returns a processing or transform job of one phase.

    AWS gives it no billable seconds.
    """
    plain: dict[str, Any] = {
        "phases": phases((kind.value.capitalize(), seconds)),
        "training_s": None,
        "billable_s": None,
    }
    return ran(seconds, instance, instances, kind=kind, **plain | changes)


def phases(*parts: tuple[str, int], at: datetime = START) -> tuple[Phase, ...]:
    """Returns consecutive phases; a negative length lies before the start and is not billed."""
    phase_list, moment = [], at
    for name, seconds in parts:
        if seconds < 0:
            begun = at + timedelta(seconds=seconds)
            phase_list.append(Phase(name, begun, Decimal(-seconds), billed=False))
        else:
            phase_list.append(Phase(name, moment, Decimal(seconds), billed=True))
            moment += timedelta(seconds=seconds)
    return tuple(phase_list)


def series(
    metric: Metric,
    values: Points,
    *,
    host: str = "train/algo-1",
    start: datetime = START,
    period_s: int = 60,
) -> RawSeries:
    """Returns a series as CloudWatch gives it: sums over cores or GPUs."""
    return RawSeries(host, metric.value, start, period_s, tuple(values))


def usage(on: Job, *raw: RawSeries, types: Mapping[str, InstanceType] = TYPES) -> Measurements:
    """Returns the measurements of a job from these series."""
    return measure(on, raw, types, missing_reason=MissingMetrics("metric_missing", "no points"))


def host_series(
    host: str, points: Mapping[str, Points], *, start: datetime = START, period_s: int = 60
) -> list[RawSeries]:
    """Returns one host's series from points of each metric.

    `cores` are busy cores; `gpu`, `memory`, `gpu_memory` and `disk` are percents. For several GPUs,
    `gpu` and `gpu_memory` are sums.
    """
    return [
        series(
            Metric.CPU if word == "cores" else Metric[word.upper()],
            [None if v is None else 100 * v for v in values] if word == "cores" else values,
            host=host,
            start=start,
            period_s=period_s,
        )
        for word, values in points.items()
    ]


def by_point(
    on: Job,
    hosts: int,
    percent: Mapping[str, Points],
    *,
    period_s: int = 60,
    types: Mapping[str, InstanceType] = TYPES,
) -> Measurements:
    """Returns measurements in which each host has the same use, from the start of Training.

    `percent`: points of `cpu`, `memory`, `gpu` and `gpu_memory` (0 to 100).
    """
    kind = types[on.groups[0].instance_type]
    times = {"cpu": kind.vcpu, "gpu": kind.gpus, "gpu_memory": kind.gpus}
    begun = next((p.started_at for p in on.phases if p.name == "Training"), None) or START
    raw = (
        series(
            Metric[word.upper()],
            [None if value is None else value * times.get(word, 1) for value in values],
            host=f"{on.name}/algo-{number}",
            start=begun,
            period_s=period_s,
        )
        for word, values in percent.items()
        for number in range(1, hosts + 1)
    )
    return usage(on, *raw, types=types)


def even(points: int, percent: Mapping[str, float]) -> dict[str, Points]:
    """Returns this many equal points for each metric."""
    return {word: [value] * points for word, value in percent.items()}


def flat(on: Job, minutes: int, hosts: int = 1, **percent: float) -> Measurements:
    """Returns measurements of constant use in Training's first minutes.

    `percent`: `cpu`, `memory`, `gpu` and `gpu_memory` (0 to 100).
    """
    return by_point(on, hosts, even(minutes, percent))


def transition(status: str, start: str, end: str | None = None) -> dict[str, Any]:
    """Returns one secondary status transition on 2026-05-20; times are HH:MM:SS."""
    row: dict[str, Any] = {"Status": status, "StartTime": f"2026-05-20T{start}Z"}
    return row if end is None else row | {"EndTime": f"2026-05-20T{end}Z"}


def training_answer(**changes: Any) -> dict[str, Any]:
    """Returns DescribeTrainingJob's answer for one hour on two GPU instances."""
    name = changes.get("TrainingJobName", "train-vision")
    return {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{str(name).lower()}",
        "TrainingJobStatus": "Completed",
        "SecondaryStatus": "Completed",
        "ModelArtifacts": {"S3ModelArtifacts": "s3://bucket/out/model.tar.gz"},
        "AlgorithmSpecification": {
            "TrainingImage": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.0",
            "TrainingInputMode": "File",
        },
        "ResourceConfig": {
            "InstanceType": "ml.g4dn.xlarge",
            "InstanceCount": 2,
            "VolumeSizeInGB": 50,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
        "CreationTime": "2026-05-20T09:58:00Z",
        "TrainingStartTime": "2026-05-20T10:00:00Z",
        "TrainingEndTime": "2026-05-20T11:00:00Z",
        "LastModifiedTime": "2026-05-20T11:00:01Z",
        "SecondaryStatusTransitions": [
            transition("Starting", "09:58:00", "10:00:00"),
            transition("Downloading", "10:00:00", "10:10:00"),
            transition("Training", "10:10:00", "10:58:00"),
            transition("Uploading", "10:58:00", "11:00:00"),
            transition("Completed", "11:00:00", "11:00:00"),
        ],
        "TrainingTimeInSeconds": 3600,
        "BillableTimeInSeconds": 3600,
    } | changes
