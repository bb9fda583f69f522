from functools import partial
from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import TransformBatching
from sageaudit.domain.usage.measurements import Metric
from tests.fakes import batch_jobs, trainium
from tests.fakes.batch_jobs import batch_job
from tests.fakes.jobs import series, usage
from tests.fakes.judging import answer, found
from tests.fakes.packaged_prices import packaged_market
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds, later
from tests.fakes.trainium import MARKET, TRAINIUM

cpu_alone = later(trainium.cpu_alone)
used = later(batch_jobs.used)
RULE = "transform-serial"


def transform(concurrent: int | None = 1, payload_mb: int | None = None, **changes: Any) -> Job:
    """An hour on 8 vCPUs."""
    changes = {"batch": TransformBatching("MultiRecord", concurrent, payload_mb)} | changes
    return batch_job(JobKind.TRANSFORM, 60, **changes)


verdict = partial(answer, RULE)


def test_one_request_at_a_time_on_an_idle_instance_is_found() -> None:
    # CPU at 12% of 8 vCPUs: as many requests as vCPUs, and no invented dollars.
    assert verdict(transform(), used(cpu=[12] * 60)) == finds(
        "MaxConcurrentTransforms is 1, and CPU averaged 12% of 8 vCPUs over 1 h on "
        "1 x ml.m5.2xlarge.",
        builder="possible",
        change=None,
        caution="Only a run shows…",
        fix=[("MaxConcurrentTransforms", 1, 8)],
    )


def test_it_saves_no_figure() -> None:
    """Only a run shows how much faster it is."""
    assert verdict(transform(), used(cpu=[12] * 60)) == finds(
        usd=None, alone=None, span=None, severity="info"
    )


def test_exactly_forty_percent_is_not_idle() -> None:
    """39.9% is."""
    assert verdict(transform(), used(cpu=[40] * 60)) == CLEAR
    assert verdict(transform(), used(cpu=[39.9] * 60)) == FOUND


def test_idle_minutes_before_and_after_the_work_do_not_count() -> None:
    # Half of the hour at 60% is busy work, not 30%.
    assert verdict(transform(), used(cpu=[0] * 15 + [60] * 30 + [0] * 15)) == CLEAR


def test_two_vcpus_are_several_and_one_is_not() -> None:
    """On one core a second request waits for the first."""
    assert verdict(transform(instance="ml.m5.large"), used(cpu=[12] * 60)) == finds(fix=[2])
    result = verdict(
        transform(instance="ml.m5.large"), used(cpu=[12] * 60), limits={"vcpu_from": 3}
    )
    assert result == CLEAR


def test_all_payloads_together_stay_within_100_mb() -> None:
    # CreateTransformJob refuses more; chunked payloads (0) have no size.
    assert verdict(transform(1, None), used(cpu=[12] * 60)) == finds(fix=[8])
    assert verdict(transform(1, 25), used(cpu=[12] * 60)) == finds(fix=[4])
    assert verdict(transform(1, 50), used(cpu=[12] * 60)) == finds(fix=[2])
    assert verdict(transform(1, 0), used(cpu=[12] * 60)) == finds(fix=[8])


def test_payloads_that_leave_room_for_one_are_clear() -> None:
    """2 x 51 MB are refused."""
    assert verdict(transform(1, 51), used(cpu=[12] * 60)) == CLEAR


def test_the_default_payload_of_6_mb_leaves_room_for_16() -> None:
    """On 48 vCPUs too."""
    result = verdict(transform(instance="ml.g4dn.12xlarge"), used(cpu=[5] * 60, gpu=[10] * 60))
    assert result == finds(fix=[16])


def test_several_requests_at_a_time_are_not_its_concern() -> None:
    # Idle for another reason; so is the job that followed the advice.
    assert verdict(transform(8), used(cpu=[12] * 60)) == does_not_apply("…8 requests at a time…")


def test_a_gpu_without_figures_is_unknown() -> None:
    """An idle CPU does not show what it did."""
    result = verdict(transform(instance="ml.g4dn.xlarge"), used(cpu=[5] * 60))
    assert result == cannot_judge("metric_missing")


def test_an_accelerator_that_nobody_measures_is_unknown() -> None:
    """Trainium has no metric."""
    result = verdict(transform(instance=TRAINIUM), cpu_alone([40] * 60), on=MARKET)
    assert result == cannot_judge("accelerator_unseen")


def test_not_set_means_one_unless_the_container_says_otherwise() -> None:
    # AWS's default is 1; the sentence does not claim that somebody set it.
    assert verdict(transform(None), used(cpu=[12] * 60)) == finds(
        "MaxConcurrentTransforms is not set, and…", fix=[("…", None, 8)]
    )
    assert verdict(transform(0), used(cpu=[12] * 60)) == finds(
        "MaxConcurrentTransforms is not set, and…", fix=[("…", 0, 8)]
    )


def test_payloads_of_1_mb_leave_room_for_a_request_per_vcpu() -> None:
    """On 96 vCPUs, up to 100 requests."""
    run = transform(1, 1, instance="ml.m5.24xlarge")
    raw = [series(Metric.CPU, [12 * 96] * 60, host=f"{run.name}/1")]
    of = usage(run, *raw, types=packaged.types())
    assert found(RULE, run, of, on=packaged_market()).fix[0].new == 96
