from functools import partial
from typing import Any

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import TransformBatching
from tests.fakes import batch_jobs
from tests.fakes.batch_jobs import batch_job
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds, later

used = later(batch_jobs.used)
RULE = "transform-single-record"


def transform(strategy: str | None = "SingleRecord", **changes: Any) -> Job:
    """An hour on 8 vCPUs, four requests at a time."""
    return batch_job(
        JobKind.TRANSFORM, 60, **{"batch": TransformBatching(strategy, 4, None)} | changes
    )


verdict = partial(answer, RULE)


def test_single_records_on_an_idle_instance_are_found() -> None:
    # MultiRecord is worth a trial; by how much is not known.
    assert verdict(transform(), used(cpu=[20] * 60)) == finds(
        "BatchStrategy is SingleRecord, and CPU averaged 20% over 1 h on 1 x ml.m5.2xlarge.",
        builder="possible",
        caution="…SplitType…",
        fix=[("BatchStrategy", "SingleRecord", "MultiRecord")],
    )


def test_it_saves_no_figure() -> None:
    """Only a run shows how much faster it is."""
    assert verdict(transform(), used(cpu=[20] * 60)) == finds(usd=None, alone=None, span=None)


def test_exactly_forty_percent_is_not_idle() -> None:
    """39.9% is."""
    assert verdict(transform(), used(cpu=[40] * 60)) == CLEAR
    assert verdict(transform(), used(cpu=[39.9] * 60)) == FOUND


def test_other_strategies_are_not_its_concern() -> None:
    """The advised job among them."""
    result = verdict(transform("MultiRecord"), used(cpu=[20] * 60))
    assert result == does_not_apply("…not SingleRecord…")
    assert verdict(transform(None), used(cpu=[20] * 60)) == does_not_apply("…not SingleRecord…")


def test_a_busy_gpu_is_what_the_job_pays_for() -> None:
    """Its CPUs may be idle; a GPU without figures is unknown."""
    result = verdict(transform(instance="ml.g4dn.xlarge"), used(cpu=[5] * 60, gpu=[80] * 60))
    assert result == does_not_apply("…GPU is busy…")
    result = verdict(transform(instance="ml.g4dn.xlarge"), used(cpu=[5] * 60))
    assert result == cannot_judge("metric_missing")
