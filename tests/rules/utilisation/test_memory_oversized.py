from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.counterfactual import Severities, allocate
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome
from sageaudit.domain.job.job import InstanceGroup, Job
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from tests.fakes.jobs import FixedPrices, instance_type, ran, series
from tests.fakes.judging import card, outcome, usd
from tests.fakes.rule_cases import CLEAR, cases, even, later, row

RULE = "memory-oversized"


def _sized(name: str, vcpu: int, memory_gib: int, category: str, **more: object) -> InstanceType:
    return instance_type(name, vcpu, memory_gib, category=category, **more)


KINDS = {
    kind.name: kind
    for kind in (
        _sized("ml.m5.xlarge", 4, 16, "general"),
        _sized("ml.m5.2xlarge", 8, 32, "general"),
        _sized("ml.m5.4xlarge", 16, 64, "general"),
        _sized("ml.c5.xlarge", 4, 8, "compute"),
        _sized("ml.c5.2xlarge", 8, 16, "compute"),
        _sized("ml.c5.4xlarge", 16, 32, "compute"),
        _sized("ml.c4.4xlarge", 16, 30, "compute", legacy=True),
        _sized("ml.c5d.4xlarge", 16, 32, "compute", ebs_billed=False),
        _sized("ml.c7i-flex.4xlarge", 16, 32, "compute"),
        _sized("ml.r5.4xlarge", 16, 128, "memory"),
        _sized("ml.t3.2xlarge", 8, 32, "burstable"),
    )
}
USD = {
    "ml.m5.xlarge": "0.23", "ml.m5.2xlarge": "0.46", "ml.m5.4xlarge": "0.92",
    "ml.c5.xlarge": "0.204", "ml.c5.2xlarge": "0.408", "ml.c5.4xlarge": "0.816",
    "ml.c4.4xlarge": "0.70", "ml.c5d.4xlarge": "0.60", "ml.c7i-flex.4xlarge": "0.50",
    "ml.r5.4xlarge": "1.21", "ml.t3.2xlarge": "0.40",
}  # fmt: skip
MARKET = Market(KINDS, FixedPrices(USD))


@later
def used(run: Job, minutes: int = 60, **percent: float) -> Measurements:
    """Even use of each host, in percent of all vCPUs and of memory."""
    vcpu = KINDS[run.groups[0].instance_type].vcpu
    raw = [
        series(
            Metric[word.upper()],
            [value * (vcpu if word == "cpu" else 1)] * minutes,
            host=f"{run.name}/algo-{n}",
        )
        for word, value in percent.items()
        for n in range(1, (run.instance_count or 0) + 1)
    ]
    return measure(run, raw, KINDS, absent=Missing("metric_missing", "no points"))


def judged(instance: str, cpu: float, memory: float, **limits: float) -> Outcome:
    """The rule's answer on an hour of even use."""
    run = ran(3600, instance)
    return outcome(RULE, run, used(cpu=cpu, memory=memory), on=MARKET, limits=limits)


def advised(instance: str, cpu: float, memory: float) -> str:
    """The type that the rule names."""
    answer = judged(instance, cpu, memory)
    assert isinstance(answer, Found), answer
    [fix] = answer.fix
    assert (fix.path, fix.old) == ("ResourceConfig.InstanceType", instance)
    return str(fix.new)


test_cases = cases(
    RULE,
    "A short peak of memory keeps the type. P95 is low, P99.5 is not.",
    row(CLEAR, ran(3600, "ml.m5.4xlarge"), measure(ran(3600, "ml.m5.4xlarge"),
        [series(Metric.CPU, [1120] * 60), series(Metric.MEMORY, [10] * 59 + [90])], KINDS,
        absent=Missing("metric_missing", "no points")), on=MARKET),
    "Other types are not its concern.",
    # A c type has no less; a GPU job's memory feeds the GPU; a mix has no one type.
    row("not applicable: its type is neither general-purpose nor memory-optimized",
        ran(3600, "ml.c5.4xlarge"), used(cpu=70, memory=5), on=MARKET),
    row("not applicable: …GPU…", ran(3600, "ml.g4dn.2xlarge"), even(60, cpu=5, memory=5, gpu=90)),
    row("not applicable: …several groups…", ran(3600, groups=(InstanceGroup("ml.m5.xlarge", 1),
        InstanceGroup("ml.m5.large", 1)))),
    "Without a price nothing is cheaper. No rate of today's type.",
    row(CLEAR, ran(3600, "ml.m5.4xlarge"), used(cpu=70, memory=20),
        on=Market(KINDS, FixedPrices({"ml.c5.4xlarge": "0.816"}))),
    "Zero seconds are no advice. A run that ended as it began.",
    row("unknown: metric_missing", ran(0, "ml.m5.4xlarge", training_s=Decimal(0),
        billable_s=Decimal(0))),
)  # fmt: skip


def test_busy_cores_in_much_memory_go_to_a_c_type() -> None:
    """70% of 16 vCPUs need 13.4, 20% of 64 GiB need 15.4: ml.c5.4xlarge, $0.92 - $0.816."""
    run = ran(3600, "ml.m5.4xlarge")
    answer = judged("ml.m5.4xlarge", 70, 20)
    assert isinstance(answer, Found)
    assert answer.summary == (
        "Memory stayed under 20% of 64 GiB for 95% of 1 h on 1 x ml.m5.4xlarge."
    )
    assert (answer.confidence, answer.bucket) == (Confidence.DERIVED, Bucket.AVOIDABLE)
    assert [(fix.path, fix.old, fix.new) for fix in answer.fix] == [
        ("ResourceConfig.InstanceType", "ml.m5.4xlarge", "ml.c5.4xlarge")
    ]
    assert answer.evidence["memory_needed_gib"] == 15.4
    savings = allocate(
        run, bill(run, MARKET), [(card(RULE).name, answer)], MARKET, Severities(), {}
    )
    assert usd(savings.avoidable_usd) == "0.104000"


def test_exactly_35_percent_is_used() -> None:
    """Just under it is not."""
    assert judged("ml.m5.4xlarge", 70, 35) == Clear()
    assert isinstance(judged("ml.m5.4xlarge", 70, 34.9), Found)


def test_the_policy_moves_the_threshold() -> None:
    """By its key."""
    assert judged("ml.m5.4xlarge", 70, 20, memory_p95_below=20) == Clear()


@pytest.mark.parametrize(
    ("instance", "cpu", "memory", "to"),
    [
        ("ml.r5.4xlarge", 70, 20, "ml.c5.4xlarge"),  # 30.7 GiB
        ("ml.r5.4xlarge", 70, 30, "ml.m5.4xlarge"),  # 46.1 GiB: no c type of 16 vCPUs has them
        ("ml.m5.4xlarge", 40, 20, "ml.c5.2xlarge"),  # 7.7 vCPU and 15.4 GiB
    ],
)
def test_the_cheapest_type_that_holds_all_is_advised(
    instance: str, cpu: float, memory: float, to: str
) -> None:
    """Never an older family, other storage, or vCPUs that are not steady."""
    assert advised(instance, cpu, memory) == to


def test_a_legacy_type_may_move_within_its_time() -> None:
    """A job on an old type is told of the old c type where that is the cheapest."""
    kinds = KINDS | {"ml.m4.4xlarge": _sized("ml.m4.4xlarge", 16, 64, "general", legacy=True)}
    prices = Market(kinds, FixedPrices(USD | {"ml.m4.4xlarge": "0.96"}))
    run = ran(3600, "ml.m4.4xlarge")
    raw = [series(Metric.CPU, [1120] * 60), series(Metric.MEMORY, [20] * 60)]
    of = measure(run, raw, kinds, absent=Missing("metric_missing", "no points"))
    answer = outcome(RULE, run, of, on=prices)
    assert isinstance(answer, Found)
    assert [fix.new for fix in answer.fix] == ["ml.c4.4xlarge"]


def test_a_smaller_type_of_the_family_is_the_other_rules_story() -> None:
    """18 GiB on 8 vCPUs: ml.c5.2xlarge has 16, and ml.m5.2xlarge is cheaper than ml.c5.4xlarge."""
    assert judged("ml.m5.4xlarge", 30, 28) == Clear()
    run = ran(3600, "ml.m5.4xlarge")
    smaller = outcome("cpu-underused", run, used(cpu=30, memory=28), on=MARKET)
    assert isinstance(smaller, Found)
    assert [fix.new for fix in smaller.fix] == ["ml.m5.2xlarge"]


@pytest.mark.parametrize("to", ["ml.c5.4xlarge", "ml.m5.4xlarge"])
def test_the_advised_type_gets_no_advice_back(to: str) -> None:
    """From an ml.r5.4xlarge: the same use on the type that was named."""
    memory = {"ml.c5.4xlarge": 20, "ml.m5.4xlarge": 30}[to]
    there = memory * 128 / float(KINDS[to].memory_gib)
    assert not isinstance(judged(to, 70, there), Found)


@pytest.mark.parametrize(
    ("instance", "busiest"),
    [
        ("ml.m5.4xlarge", 60),  # no type holds it
        ("ml.r5.4xlarge", 40),  # ml.m5.4xlarge would hold 51 GiB and 20% more
    ],
)
def test_the_busiest_host_decides(instance: str, busiest: int) -> None:
    """The memory of every host must be oversized, and must fit."""
    run = ran(3600, instance, 2)
    raw = [series(Metric.CPU, [1120] * 60, host=f"train/algo-{n}") for n in (1, 2)]
    raw += [
        series(Metric.MEMORY, [use] * 60, host=f"train/algo-{n}")
        for n, use in ((1, 5), (2, busiest))
    ]
    of = measure(run, raw, KINDS, absent=Missing("metric_missing", "no points"))
    assert outcome(RULE, run, of, on=MARKET) == Clear()
