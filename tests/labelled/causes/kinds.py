"""Batch transform, which the large jobs do not have."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from tests.labelled.large.load import Load, Series, series_of

from .form import ACCOUNT, REGION, Expert, Json, Scenario, stamp
from .machines import MACHINES, Range, cents, rate


@dataclass(frozen=True)
class Transform:
    """One transform job; its hosts are named by instance ids and have no disk metric."""

    name: str
    kind: str
    began: datetime  # creation; the machines start four minutes later
    seconds: int
    hosts: tuple[Load, ...]
    settings: Json = field(default_factory=dict)  # BatchStrategy, MaxConcurrentTransforms, ...
    split: str = "Line"

    def bill(self) -> Decimal:
        hours = Decimal(self.seconds) / 3600 * len(self.hosts)
        return (hours * rate(self.kind)).quantize(Decimal("0.0001"))

    def share(self, low: float, high: float) -> Range:
        return cents(self.bill() * Decimal(str(low)), self.bill() * Decimal(str(high)))

    def paid(self) -> float:
        box = MACHINES[self.kind]
        return self.seconds / 3600 * len(self.hosts) * (box.gpus or box.vcpu)

    def idle(self) -> Range:
        gpu = bool(MACHINES[self.kind].gpus)
        worked = sum((s.gpu if gpu else s.cpu) * s.minutes for h in self.hosts for s in h) / 6000
        idle = max(0.0, self.paid() - worked)
        low = max(0.0, 0.95 * idle - 0.02 * self.paid())
        return cents(low, min(self.paid(), 1.03 * idle + 0.02 * self.paid()))

    def answer(self) -> Json:
        start = self.began + timedelta(minutes=4)
        bucket = f"s3://sagemaker-{REGION}-{ACCOUNT}"
        source = {"S3DataType": "S3Prefix", "S3Uri": f"{bucket}/scoring/input/"}
        return {
            "TransformJobName": self.name,
            "TransformJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:transform-job/{self.name}",
            "TransformJobStatus": "Completed",
            "ModelName": "scorer-2026-05",
            "TransformInput": {
                "DataSource": {"S3DataSource": source},
                "ContentType": "application/jsonlines",
                "CompressionType": "None",
                "SplitType": self.split,
            },
            "TransformOutput": {
                "S3OutputPath": f"{bucket}/scoring/output/",
                "AssembleWith": "Line",
                "KmsKeyId": "",
            },
            "TransformResources": {
                "InstanceType": self.kind,
                "InstanceCount": len(self.hosts),
            },
            "CreationTime": stamp(self.began),
            "TransformStartTime": stamp(start),
            "TransformEndTime": stamp(start + timedelta(seconds=self.seconds)),
            **self.settings,
        }

    def series(self) -> Series:
        clock = self.began + timedelta(minutes=4)
        out = series_of(self.name, self.kind, self.hosts, clock)
        kept = [entry for entry in out if entry["metric"] != "DiskUtilization"]
        for entry in kept:
            number = int(entry["host"].rsplit("-", 1)[1])
            entry["host"] = f"{self.name}/i-0c41d7a92be5f{number:04x}"
        return kept

    def recording(self) -> Json:
        return {
            "region": REGION,
            "account": ACCOUNT,
            "describe": self.answer(),
            "tags": [{"Key": "team", "Value": "scoring"}],
            "metrics": {"period_s": 60, "series": self.series()},
        }

    def scenario(self, name: str, story: str, expert: Expert) -> Scenario:
        paid = Decimal(str(round(self.paid(), 2)))
        return Scenario(name, story, self.recording, self.bill(), paid, expert)
