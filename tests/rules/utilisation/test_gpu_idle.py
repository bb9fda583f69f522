from functools import partial

import pytest

from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric
from sageaudit.structs import replace
from tests.fakes.jobs import TRAINIUM, batch_job, market, ran, series
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    even_use,
    finds,
    measured,
    one_host,
)

RULE = "gpu-idle"
ONE_T4 = ran(3600, "ml.g4dn.xlarge")
"""An hour on one T4, 4 vCPUs and 16 GiB at $0.736."""
FOUR_T4 = ran(3600, "ml.g4dn.12xlarge")
"""An hour on 4 T4, 48 vCPUs and 192 GiB at $4.89."""


verdict = partial(answer, RULE)


def test_a_gpu_at_0_percent_saves_the_difference_to_a_cpu_type_with_as_much_else() -> None:
    # $0.736 - $0.23 on ml.m5.xlarge: 4 vCPU and 16 GiB as before; less 30 GB x $0.14 / 744 h.
    assert verdict(ONE_T4, even_use(minutes=60, gpu=0, cpu=50)) == finds(
        "The GPU did nothing for 1 h on 1 x ml.g4dn.xlarge.",
        usd="0.500355",
        builder="derived",
        caution="…correct the code instead…",
        fix=[("ResourceConfig.InstanceType", "ml.g4dn.xlarge", "ml.m5.xlarge")],
        evidence={"cpu_mean_cores": 2.0},
    )


def test_the_cheapest_cpu_type_that_holds_the_rest_is_named() -> None:
    # 1 of 4 cores and 3.2 of 16 GiB with 20% fit 2 vCPUs and 8 GiB.
    assert verdict(ONE_T4, even_use(minutes=60, gpu=0, cpu=25, memory=20)) == finds(
        fix=["ml.m5.large"]
    )


def test_a_gpu_at_3_percent_did_almost_nothing_and_has_no_dollars() -> None:
    # It is told with its figure, and no CPU type is counted for it.
    assert verdict(ONE_T4, even_use(minutes=60, gpu=3, cpu=50)) == finds(
        "The GPU averaged 3% over 1 h on 1 x ml.g4dn.xlarge: almost nothing.",
        bucket="none",
        change=None,
        caution="…try a CPU type…",
    )


def test_almost_nothing_is_of_one_gpu_not_of_all() -> None:
    # 3% of each of four GPUs is 12% of one: little work, but work.
    assert verdict(FOUR_T4, even_use(minutes=60, gpu=3, cpu=50)) == CLEAR
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=0.5, cpu=50))
    assert result == finds("…The 4 GPUs of a host together averaged 2% of one GPU over 1 h…")


@pytest.mark.parametrize(
    ("gpu", "answer"),
    [
        ([4.9] * 60, FOUND),
        ([5.0] * 60, CLEAR),
        ([0.5] * 60 + [1.2], FOUND),
        ([2.0] * 54 + [12.0] * 6, CLEAR),
    ],
    ids=[
        "a mean of 4.9% is almost nothing",
        "a mean of 5% is work",
        "one minute at 1.2% is almost nothing",
        "6 minutes of 60 above 10% are work",
    ],
)
def test_almost_nothing_is_a_mean_under_5_percent_and_a_p95_of_at_most_10_percent(
    gpu: list[float], answer: object
) -> None:
    assert verdict(ONE_T4, one_host(gpu=gpu, cores=[2.0] * len(gpu))) == answer


def test_a_gpu_that_waits_for_a_cpu_at_its_limit_is_left_to_cpu_bottleneck() -> None:
    # 4% is all that the cores could feed it.
    assert verdict(ONE_T4, even_use(minutes=60, gpu=4, cpu=97)) == CLEAR
    assert answer("cpu-bottleneck", ONE_T4, even_use(minutes=60, gpu=4, cpu=97)) == FOUND


def test_a_gpu_that_only_starts_late_is_another_story() -> None:
    # Half an hour of 0 and then work: idle-start tells it.
    result = verdict(ONE_T4, one_host(gpu=[0] * 30 + [90] * 30, cores=[2.0] * 60))
    assert result == CLEAR


def test_15_minutes_of_the_whole_run_are_enough() -> None:
    """Its idle head and tail among them."""
    assert verdict(ran(900, "ml.g4dn.xlarge"), even_use(minutes=15, gpu=0, cpu=50)) == FOUND
    result = verdict(
        ran(900, "ml.g4dn.xlarge"),
        one_host(gpu=[0] * 15, cores=[0.0] * 5 + [2.0] * 10),
    )
    assert result == FOUND


def test_if_the_policy_asks_for_61_minutes_an_hour_is_clear() -> None:
    """As Job Defense Shield does, which waits for 120."""
    assert (
        verdict(ONE_T4, even_use(minutes=60, gpu=0, cpu=50), limits={"min_active_minutes": 61})
        == CLEAR
    )
    assert (
        verdict(ONE_T4, even_use(minutes=60, gpu=0, cpu=50), limits={"min_active_minutes": 60})
        == FOUND
    )


def test_first_gpu_points_that_come_6_minutes_late_leave_enough_of_60() -> None:
    result = verdict(ONE_T4, one_host(gpu=[None] * 6 + [0] * 54, cores=[2.0] * 60))
    assert result == FOUND


def test_a_host_without_points_may_have_worked() -> None:
    # Three of four hosts are 75% of the points; the fourth is not known to be idle.
    result = verdict(ran(3600, "ml.g4dn.xlarge", 4), even_use(minutes=60, hosts=3, gpu=0, cpu=50))
    assert result == cannot_judge("hosts_missing")
    assert (
        verdict(ran(3600, "ml.g4dn.xlarge", 4), even_use(minutes=60, hosts=4, gpu=0, cpu=50))
        == FOUND
    )


def test_a_training_plan_gets_no_other_type() -> None:
    # It is prepaid for this one; that the GPU did nothing is said all the same.
    result = verdict(
        replace(ONE_T4, purchase=Purchase.TRAINING_PLAN), even_use(minutes=60, gpu=0, cpu=50)
    )
    assert result == finds(fix=[], change=None, bucket="none", caution="…prepaid…")


def test_a_mixed_cluster_gets_no_other_type() -> None:
    # Two sizes with one GPU each, all idle: no single type is the one to replace.
    result = verdict(
        replace(
            ONE_T4, groups=(InstanceGroup("ml.g4dn.xlarge", 1), InstanceGroup("ml.g5.2xlarge", 1))
        ),
        measured(*(series(Metric.GPU, [0] * 60, host=f"train/algo-{n}") for n in (1, 2))),
    )
    assert result == finds(fix=[], bucket="none", caution="…its instances are of several types…")


def test_cpu_use_that_no_cheaper_type_holds_gets_no_figure() -> None:
    # 95% of 4 vCPUs with 20% fit today's 4, and not where only 2 are cheaper.
    assert verdict(ONE_T4, even_use(minutes=60, gpu=0, cpu=95, memory=10)) == finds(
        fix=["ml.m5.xlarge"]
    )
    result = verdict(
        ONE_T4,
        even_use(minutes=60, gpu=0, cpu=95, memory=10),
        market=market(hourly_usd={"ml.g4dn.xlarge": "0.736", "ml.m5.large": "0.115"}),
    )
    assert result == finds(fix=[], caution="…ml.m5.large, does not fit (vCPU: 4.6 needed…")
    result = verdict(
        ONE_T4,
        even_use(minutes=60, gpu=0, cpu=95, memory=10),
        market=market(hourly_usd={"ml.g4dn.xlarge": "0.736"}),
    )
    assert result == finds(caution="…no type with a known price costs less per hour…")


def test_unrecorded_use_does_not_shrink() -> None:
    # Without a memory series the type has no less of it: 16 GiB, not 8.
    assert verdict(ONE_T4, even_use(minutes=60, gpu=0, cpu=5)) == finds(fix=["ml.m5.xlarge"])


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (JobKind.PROCESSING, "ProcessingResources.ClusterConfig.InstanceType"),
        (JobKind.TRANSFORM, "TransformResources.InstanceType"),
    ],
)
def test_each_kind_of_job_is_advised_by_its_own_parameter(kind: JobKind, path: str) -> None:
    asleep = one_host(gpu=[0] * 60, cores=[2.0] * 60)
    assert verdict(batch_job(kind, 3600, "ml.g4dn.xlarge"), asleep) == finds(paths=[path])


@pytest.mark.parametrize("instance", ["ml.g4dn.xlarge", "ml.g4dn.12xlarge"])
def test_a_last_minute_at_1_percent_of_one_gpu_is_nothing_and_at_1_1_percent_it_is_not(
    instance: str,
) -> None:
    """Of all GPUs of a host together: CloudWatch gives their sum."""

    def last_minute_at(percent: float) -> object:
        use = one_host(gpu=[0.0] * 59 + [percent], cores=[2.0] * 60)
        return verdict(ran(3600, instance), use)

    assert last_minute_at(1.0) == finds("…did nothing…")
    assert last_minute_at(1.1) == finds(without="did nothing")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("gpu-underused", does_not_apply("…")),
        ("some-gpus-unused", does_not_apply("…")),
        ("gpu-starved", CLEAR),
        ("cpu-bottleneck", FOUND),
    ],
)
def test_other_rules_leave_an_idle_gpu_to_this_one_or_are_shown_under_it(
    rule: str, expected: object
) -> None:
    use = even_use(minutes=60, gpu=0, gpu_memory=2, cpu=95, memory=5)
    assert answer(rule, FOUR_T4, use) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("gpu-idle", does_not_apply("…")),
        ("gpu-underused", does_not_apply("…")),
        ("cpu-bottleneck", does_not_apply("…")),
        ("cpu-underused", CLEAR),
    ],
)
def test_on_the_advised_cpu_type_the_same_work_gets_no_advice(rule: str, expected: object) -> None:
    assert verdict(ONE_T4, even_use(minutes=60, gpu=0, cpu=60, memory=50)) == finds(
        fix=["ml.m5.xlarge"]
    )
    on_cpu = ran(3600, "ml.m5.xlarge")
    assert answer(rule, on_cpu, even_use(minutes=60, cpu=60, memory=50)) == expected


def test_two_hosts_save_twice_as_much() -> None:
    """2 x ($0.736 - $0.23 - 30 GB x $0.14 x 1 h / 744 h)."""
    result = verdict(ran(3600, "ml.g4dn.xlarge", 2), even_use(minutes=60, hosts=2, gpu=0, cpu=50))
    assert result == finds(usd="1.000710")


def test_trainium_reports_no_such_metric() -> None:
    """Unknown, not free of waste."""
    types = {TRAINIUM.name: TRAINIUM}
    result = verdict(ran(3600, TRAINIUM.name), one_host(cores=[1.0] * 60, types=types))
    assert result == cannot_judge("accelerator_unseen")
