from functools import partial

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import TransformBatching
from tests.fakes.jobs import batch_job
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, even_use, finds

RULE = "transform-single-record"


def transform(strategy: str | None = "SingleRecord", instance: str = "ml.m5.2xlarge") -> Job:
    """An hour with four requests at a time; ml.m5.2xlarge has 8 vCPUs."""
    batch = TransformBatching(strategy, 4, None)
    return batch_job(JobKind.TRANSFORM, 3600, instance, batch=batch)


verdict = partial(answer, RULE)


def test_single_records_on_an_idle_instance_are_found() -> None:
    # MultiRecord is worth a trial; by how much is not known.
    assert verdict(transform(), even_use(minutes=60, cpu=20)) == finds(
        "BatchStrategy is SingleRecord, and CPU averaged 20% over 1 h on 1 x ml.m5.2xlarge.",
        builder="possible",
        caution="…SplitType…",
        fix=[("BatchStrategy", "SingleRecord", "MultiRecord")],
    )


def test_it_saves_no_figure() -> None:
    """Only a run shows how much faster it is."""
    assert verdict(transform(), even_use(minutes=60, cpu=20)) == finds(
        usd=None, alone=None, span=None
    )


def test_a_cpu_at_40_percent_is_not_idle_and_at_39_9_percent_it_is() -> None:
    assert verdict(transform(), even_use(minutes=60, cpu=40)) == CLEAR
    assert verdict(transform(), even_use(minutes=60, cpu=39.9)) == FOUND


def test_it_does_not_apply_to_other_strategies_than_single_record() -> None:
    result = verdict(transform("MultiRecord"), even_use(minutes=60, cpu=20))
    assert result == does_not_apply("…not SingleRecord…")
    assert verdict(transform(None), even_use(minutes=60, cpu=20)) == does_not_apply(
        "…not SingleRecord…"
    )


def test_a_busy_gpu_is_what_the_job_pays_for() -> None:
    """Its CPUs may be idle; a GPU without figures is unknown."""
    result = verdict(transform(instance="ml.g4dn.xlarge"), even_use(minutes=60, cpu=5, gpu=80))
    assert result == does_not_apply("…GPU is busy…")
    result = verdict(transform(instance="ml.g4dn.xlarge"), even_use(minutes=60, cpu=5))
    assert result == cannot_judge("metric_missing")
