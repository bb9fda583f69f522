"""The jobs of the example company in eight weeks. The company and its jobs are made up.

The company is a small team with two accounts. A comment describes each workload, but not what an
audit finds. Phases have SageMaker's names.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.job.kinds import JobKind
from sageaudit.structs import replace

_INTERRUPTED_SHARE = 1 / 3
"""The share of spot runs that are interrupted (our choice)."""


class WorkPhaseLoad(Struct, frozen=True):
    """A program's load on each host for some minutes. GPU figures are sums over the GPUs."""

    minutes: float
    cores: float
    gib: float
    gpus: float = 0
    gpu_gib: float = 0


class AccountRegion(Struct, frozen=True):
    """An account and region of the company."""

    account: str
    region: str


class Team(Struct, frozen=True):
    """A workload's owner and project, which are its jobs' tags."""

    owner: str
    project: str


class Workload(Struct, frozen=True, kw_only=True):
    """A workload that runs repeatedly.

    `days` are counted back from the last day, which is 0. Each run begins in the `hour` (UTC).
    `changes` have a first day, a last day, and the fields with other values on these days.
    `has_numbered_names` means that names end in a number, not a time. `objectives` has one value
    per trial of a tuning job. `answer` has additional fields of the Describe answer.
    """

    name: str
    kind: JobKind
    image: str
    instance: str
    work: tuple[WorkPhaseLoad, ...]
    team: Team
    account_region: AccountRegion
    days: Sequence[int]
    hour: int
    hosts: int = 1
    has_numbered_names: bool = False
    script: str | None = "train.py"
    download_min: float = 3
    is_spot: bool = False
    status: str = "Completed"
    failure: str | None = None
    limit_h: int = 24
    objectives: Sequence[float] = ()
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[tuple[int, int, Mapping[str, Any]], ...] = ()

    @property
    def minutes(self) -> float:
        """The duration of the workload's computation in minutes."""
        return sum(load.minutes for load in self.work)


class WorkPhase(Struct, frozen=True):
    """One phase of a run."""

    name: str
    begin: datetime
    end: datetime

    @property
    def seconds(self) -> int:
        """The duration in whole seconds."""
        return round((self.end - self.begin).total_seconds())


class WorkRun(Struct, frozen=True):
    """One run of a workload. Its noise does not depend on the company's last day."""

    workload: Workload
    name: str
    begin: datetime
    seed: str

    @property
    def arn(self) -> str:
        """The job's ARN."""
        place, kind = self.workload.account_region, self.workload.kind
        return f"arn:aws:sagemaker:{place.region}:{place.account}:{kind.spec.arn_word}/{self.name}"

    @property
    def noise_source(self) -> random.Random:
        """A new random generator with the run's seed. Each use gives the same noise."""
        return random.Random(self.seed)

    @property
    def phases(self) -> list[WorkPhase]:
        """The run's phases. One spot run in three is interrupted once."""
        phases, moment = [], self.begin
        for name, seconds in self._spans(self.noise_source):
            phases.append(WorkPhase(name, moment, moment + timedelta(seconds=seconds)))
            moment = phases[-1].end
        return phases

    def _spans(self, noise: random.Random) -> Iterator[tuple[str, int]]:
        def vary(seconds: float) -> int:
            return round(seconds * noise.uniform(0.96, 1.04))

        workload = self.workload
        work_s = vary(60 * workload.minutes)
        download_s = vary(60 * workload.download_min)
        yield "Starting", vary(120)
        yield "Downloading", download_s
        if workload.is_spot and noise.random() < _INTERRUPTED_SHARE:
            done_s = round(work_s * noise.uniform(0.3, 0.7))
            work_s -= done_s
            yield "Training", done_s
            yield "Interrupted", vary(600)
            yield "Starting", vary(150)
            yield "Downloading", download_s
        yield "Training", work_s
        if workload.status == "Completed":
            yield "Uploading", vary(40)


DAYS = 56
HOME = AccountRegion("111122223333", "us-east-1")
"""The first account and region. AWS's documents use this number for a fictitious account."""
EUROPE = AccountRegion("444455556666", "eu-west-1")
"""The second account and region. AWS's documents use this number for a fictitious account."""
_PYTORCH = "pytorch-training:2.5.1-gpu-py311-cu124-ubuntu22.04-sagemaker"
PYTORCH = f"763104351884.dkr.ecr.{HOME.region}.amazonaws.com/{_PYTORCH}"
PYTORCH_EU = f"763104351884.dkr.ecr.{EUROPE.region}.amazonaws.com/{_PYTORCH}"
_BUILT_IN = "683313688378.dkr.ecr.us-east-1.amazonaws.com"
XGBOOST = f"{_BUILT_IN}/sagemaker-xgboost:1.7-1"
SKLEARN = f"{_BUILT_IN}/sagemaker-scikit-learn:1.2-1-cpu-py3"
OWN = f"{HOME.account}.dkr.ecr.{HOME.region}.amazonaws.com/forecast:3"
OUT_OF_MEMORY = (
    "AlgorithmError: ExecuteUserScriptError: ExitCode 1, ErrorMessage: torch.OutOfMemoryError: "
    "CUDA out of memory"
)
CODE_ERROR = (
    "AlgorithmError: ExecuteUserScriptError: ExitCode 1, ErrorMessage: ModuleNotFoundError: "
    "No module named 'datasets'"
)
_VISION = Team("mara", "maps")
_SPEECH = Team("jonas", "voice")
_SALES = Team("ana", "shop")
_RISK = Team("ana", "risk")


def _checkpoints(workload: str, project: str) -> Mapping[str, Any]:
    return {"CheckpointConfig": {"S3Uri": f"s3://example-company-{project}/checkpoints/{workload}"}}


_EXPERIMENT = Workload(
    name="pytorch-training", kind=JobKind.TRAINING, image=PYTORCH, instance="ml.g5.12xlarge",
    work=(WorkPhaseLoad(18, cores=4, gib=14, gpus=0.35, gpu_gib=8),), team=Team("lee", "research"),
    account_region=HOME, days=range(1, 7, 2), hour=16, script="try.py",
)  # fmt: skip
WORKLOADS = (
    # The code uses one of four GPUs. After four weeks the team follows the recommendation.
    Workload(
        name="map-tiles", kind=JobKind.TRAINING, image=PYTORCH, instance="ml.g4dn.12xlarge",
        work=(WorkPhaseLoad(180, cores=5.6, gib=20, gpus=0.72, gpu_gib=9.4),), team=_VISION,
        account_region=HOME,
        days=range(0, DAYS, 2), hour=2, answer=_checkpoints("map-tiles", "maps"),
        changes=((27, 0, {"instance": "ml.g4dn.2xlarge"}),),
    ),
    # A large model on eight busy GPUs. One run hangs after four hours, until somebody stops it.
    Workload(
        name="speech-encoder", kind=JobKind.TRAINING, image=PYTORCH, instance="ml.p4d.24xlarge",
        work=(WorkPhaseLoad(1080, cores=34, gib=410, gpus=7.4, gpu_gib=270),), team=_SPEECH,
        account_region=HOME,
        days=range(2, DAYS, 2), hour=4, has_numbered_names=True, download_min=9,
        answer=_checkpoints("speech-encoder", "voice"),
        changes=(
            (8, 8, {
                "work": (
                    WorkPhaseLoad(240, cores=34, gib=410, gpus=7.4, gpu_gib=270),
                    WorkPhaseLoad(660, cores=1.02, gib=395),
                ),
                "status": "Stopped",
            }),
        ),
    ),
    # Eight GPUs wait for the CPUs that feed them.
    Workload(
        name="recommender", kind=JobKind.TRAINING, image=PYTORCH, instance="ml.g5.48xlarge",
        work=(WorkPhaseLoad(260, cores=40, gib=150, gpus=2.2, gpu_gib=60),), team=_SALES,
        account_region=HOME,
        days=range(1, DAYS, 2), hour=6, answer=_checkpoints("recommender", "shop"),
    ),
    # On managed spot with checkpoints: some runs are interrupted.
    Workload(
        name="ad-ranker", kind=JobKind.TRAINING, image=PYTORCH, instance="ml.g5.2xlarge",
        work=(WorkPhaseLoad(300, cores=5.5, gib=21, gpus=0.88, gpu_gib=19),), team=_SALES,
        account_region=HOME,
        days=range(0, DAYS, 2), hour=9, is_spot=True,
        answer=_checkpoints("ad-ranker", "shop"),
    ),
    # A forecast on a CPU type that is four times too large. A smaller type works for three weeks;
    # then somebody goes back to the large one.
    Workload(
        name="demand-forecast", kind=JobKind.TRAINING, image=OWN, instance="ml.m5.12xlarge",
        work=(WorkPhaseLoad(200, cores=9.5, gib=34),), team=_SALES, account_region=HOME,
        days=range(0, DAYS, 2),
        hour=1, changes=((35, 13, {"instance": "ml.m5.4xlarge"}),),
    ),
    # Two busy hosts prepare data. In the last week there is more of it.
    Workload(
        name="clickstream-features", kind=JobKind.PROCESSING, image=SKLEARN,
        instance="ml.m5.4xlarge", work=(WorkPhaseLoad(95, cores=14, gib=46),), team=_SALES,
        account_region=HOME,
        hosts=2, days=range(0, DAYS, 2), hour=3,
        changes=((6, 0, {"work": (WorkPhaseLoad(170, cores=14, gib=46),)}),),
    ),
    # Old GPUs do almost nothing in a batch transform of the second account.
    Workload(
        name="catalog-scoring", kind=JobKind.TRANSFORM, image=PYTORCH_EU, instance="ml.p3.2xlarge",
        work=(WorkPhaseLoad(75, cores=2.2, gib=9, gpus=0.07, gpu_gib=2.5),), team=_SALES,
        account_region=EUROPE,
        hosts=2, days=range(1, DAYS, 3), hour=5,
    ),
    # A search that finds its best value early.
    Workload(
        name="price-search", kind=JobKind.TUNING, image=XGBOOST, instance="ml.m5.2xlarge",
        work=(WorkPhaseLoad(50, cores=7.3, gib=24),), team=_RISK, account_region=HOME, script=None,
        days=range(5, DAYS, 14), hour=10,
        objectives=(0.62, 0.41, *(0.43 + 0.004 * (n % 5) for n in range(14))),
    ),
    # Nothing to change.
    Workload(
        name="fraud-model", kind=JobKind.TRAINING, image=XGBOOST, instance="ml.m5.2xlarge",
        work=(WorkPhaseLoad(70, cores=7.2, gib=24),), team=_RISK, account_region=HOME, script=None,
        days=range(0, DAYS, 2), hour=7,
    ),
    # A project that ended: it copies its data for a quarter of the paid time.
    Workload(
        name="ticket-summaries", kind=JobKind.TRAINING, image=PYTORCH, instance="ml.g5.12xlarge",
        work=(WorkPhaseLoad(90, cores=20, gib=60, gpus=3.6, gpu_gib=80),), team=_SPEECH,
        account_region=HOME,
        days=range(9, DAYS, 4), hour=12, download_min=32,
    ),
    # In the last week three runs in a row need more GPU memory than there is.
    Workload(
        name="geo-embeddings", kind=JobKind.TRAINING, image=PYTORCH_EU, instance="ml.g5.4xlarge",
        work=(WorkPhaseLoad(150, cores=12, gib=40, gpus=0.9, gpu_gib=21),), team=_VISION,
        account_region=EUROPE,
        days=range(0, DAYS, 3), hour=8,
        changes=(
            (6, 0, {
                "work": (WorkPhaseLoad(55, cores=12, gib=40, gpus=0.9, gpu_gib=23.5),),
                "status": "Failed", "failure": OUT_OF_MEMORY,
            }),
        ),
    ),
    # In the last week somebody tries things from a notebook, on a large instance. Some tries fail
    # at once.
    *(replace(_EXPERIMENT, hour=hour, days=range(hour % 2, 7, 2)) for hour in (13, 14, 15)),
    replace(
        _EXPERIMENT, work=(WorkPhaseLoad(4, cores=1.1, gib=5),), status="Failed",
        failure=CODE_ERROR,
    ),
)  # fmt: skip


def generate_runs(last_day: date) -> Iterator[WorkRun]:
    """Yields all runs of the eight weeks that end with this day, in no order."""
    for workload in WORKLOADS:
        for number, day in enumerate(sorted(workload.days, reverse=True), start=1):
            yield _run(workload, day, number, last_day)


def _run(workload: Workload, day: int, number: int, last_day: date) -> WorkRun:
    # `day` is counted back from the last day.
    seed = f"{workload.name} {day} {workload.hour}"
    checksum = sum(seed.encode())  # differs between runs, but does not depend on the last day
    midnight = datetime.combine(last_day - timedelta(days=day), time(), UTC)
    begin = midnight + timedelta(hours=workload.hour, seconds=37 * (checksum % 60))
    name = _name(workload, begin, number, checksum % 1000)
    for first_day, last_changed_day, change in workload.changes:
        if last_changed_day <= day <= first_day:
            workload = replace(workload, **change)
    return WorkRun(workload, name, begin, seed)


def _name(workload: Workload, begin: datetime, number: int, milliseconds: int) -> str:
    """Returns a numbered name, or a name that ends in a time, as the SageMaker Python SDK makes."""
    if workload.has_numbered_names:
        return f"{workload.name}-{number}"
    if workload.kind is JobKind.TUNING:
        return f"{workload.name}-{begin:%y%m%d-%H%M}"
    return f"{workload.name}-{begin:%Y-%m-%d-%H-%M-%S}-{milliseconds:03d}"
