from functools import partial

import pytest

from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, batch_job, instance_type, market, ran, series, usage
from tests.fakes.judging import answer, unknown_code
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
ONE = ran(3600, "ml.g4dn.xlarge")


verdict = partial(answer, RULE)


def test_a_gpu_that_never_worked_is_not_needed() -> None:
    # The same hour on ml.m5.xlarge: 4 vCPU and 16 GiB as before, plus its volume.
    assert verdict(ONE, even_use(minutes=60, gpu=0, cpu=50)) == finds(
        "The GPU did nothing for 1 h on 1 x ml.g4dn.xlarge.",
        usd="0.500355",
        builder="derived",
        caution="…correct that instead…",
        fix=[("ResourceConfig.InstanceType", "ml.g4dn.xlarge", "ml.m5.xlarge")],
        evidence={"cpu_mean_cores": 2.0},
    )


def test_the_cheapest_cpu_type_that_holds_the_rest_is_named() -> None:
    # 1 of 4 cores and 3.2 of 16 GiB with 20% fit 2 vCPUs and 8 GiB.
    assert verdict(ONE, even_use(minutes=60, gpu=0, cpu=25, memory=20)) == finds(
        fix=["ml.m5.large"]
    )


def test_a_gpu_at_three_percent_did_almost_nothing() -> None:
    # It is told with its figure, and no CPU type is counted for it.
    assert verdict(ONE, even_use(minutes=60, gpu=3, cpu=50)) == finds(
        "The GPU averaged 3% over 1 h on 1 x ml.g4dn.xlarge: almost nothing.",
        bucket="none",
        change=None,
        caution="…try a CPU type…",
    )


def test_almost_nothing_is_of_one_gpu_not_of_all() -> None:
    # 3% of each of four GPUs is 12% of one: little work, but work.
    assert verdict(ran(3600, "ml.g4dn.12xlarge"), even_use(minutes=60, gpu=3, cpu=50)) == CLEAR
    result = verdict(ran(3600, "ml.g4dn.12xlarge"), even_use(minutes=60, gpu=0.5, cpu=50))
    assert result == finds("…The 4 GPUs of a host together averaged 2% of one GPU over 1 h…")


def test_the_limits_of_almost_nothing() -> None:
    # A mean under 5% and a P95 of at most 10%: six minutes of an hour above it are work.
    result = verdict(ONE, one_host(gpu=[4.9] * 60, cores=[2.0] * len([4.9] * 60)))
    assert result == FOUND
    result = verdict(ONE, one_host(gpu=[5.0] * 60, cores=[2.0] * len([5.0] * 60)))
    assert result == CLEAR
    result = verdict(
        ONE,
        one_host(gpu=[0.5] * 60 + [1.2], cores=[2.0] * len([0.5] * 60 + [1.2])),
    )
    assert result == FOUND
    result = verdict(
        ONE,
        one_host(gpu=[2.0] * 54 + [12.0] * 6, cores=[2.0] * len([2.0] * 54 + [12.0] * 6)),
    )
    assert result == CLEAR


def test_a_gpu_that_waits_for_a_cpu_at_its_limit_is_left_to_cpu_bottleneck() -> None:
    # 4% is all that the cores could feed it.
    assert verdict(ONE, even_use(minutes=60, gpu=4, cpu=97)) == CLEAR
    assert answer("cpu-bottleneck", ONE, even_use(minutes=60, gpu=4, cpu=97)) == FOUND


def test_a_gpu_that_only_starts_late_is_another_story() -> None:
    # Half an hour of 0 and then work: idle-start tells it.
    result = verdict(ONE, one_host(gpu=[0] * 30 + [90] * 30, cores=[2.0] * 60))
    assert result == CLEAR


def test_exactly_fifteen_minutes_are_enough() -> None:
    """Of the whole run, idle head and tail among them."""
    assert verdict(ran(900, "ml.g4dn.xlarge"), even_use(minutes=15, gpu=0, cpu=50)) == FOUND
    result = verdict(
        ran(900, "ml.g4dn.xlarge"),
        one_host(gpu=[0] * 15, cores=[0.0] * 5 + [2.0] * 10),
    )
    assert result == FOUND


def test_the_policy_may_wait_longer() -> None:
    """As Job Defense Shield does: 120 minutes; an hour is clear then."""
    assert verdict(ONE, even_use(minutes=60, gpu=0, cpu=50), limits={"from_minutes": 61}) == CLEAR
    assert verdict(ONE, even_use(minutes=60, gpu=0, cpu=50), limits={"from_minutes": 60}) == FOUND


def test_late_points_leave_enough() -> None:
    """Late points leave enough."""
    # The first GPU points come 3 to 6 minutes late: 54 of 60 are judged.
    result = verdict(ONE, one_host(gpu=[None] * 6 + [0] * 54, cores=[2.0] * 60))
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
        replace(ONE, purchase=Purchase.TRAINING_PLAN), even_use(minutes=60, gpu=0, cpu=50)
    )
    assert result == finds(fix=[], change=None, bucket="none", caution="…prepaid…")


def test_a_mixed_cluster_gets_no_other_type() -> None:
    # Two sizes with one GPU each, all idle: no single type is the one to replace.
    result = verdict(
        replace(
            ONE, groups=(InstanceGroup("ml.g4dn.xlarge", 1), InstanceGroup("ml.g5.2xlarge", 1))
        ),
        measured(*(series(Metric.GPU, [0] * 60, host=f"train/algo-{n}") for n in (1, 2))),
    )
    assert result == finds(fix=[], bucket="none", caution="…its instances are of several types…")


def test_cpu_use_that_no_cheaper_type_holds_gets_no_figure() -> None:
    # 95% of 4 vCPUs with 20% fit today's 4, and not where only 2 are cheaper.
    assert verdict(ONE, even_use(minutes=60, gpu=0, cpu=95, memory=10)) == finds(
        fix=["ml.m5.xlarge"]
    )
    result = verdict(
        ONE,
        even_use(minutes=60, gpu=0, cpu=95, memory=10),
        market=market(hourly_usd={"ml.g4dn.xlarge": "0.736", "ml.m5.large": "0.115"}),
    )
    assert result == finds(fix=[], caution="…ml.m5.large, does not fit (vCPU: 4.6 needed…")
    result = verdict(
        ONE,
        even_use(minutes=60, gpu=0, cpu=95, memory=10),
        market=market(hourly_usd={"ml.g4dn.xlarge": "0.736"}),
    )
    assert result == finds(caution="…no type with a known price is cheaper by the hour…")


def test_unrecorded_use_does_not_shrink() -> None:
    # Without a memory series the type has no less of it: 16 GiB, not 8.
    assert verdict(ONE, even_use(minutes=60, gpu=0, cpu=5)) == finds(fix=["ml.m5.xlarge"])


def test_processing_and_transform_jobs_are_judged_too() -> None:
    """The path is that of their own Create request."""
    result = verdict(
        batch_job(JobKind.PROCESSING, 3600, "ml.g4dn.xlarge"),
        one_host(gpu=[0] * 60, cores=[2.0] * 60),
    )
    assert result == finds(paths=["ProcessingResources.ClusterConfig.InstanceType"])
    result = verdict(
        batch_job(JobKind.TRANSFORM, 3600, "ml.g4dn.xlarge"),
        one_host(gpu=[0] * 60, cores=[2.0] * 60),
    )
    assert result == finds(paths=["TransformResources.InstanceType"])


@pytest.mark.parametrize("gpus", ["one GPU", "four GPUs"])
def test_a_minute_at_one_percent_of_one_gpu_is_nothing(gpus: str) -> None:
    """Of all GPUs of a host together: CloudWatch gives their sum."""
    job = ONE if gpus == "one GPU" else ran(3600, "ml.g4dn.12xlarge")

    def last_minute_at(percent: float) -> object:
        gpu = series(Metric.GPU, [0.0] * 59 + [percent])
        return verdict(job, measured(gpu, series(Metric.CPU, [200] * 60)))

    assert last_minute_at(1.0) == finds("…did nothing…")
    assert last_minute_at(1.1) == finds(without="did nothing")


def test_it_is_one_story() -> None:
    """Other rules of GPU use leave it to this one, or are shown under it."""
    result = answer(
        "gpu-underused",
        ran(3600, "ml.g4dn.12xlarge"),
        even_use(minutes=60, gpu=0, gpu_memory=2, cpu=95, memory=5),
    )
    assert result == does_not_apply("…")
    result = answer(
        "some-gpus-unused",
        ran(3600, "ml.g4dn.12xlarge"),
        even_use(minutes=60, gpu=0, gpu_memory=2, cpu=95, memory=5),
    )
    assert result == does_not_apply("…")
    result = answer(
        "gpu-starved",
        ran(3600, "ml.g4dn.12xlarge"),
        even_use(minutes=60, gpu=0, gpu_memory=2, cpu=95, memory=5),
    )
    assert result == CLEAR
    result = answer(
        "cpu-bottleneck",
        ran(3600, "ml.g4dn.12xlarge"),
        even_use(minutes=60, gpu=0, gpu_memory=2, cpu=95, memory=5),
    )
    assert result == FOUND


def test_the_advised_job_gets_no_advice_back() -> None:
    """On the CPU type the same work is well placed."""
    assert verdict(ONE, even_use(minutes=60, gpu=0, cpu=60, memory=50)) == finds(
        fix=["ml.m5.xlarge"]
    )
    result = answer("gpu-idle", ran(3600, "ml.m5.xlarge"), even_use(minutes=60, cpu=60, memory=50))
    assert result == does_not_apply("…")
    result = answer(
        "gpu-underused", ran(3600, "ml.m5.xlarge"), even_use(minutes=60, cpu=60, memory=50)
    )
    assert result == does_not_apply("…")
    result = answer(
        "cpu-bottleneck", ran(3600, "ml.m5.xlarge"), even_use(minutes=60, cpu=60, memory=50)
    )
    assert result == does_not_apply("…")
    assert (
        answer("cpu-underused", ran(3600, "ml.m5.xlarge"), even_use(minutes=60, cpu=60, memory=50))
        == CLEAR
    )


def test_several_hosts_all_move() -> None:
    """2 x (0.736 - 0.23 - 30 GB x 1 h / 744 h x 0.14)."""
    result = verdict(ran(3600, "ml.g4dn.xlarge", 2), even_use(minutes=60, hosts=2, gpu=0, cpu=50))
    assert result == finds(usd="1.000710")


def test_trainium_reports_no_such_metric() -> None:
    """Unknown, not free of waste."""
    types = TYPES | {
        "ml.trn1.2xlarge": instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron")
    }
    run = ran(3600, "ml.trn1.2xlarge")
    raw = [series(Metric.CPU, [100] * 60)]
    of = usage(run, *raw, types=types)
    assert of.missing[Metric.GPU].code == "accelerator_unseen"
    assert unknown_code(RULE, run, of) == "accelerator_unseen"
