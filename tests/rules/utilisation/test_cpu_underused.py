from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import InstanceGroup
from sageaudit.domain.usage.measurements import Metric
from tests.fakes.jobs import flat, ran, series, usage
from tests.fakes.judging import found, not_applicable, outcome, priced, usd

RULE = "cpu-underused"
BIG = ran(3600, "ml.m5.4xlarge")


def test_a_little_used_instance_is_found() -> None:
    """10 % of 16 vCPU and 64 GiB need 1.9 vCPU and 7.7 GiB: ml.m5.large holds them."""
    finding = priced(RULE, BIG, flat(BIG, 60, cpu=10, memory=10))
    [fix] = finding.found.fix
    assert (fix.path, fix.old, fix.new) == (
        "ResourceConfig.InstanceType", "ml.m5.4xlarge", "ml.m5.large",
    )  # fmt: skip
    # the volume costs the same: 0.92 - 0.115
    assert usd(finding.saving_usd) == "0.805000"
    assert finding.found.confidence is Confidence.DERIVED
    assert finding.found.bucket is Bucket.AVOIDABLE
    assert finding.found.evidence["cpu_p95_percent"] == 10.0


@pytest.mark.parametrize(
    ("cpu", "memory", "to"),
    [
        (39.9, 5, "ml.m5.2xlarge"),  # 7.7 vCPU
        (5, 39.9, "ml.m5.2xlarge"),  # 30.6 GiB
        (20, 10, "ml.m5.xlarge"),  # 3.8 vCPU
        (11, 5, "ml.m5.xlarge"),  # 2.1 vCPU: one more than a large has
    ],
)
def test_the_cheapest_type_that_holds_both_is_advised(cpu: float, memory: float, to: str) -> None:
    """Peaks plus 20 % of vCPU and memory."""
    what = found(RULE, BIG, flat(BIG, 60, cpu=cpu, memory=memory))
    assert [fix.new for fix in what.fix] == [to]


@pytest.mark.parametrize(("cpu", "memory"), [(40, 5), (5, 40), (90, 90)])
def test_exactly_40_percent_is_used(cpu: float, memory: float) -> None:
    """Of either one."""
    assert outcome(RULE, BIG, flat(BIG, 60, cpu=cpu, memory=memory)) == Clear()


def test_the_busiest_host_decides() -> None:
    """Every host must fit on the smaller type."""
    run = ran(3600, "ml.m5.4xlarge", 2)
    of = usage(
        run,
        series(Metric.CPU, [80] * 60),
        series(Metric.CPU, [800] * 60, host="train/algo-2"),
        series(Metric.MEMORY, [5] * 60),
        series(Metric.MEMORY, [5] * 60, host="train/algo-2"),
    )
    assert outcome(RULE, run, of) == Clear()


def test_a_short_peak_refuses_the_smaller_type() -> None:
    """P95 is low, P99.5 is not: one minute of sixty at all 16 vCPUs."""
    of = usage(BIG, series(Metric.CPU, [80] * 59 + [1600]), series(Metric.MEMORY, [5] * 60))
    assert outcome(RULE, BIG, of) == Clear()


def test_the_smallest_type_is_clear() -> None:
    """Nothing smaller of the family can be bought."""
    run = ran(3600, "ml.m5.large")
    assert outcome(RULE, run, flat(run, 60, cpu=5, memory=5)) == Clear()


def test_several_instances_save_together() -> None:
    """3 x 1 h x (0.92 - 0.115)."""
    run = ran(3600, "ml.m5.4xlarge", 3)
    finding = priced(RULE, run, flat(run, 60, hosts=3, cpu=10, memory=10))
    assert usd(finding.saving_usd) == "2.415000"


def test_a_gpu_job_is_not_its_concern() -> None:
    """Its CPUs feed the GPU, busy or not."""
    run = ran(3600, "ml.g4dn.12xlarge")
    assert "GPU" in not_applicable(RULE, run, flat(run, 60, cpu=5, memory=5, gpu=90))


def test_a_mixed_cluster_is_not_its_concern() -> None:
    """There is no one type to make smaller."""
    groups = (InstanceGroup("ml.m5.4xlarge", 1), InstanceGroup("ml.m5.xlarge", 1))
    assert "several groups" in not_applicable(RULE, ran(3600, groups=groups))


def test_an_unpriced_type_is_clear_of_advice() -> None:
    """Without a rate for today's type nothing is known to be cheaper."""
    run = ran(3600, "ml.unpriced.xlarge")
    assert not isinstance(outcome(RULE, run, flat(run, 60, cpu=5, memory=5)), Found)
