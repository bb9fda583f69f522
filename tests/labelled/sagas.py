"""Stories of several jobs: a family's runs in their order, and tuning jobs with their trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from sageaudit.adapters.files import recording
from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Missing, RawSeries
from sageaudit.workflows.audit.attempt import AuditDependencies, Audited, Caller
from sageaudit.workflows.audit.run import audit_finished_job
from tests.fakes.dependencies import SaidJobs, dependencies, ended
from tests.labelled.machine import ACCOUNT, BEGIN, REGION, Plot, alike, iso, training
from tests.labelled.story import BUSY_A10G, TRIALS

TUNING_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/sweep"


@dataclass(frozen=True)
class Saga:
    """Recordings in the order in which they ended; what is true of the last one."""

    name: str
    tell: Callable[[int], list[dict[str, Any]]]
    wasteful: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    search: bool = False
    """Is it a tuning job with its trials? Else it is a family's runs."""

    def truth(self, rule: str) -> bool | None:
        """True, False, or None where both would be right."""
        if rule in self.wasteful:
            return True
        return None if rule in self.either or rule in TRIALS else False


@dataclass(frozen=True)
class RecordedMetrics:
    """CloudWatch that answers with the series of each job's recording."""

    series: Mapping[str, tuple[RawSeries, ...]] = field(default_factory=dict)

    def read(self, job: Job, now: datetime) -> Measurements:
        absent = Missing("metric_missing", "no points")
        return measure(job, self.series.get(job.name, ()), packaged.types(), absent=absent)


def audits(recordings: Iterable[dict[str, Any]]) -> list[AuditDocument]:
    """The documents of all, audited in their order as the Lambda would."""
    read = [recording.of_document(document) for document in recordings]
    named = [(_name(one.describe), one) for one in read]
    of = dependencies(
        SaidJobs({name: [dict(one.describe)] for (_, name), one in named}),
        RecordedMetrics({name: one.series for (_, name), one in named}),  # type: ignore[arg-type]
        markets=sources.offline_markets(),
    )
    return [_audited(of, kind, name, one) for (kind, name), one in named]


def _audited(
    of: AuditDependencies, kind: JobKind, name: str, one: recording.Recording
) -> AuditDocument:
    moment = max(_ends(one.describe)) + timedelta(minutes=25)
    done = audit_finished_job(
        ended(name, kind, CreationTime=None), of, now=moment, caller=Caller.PERSON
    )
    assert isinstance(done, Audited)
    return done.document


def _name(answer: Mapping[str, Any]) -> tuple[JobKind, str]:
    for kind in JobKind:
        if f"{kind.row.prefix}JobName" in answer:
            return kind, answer[f"{kind.row.prefix}JobName"]
    raise AssertionError(answer)


def _ends(answer: Mapping[str, Any]) -> Iterator[datetime]:
    for key, value in answer.items():
        if key.endswith("EndTime"):
            yield datetime.fromisoformat(value)


def runs(plots: list[Plot], seed: int, *, every: timedelta) -> list[dict[str, Any]]:
    """The plots one after the other."""
    return [
        training(replace(plot, begin=BEGIN + number * every), 100 * seed + number)
        for number, plot in enumerate(plots)
    ]


def family(
    name: str,
    plots: list[Plot],
    *wasteful: str,
    every: timedelta = timedelta(hours=8),
    either: tuple[str, ...] = (),
) -> Saga:
    """A family's saga: the jobs share their name, but for its number."""
    named = [replace(plot, name=name) for plot in plots]
    return Saga(
        name,
        lambda seed: runs(named, seed, every=every),
        frozenset(wasteful),
        frozenset(either),
    )


def sweep(
    seed: int, objectives: list[float | None], counters: dict[str, int], **config: Any
) -> list[dict[str, Any]]:
    """A tuning job: each trial an hour, failed ones without an objective; then its own answer."""
    trials = []
    for number, objective in enumerate(objectives):
        plot = Plot(
            "ml.g5.xlarge",
            alike(1, replace(BUSY_A10G, minutes=60 if objective is not None else 35)),
            name=f"sweep-{number:03d}",
            begin=BEGIN + number * timedelta(minutes=65),
            status="Completed" if objective is not None else "Failed",
            closing="Completed" if objective is not None else "Failed",
            uploading_s=20 if objective is not None else 0,
        )
        one = training(plot, seed)
        one["describe"] |= {"TuningJobArn": TUNING_ARN}
        if objective is None:
            one["describe"]["FailureReason"] = "AlgorithmError: exit code: 1"
        else:
            one["describe"]["FinalMetricDataList"] = [
                {"MetricName": "validation:auc", "Value": objective, "Timestamp": iso(BEGIN)}
            ]
        trials.append(one)
    over = BEGIN + (len(objectives) + 1) * timedelta(minutes=65)
    own = {
        "describe": {
            "HyperParameterTuningJobName": "sweep",
            "HyperParameterTuningJobArn": TUNING_ARN,
            "HyperParameterTuningJobStatus": "Completed",
            "HyperParameterTuningJobConfig": {
                "Strategy": "Bayesian",
                "TrainingJobEarlyStoppingType": "Auto",
                "HyperParameterTuningJobObjective": {
                    "Type": "Maximize",
                    "MetricName": "validation:auc",
                },
                "ResourceLimits": {
                    "MaxNumberOfTrainingJobs": len(objectives),
                    "MaxParallelTrainingJobs": 1,
                },
                **config,
            },
            "TrainingJobStatusCounters": counters,
            "CreationTime": iso(BEGIN),
            "HyperParameterTuningEndTime": iso(over),
            "LastModifiedTime": iso(over),
        },
        "region": REGION,
        "account": ACCOUNT,
    }
    return [*trials, own]


def tuning(
    name: str,
    objectives: list[float | None],
    *wasteful: str,
    either: tuple[str, ...] = (),
    **config: Any,
) -> Saga:
    """A tuning job's saga."""
    failed = sum(value is None for value in objectives)
    counters = {"Completed": len(objectives) - failed, "NonRetryableError": failed}
    return Saga(
        name,
        lambda seed: sweep(seed, objectives, counters, **config),
        frozenset(wasteful),
        frozenset(either),
        search=True,
    )
