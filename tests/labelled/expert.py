"""What an expert says of a made-up job, and the dollars behind it, from facts about AWS alone.

Rates stand in `rates.json` a second time on purpose: an expert's dollars must not come from the
code that is judged. Ranges are low and high, of dollars or of device-hours.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from sageaudit.structs import replace
from tests.labelled.machine import (
    BUCKET,
    Batchwork,
    Host,
    Json,
    Phase,
    Plot,
    Shown,
    alike,
    batchwork,
    channel,
    machine,
    search,
    stamp,
    training,
)

Range = tuple[Decimal, Decimal]
Topic = str | frozenset[str]
"""A rule; of a frozenset any one member will do."""

_RATES = json.loads(Path(__file__).with_name("rates.json").read_text("utf-8"))
_MAY_HOURS = Decimal(744)
"""Of May 2026: a GB-month of that month."""
_GB_MONTH = {"Training": Decimal("0.14"), "Processing": Decimal("0.10")}
_CENT = Decimal("0.01")
NOTHING: Range = (Decimal(0), Decimal(0))

_ECR = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
PYTORCH = f"{_ECR}/pytorch-training:2.3.0-gpu-py311-cu121"
HUGGING = (
    f"{_ECR}/huggingface-pytorch-training:2.1.0-transformers4.36.0-gpu-py310-cu121-ubuntu20.04"
)
NEURON = f"{_ECR}/pytorch-training-neuronx:2.1.2-neuronx-py310"
XGBOOST = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"
SKLEARN = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1-cpu-py3"
CKPT: Json = {"CheckpointConfig": {"S3Uri": f"{BUCKET}/checkpoints/a"}}
IMAGE, DATA = "Downloading the training image", "Downloading input data"
_TAGS = {"team": "research", "project": "foundation"}

# what nobody says of a GPU that works, a run that ends well, data that come in time, a CPU
# machine that is used, a type that fits; and what is noise unless somebody asked for it
GPU_OK = (
    *("gpu-idle", "gpu-underused", "gpu-starved", "some-gpus-unused", "idle-start", "idle-middle"),
    *("idle-tail", "cpu-bottleneck", "uneven-hosts", "poor-scaling"),
)
LOSS_OK = (
    *("failed-spend", "limit-hit", "retry-storm", "spot-without-checkpoint"),
    *("spot-interrupted-much", "warm-pool-idle"),
)
MOVE_OK = (*("download-dominates", "upload-dominates", "image-pull-heavy"), "replicated-input")
CPU_OK = (
    *("cpu-underused", "serial-code", "memory-oversized", "uneven-hosts", "idle-start"),
    *("idle-tail", "gpu-idle", "gpu-underused"),
)
TYPE_OK = ("cheaper-type", "gpu-too-big", "old-generation", "trainium-candidate")
NAGS = (
    *("metric-plateau", "duplicate-run", "cost-regression", "trainium-candidate"),
    "max-runtime-loose",
)


def rate(instance: str) -> Decimal:
    """USD per hour of a type whose rate is known."""
    return Decimal(_RATES["hourly_usd"][instance])


def usd(instance: str, hours: float, hosts: int = 1) -> Decimal:
    """On-demand dollars of so many instance-hours."""
    return rate(instance) * Decimal(str(hours)) * hosts


def cents(low: Decimal | float, high: Decimal | float) -> Range:
    """A range of dollars or hours, to the cent."""
    return (Decimal(str(low)).quantize(_CENT), Decimal(str(high)).quantize(_CENT))


def between(of: Decimal, low: float, high: float) -> Range:
    """A range of shares of a sum."""
    return cents(float(of) * low, float(of) * high)


def about(instance: str, hours: float, low: float, high: float) -> Range:
    """A range of dollars as shares of an estimated bill."""
    total = Decimal(_RATES["estimated_usd"][instance]) * Decimal(str(hours))
    return cents(total * Decimal(str(low)), total * Decimal(str(high)))


def part(of: str, to: str, times: float = 1.0) -> float:
    """The share (0..1) of the bill that a move saves, at so many times the time."""
    return float(1 - rate(to) * Decimal(str(times)) / rate(of))


def merged(total: float, n: int, m: int, times: float = 1.0) -> float:
    """Upper bound of the time factor when n devices, whose use sums to `total` percent, become m.

    times: how much slower one new device is than one old device (1 for the same model).
    """
    use = total / (100 * n)
    return max(1.0, 1 + use * (n / m * times - 1))


def _on_ebs(instance: str) -> bool:
    return instance.split(".")[1] in _RATES["families_on_ebs"]


def _minutes(hosts: Sequence[Host]) -> list[Shown]:
    return [one for host in hosts for one in host if isinstance(one, Shown)]


class Work(Struct, frozen=True):
    """The dollars and device-hours (GPU, else vCPU) of some hosts for some billed seconds."""

    instance: str
    hosts: tuple[Host, ...]
    billed_s: int
    volume_gb: int = 0
    gb_month_usd: Decimal = Decimal(0)
    retained_s: int = 0
    """Of a warm pool."""

    def cost(self) -> Decimal:
        """On-demand equivalent."""
        hours = Decimal(self.billed_s + self.retained_s) / 3600 * len(self.hosts)
        total = hours * rate(self.instance)
        if _on_ebs(self.instance):
            total += self.volume_gb * hours / _MAY_HOURS * self.gb_month_usd
        return total.quantize(Decimal("0.0001"))

    @property
    def devices(self) -> int:
        """Of all hosts."""
        on = machine(self.instance)
        return len(self.hosts) * (on.gpus or on.vcpu)

    @property
    def paid(self) -> float:
        """Device-hours that were paid."""
        return self.billed_s / 3600 * self.devices

    @property
    def worked(self) -> float:
        """Device-hours that worked."""
        gpu = bool(machine(self.instance).gpus)
        return sum((s.gpu if gpu else s.cpu) * s.minutes for s in _minutes(self.hosts)) / 6000

    @property
    def usage_hours(self) -> float:
        """Device-hours of the minutes that have points."""
        minutes = sum(s.minutes for s in _minutes(self.hosts))
        return minutes / 60 * self.devices / len(self.hosts)


class Priced:
    """Has a bill: ranges of it by shares."""

    def cost(self) -> Decimal:
        """USD on demand."""
        raise NotImplementedError

    def bill(self) -> Decimal | None:
        """The same; None where AWS does not say enough."""
        return self.cost()

    def share(self, low: float, high: float) -> Range:
        """A range of dollars as shares of the bill."""
        return cents(self.cost() * Decimal(str(low)), self.cost() * Decimal(str(high)))

    def waiting(self) -> Range | None:
        """Device-hours paid and not worked; None where no figure is owed."""
        return None

    def recording(self) -> Json:
        """As AWS would answer."""
        raise NotImplementedError


class Job(Struct, Priced, frozen=True):
    """A training job. `prepaid`: by a training plan."""

    plot: Plot
    retained: int = 0
    prepaid: bool = False

    @property
    def work(self) -> Work:
        """What it paid for."""
        plot = self.plot
        volume, month = plot.volume_gb or 0, _GB_MONTH["Training"]
        hosts = plot.hosts
        return Work(plot.instance, hosts, plot.billed_s, volume, month, self.retained)

    def cost(self) -> Decimal:
        """Nothing where it is prepaid."""
        return Decimal(0) if self.prepaid else self.work.cost()

    def bill(self) -> Decimal | None:
        """None without a rate or billable seconds, and before the job's end."""
        known = self.plot.tell_billable and self.plot.status != "InProgress"
        return self.cost() if known and self.plot.instance in _RATES["hourly_usd"] else None

    def hours(self) -> float:
        """Billed."""
        return self.plot.billed_s / 3600

    def idle(self, low_less: float = 0.0, high_more: float = 0.0) -> Range:
        """Device-hours paid and not worked: at least within Training, at most of all billed."""
        work = self.work
        inside = max(0.0, min(work.usage_hours, work.paid) - work.worked)
        whole = max(0.0, work.paid - work.worked)
        low = max(0.0, 0.95 * inside - 0.01 * work.paid - low_less)
        return cents(low, min(work.paid, 1.03 * whole + 0.015 * work.paid + high_more))

    def waiting(self) -> Range:
        """A pool adds its own; spot hides which seconds were paid."""
        work, span_s = self.work, self.plot.span_s
        if self.plot.billed_s < span_s:
            idle = max(0.0, span_s / 3600 * work.devices - work.worked)
            return cents(0, 1.03 * idle + 0.1)
        low, high = self.idle()
        return cents(low, float(high) + self.retained / 3600 * work.devices * 1.02)

    def recording(self) -> Json:
        """Of the training job."""
        return training(self.plot)


def _hour(name: str) -> datetime:
    """Of a name that ends as the SDK writes it, such as bert-2026-05-04-09-10-33-871."""
    return day(*map(int, name.split("-")[-5:-3]))


def job(
    name: str,
    instance: str,
    *load: Shown,
    began: datetime | None = None,
    hosts: int | tuple[Host, ...] = 1,
    starting: int = 200,
    down: int = 240,
    up: int = 90,
    last: tuple[Phase, ...] | None = None,
    phases: tuple[Phase, ...] | None = None,
    ending: str = "",
    volume_gb: int = 100,
    max_runtime_h: float = 24.0,
    distribution: str = "FullyReplicated",
    retained: int = 0,
    prepaid: bool = False,
    **more: Any,
) -> Job:
    """A training job whose hosts all did this; it trained as many minutes as its load has.

    It began in the hour that its name says, if at no other moment.
    `last`: what follows Training in place of the upload, which takes `up` seconds.
    """
    script = more.get("script", "train.py")
    uri = f"{BUCKET}/datasets/{script[:-3]}/train/"
    plot = Plot(
        instance,
        alike(hosts, *load) if isinstance(hosts, int) else hosts,
        name=name,
        begin=began or _hour(name),
        starting_s=starting,
        downloading_s=down,
        uploading_s=up,
        phases=phases,
        closing=ending,
        volume_gb=volume_gb,
        max_runtime_s=int(max_runtime_h * 3600),
        channels=(channel(mode=None, distribution=distribution, uri=uri),),
        **{"image": PYTORCH, "pulls": IMAGE, "tags": _TAGS, **more},
    )
    if last is not None:
        plot = replace(plot, phases=(*replace(plot, uploading_s=0).timeline, *last))
    return Job(plot, retained, prepaid)


class Batch(Struct, Priced, frozen=True):
    """A processing or transform job."""

    batchwork: Batchwork
    margin: float
    """Of the idle hours, as a share of what was paid."""

    @property
    def work(self) -> Work:
        """What it paid for."""
        one = self.batchwork
        volume, month = one.volume_gb, _GB_MONTH.get(one.kind, Decimal(0))
        return Work(one.instance, one.hosts, one.span_s, volume, month)

    def cost(self) -> Decimal:
        """With its volumes."""
        return self.work.cost()

    def waiting(self) -> Range:
        """Of all that was billed."""
        work = self.work
        idle, room = max(0.0, work.paid - work.worked), self.margin * work.paid
        return cents(max(0.0, 0.95 * idle - room), min(work.paid, 1.03 * idle + room))

    def recording(self) -> Json:
        """Of the job."""
        return batchwork(self.batchwork)


def processing(
    name: str, instance: str, seconds: int, *load: Shown, hosts: int = 1, volume_gb: int = 30
) -> Batch:
    """A processing job that reads its input shard by shard and uploads its output at the end."""
    path = f"{BUCKET}/{name}"
    source = {
        "S3Uri": f"{path}/input/",
        "LocalPath": "/opt/ml/processing/input",
        "S3DataType": "S3Prefix",
        "S3InputMode": "File",
        "S3DataDistributionType": "ShardedByS3Key",
        "S3CompressionType": "None",
    }
    target = {"S3Uri": f"{path}/output/", "LocalPath": "/opt/ml/processing/output"}
    upload = {"OutputName": "output-1", "S3Output": {**target, "S3UploadMode": "EndOfJob"}}
    answer: Json = {
        "ProcessingInputs": [{"InputName": "input-1", "AppManaged": False, "S3Input": source}],
        "ProcessingOutputConfig": {"Outputs": [{**upload, "AppManaged": False}]},
        "RoleArn": "arn:aws:iam::111122223333:role/SageMakerTrainingRole",
    }
    hour, done = _hour(name), alike(hosts, *load)
    work = Batchwork("Processing", instance, done, answer, name, hour, 300, seconds)
    work = replace(work, volume_gb=volume_gb, image=SKLEARN, tags={"team": "data-platform"})
    return Batch(work, 0.015)


def transform(
    name: str, instance: str, seconds: int, *load: Shown, settings: Json, hosts: int = 1
) -> Batch:
    """A transform job of lines, with further members of its request."""
    source = {"S3DataType": "S3Prefix", "S3Uri": f"{BUCKET}/scoring/input/"}
    answer: Json = {
        "ModelName": "scorer-2026-05",
        "TransformInput": {
            "DataSource": {"S3DataSource": source},
            "ContentType": "application/jsonlines",
            "CompressionType": "None",
            "SplitType": "Line",
        },
        "TransformOutput": {
            "S3OutputPath": f"{BUCKET}/scoring/output/",
            "AssembleWith": "Line",
            "KmsKeyId": "",
        },
        **settings,
    }
    hour, done = _hour(name), alike(hosts, *load)
    work = Batchwork("Transform", instance, done, answer, name, hour, 240, seconds)
    return Batch(replace(work, tags={"team": "scoring"}), 0.02)


class Search(Struct, Priced, frozen=True):
    """A tuning job with its trials; `bare`: the trials without the tuning job's own answer."""

    name: str
    began: datetime
    ended: datetime
    trials: tuple[Job, ...]
    tuned: Json
    best: int
    bare: bool = False

    def cost(self) -> Decimal:
        """Of all trials."""
        return sum((trial.cost() for trial in self.trials), Decimal(0))

    def recording(self) -> Json:
        """The tuning job with its trials as children."""
        children = [trial.recording() for trial in self.trials]
        best = children[self.best]["describe"]
        [final] = best["FinalMetricDataList"]
        kept = (
            *("TrainingJobName", "TrainingJobArn", "TrainingJobStatus", "CreationTime"),
            *("TrainingStartTime", "TrainingEndTime"),
        )
        value = {key: final[key] for key in ("MetricName", "Value")}
        objective = {"FinalHyperParameterTuningJobObjectiveMetric": value}
        answer = {
            "CreationTime": stamp(self.began),
            "BestTrainingJob": {
                **{key: best[key] for key in kept},
                **objective,
                "ObjectiveStatus": "Succeeded",
            },
            **self.tuned,
        }
        own = search(self.name, self.ended, answer, children)
        return {"children": children} if self.bare else {**own, "children": children}


class Expert(Struct, frozen=True):
    """What an expert says.

    A test may ask low <= avoidable <= high, low <= lost <= high, and for `together_usd` (where set)
    the sum of both, since the same dollar may honestly stand in either. None: not knowable, no
    number is owed (but a null is always fine). Every entry of `must_say` must be met; a finding
    without dollars is enough. `judged`: yes, partly or no, as far as the metrics reach.
    """

    judged: str
    wasted_usd: Range | None
    lost_usd: Range | None
    idle_hours: Range | None
    must_say: tuple[Topic, ...]
    must_not_say: tuple[str, ...]
    says: str
    together_usd: Range | None = None


class Scenario(Struct, frozen=True, dict=True):
    """One job, or a family's runs in their order: `expert` then speaks of the last run alone.

    `summed_usd` is the waste of all runs of a family: low counts only the runs from the one with
    which 15 active minutes of evidence had come together, high counts every run.
    """

    name: str
    story: str
    expert: Expert
    build: Callable[[], list[Json]]
    bill_usd: Decimal | None = None
    summed_usd: Range | None = None

    @property
    def is_family(self) -> bool:
        """Has it several runs?"""
        return self.summed_usd is not None

    @cached_property
    def recordings(self) -> list[Json]:
        """One; of a family one for each run."""
        return self.build()


def expert(
    name: str,
    story: str,
    work: Priced,
    *,
    says: str,
    share: tuple[float, float] | None = None,
    wasted: Range | None = None,
    lost: tuple[float, float] | None = (0, 0),
    together: tuple[float, float] | None = None,
    must: tuple[Topic, ...] = (),
    must_not: tuple[str, ...] = (),
    judged: str = "yes",
    idle: Range | str | None = "all that was paid and did not work",
    build: Callable[[], Json] | None = None,
    bill_usd: Decimal | None = None,
) -> Scenario:
    """A job and what an expert says of it.

    The avoidable dollars are a `share` of the bill, or `wasted`; `lost` and `together` are shares.
    """
    lost_usd = lost and (NOTHING if lost == (0, 0) else work.share(*lost))
    verdict = Expert(
        judged,
        wasted if share is None else NOTHING if share == (0, 0) else work.share(*share),
        lost_usd,
        work.waiting() if isinstance(idle, str) else idle,
        must,
        must_not,
        says,
        together and work.share(*together),
    )
    bill = work.bill() if bill_usd is None else bill_usd
    return Scenario(name, story, verdict, lambda: [(build or work.recording)()], bill)


def healthy(
    name: str, story: str, work: Job, *, says: str, high: float = 0.03, but: tuple[str, ...] = ()
) -> Scenario:
    """A GPU job of which an expert says nothing; `but`: further topics that would be noise.

    High: download, warm-up and upload, all of them wished away.
    """
    no = (*GPU_OK, *LOSS_OK, *MOVE_OK, *but)
    return expert(name, story, work, share=(0, high), must_not=no, says=says)


def day(number: int, hour: int = 8, minute: int = 0) -> datetime:
    """A moment in May 2026, UTC."""
    return datetime(2026, 5, number, hour, minute, 7, 412000, tzinfo=UTC)


def hyper(name: str, **more: object) -> dict[str, Any]:
    """Hyperparameters as the SDK writes them, with more of the user's own, and nothing else."""
    own = {"sagemaker_program": '"train.py"', "sagemaker_job_name": f'"{name}"'}
    return {"HyperParameters": {**own, **{key: str(value) for key, value in more.items()}}}
