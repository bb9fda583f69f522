from functools import partial

import pytest

from sageaudit.domain.job.job import InstanceGroup
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, Points, batch_job, market, ran
from tests.fakes.judging import answer, savings_of, usd
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    Measured,
    does_not_apply,
    even_use,
    finds,
    hosts,
)

RULE = "serial-code"
SIXTEEN_VCPUS = ran(3600, "ml.m5.4xlarge")
"""An hour on 16 vCPUs and 64 GiB at $0.92."""


def cores(*host_points: Points, memory: float | None = 5) -> Measured:
    """Busy cores of each host, minute by minute, and the use of its memory in percent."""
    return hosts(
        *(
            {"cores": of_host} | ({} if memory is None else {"memory": [memory] * len(of_host)})
            for of_host in host_points
        )
    )


verdict = partial(answer, RULE)


def test_one_core_of_16_is_found_and_fits_ml_m5_large() -> None:
    # 1.2 of 2 vCPUs and 3.8 of 8 GiB with 20% headroom: $0.92 - $0.115.
    assert verdict(SIXTEEN_VCPUS, cores([1.0] * 60)) == finds(
        "The code used 1.0 of 16 vCPUs over 1 h on 1 x ml.m5.4xlarge.",
        builder="derived",
        fix=[("ResourceConfig.InstanceType", "ml.m5.4xlarge", "ml.m5.large")],
        usd="0.805000",
        evidence={"cpu_mean_cores": 1.0},
    )


def test_a_long_step_on_one_core_is_a_range_a_smaller_type_or_the_step_apart() -> None:
    # 40 of 60 minutes; ten cores with headroom on 8 vCPUs for the others: 1.17 times as long.
    assert verdict(SIXTEEN_VCPUS, cores([1.0] * 40 + [10.0] * 20)) == finds(
        "For 40 min of 1 h on 1 x ml.m5.4xlarge no host used more than 1.2 of 16 vCPUs.",
        fix=["ml.m5.2xlarge"],
        usd="0.382377",
        span=("0.382377", "0.539960"),
    )


def test_without_a_smaller_type_nothing_is_counted_of_a_long_step() -> None:
    assert verdict(SIXTEEN_VCPUS, cores([1.0] * 40 + [16.0] * 20)) == finds(
        fix=[], usd="0.000000", caution="…a separate job…"
    )


def test_30_minutes_on_one_core_are_long_and_29_or_20_minutes_without_work_are_not() -> None:
    assert verdict(SIXTEEN_VCPUS, cores([1.0] * 29 + [16.0] * 31)) == CLEAR
    assert verdict(SIXTEEN_VCPUS, cores([1.0] * 30 + [16.0] * 30)) == FOUND
    assert verdict(SIXTEEN_VCPUS, cores([16.0] * 20 + [0.1] * 20 + [16.0] * 20)) == CLEAR


def test_one_core_is_0_85_to_1_2_busy_cores() -> None:
    # Jobstats' 0.85 to 1.01 of the job, and up to 0.19 of the host's system.
    assert verdict(SIXTEEN_VCPUS, cores([0.85] * 60)) == FOUND
    assert verdict(SIXTEEN_VCPUS, cores([0.84] * 60)) == CLEAR
    assert verdict(SIXTEEN_VCPUS, cores([1.2] * 60)) == FOUND
    assert verdict(SIXTEEN_VCPUS, cores([1.21] * 60)) == CLEAR
    assert verdict(SIXTEEN_VCPUS, cores([2.0] * 60)) == CLEAR


def test_several_cores_by_turns_are_not_one() -> None:
    # The mean is one core: eight for an eighth of the minutes.
    assert verdict(SIXTEEN_VCPUS, cores([8.0, 0.3, 0, 0, 0, 0, 0, 0.3] * 8)) == CLEAR


def test_a_p95_of_1_5_cores_is_not_steadily_one_and_of_1_49_it_is() -> None:
    assert verdict(SIXTEEN_VCPUS, cores([0.95] * 54 + [1.49] * 6)) == FOUND
    assert verdict(SIXTEEN_VCPUS, cores([0.95] * 54 + [1.5] * 6)) == CLEAR


def test_idle_head_and_tail_are_cut_first() -> None:
    """20 busy minutes of 60 on one core."""
    result = verdict(SIXTEEN_VCPUS, cores([0] * 20 + [1.0] * 20 + [0] * 20))
    assert result == finds(evidence={"active_minutes": 20})


def test_one_core_of_2_vcpus_is_clear_and_of_4_it_is_found() -> None:
    assert verdict(ran(3600, "ml.m5.large"), cores([1.0] * 60)) == CLEAR
    assert verdict(ran(3600, "ml.m5.xlarge"), cores([1.0] * 60)) == FOUND


def test_every_host_must_sit_at_one_core() -> None:
    """An idle host, or one with eight busy cores, does not use one core."""
    result = verdict(ran(3600, "ml.m5.4xlarge", 2), cores([1.0] * 60, [1.0] * 60))
    assert result == finds("…vCPUs on each host over…")
    assert verdict(ran(3600, "ml.m5.4xlarge", 2), cores([1.0] * 60, [0.1] * 60)) == CLEAR
    assert verdict(ran(3600, "ml.m5.4xlarge", 2), cores([1.0] * 60, [8.0] * 60)) == CLEAR


def test_no_older_generation_is_advised_to_a_current_type() -> None:
    # However cheap it is; a type that is old itself may move within its time.
    def old(*names: str) -> Market:
        types = TYPES | {name: replace(TYPES[name], is_legacy=True) for name in names}
        return replace(market(), types=types)

    on_one_core = cores([1.0] * 60)
    result = verdict(SIXTEEN_VCPUS, on_one_core, market=old("ml.m5.large"))
    assert result == finds(fix=["ml.m5.xlarge"])
    result = verdict(SIXTEEN_VCPUS, on_one_core, market=old("ml.m5.large", "ml.m5.4xlarge"))
    assert result == finds(fix=["ml.m5.large"])


def test_the_advised_type_gets_no_advice_back() -> None:
    """One core of two, and 40% of 8 GiB."""
    assert verdict(ran(3600, "ml.m5.large"), cores([1.0] * 60, memory=40)) == CLEAR
    assert answer("cpu-underused", ran(3600, "ml.m5.large"), cores([1.0] * 60, memory=40)) == CLEAR


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (JobKind.PROCESSING, "ProcessingResources.ClusterConfig.InstanceType"),
        (JobKind.TRANSFORM, "TransformResources.InstanceType"),
    ],
)
def test_each_kind_of_job_is_advised_by_its_own_parameter(kind: JobKind, path: str) -> None:
    assert verdict(batch_job(kind, 3600, "ml.m5.4xlarge"), cores([1.0] * 60)) == finds(paths=[path])


def test_other_jobs_are_not_judged() -> None:
    """On a GPU job one core feeds the GPU; a mix has no one type."""
    result = verdict(ran(3600, "ml.g4dn.2xlarge"), even_use(minutes=60, cpu=12.5, memory=5, gpu=90))
    assert result == does_not_apply("…GPU…")
    result = verdict(
        ran(3600, groups=(InstanceGroup("ml.m5.xlarge", 1), InstanceGroup("ml.m5.large", 1)))
    )
    assert result == does_not_apply("…several groups…")


def test_without_a_smaller_type_that_holds_it_there_are_no_dollars() -> None:
    """The cores can still be used."""
    assert verdict(SIXTEEN_VCPUS, cores([1.0] * 60, memory=None)) == finds(
        bucket="none",
        fix=[],
        usd=None,
        caution="Nothing is counted: …memory used is not known…threads and workers…",
    )
    assert verdict(SIXTEEN_VCPUS, cores([1.0] * 60, memory=95)) == finds(
        bucket="none",
        fix=[],
        usd=None,
        caution="Nothing is counted: …threads and workers…",
        without="memory used is not known",
    )


def test_it_includes_the_finding_of_cpu_underused() -> None:
    """Both recommend ml.m5.large: one has the dollars, the other the rule that includes it."""
    settled = savings_of((RULE, "cpu-underused"), SIXTEEN_VCPUS, cores([1.0] * 60))
    by_rule = {finding.rule.name: finding for finding in settled.findings}
    assert by_rule["cpu-underused"].subsumed_by == RULE
    assert usd(settled.avoidable_usd) == "0.805000"
