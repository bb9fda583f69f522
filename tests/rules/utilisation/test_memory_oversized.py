from decimal import Decimal
from functools import partial

import pytest

from sageaudit.domain.job.job import InstanceGroup, Job
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.usage.measurements import Measurements
from tests.fakes.jobs import FixedPrices, by_point, even, instance_type, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    even_use,
    finds,
    given_job,
    hosts,
    one_host,
)

RULE = "memory-oversized"


def _sized(name: str, vcpu: int, memory_gib: int, category: str, **facts: object) -> InstanceType:
    return instance_type(name, vcpu, memory_gib, category=category, **facts)


KINDS = {
    kind.name: kind
    for kind in (
        _sized("ml.m5.xlarge", 4, 16, "general"),
        _sized("ml.m5.2xlarge", 8, 32, "general"),
        _sized("ml.m5.4xlarge", 16, 64, "general"),
        _sized("ml.c5.xlarge", 4, 8, "compute"),
        _sized("ml.c5.2xlarge", 8, 16, "compute"),
        _sized("ml.c5.4xlarge", 16, 32, "compute"),
        _sized("ml.c4.4xlarge", 16, 30, "compute", is_legacy=True),
        _sized("ml.c5d.4xlarge", 16, 32, "compute", is_ebs_billed=False),
        _sized("ml.c7i-flex.4xlarge", 16, 32, "compute"),
        _sized("ml.r5.4xlarge", 16, 128, "memory"),
        _sized("ml.t3.2xlarge", 8, 32, "burstable"),
    )
}
USD = {
    "ml.m5.xlarge": "0.23",
    "ml.m5.2xlarge": "0.46",
    "ml.m5.4xlarge": "0.92",
    "ml.c5.xlarge": "0.204",
    "ml.c5.2xlarge": "0.408",
    "ml.c5.4xlarge": "0.816",
    "ml.c4.4xlarge": "0.70",
    "ml.c5d.4xlarge": "0.60",
    "ml.c7i-flex.4xlarge": "0.50",
    "ml.r5.4xlarge": "1.21",
    "ml.t3.2xlarge": "0.40",
}
MARKET = Market(KINDS, FixedPrices(USD))
M5 = ran(3600, "ml.m5.4xlarge")
"""An hour on 16 vCPUs and 64 GiB at $0.92."""
C5 = ran(3600, "ml.c5.4xlarge")
"""An hour on 16 vCPUs and 32 GiB at $0.816."""
R5 = ran(3600, "ml.r5.4xlarge")
"""An hour on 16 vCPUs and 128 GiB at $1.21."""


@given_job
def host_use(run: Job, **percent: float) -> Measurements:
    """Even use of each host, in percent of all vCPUs and of memory."""
    return by_point(run, run.instance_count or 1, even(60, percent), types=KINDS)


verdict = partial(answer, RULE, market=MARKET)


def test_one_minute_of_60_at_90_percent_of_memory_keeps_the_type() -> None:
    """P95 is low, P99.5 is not."""
    result = verdict(
        M5,
        one_host(cores=[11.2] * 60, memory=[10] * 59 + [90], types=KINDS),
    )
    assert result == CLEAR


def test_other_types_are_not_judged() -> None:
    # A c type has no less; a GPU job's memory feeds the GPU; a mix has no one type.
    result = verdict(C5, host_use(cpu=70, memory=5))
    assert result == does_not_apply("its type is neither general-purpose nor memory-optimized")
    result = verdict(
        ran(3600, "ml.g4dn.2xlarge"), even_use(minutes=60, cpu=5, memory=5, gpu=90), market=None
    )
    assert result == does_not_apply("…GPU…")
    result = verdict(
        ran(3600, groups=(InstanceGroup("ml.m5.xlarge", 1), InstanceGroup("ml.m5.large", 1)))
    )
    assert result == does_not_apply("…several groups…")


def test_without_a_price_nothing_is_cheaper() -> None:
    """No rate of today's type."""
    result = verdict(
        M5,
        host_use(cpu=70, memory=20),
        market=Market(KINDS, FixedPrices({"ml.c5.4xlarge": "0.816"})),
    )
    assert result == CLEAR


def test_zero_seconds_are_no_advice() -> None:
    """A run that ended as it began."""
    result = verdict(ran(0, "ml.m5.4xlarge", training_s=Decimal(0), billable_s=Decimal(0)))
    assert result == cannot_judge("metric_missing")


def test_70_percent_of_cpu_and_20_percent_of_memory_go_to_a_c_type() -> None:
    # With 20% headroom 13.4 of 16 vCPUs and 15.4 of 32 GiB: $0.92 - $0.816.
    result = verdict(M5, host_use(cpu=70, memory=20))
    assert result == finds(
        "Memory stayed under 20% of 64 GiB for 95% of 1 h on 1 x ml.m5.4xlarge.",
        builder="derived",
        fix=[("ResourceConfig.InstanceType", "ml.m5.4xlarge", "ml.c5.4xlarge")],
        evidence={"memory_needed_gib": 15.4},
        usd="0.104000",
    )


def test_35_percent_of_memory_is_used_and_34_9_percent_is_not_unless_the_policy_says_20() -> None:
    assert verdict(M5, host_use(cpu=70, memory=35)) == CLEAR
    assert verdict(M5, host_use(cpu=70, memory=34.9)) == FOUND
    result = verdict(
        M5,
        host_use(cpu=70, memory=20),
        market=MARKET,
        limits={"max_memory_p95_percent": 20},
    )
    assert result == CLEAR


def test_the_cheapest_type_that_holds_all_is_advised() -> None:
    # Never an older family, other storage, or vCPUs that are not steady.
    # 30.7 GiB; 46.1, which no c type of 16 vCPUs has; 7.7 vCPU and 15.4 GiB
    result = verdict(R5, host_use(cpu=70, memory=20))
    assert result == finds(fix=["ml.c5.4xlarge"])
    result = verdict(R5, host_use(cpu=70, memory=30))
    assert result == finds(fix=["ml.m5.4xlarge"])
    result = verdict(M5, host_use(cpu=40, memory=20))
    assert result == finds(fix=["ml.c5.2xlarge"])


def test_a_smaller_type_of_the_family_is_the_other_rules_story() -> None:
    # 18 GiB on 8 vCPUs: ml.c5.2xlarge has 16, and ml.m5.2xlarge is cheaper than ml.c5.4xlarge.
    assert verdict(M5, host_use(cpu=30, memory=28)) == CLEAR
    result = answer(
        "cpu-underused", ran(3600, "ml.m5.4xlarge"), host_use(cpu=30, memory=28), market=MARKET
    )
    assert result == finds(fix=["ml.m5.2xlarge"])


def test_the_advised_type_gets_no_advice_back() -> None:
    """The same use as on an ml.r5.4xlarge."""
    assert verdict(C5, host_use(cpu=70, memory=80)) == does_not_apply("…")
    assert verdict(M5, host_use(cpu=70, memory=60)) == CLEAR


def test_a_legacy_type_may_move_within_its_time() -> None:
    """A job on an old type gets the old c type if that is the cheapest."""
    kinds = KINDS | {"ml.m4.4xlarge": _sized("ml.m4.4xlarge", 16, 64, "general", is_legacy=True)}
    prices = Market(kinds, FixedPrices(USD | {"ml.m4.4xlarge": "0.96"}))
    use = even_use(minutes=60, cpu=70, memory=20, types=kinds)
    assert verdict(ran(3600, "ml.m4.4xlarge"), use, market=prices) == finds(fix=["ml.c4.4xlarge"])


@pytest.mark.parametrize(
    ("instance", "busiest"),
    [
        ("ml.m5.4xlarge", 60),  # no type holds it
        ("ml.r5.4xlarge", 40),  # ml.m5.4xlarge would hold 51 GiB and 20% more
    ],
)
def test_the_busiest_host_decides(instance: str, busiest: int) -> None:
    """The memory of every host must be oversized, and must fit."""
    cpu = {"cores": [11.2] * 60}
    use = hosts(cpu | {"memory": [5] * 60}, cpu | {"memory": [busiest] * 60}, types=KINDS)
    assert verdict(ran(3600, instance, 2), use) == CLEAR
