from functools import partial

from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import Points, batch_job, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    Measured,
    cannot_judge,
    does_not_apply,
    finds,
    hosts,
    measured,
)

RULE = "group-without-part"
GPUS, CPUS = "ml.g4dn.2xlarge", "ml.m5.xlarge"
MIXED = (InstanceGroup(GPUS, 1, "train"), InstanceGroup(CPUS, 2, "feed"))
RUN = ran(3600, groups=MIXED)
"""An hour on one T4 at $0.94 an hour, and on two hosts of 4 vCPUs at $0.23."""
BUSY, ASLEEP = 2.0, 0.1
"""Cores."""


def group_hosts(
    gpu: list[float | None], cores: list[float], minutes: int = 60, period_s: int = 60
) -> Measured:
    """GPU in percent (None: the host has no GPU) and busy cores of each host, all the time."""
    points = minutes * 60 // period_s
    host_points = (
        {"cores": [of_host] * points} | ({} if percent is None else {"gpu": [percent] * points})
        for percent, of_host in zip(gpu, cores, strict=True)
    )
    return hosts(*host_points, period_s=period_s)


def beside_training(cores: Points) -> Measured:
    """One host trains; two others use this many cores, minute by minute."""
    trains = {"cores": [3.0] * 60, "gpu": [90.0] * 60}
    return hosts(trains, {"cores": cores}, {"cores": cores})


verdict = partial(answer, RULE)


def test_idle_cpu_hosts_beside_a_busy_gpu_are_left_out() -> None:
    """2 x ($0.23 and a volume) for an hour."""
    result = verdict(RUN, group_hosts(gpu=[90, None, None], cores=[3, ASLEEP, ASLEEP]))
    assert result == finds(
        "2 x ml.m5.xlarge did no work in 1 h, while the GPU of the ml.g4dn.2xlarge averaged 90%.",
        builder="derived",
        usd="0.471290",
        fix=[],
        first_step="Remove the group feed from ResourceConfig.InstanceGroups…",
        caution="This assumes that the other hosts need nothing…",
    )


def test_idle_gpus_beside_busy_cpu_hosts_are_left_out() -> None:
    """$0.94 for an hour, asleep or with one core."""
    result = verdict(RUN, group_hosts(gpu=[0, None, None], cores=[ASLEEP, BUSY, BUSY]))
    assert result == finds(
        "1 x ml.g4dn.2xlarge did no work in 1 h, while the CPU of the ml.m5.xlarge averaged 50%.",
        usd="0.940000",
        first_step="Remove the group train from…",
    )
    assert verdict(RUN, group_hosts(gpu=[1, None, None], cores=[1.2, BUSY, BUSY])) == finds(
        usd="0.940000"
    )
    assert verdict(RUN, group_hosts(gpu=[1, None, None], cores=[1.3, BUSY, BUSY])) == CLEAR
    assert verdict(RUN, group_hosts(gpu=[1.1, None, None], cores=[0.1, BUSY, BUSY])) == CLEAR


def test_some_idle_hosts_of_a_group_are_fewer_instances() -> None:
    result = verdict(RUN, group_hosts(gpu=[90, None, None], cores=[3, BUSY, ASLEEP]))
    assert result == finds(
        "1 x ml.m5.xlarge did no work…",
        usd="0.235645",
        fix=[("ResourceConfig.InstanceGroups[feed].InstanceCount", 2, 1)],
        first_step="",
    )


def test_a_host_at_0_19_cores_is_idle_and_at_0_2_cores_it_works() -> None:
    """All hosts use the CPU in the first minutes."""
    assert verdict(RUN, beside_training([4.0] * 6 + [0.19] * 54)) == finds(usd="0.471290")
    assert verdict(RUN, beside_training([4.0] * 6 + [0.2] * 54)) == CLEAR
    assert verdict(RUN, beside_training([4.0] * 7 + [0.19] * 53)) == CLEAR
    assert verdict(RUN, beside_training([0.19] * 59 + [4.0])) == CLEAR


def test_5_percent_of_a_gpu_or_one_core_is_work_and_less_is_not() -> None:
    assert verdict(RUN, group_hosts(gpu=[5, None, None], cores=[ASLEEP, ASLEEP, ASLEEP])) == finds()
    assert verdict(RUN, group_hosts(gpu=[4.9, None, None], cores=[ASLEEP, ASLEEP, ASLEEP])) == CLEAR
    assert verdict(RUN, group_hosts(gpu=[0, None, None], cores=[ASLEEP, 1, BUSY / 4])) == finds()
    assert verdict(RUN, group_hosts(gpu=[0, None, None], cores=[ASLEEP, 0.99, BUSY / 4])) == CLEAR


def test_two_groups_of_one_type_are_left_out_together_and_none_of_them_in_part() -> None:
    result = verdict(
        ran(
            3600, groups=(MIXED[0], InstanceGroup(CPUS, 1, "feed"), InstanceGroup(CPUS, 1, "read"))
        ),
        group_hosts(gpu=[90, None, None], cores=[3, ASLEEP, ASLEEP]),
    )
    assert result == finds(usd="0.471290", first_step="Remove the group feed, read from…")
    result = verdict(
        ran(
            3600, groups=(MIXED[0], InstanceGroup(CPUS, 1, "feed"), InstanceGroup(CPUS, 1, "read"))
        ),
        group_hosts(gpu=[90, None, None], cores=[3, BUSY, ASLEEP]),
    )
    assert result == cannot_judge(
        "hosts_unmapped: 1 hosts of ml.m5.xlarge…their group is not known"
    )


def test_hosts_with_the_same_metrics_are_not_distinguished() -> None:
    """Two GPU types, or two CPU types."""
    result = verdict(
        ran(3600, groups=(MIXED[0], InstanceGroup("ml.g4dn.12xlarge", 1))),
        group_hosts(gpu=[90, 0], cores=[3, 0]),
    )
    assert result == cannot_judge(
        "hosts_unmapped: …ml.g4dn.2xlarge and ml.g4dn.12xlarge are all with GPUs"
    )
    result = verdict(
        ran(3600, groups=(MIXED[0], InstanceGroup("ml.g5.2xlarge", 1))),
        group_hosts(gpu=[90, 0], cores=[3, 0]),
    )
    assert result == cannot_judge("hosts_unmapped")
    result = verdict(
        ran(3600, groups=(MIXED[0], InstanceGroup(CPUS, 1), InstanceGroup("ml.m5.2xlarge", 1))),
        group_hosts(gpu=[90, None, None], cores=[3, ASLEEP, ASLEEP]),
    )
    assert result == cannot_judge(
        "hosts_unmapped: …ml.m5.xlarge and ml.m5.2xlarge are all without GPUs"
    )


def test_a_host_or_a_series_that_is_missing_could_be_of_either_type() -> None:
    assert verdict(RUN, group_hosts(gpu=[90, None], cores=[3, ASLEEP])) == cannot_judge(
        "hosts_unmapped: …1 hosts have other points and none of GPUUtilization, and 2…"
    )
    result = verdict(RUN, group_hosts(gpu=[None, None, None], cores=[3, ASLEEP, ASLEEP]))
    assert result == cannot_judge(
        "hosts_unmapped: …0 hosts have points of GPUUtilization, and 1 are…"
    )
    assert verdict(RUN, measured()) == cannot_judge("metric_missing: no points")


def test_points_that_are_too_few_or_too_coarse_say_nothing() -> None:
    result = verdict(
        ran(840, groups=MIXED),
        group_hosts(gpu=[90, None, None], cores=[3, ASLEEP, ASLEEP], minutes=14),
    )
    assert result == cannot_judge("too_short")
    result = verdict(
        ran(7200, groups=MIXED),
        group_hosts(gpu=[90, None, None], cores=[3, ASLEEP, ASLEEP], minutes=120, period_s=600),
    )
    assert result == cannot_judge("period_too_coarse")
    result = verdict(RUN, group_hosts(gpu=[90, None, None], cores=[3, ASLEEP, ASLEEP], minutes=40))
    assert result == cannot_judge("coverage_low")


def test_jobs_of_one_type_and_those_without_a_bill_are_not_judged() -> None:
    result = verdict(ran(3600, instances=3), group_hosts(gpu=[None, None], cores=[3, ASLEEP]))
    assert result == does_not_apply("…one type…")
    result = verdict(
        ran(3600, groups=(InstanceGroup(CPUS, 1, "a"), InstanceGroup(CPUS, 1, "b"))),
        group_hosts(gpu=[None, None], cores=[3, ASLEEP]),
    )
    assert result == does_not_apply("…one type…")
    result = verdict(
        batch_job(JobKind.PROCESSING, 3600, groups=MIXED),
        group_hosts(gpu=[], cores=[]),
    )
    assert result == does_not_apply("not for processing jobs")


def test_a_prepaid_run_has_no_dollars_to_save() -> None:
    result = verdict(
        ran(3600, groups=MIXED, purchase=Purchase.TRAINING_PLAN),
        group_hosts(gpu=[90, None, None], cores=[3, ASLEEP, ASLEEP]),
    )
    assert result == finds(usd="0.000000")
