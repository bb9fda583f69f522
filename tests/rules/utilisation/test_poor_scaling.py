from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import batch_job, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    even_use,
    finds,
    hosts,
)

RULE = "poor-scaling"
FOUR_CPU = ran(3600, "ml.m5.4xlarge", 4)
"""An hour on 4 hosts of 16 vCPUs."""
FOUR_T4 = ran(3600, "ml.g4dn.2xlarge", 4)
"""An hour on 4 hosts with a T4 each at $0.94."""
TWINS = ran(3600, "ml.m5.xlarge", 4, volume_gb=None, fingerprint="same", is_data_pinned=True)
"""Four ml.m5.xlarge for an hour: $0.92."""


def family(*runs: tuple[int, int, str], **facts: Any) -> list[AuditSummary]:
    """Runs as (instances, seconds, dollars) of the same work."""
    return [
        earlier_run(
            day,
            total_usd=Decimal(usd),
            **{
                "instance_count": count,
                "elapsed_s": Decimal(seconds),
                "fingerprint": "same",
                "is_data_pinned": True,
                **facts,
            },
        )
        for day, (count, seconds, usd) in enumerate(runs, start=1)
    ]


BUSY = even_use(minutes=60, hosts=4, cpu=90)
CHEAPER_ON_ONE = ((4, 3600, "0.92"), (1, 7200, "0.46"), (1, 9000, "0.575"))


def heeded(instances: int | None) -> list[AuditSummary]:
    """A run on this many hosts with a finding that fewer could do its work."""
    return [
        earlier_run(1, instance_count=instances, rules_with_findings=(RULE,), fingerprint="other")
    ]


verdict = partial(answer, RULE)


def test_a_family_that_paid_less_on_fewer_is_told() -> None:
    # As slow as its slowest run on one: 2.5 h x $0.23; the range goes to the median, 2.25 h.
    # $0.92 - 2.5 h x $0.23, and $0.92 - 2.25 h x $0.23
    result = verdict(TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE))
    assert result == finds(
        "The same job costs $0.92 on 4 x ml.m5.xlarge and $0.52 on 1 (medians of 2 and 2 runs).",
        builder="derived",
        fix=[("ResourceConfig.InstanceCount", 4, 1)],
        usd="0.345000",
        span=("0.345000", "0.402500"),
        evidence={"runs_on_fewer": 2},
    )


def test_where_the_data_may_have_changed_the_difference_of_the_medians_is_possible() -> None:
    # $0.92 - $0.5175: fewer hosts may have had less to do.
    result = verdict(replace(TWINS, is_data_pinned=False), BUSY, earlier=family(*CHEAPER_ON_ONE))
    assert result == finds(
        builder="possible_by_runs",
        usd="0.402500",
        span=None,
        caution="Only possible: the data may have changed…",
    )
    result = verdict(
        replace(TWINS, is_data_pinned=None),
        BUSY,
        earlier=family(*CHEAPER_ON_ONE, is_data_pinned=None),
    )
    assert result == finds(builder="possible_by_runs", usd="0.402500")


def test_little_used_gpus_are_a_range_from_nothing() -> None:
    # Four at 20% are two at 40%: between nothing and half of 4 x $0.94.
    result = verdict(FOUR_T4, even_use(minutes=60, hosts=4, cpu=20, memory=10, gpu=20))
    assert result == finds(
        "On each of the 4 hosts (ml.g4dn.2xlarge), the GPU averaged 20% or less over 1 h: 2 "
        "hosts are enough for the work.",
        fix=[2],
        usd="0.000000",
        span=("0.000000", "1.880000"),
        confidence="derived",
    )


def test_gpus_at_24_9_percent_are_little_used_and_at_25_percent_they_are_not() -> None:
    """Jobstats' amber ends there."""
    assert verdict(FOUR_T4, even_use(minutes=60, hosts=4, cpu=20, gpu=24.9)) == FOUND
    assert verdict(FOUR_T4, even_use(minutes=60, hosts=4, cpu=20, gpu=25)) == CLEAR


def test_cpus_at_39_9_percent_are_little_used_and_at_40_percent_they_are_not() -> None:
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=4, cpu=39.9)) == FOUND
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=4, cpu=40)) == CLEAR


def test_fewer_hosts_must_hold_all_the_memory_and_20_percent_more() -> None:
    """5% of CPU fit on one host; 4 x 50% of memory plus 20% fill 2.4."""
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=4, cpu=5, memory=10)) == finds(fix=[1])
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=4, cpu=5, memory=50)) == finds(fix=[3])
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=4, cpu=5, memory=80)) == CLEAR


def test_a_host_whose_memory_is_not_known_is_taken_for_the_others() -> None:
    # One of four says 50%: the four fill 2.4 hosts, not 0.6.
    cpu, memory = {"cores": [0.8] * 60}, {"memory": [50] * 60}
    result = verdict(FOUR_CPU, hosts(cpu | memory, cpu, cpu, cpu))
    assert result == finds(fix=[3])


def test_one_well_used_host_keeps_all() -> None:
    """Every one must be little used."""
    result = verdict(
        ran(3600, "ml.m5.4xlarge", 2),
        hosts({"cores": [0.8] * 60}, {"cores": [8.0] * 60}),
    )
    assert result == CLEAR


def test_the_advised_count_gets_no_advice_back() -> None:
    """The same work on two hosts: 40% of each."""
    assert (
        verdict(ran(3600, "ml.g4dn.2xlarge", 2), even_use(minutes=60, hosts=2, cpu=20, gpu=40))
        == CLEAR
    )
    assert (
        verdict(ran(3600, "ml.m5.4xlarge", 3), even_use(minutes=60, hosts=3, cpu=6.7, memory=66.7))
        == CLEAR
    )


def test_hosts_that_did_nothing_are_other_rules_stories() -> None:
    """Idle GPUs, and an idle run."""
    assert verdict(FOUR_T4, even_use(minutes=60, hosts=4, cpu=20, gpu=1)) == CLEAR
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=4, cpu=0)) == CLEAR


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (JobKind.PROCESSING, "ProcessingResources.ClusterConfig.InstanceCount"),
        (JobKind.TRANSFORM, "TransformResources.InstanceCount"),
    ],
)
def test_each_kind_of_job_is_advised_by_its_own_parameter(kind: JobKind, path: str) -> None:
    job = batch_job(kind, 3600, "ml.m5.4xlarge", 4)
    assert verdict(job, even_use(minutes=60, hosts=4, cpu=5)) == finds(paths=[path])


def test_one_instance_and_mixed_clusters_are_not_judged() -> None:
    # There is nothing to take away, or no count of one type.
    result = verdict(ran(3600, "ml.m5.4xlarge"), even_use(minutes=60, cpu=5))
    assert result == does_not_apply("it ran on one instance")
    result = verdict(
        ran(3600, groups=(InstanceGroup("ml.m5.4xlarge", 1), InstanceGroup("ml.m5.xlarge", 1)))
    )
    assert result == does_not_apply("its instances are in several groups")


def test_without_the_gpu_of_a_gpu_job_or_a_host_it_does_not_know() -> None:
    # Its card asks for CPU alone, which CPU jobs have too.
    assert verdict(FOUR_T4, even_use(minutes=60, hosts=4, cpu=5)) == cannot_judge("metric_missing")
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=3, cpu=5)) == cannot_judge("hosts_missing")


def test_a_median_10_percent_above_that_on_fewer_hosts_is_found_and_less_is_not() -> None:
    """$0.92 is 10% above $0.836363."""
    result = verdict(
        TWINS, BUSY, earlier=family((4, 3600, "0.92"), (2, 6000, "0.836"), (2, 6000, "0.836"))
    )
    assert result == FOUND
    result = verdict(
        TWINS, BUSY, earlier=family((4, 3600, "0.92"), (2, 6000, "0.837"), (2, 6000, "0.837"))
    )
    assert result == CLEAR


def test_one_run_of_a_count_is_an_accident() -> None:
    """Two are needed of each; this run is one of its own."""
    assert verdict(TWINS, BUSY, earlier=family((4, 3600, "0.92"), (1, 7200, "0.46"))) == CLEAR
    assert verdict(TWINS, BUSY, earlier=family((1, 7200, "0.46"), (1, 7200, "0.46"))) == CLEAR
    assert verdict(TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE)) == FOUND


def test_the_cheapest_smaller_count_is_advised() -> None:
    """A larger one is no advice to save by."""
    result = verdict(
        TWINS,
        BUSY,
        earlier=family(*CHEAPER_ON_ONE, (2, 3600, "0.46"), (2, 3600, "0.46"), (8, 60, "0.1")),
    )
    assert result == finds(fix=[2])
    result = verdict(
        TWINS, BUSY, earlier=family((4, 3600, "0.92"), (8, 60, "0.03"), (8, 60, "0.03"))
    )
    assert result == CLEAR


def test_only_the_same_work_is_compared() -> None:
    """Same code and inputs, type and purchase, completed."""
    assert verdict(TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, fingerprint="other")) == CLEAR
    assert verdict(TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, fingerprint=None)) == CLEAR
    result = verdict(TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, instance_type="ml.m5.4xlarge"))
    assert result == CLEAR
    assert verdict(TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, purchase=Purchase.SPOT)) == CLEAR
    assert verdict(TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, status="Stopped")) == CLEAR
    assert verdict(TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, elapsed_s=None)) == CLEAR
    assert verdict(TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, instance_count=None)) == CLEAR
    assert verdict(replace(TWINS, status="Failed"), BUSY, earlier=family(*CHEAPER_ON_ONE)) == CLEAR


def test_little_use_is_not_told_again_on_the_fewer_hosts_that_it_advised() -> None:
    # On 8 hosts it said fewer; on 4 they are as little used: that is not their number.
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=4, cpu=20), earlier=heeded(8)) == CLEAR
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=4, cpu=20), earlier=heeded(4)) == FOUND
    assert verdict(FOUR_CPU, even_use(minutes=60, hosts=4, cpu=20), earlier=heeded(None)) == FOUND


def test_gpu_points_of_two_thirds_of_the_minutes_are_too_few_to_judge() -> None:
    two_thirds = {"cores": [1.6] * 60, "gpu": [None] * 20 + [10] * 40}
    result = verdict(FOUR_T4, hosts(*[two_thirds] * 4))
    assert result == cannot_judge("coverage_low")
