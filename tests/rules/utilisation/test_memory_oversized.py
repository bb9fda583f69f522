from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import Clear, Found
from sageaudit.domain.job.job import InstanceGroup, Job
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import FixedPrices, even_use, instance_type, ran, series, usage
from tests.fakes.judging import outcome
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, later, lines, row

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
def used(run: Job, **percent: float) -> Measurements:
    """Even use of each host, in percent of all vCPUs and of memory."""
    return even_use(run, (60, 60), run.instance_count or 1, percent, KINDS)


test_cases = cases(
    RULE,
    "A short peak of memory keeps the type. P95 is low, P99.5 is not.",
    row(CLEAR, ran(3600, "ml.m5.4xlarge"), lines(series(Metric.CPU, [1120] * 60),
        series(Metric.MEMORY, [10] * 59 + [90]), types=KINDS)),
    "Other types are not its concern.",
    # A c type has no less; a GPU job's memory feeds the GPU; a mix has no one type.
    row("not applicable: its type is neither general-purpose nor memory-optimized",
        ran(3600, "ml.c5.4xlarge"), used(cpu=70, memory=5)),
    row("not applicable: …GPU…", ran(3600, "ml.g4dn.2xlarge"), even(60, cpu=5, memory=5, gpu=90),
        on=None),
    row("not applicable: …several groups…", ran(3600, groups=(InstanceGroup("ml.m5.xlarge", 1),
        InstanceGroup("ml.m5.large", 1)))),
    "Without a price nothing is cheaper. No rate of today's type.",
    row(CLEAR, ran(3600, "ml.m5.4xlarge"), used(cpu=70, memory=20), on=Market(KINDS,
        FixedPrices({"ml.c5.4xlarge": "0.816"}))),
    "Zero seconds are no advice. A run that ended as it began.",
    row("unknown: metric_missing", ran(0, "ml.m5.4xlarge", training_s=Decimal(0),
        billable_s=Decimal(0))),
    "Busy cores in much memory go to a c type. $0.92 - $0.816.",
    # 70% of 16 vCPUs need 13.4, 20% of 64 GiB need 15.4: ml.c5.4xlarge.
    row(finds("Memory stayed under 20% of 64 GiB for 95% of 1 h on 1 x ml.m5.4xlarge.",
        builder="derived", fix=[("ResourceConfig.InstanceType", "ml.m5.4xlarge", "ml.c5.4xlarge")],
        evidence={"memory_needed_gib": 15.4}, usd="0.104000"), ran(3600, "ml.m5.4xlarge"),
        used(cpu=70, memory=20)),
    "Exactly 35 percent is used. Just under it is not; the policy may say 20.",
    row(CLEAR, ran(3600, "ml.m5.4xlarge"), used(cpu=70, memory=35)),
    row(FOUND, ran(3600, "ml.m5.4xlarge"), used(cpu=70, memory=34.9)),
    row(CLEAR, ran(3600, "ml.m5.4xlarge"), used(cpu=70, memory=20), on=MARKET,
        limits={"memory_p95_below": 20}),
    "The cheapest type that holds all is advised.",
    # Never an older family, other storage, or vCPUs that are not steady.
    # 30.7 GiB; 46.1, which no c type of 16 vCPUs has; 7.7 vCPU and 15.4 GiB
    row(finds(fix=["ml.c5.4xlarge"]), ran(3600, "ml.r5.4xlarge"), used(cpu=70, memory=20)),
    row(finds(fix=["ml.m5.4xlarge"]), ran(3600, "ml.r5.4xlarge"), used(cpu=70, memory=30)),
    row(finds(fix=["ml.c5.2xlarge"]), ran(3600, "ml.m5.4xlarge"), used(cpu=40, memory=20)),
    "A smaller type of the family is the other rule's story.",
    # 18 GiB on 8 vCPUs: ml.c5.2xlarge has 16, and ml.m5.2xlarge is cheaper than ml.c5.4xlarge.
    row(CLEAR, ran(3600, "ml.m5.4xlarge"), used(cpu=30, memory=28)),
    row(finds(fix=["ml.m5.2xlarge"]), ran(3600, "ml.m5.4xlarge"), used(cpu=30, memory=28),
        on=MARKET, rule="cpu-underused"),
    "The advised type gets no advice back. The same use as on an ml.r5.4xlarge.",
    row("not applicable: …", ran(3600, "ml.c5.4xlarge"), used(cpu=70, memory=80)),
    row(CLEAR, ran(3600, "ml.m5.4xlarge"), used(cpu=70, memory=60)),
    on=MARKET,
)  # fmt: skip


def test_a_legacy_type_may_move_within_its_time() -> None:
    """A job on an old type is told of the old c type where that is the cheapest."""
    kinds = KINDS | {"ml.m4.4xlarge": _sized("ml.m4.4xlarge", 16, 64, "general", legacy=True)}
    prices = Market(kinds, FixedPrices(USD | {"ml.m4.4xlarge": "0.96"}))
    run = ran(3600, "ml.m4.4xlarge")
    raw = [series(Metric.CPU, [1120] * 60), series(Metric.MEMORY, [20] * 60)]
    of = usage(run, *raw, types=kinds)
    answer = outcome(RULE, run, of, on=prices)
    assert isinstance(answer, Found)
    assert [fix.new for fix in answer.fix] == ["ml.c4.4xlarge"]


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
    of = usage(run, *raw, types=KINDS)
    assert outcome(RULE, run, of, on=MARKET) == Clear()
