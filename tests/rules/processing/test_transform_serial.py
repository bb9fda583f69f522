from functools import partial

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import TransformBatching
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import TRAINIUM, FixedPrices, batch_job
from tests.fakes.judging import answer
from tests.fakes.packaged_prices import packaged_market
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    even_use,
    finds,
    one_host,
)

RULE = "transform-serial"


def transform(
    concurrent: int | None = 1,
    payload_mb: int | None = None,
    instance: str = "ml.m5.2xlarge",
) -> Job:
    """An hour with this many concurrent requests; ml.m5.2xlarge has 8 vCPUs."""
    batch = TransformBatching("MultiRecord", concurrent, payload_mb)
    return batch_job(JobKind.TRANSFORM, 3600, instance, batch=batch)


LITTLE_CPU = even_use(minutes=60, cpu=12)
"""12% of all vCPUs."""


verdict = partial(answer, RULE)


def test_one_request_at_a_time_on_an_idle_instance_is_found() -> None:
    # CPU at 12% of 8 vCPUs: as many requests as vCPUs, and no invented dollars.
    assert verdict(transform(), LITTLE_CPU) == finds(
        "MaxConcurrentTransforms is 1, and CPU averaged 12% of 8 vCPUs over 1 h on "
        "1 x ml.m5.2xlarge.",
        builder="possible",
        change=None,
        caution="Only a test run can show…",
        fix=[("MaxConcurrentTransforms", 1, 8)],
    )


def test_it_saves_no_figure() -> None:
    """Only a run shows how much faster it is."""
    assert verdict(transform(), LITTLE_CPU) == finds(
        usd=None, alone=None, span=None, severity="info"
    )


def test_a_cpu_at_40_percent_is_not_idle_and_at_39_9_percent_it_is() -> None:
    assert verdict(transform(), even_use(minutes=60, cpu=40)) == CLEAR
    assert verdict(transform(), even_use(minutes=60, cpu=39.9)) == FOUND


def test_idle_minutes_before_and_after_the_work_do_not_count() -> None:
    # Half of the hour at 60% is busy work, not 30%.
    assert verdict(transform(), one_host(cores=[0] * 15 + [0.6 * 8] * 30 + [0] * 15)) == CLEAR


def test_two_vcpus_are_several_and_one_is_not() -> None:
    """On one core a second request waits for the first."""
    assert verdict(transform(instance="ml.m5.large"), LITTLE_CPU) == finds(fix=[2])
    result = verdict(transform(instance="ml.m5.large"), LITTLE_CPU, limits={"min_vcpus": 3})
    assert result == CLEAR


def test_all_payloads_together_stay_within_100_mb() -> None:
    # CreateTransformJob refuses more; chunked payloads (0) have no size.
    assert verdict(transform(payload_mb=None), LITTLE_CPU) == finds(fix=[8])
    assert verdict(transform(payload_mb=25), LITTLE_CPU) == finds(fix=[4])
    assert verdict(transform(payload_mb=50), LITTLE_CPU) == finds(fix=[2])
    assert verdict(transform(payload_mb=0), LITTLE_CPU) == finds(fix=[8])


def test_payloads_of_51_mb_leave_room_for_one_request_in_100_mb() -> None:
    """2 x 51 MB are refused."""
    assert verdict(transform(payload_mb=51), LITTLE_CPU) == CLEAR


def test_the_default_payload_of_6_mb_leaves_room_for_16_requests() -> None:
    """On 48 vCPUs too."""
    result = verdict(transform(instance="ml.g4dn.12xlarge"), even_use(minutes=60, cpu=5, gpu=10))
    assert result == finds(fix=[16])


def test_several_requests_at_a_time_are_not_judged() -> None:
    # Idle for another reason; so is the job that followed the advice.
    assert verdict(transform(concurrent=8), LITTLE_CPU) == does_not_apply("…8 requests at a time…")


def test_a_gpu_without_figures_is_unknown() -> None:
    """An idle CPU does not show what it did."""
    result = verdict(transform(instance="ml.g4dn.xlarge"), even_use(minutes=60, cpu=5))
    assert result == cannot_judge("metric_missing")


def test_an_accelerator_that_nobody_measures_is_unknown() -> None:
    """Trainium has no metric."""
    types = {TRAINIUM.name: TRAINIUM}
    result = verdict(
        transform(instance=TRAINIUM.name),
        one_host(cores=[0.4] * 60, types=types),
        market=Market(types, FixedPrices()),
    )
    assert result == cannot_judge("accelerator_unseen")


def test_not_set_means_one_unless_the_container_says_otherwise() -> None:
    # AWS's default is 1; the sentence does not claim that somebody set it.
    assert verdict(transform(concurrent=None), LITTLE_CPU) == finds(
        "MaxConcurrentTransforms is not set, and…", fix=[("…", None, 8)]
    )
    assert verdict(transform(concurrent=0), LITTLE_CPU) == finds(
        "MaxConcurrentTransforms is not set, and…", fix=[("…", 0, 8)]
    )


def test_payloads_of_1_mb_leave_room_for_a_request_per_vcpu() -> None:
    """On 96 vCPUs, up to 100 requests."""
    result = verdict(
        transform(concurrent=1, payload_mb=1, instance="ml.m5.24xlarge"),
        even_use(minutes=60, cpu=12, types=packaged.instance_types()),
        market=packaged_market(),
    )
    assert result == finds(fix=[96])
