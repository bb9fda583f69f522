"""Processing and transform jobs of one type, and even use of them by the minute."""

from collections.abc import Sequence
from typing import Any

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, phases, ran, series, usage


def batch_job(
    kind: JobKind, minutes: int, instance: str = "ml.m5.2xlarge", count: int = 1, **changes: Any
) -> Job:
    """A completed job of one phase that is named after its kind."""
    phase = kind.value.capitalize()
    plain = ran(60 * minutes, instance, count, phases=phases((phase, 60 * minutes)))
    return replace(
        plain, kind=kind, training_s=None, billable_s=None, channels=(), volume_gb=None, **changes
    )


def used(on: Job, **percent: Sequence[float | None]) -> Measurements:
    """Use by the minute on every host, 0..100 of all vCPUs (`cpu`) or GPUs (`gpu`)."""
    kind = TYPES[on.groups[0].instance_type]
    factor = {"cpu": kind.vcpu, "gpu": kind.gpus}
    raw = [
        series(
            Metric[word.upper()],
            [None if value is None else value * factor.get(word, 1) for value in values],
            host=f"{on.name}/{n}",
        )
        for word, values in percent.items()
        for n in range(1, on.groups[0].count + 1)
    ]
    return usage(on, *raw)
