"""The form of these scenarios: that of the large jobs, short hands for it, and families of runs."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tests.labelled.large.form import (
    ACCOUNT,
    HUGGING,
    NEURON,
    PYTORCH,
    REGION,
    ROLE,
    SKLEARN,
    XGBOOST,
    Expert,
    Job,
    Json,
    Phase,
    Scenario,
    Topic,
    day,
    same,
    stamp,
)
from tests.labelled.large.load import Load, Seg

from .machines import MACHINES, NOTHING, Range, cents

__all__ = [
    "ACCOUNT",
    "CKPT",
    "CPU_OK",
    "GPU_OK",
    "HUGGING",
    "LOSS_OK",
    "MOVE_OK",
    "NAGS",
    "NEURON",
    "NOTHING",
    "PYTORCH",
    "REGION",
    "ROLE",
    "SKLEARN",
    "TYPE_OK",
    "XGBOOST",
    "Expert",
    "Family",
    "Job",
    "Json",
    "Load",
    "Phase",
    "Range",
    "Scenario",
    "Seg",
    "Topic",
    "day",
    "healthy",
    "hyper",
    "make",
    "ramp",
    "replace",
    "same",
    "stamp",
    "verdict",
    "waiting",
]

CKPT: Json = {"CheckpointConfig": {"S3Uri": "s3://sagemaker-us-east-1-111122223333/checkpoints/a"}}

# what nobody says of a GPU that works, a run that ends well, data that come in time, a CPU
# machine that is used, a type that fits; and what is noise unless somebody asked for it
GPU_OK = (
    "gpu-idle",
    "gpu-underused",
    "gpu-starved",
    "some-gpus-unused",
    "idle-start",
    "idle-middle",
    "idle-tail",
    "cpu-bottleneck",
    "uneven-hosts",
    "poor-scaling",
    "gpu-memory-growth",
)
LOSS_OK = (
    "failed-spend",
    "limit-hit",
    "retry-storm",
    "spot-without-checkpoint",
    "spot-interrupted-much",
    "warm-pool-idle",
)
MOVE_OK = (
    "download-dominates",
    "upload-dominates",
    "image-pull-heavy",
    "slow-start",
    "replicated-input",
    "cross-region-data",
)
CPU_OK = (
    "cpu-underused",
    "serial-code",
    "memory-oversized",
    "uneven-hosts",
    "idle-start",
    "idle-tail",
    "gpu-idle",
    "gpu-underused",
)
TYPE_OK = ("cheaper-type", "gpu-too-big", "old-generation", "trainium-candidate")
NAGS = (
    "profile-me",
    "subset-first",
    "short-experiment",
    "volume-ignored",
    "custom-rule-cost",
    "metric-plateau",
    "duplicate-run",
    "cost-regression",
    "trainium-candidate",
    "mixed-precision-candidate",
    "max-runtime-loose",
)

PULL = "Downloading the training image"
DATA = "Downloading input data"


def make(
    name: str,
    kind: str,
    began: datetime,
    *load: Seg,
    hosts: int = 1,
    down: int = 240,
    up: int = 90,
    pulled: str = PULL,
    last: tuple[Phase, ...] | None = None,
    **more: Any,
) -> Job:
    """A job whose hosts all did this; it trained as many minutes as its load has."""
    minutes = sum(seg.minutes for seg in load)
    phases = (
        Phase("Starting", 200, "Preparing the instances for training"),
        Phase("Downloading", down, pulled),
        Phase("Training", minutes * 60, "Training image download completed."),
    )
    end = (Phase("Uploading", up, "Uploading generated training model"),) if last is None else last
    return Job(name, kind, began, (*phases, *end), same(hosts, *load), **more)


def hyper(job: str, script: str = "train.py", **more: object) -> Json:
    """Hyperparameters as the SDK writes them, with more of the user's own."""
    own = {"sagemaker_program": f'"{script}"', "sagemaker_job_name": f'"{job}"'}
    return {"HyperParameters": {**own, **{k: str(v) for k, v in more.items()}}}


def ramp(base: Seg, steps: int, to: float) -> tuple[Seg, ...]:
    """The GPU memory of a stretch grows to a value in so many equal steps."""
    each = base.minutes // steps
    rise = (to - base.gmem) / max(1, steps - 1)
    return tuple(replace(base, minutes=each, gmem=base.gmem + rise * i) for i in range(steps))


def verdict(
    job: Job,
    wasted: Range | None,
    must: tuple[Topic, ...],
    must_not: tuple[str, ...],
    says: str,
    lost: Range | None = NOTHING,
    together: Range | None = None,
    judged: str = "yes",
) -> Expert:
    """What an expert says of a job; `judged`: yes, partly or no, as far as its metrics reach."""
    return Expert(judged, wasted, lost, waiting(job), must, must_not, says, together)


def waiting(job: Job) -> Range:
    """Device-hours paid and not worked; a pool adds its own, spot hides which seconds were paid."""
    box = MACHINES[job.kind]
    devices = len(job.hosts) * (box.gpus or box.vcpu)
    low, high = job.idle()
    if job.billed() < job.span():
        return cents(0, 1.03 * max(0.0, job.span() / 3600 * devices - job.worked()) + 0.1)
    return cents(low, float(high) + job.retained / 3600 * devices * 1.02)


def healthy(
    job: Job,
    name: str,
    story: str,
    says: str,
    high: float = 0.03,
    but: tuple[str, ...] = (),
    must: tuple[Topic, ...] = (),
) -> Scenario:
    """A GPU job of which an expert says nothing; `but`: further topics that would be noise."""
    # High: download, warm-up and upload, all of them wished away.
    no = (*GPU_OK, *LOSS_OK, *MOVE_OK, *but)
    no = tuple(topic for topic in no if topic not in must)
    return job.scenario(name, story, verdict(job, job.share(0, high), must, no, says))


@dataclass(frozen=True)
class Family:
    """Runs of one script on one type, in the order of time, and the verdict on the last of them.

    `expert` speaks of the last run alone: its dollars are its own. `summed_usd` is the waste of all
    runs of the family: low counts only the runs from the one with which 15 active minutes of
    evidence had come together (and at a pace that such short runs allow), high counts every run.
    """

    name: str
    story: str
    runs: tuple[Job, ...]
    expert: Expert
    summed_usd: Range

    def recordings(self) -> tuple[Json, ...]:
        return tuple(job.recording() for job in self.runs)

    @property
    def last(self) -> Job:
        return self.runs[-1]
