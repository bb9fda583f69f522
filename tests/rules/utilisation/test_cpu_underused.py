from sageaudit.domain.bill.finding import Found
from sageaudit.domain.job.job import InstanceGroup
from sageaudit.domain.usage.measurements import Metric
from tests.fakes.jobs import flat, ran, series
from tests.fakes.judging import outcome
from tests.fakes.rule_cases import CLEAR, cases, even, finds, lines, row

RULE = "cpu-underused"
BIG = ran(3600, "ml.m5.4xlarge")


test_cases = cases(
    RULE,
    "A little used instance is found.",
    # 10 % of 16 vCPU and 64 GiB need 1.9 vCPU and 7.7 GiB: ml.m5.large holds them.
    # the volume costs the same: 0.92 - 0.115
    row(finds(usd="0.805000", builder="derived", fix=[("ResourceConfig.InstanceType",
        "ml.m5.4xlarge", "ml.m5.large")], evidence={"cpu_p95_percent": 10.0}), BIG, even(60, cpu=10,
        memory=10)),
    "The cheapest type that holds both is advised. Peaks plus 20 % of vCPU and memory.",
    # They need 7.7 vCPU, 30.6 GiB, 3.8 vCPU, and 3.1 vCPU: half as much again as a large has.
    row(finds(fix=["ml.m5.2xlarge"]), BIG, even(60, cpu=39.9, memory=5)),
    row(finds(fix=["ml.m5.2xlarge"]), BIG, even(60, cpu=5, memory=39.9)),
    row(finds(fix=["ml.m5.xlarge"]), BIG, even(60, cpu=20, memory=10)),
    row(finds(fix=["ml.m5.xlarge"]), BIG, even(60, cpu=16, memory=5)),
    "Exactly 40 percent is used. Of either one.",
    row(CLEAR, BIG, even(60, cpu=40, memory=5)),
    row(CLEAR, BIG, even(60, cpu=5, memory=40)),
    row(CLEAR, BIG, even(60, cpu=90, memory=90)),
    "The busiest host decides. Every host must fit on the smaller type.",
    row(CLEAR, ran(3600, "ml.m5.4xlarge", 2), lines(series(Metric.CPU, [80] * 60),
        series(Metric.CPU, [800] * 60, host="train/algo-2"), series(Metric.MEMORY, [5] * 60),
        series(Metric.MEMORY, [5] * 60, host="train/algo-2"))),
    "A short peak makes the run longer, and too many of them refuse a type.",
    # A minute of sixty at all 16 vCPUs is 9.6 on two: 68.6 / 60 as long. Three are too many.
    row(finds(usd="0.787699", fix=["ml.m5.large"]), BIG, lines(series(Metric.CPU, [80] * 59 +
        [1600]), series(Metric.MEMORY, [5] * 60))),
    row(finds(fix=["ml.m5.xlarge"]), BIG, lines(series(Metric.CPU, [80] * 57 + [1600] * 3),
        series(Metric.MEMORY, [5] * 60))),
    "The smallest type is clear. Nothing smaller of the family can be bought.",
    row(CLEAR, ran(3600, "ml.m5.large"), even(60, cpu=5, memory=5)),
    "Several instances save together. 3 x 1 h x (0.92 - 0.115).",
    row(finds(usd="2.415000"), ran(3600, "ml.m5.4xlarge", 3), even(60, hosts=3, cpu=10, memory=10)),
    "A GPU job is not its concern. Its CPUs feed the GPU, busy or not.",
    row("not applicable: …GPU…", ran(3600, "ml.g4dn.12xlarge"), even(60, cpu=5, memory=5, gpu=90)),
    "A mixed cluster is not its concern. There is no one type to make smaller.",
    row("not applicable: …several groups…", ran(3600, groups=(InstanceGroup("ml.m5.4xlarge", 1),
        InstanceGroup("ml.m5.xlarge", 1)))),
)  # fmt: skip


def test_an_unpriced_type_is_clear_of_advice() -> None:
    """Without a rate for today's type nothing is known to be cheaper."""
    run = ran(3600, "ml.unpriced.xlarge")
    assert not isinstance(outcome(RULE, run, flat(run, 60, cpu=5, memory=5)), Found)
