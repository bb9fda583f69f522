"""The form of a scenario: a story, the recording it would leave behind, and an expert's verdict.

Nothing here knows the code that is judged. Metrics are drawn from the job's and host's names.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from .load import Load, Seg, Series, series_of
from .machines import MACHINES, MAY_HOURS, TRAINING_GB_MONTH, Range, cents

Json = dict[str, Any]
Topic = str | frozenset[str]  # a frozenset: any one of them satisfies an expert

REGION = "us-east-1"
ACCOUNT = "111122223333"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/SageMakerTrainingRole"

PYTORCH = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.3.0-gpu-py311-cu121"
HUGGING = (
    "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:"
    "2.1.0-transformers4.36.0-gpu-py310-cu121-ubuntu20.04"
)
NEURON = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:2.1.2-neuronx-py310"
XGBOOST = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"
SKLEARN = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1-cpu-py3"


@dataclass(frozen=True)
class Phase:
    status: str
    seconds: int
    message: str = ""


def run_phases(
    training_min: int, down: int = 240, up: int = 90, starting: int = 200
) -> tuple[Phase, ...]:
    """The phases of a run that ends well; seconds but for the training minutes."""
    return (
        Phase("Starting", starting, "Preparing the instances for training"),
        Phase("Downloading", down, "Downloading the training image"),
        Phase("Training", training_min * 60, "Training image download completed."),
        Phase("Uploading", up, "Uploading generated training model"),
    )


@dataclass(frozen=True)
class Expert:
    judged: str  # yes | partly | no
    wasted_usd: Range | None
    lost_usd: Range | None
    idle_hours: Range | None
    must_say: tuple[Topic, ...]
    must_not_say: tuple[str, ...]
    says: str
    # avoidable and lost added up, where a dollar may honestly stand in either; else their sum
    together_usd: Range | None = None


@dataclass(frozen=True)
class Scenario:
    name: str
    story: str
    build: Callable[[], Json]
    bill_usd: Decimal | None  # on-demand equivalent; None: not knowable; 0: prepaid or not started
    paid_hours: Decimal | None  # device-hours (GPU, else vCPU) paid, at most
    expert: Expert

    def recording(self) -> Json:
        return self.build()


def stamp(when: datetime) -> str:
    """As AWS prints a time."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}+00:00"


def day(number: int, hour: int = 8, minute: int = 0) -> datetime:
    """A moment in May 2026, UTC."""
    return datetime(2026, 5, number, hour, minute, 7, 412000, tzinfo=UTC)


def same(hosts: int, *segs: Seg) -> tuple[Load, ...]:
    """So many hosts that do the same."""
    return (tuple(segs),) * hosts


@dataclass(frozen=True)
class Job:
    """One training job: how it was asked for, what happened, what its hosts did."""

    name: str
    kind: str
    began: datetime
    phases: tuple[Phase, ...]
    hosts: tuple[Load, ...]
    status: str = "Completed"
    ending: str = ""  # last secondary status, default the status
    image: str = PYTORCH
    volume_gb: int = 100
    artifact: bool = True
    failure: str = ""
    max_runtime_h: float = 24.0
    billable: int | None = None  # default: every second from download to end
    tell_billable: bool = True
    describe: Json = field(default_factory=dict)  # further or other members of the answer
    resources: Json = field(default_factory=dict)  # further members of ResourceConfig
    mode: str = "FastFile"
    distribution: str = "FullyReplicated"
    prepaid: bool = False
    retained: int = 0  # seconds of the warm pool
    edit: Callable[[Series], Series] | None = None
    tags: tuple[tuple[str, str], ...] = (("team", "research"), ("project", "foundation"))
    script: str = "train.py"

    # -- truths -------------------------------------------------------------------------------
    def span(self) -> int:
        """Seconds from the first download to the end."""
        return sum(p.seconds for p in self.phases[self._first() :])

    def _first(self) -> int:
        for i, phase in enumerate(self.phases):
            if phase.status == "Downloading":
                return i
        return len(self.phases)

    def billed(self) -> int:
        return self.span() if self.billable is None else self.billable

    def hours(self) -> float:
        return self.billed() / 3600

    def bill(self) -> Decimal | None:
        if self.prepaid:
            return Decimal(0)
        box = MACHINES[self.kind]
        if box.usd_hour is None:
            return None
        seconds = Decimal(self.billed() + self.retained)
        hours = seconds / 3600 * len(self.hosts)
        total = hours * box.usd_hour
        if box.ebs:
            total += self.volume_gb * hours / MAY_HOURS * TRAINING_GB_MONTH
        return total.quantize(Decimal("0.0001"))

    def cost(self) -> Decimal:
        total = self.bill()
        if total is None:
            raise ValueError(self.name)
        return total

    def share(self, low: float, high: float) -> Range:
        """A range of dollars as shares of the bill."""
        total = self.cost()
        return cents(total * Decimal(str(low)), total * Decimal(str(high)))

    def paid(self) -> float:
        box = MACHINES[self.kind]
        return self.hours() * len(self.hosts) * (box.gpus or box.vcpu)

    def worked(self) -> float:
        gpu = bool(MACHINES[self.kind].gpus)
        total = sum((s.gpu if gpu else s.cpu) * s.minutes for load in self.hosts for s in load)
        return total / 6000

    def idle(self, low_less: float = 0.0, high_more: float = 0.0) -> Range:
        """Device-hours paid and not worked: at least within Training, at most of all billed."""
        box = MACHINES[self.kind]
        seen = sum(s.minutes for load in self.hosts for s in load) / 60 * (box.gpus or box.vcpu)
        inside = max(0.0, min(seen, self.paid()) - self.worked())
        whole = max(0.0, self.paid() - self.worked())
        low = max(0.0, 0.95 * inside - 0.01 * self.paid() - low_less)
        high = min(self.paid(), 1.03 * whole + 0.015 * self.paid() + high_more)
        return cents(low, high)

    # -- the recording ------------------------------------------------------------------------
    def answer(self) -> Json:
        clock = self.began
        steps: list[Json] = []
        start = end = None
        for phase in self.phases:
            if phase.status == "Downloading" and start is None:
                start = clock
            step = {"Status": phase.status, "StartTime": stamp(clock)}
            clock += timedelta(seconds=phase.seconds)
            if not (self.status == "InProgress" and phase is self.phases[-1]):
                step["EndTime"] = stamp(clock)
            step["StatusMessage"] = phase.message
            steps.append(step)
        ending = self.ending or self.status
        if self.status != "InProgress":
            end = clock
            last = {"Status": ending, "StartTime": stamp(clock), "EndTime": stamp(clock)}
            last["StatusMessage"] = self.failure or f"Training job {ending.lower()}"
            steps.append(last)
        bucket = f"s3://sagemaker-{REGION}-{ACCOUNT}"
        source = {
            "S3DataType": "S3Prefix",
            "S3Uri": f"{bucket}/datasets/{self.script[:-3]}/train/",
            "S3DataDistributionType": self.distribution,
        }
        limit: Json = {"MaxRuntimeInSeconds": int(self.max_runtime_h * 3600)}
        out: Json = {
            "TrainingJobName": self.name,
            "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{self.name}",
            "ModelArtifacts": {
                "S3ModelArtifacts": f"{bucket}/{self.name}/output/model.tar.gz"
                if self.artifact
                else ""
            },
            "TrainingJobStatus": self.status,
            "SecondaryStatus": ending if end else self.phases[-1].status,
            "HyperParameters": {
                "sagemaker_program": f'"{self.script}"',
                "sagemaker_job_name": f'"{self.name}"',
                "sagemaker_region": f'"{REGION}"',
                "sagemaker_container_log_level": "20",
            },
            "AlgorithmSpecification": {
                "TrainingImage": self.image,
                "TrainingInputMode": self.mode,
                "EnableSageMakerMetricsTimeSeries": True,
            },
            "RoleArn": ROLE,
            "InputDataConfig": [
                {
                    "ChannelName": "train",
                    "DataSource": {"S3DataSource": source},
                    "CompressionType": "None",
                    "RecordWrapperType": "None",
                }
            ],
            "OutputDataConfig": {"KmsKeyId": "", "S3OutputPath": f"{bucket}/"},
            "ResourceConfig": {
                "InstanceType": self.kind,
                "InstanceCount": len(self.hosts),
                "VolumeSizeInGB": self.volume_gb,
                **self.resources,
            },
            "StoppingCondition": limit,
            "CreationTime": stamp(self.began),
            "LastModifiedTime": stamp(clock),
            "SecondaryStatusTransitions": steps,
            "EnableNetworkIsolation": False,
            "EnableInterContainerTrafficEncryption": False,
            "EnableManagedSpotTraining": False,
            "ProfilingStatus": "Disabled",
        }
        if start is not None:
            out["TrainingStartTime"] = stamp(start)
        if start is not None and end is not None:
            out["TrainingEndTime"] = stamp(end)
            out["TrainingTimeInSeconds"] = int((end - start).total_seconds())
            if self.tell_billable:
                out["BillableTimeInSeconds"] = self.billed()
        if not self.artifact:
            del out["ModelArtifacts"]
        if self.failure:
            out["FailureReason"] = self.failure
        out.update(self.describe)
        return out

    def series(self) -> Series:
        """One list per host and metric, from the first full minute of the first Training."""
        clock = self.began
        for phase in self.phases:
            if phase.status == "Training":
                break
            clock += timedelta(seconds=phase.seconds)
        out = series_of(self.name, self.kind, self.hosts, clock)
        return self.edit(out) if self.edit else out

    def recording(self) -> Json:
        return {
            "region": REGION,
            "account": ACCOUNT,
            "describe": self.answer(),
            "tags": [{"Key": k, "Value": v} for k, v in self.tags],
            "metrics": {"period_s": 60, "series": self.series()},
        }

    def scenario(self, name: str, story: str, expert: Expert) -> Scenario:
        # spot: the clock may have run longer than was billed; a pool counts as paid
        share = max(self.billed(), self.span()) + self.retained
        most = Decimal(str(round(self.paid() * share / max(1, self.billed()), 2)))
        known = self.tell_billable and self.status != "InProgress"
        bill = self.bill() if known else None
        return Scenario(name, story, self.recording, bill, most, expert)
