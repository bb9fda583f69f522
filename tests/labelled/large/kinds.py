"""Other kinds of recordings: processing jobs and the set of a tuning job."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from .form import ACCOUNT, REGION, ROLE, SKLEARN, Expert, Job, Json, Scenario, stamp
from .load import Load, Series, series_of
from .machines import MACHINES, MAY_HOURS, PROCESSING_GB_MONTH, Range, cents, rate


@dataclass(frozen=True)
class Processing:
    name: str
    kind: str
    began: datetime  # creation; the machines start five minutes later
    seconds: int
    hosts: tuple[Load, ...]
    volume_gb: int = 30
    status: str = "Completed"
    image: str = SKLEARN
    failure: str = ""
    max_runtime_h: float = 24.0
    edit: Callable[[Series], Series] | None = None

    def bill(self) -> Decimal:
        hours = Decimal(self.seconds) / 3600 * len(self.hosts)
        total = hours * rate(self.kind)
        if MACHINES[self.kind].ebs:
            total += self.volume_gb * hours / MAY_HOURS * PROCESSING_GB_MONTH
        return total.quantize(Decimal("0.0001"))

    def share(self, low: float, high: float) -> Range:
        return cents(self.bill() * Decimal(str(low)), self.bill() * Decimal(str(high)))

    def paid(self) -> float:
        box = MACHINES[self.kind]
        return self.seconds / 3600 * len(self.hosts) * (box.gpus or box.vcpu)

    def worked(self) -> float:
        gpu = bool(MACHINES[self.kind].gpus)
        return sum((s.gpu if gpu else s.cpu) * s.minutes for h in self.hosts for s in h) / 6000

    def idle(self) -> Range:
        idle = max(0.0, self.paid() - self.worked())
        low = max(0.0, 0.95 * idle - 0.015 * self.paid())
        return cents(low, min(self.paid(), 1.03 * idle + 0.015 * self.paid()))

    def answer(self) -> Json:
        start = self.began + timedelta(minutes=5)
        end = start + timedelta(seconds=self.seconds)
        bucket = f"s3://sagemaker-{REGION}-{ACCOUNT}/{self.name}"
        out: Json = {
            "ProcessingJobName": self.name,
            "ProcessingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:processing-job/{self.name}",
            "ProcessingJobStatus": self.status,
            "ProcessingInputs": [
                {
                    "InputName": "input-1",
                    "AppManaged": False,
                    "S3Input": {
                        "S3Uri": f"{bucket}/input/",
                        "LocalPath": "/opt/ml/processing/input",
                        "S3DataType": "S3Prefix",
                        "S3InputMode": "File",
                        "S3DataDistributionType": "ShardedByS3Key",
                        "S3CompressionType": "None",
                    },
                }
            ],
            "ProcessingOutputConfig": {
                "Outputs": [
                    {
                        "OutputName": "output-1",
                        "S3Output": {
                            "S3Uri": f"{bucket}/output/",
                            "LocalPath": "/opt/ml/processing/output",
                            "S3UploadMode": "EndOfJob",
                        },
                        "AppManaged": False,
                    }
                ]
            },
            "ProcessingResources": {
                "ClusterConfig": {
                    "InstanceCount": len(self.hosts),
                    "InstanceType": self.kind,
                    "VolumeSizeInGB": self.volume_gb,
                }
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": int(self.max_runtime_h * 3600)},
            "AppSpecification": {"ImageUri": self.image},
            "RoleArn": ROLE,
            "CreationTime": stamp(self.began),
            "ProcessingStartTime": stamp(start),
            "ProcessingEndTime": stamp(end),
            "LastModifiedTime": stamp(end + timedelta(milliseconds=366)),
        }
        if self.failure:
            out["FailureReason"] = self.failure
        return out

    def series(self) -> Series:
        clock = self.began + timedelta(minutes=5)
        out = series_of(self.name, self.kind, self.hosts, clock)
        return self.edit(out) if self.edit else out

    def recording(self) -> Json:
        return {
            "region": REGION,
            "account": ACCOUNT,
            "describe": self.answer(),
            "tags": [{"Key": "team", "Value": "data-platform"}],
            "metrics": {"period_s": 60, "series": self.series()},
        }

    def scenario(self, name: str, story: str, expert: Expert) -> Scenario:
        paid = Decimal(str(round(self.paid(), 2)))
        return Scenario(name, story, self.recording, self.bill(), paid, expert)


@dataclass(frozen=True)
class TuningSet:
    """A tuning job: its own answer and its children, each a whole recording."""

    name: str
    began: datetime
    ended: datetime
    children: tuple[Job, ...]
    tuned: Json
    best: int
    bare: bool = False  # only the children, without the tuning job's own answer

    def bill(self) -> Decimal:
        return sum((job.cost() for job in self.children), Decimal(0))

    def paid(self) -> float:
        return sum(job.paid() for job in self.children)

    def arn(self) -> str:
        return f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/{self.name}"

    def recording(self) -> Json:
        children: list[Json] = []
        for job in self.children:
            child = job.recording()
            child["describe"]["TuningJobArn"] = self.arn()
            children.append(child)
        own: Json = {
            "HyperParameterTuningJobName": self.name,
            "HyperParameterTuningJobArn": self.arn(),
            "HyperParameterTuningJobStatus": "Completed",
            "CreationTime": stamp(self.began),
            "HyperParameterTuningEndTime": stamp(self.ended),
            "LastModifiedTime": stamp(self.ended),
            "BestTrainingJob": self.children[self.best].answer(),
            **self.tuned,
        }
        keep = ("TrainingJobName", "TrainingJobArn", "TrainingJobStatus", "CreationTime")
        times = ("TrainingStartTime", "TrainingEndTime")
        best = own["BestTrainingJob"]
        final = best["FinalMetricDataList"][0]
        own["BestTrainingJob"] = {
            **{k: v for k, v in best.items() if k in keep or k in times},
            "FinalHyperParameterTuningJobObjectiveMetric": {
                "MetricName": final["MetricName"],
                "Value": final["Value"],
            },
            "ObjectiveStatus": "Succeeded",
        }
        if self.bare:
            return {"children": children}
        return {"region": REGION, "account": ACCOUNT, "describe": own, "children": children}

    def scenario(self, name: str, story: str, expert: Expert) -> Scenario:
        paid = Decimal(str(round(self.paid(), 2)))
        return Scenario(name, story, self.recording, self.bill(), paid, expert)
