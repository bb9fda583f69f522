from functools import partial

from sageaudit.domain.job.job import InstanceGroup
from tests.fakes.jobs import ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, does_not_apply, even_use, finds, hosts, one_host

RULE = "cpu-underused"
SIXTEEN_VCPUS = ran(3600, "ml.m5.4xlarge")
"""An hour on 16 vCPUs and 64 GiB at $0.92. ml.m5.large has 2 and 8 GiB at $0.115."""

verdict = partial(answer, RULE)


def test_10_percent_of_16_vcpus_and_64_gib_fit_an_eighth_of_the_instance() -> None:
    # With 20% more they need 1.9 vCPUs and 7.7 GiB. The volume costs the same: $0.92 - $0.115.
    assert verdict(SIXTEEN_VCPUS, even_use(minutes=60, cpu=10, memory=10)) == finds(
        usd="0.805000",
        builder="derived",
        fix=[("ResourceConfig.InstanceType", "ml.m5.4xlarge", "ml.m5.large")],
        evidence={"cpu_p95_percent": 10.0},
    )


def test_its_percentages_are_rounded_to_a_tenth() -> None:
    percentages = {"cpu_p95_percent": 12.3, "memory_p95_percent": 5.7}
    used = even_use(minutes=60, cpu=12.34, memory=5.68)
    assert verdict(SIXTEEN_VCPUS, used) == finds(evidence=percentages)


def test_the_cheapest_type_that_holds_the_peaks_and_20_percent_more_is_advised() -> None:
    # They need 7.7 vCPUs, 30.6 GiB, 3.8 vCPUs, and 3.1 vCPUs: half as much again as a large has.
    assert verdict(SIXTEEN_VCPUS, even_use(minutes=60, cpu=39.9, memory=5)) == finds(
        fix=["ml.m5.2xlarge"]
    )
    assert verdict(SIXTEEN_VCPUS, even_use(minutes=60, cpu=5, memory=39.9)) == finds(
        fix=["ml.m5.2xlarge"]
    )
    assert verdict(SIXTEEN_VCPUS, even_use(minutes=60, cpu=20, memory=10)) == finds(
        fix=["ml.m5.xlarge"]
    )
    assert verdict(SIXTEEN_VCPUS, even_use(minutes=60, cpu=16, memory=5)) == finds(
        fix=["ml.m5.xlarge"]
    )


def test_40_percent_of_cpu_or_of_memory_is_well_used() -> None:
    assert verdict(SIXTEEN_VCPUS, even_use(minutes=60, cpu=40, memory=5)) == CLEAR
    assert verdict(SIXTEEN_VCPUS, even_use(minutes=60, cpu=5, memory=40)) == CLEAR
    assert verdict(SIXTEEN_VCPUS, even_use(minutes=60, cpu=90, memory=90)) == CLEAR


def test_the_busiest_host_decides() -> None:
    """Every host must fit on the smaller type."""
    result = verdict(
        ran(3600, "ml.m5.4xlarge", 2),
        hosts({"cores": [0.8] * 60, "memory": [5] * 60}, {"cores": [8.0] * 60, "memory": [5] * 60}),
    )
    assert result == CLEAR


def test_1_peak_of_60_minutes_makes_the_run_longer_and_3_refuse_the_type() -> None:
    # A minute at all 16 vCPUs with 20% more is 9.6 on two: 68.6 / 60 as long.
    result = verdict(SIXTEEN_VCPUS, one_host(cores=[0.8] * 59 + [16.0], memory=[5] * 60))
    assert result == finds(usd="0.787699", fix=["ml.m5.large"])
    result = verdict(SIXTEEN_VCPUS, one_host(cores=[0.8] * 57 + [16.0] * 3, memory=[5] * 60))
    assert result == finds(fix=["ml.m5.xlarge"])


def test_the_smallest_type_is_clear() -> None:
    """Nothing smaller of the family can be bought."""
    assert verdict(ran(3600, "ml.m5.large"), even_use(minutes=60, cpu=5, memory=5)) == CLEAR


def test_several_instances_save_together() -> None:
    """3 x 1 h x (0.92 - 0.115)."""
    result = verdict(
        ran(3600, "ml.m5.4xlarge", 3), even_use(minutes=60, hosts=3, cpu=10, memory=10)
    )
    assert result == finds(usd="2.415000")


def test_a_gpu_job_is_not_judged() -> None:
    """Its CPUs feed the GPU, busy or not."""
    result = verdict(ran(3600, "ml.g4dn.12xlarge"), even_use(minutes=60, cpu=5, memory=5, gpu=90))
    assert result == does_not_apply("…GPU…")


def test_a_mixed_cluster_is_not_judged() -> None:
    """There is no one type to make smaller."""
    result = verdict(
        ran(3600, groups=(InstanceGroup("ml.m5.4xlarge", 1), InstanceGroup("ml.m5.xlarge", 1)))
    )
    assert result == does_not_apply("…several groups…")


def test_an_unpriced_type_is_clear_of_advice() -> None:
    """Without a rate for today's type nothing is known to be cheaper."""
    use = even_use(minutes=60, cpu=5, memory=5)
    assert verdict(ran(3600, "ml.unpriced.xlarge"), use) == CLEAR
