from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import phases, ran, series
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, lines, row

RULE = "poor-scaling"
FOUR = ran(3600, "ml.m5.4xlarge", 4)
GPUS = ran(3600, "ml.g4dn.2xlarge", 4)
TWINS = ran(3600, "ml.m5.xlarge", 4, volume_gb=None, fingerprint="same", data_pinned=True)
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
                "data_pinned": True,
                **facts,
            },
        )
        for day, (count, seconds, usd) in enumerate(runs, start=1)
    ]


BUSY = even(60, hosts=4, cpu=90)
CHEAPER_ON_ONE = ((4, 3600, "0.92"), (1, 7200, "0.46"), (1, 9000, "0.575"))


def heeded(instances: int | None) -> list[AuditSummary]:
    """A run on so many hosts of which the rule said that fewer could do its work."""
    return [earlier_run(1, instance_count=instances, found_rules=(RULE,), fingerprint="other")]


test_cases = cases(
    RULE,
    "A family that paid less on fewer is told.",
    # As slow as its slowest run on one: 2.5 h x $0.23; the range goes to the median, 2.25 h.
    # $0.92 - 2.5 h x $0.23, and $0.92 - 2.25 h x $0.23
    row(finds("The same job costs $0.92 on 4 x ml.m5.xlarge and $0.52 on 1 (medians of 2 and 2 "
        "runs).", builder="derived", fix=[("ResourceConfig.InstanceCount", 4, 1)], usd="0.345000",
        span=("0.345000", "0.402500"), evidence={"runs_on_fewer": 2}), TWINS, BUSY,
        earlier=family(*CHEAPER_ON_ONE)),
    "Where the data may have changed the difference of the medians is possible.",
    # $0.92 - $0.5175: fewer hosts may have had less to do.
    row(finds(builder="possible_by_runs", usd="0.402500", span=None,
        caution="Possible only: the data may have changed…"), replace(TWINS, data_pinned=False),
        BUSY, earlier=family(*CHEAPER_ON_ONE)),
    row(finds(builder="possible_by_runs", usd="0.402500"), replace(TWINS, data_pinned=None),
        BUSY, earlier=family(*CHEAPER_ON_ONE, data_pinned=None)),
    "Little used GPUs are a range from nothing.",
    # Four at 20% are two at 40%: between nothing and half of 4 x $0.94.
    row(finds("The GPU of each of 4 hosts averaged 20% or less over 1 h on "
        "4 x ml.g4dn.2xlarge: 2 have room for it.", fix=[2], usd="0.000000", span=("0.000000",
        "1.880000"), confidence="derived"), GPUS, even(60, hosts=4, cpu=20, memory=10, gpu=20)),
    "A quarter of the GPUs is used. Jobstats' amber ends there.",
    row(FOUND, GPUS, even(60, hosts=4, cpu=20, gpu=24.9)),
    row(CLEAR, GPUS, even(60, hosts=4, cpu=20, gpu=25)),
    "Forty percent of the CPUs are used. On a CPU job.",
    row(FOUND, FOUR, even(60, hosts=4, cpu=39.9)),
    row(CLEAR, FOUR, even(60, hosts=4, cpu=40)),
    "All the memory must fit. 5% of CPU fit on one host; 4 x 50% of memory plus 20% fill 2.4.",
    row(finds(fix=[1]), FOUR, even(60, hosts=4, cpu=5, memory=10)),
    row(finds(fix=[3]), FOUR, even(60, hosts=4, cpu=5, memory=50)),
    row(CLEAR, FOUR, even(60, hosts=4, cpu=5, memory=80)),
    "A host whose memory is not known is taken for the others.",
    # One of four says 50%: the four fill 2.4 hosts, not 0.6.
    row(finds(fix=[3]), FOUR, lines(*[series(Metric.CPU, [80] * 60,
        host=f"train/algo-{n}") for n in range(1, 5)], series(Metric.MEMORY, [50] * 60))),
    "One well used host keeps all. Every one must be little used.",
    row(CLEAR, ran(3600, "ml.m5.4xlarge", 2), lines(series(Metric.CPU, [80] * 60),
        series(Metric.CPU, [800] * 60, host="train/algo-2"))),
    "The advised count gets no advice back. The same work on two hosts: 40% of each.",
    row(CLEAR, ran(3600, "ml.g4dn.2xlarge", 2), even(60, hosts=2, cpu=20, gpu=40)),
    row(CLEAR, ran(3600, "ml.m5.4xlarge", 3), even(60, hosts=3, cpu=6.7, memory=66.7)),
    "Hosts that did nothing are other rules' stories. Idle GPUs, and an idle run.",
    row(CLEAR, GPUS, even(60, hosts=4, cpu=20, gpu=1)),
    row(CLEAR, FOUR, even(60, hosts=4, cpu=0)),
    "Each kind has its own parameter. The same rule for three kinds.",
    row(finds(paths=["ProcessingResources.ClusterConfig.InstanceCount"]), replace(FOUR,
        kind=JobKind.PROCESSING, phases=phases(("Processing", 3600))),
        lines(*(series(Metric.CPU, [80] * 60, host=f"train/algo-{n}") for n in range(1, 5)))),
    row(finds(paths=["TransformResources.InstanceCount"]), replace(FOUR, kind=JobKind.TRANSFORM,
        phases=phases(("Transform", 3600))), lines(*(series(Metric.CPU, [80] * 60,
        host=f"train/algo-{n}") for n in range(1, 5)))),
    "One instance and mixed clusters are not its concern.",
    # There is nothing to take away, or no count of one type.
    row("not applicable: it ran on one instance", ran(3600, "ml.m5.4xlarge"), even(60, cpu=5)),
    row("not applicable: its instances are in several groups",
        ran(3600, groups=(InstanceGroup("ml.m5.4xlarge", 1), InstanceGroup("ml.m5.xlarge", 1)))),
    "Without the GPU of a GPU job or a host it does not know.",
    # Its card asks for CPU alone, which CPU jobs have too.
    row("unknown: metric_missing", GPUS, even(60, hosts=4, cpu=5)),
    row("unknown: hosts_missing", FOUR, even(60, hosts=3, cpu=5)),
    "Ten percent dearer are told and less is not. Of medians: $0.92 against $0.836363.",
    row(FOUND, TWINS, BUSY, earlier=family((4, 3600, "0.92"), (2, 6000, "0.836"),
        (2, 6000, "0.836"))),
    row(CLEAR, TWINS, BUSY, earlier=family((4, 3600, "0.92"), (2, 6000, "0.837"),
        (2, 6000, "0.837"))),
    "One run of a count is an accident. Two are needed of each; this run is one of its own.",
    row(CLEAR, TWINS, BUSY, earlier=family((4, 3600, "0.92"), (1, 7200, "0.46"))),
    row(CLEAR, TWINS, BUSY, earlier=family((1, 7200, "0.46"), (1, 7200, "0.46"))),
    row(FOUND, TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE)),
    "The cheapest smaller count is advised. A larger one is no advice to save by.",
    row(finds(fix=[2]), TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, (2, 3600, "0.46"),
        (2, 3600, "0.46"), (8, 60, "0.1"))),
    row(CLEAR, TWINS, BUSY, earlier=family((4, 3600, "0.92"), (8, 60, "0.03"), (8, 60, "0.03"))),
    "Only the same work is compared. Same code and inputs, type and purchase, completed.",
    row(CLEAR, TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, fingerprint="other")),
    row(CLEAR, TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, fingerprint=None)),
    row(CLEAR, TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, instance_type="ml.m5.4xlarge")),
    row(CLEAR, TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, purchase=Purchase.SPOT)),
    row(CLEAR, TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, status="Stopped")),
    row(CLEAR, TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, elapsed_s=None)),
    row(CLEAR, TWINS, BUSY, earlier=family(*CHEAPER_ON_ONE, instance_count=None)),
    row(CLEAR, replace(TWINS, status="Failed"), BUSY, earlier=family(*CHEAPER_ON_ONE)),
    "Use says nothing twice.",
    # On 8 hosts it said fewer; on 4 they are as little used: that is not their number.
    row(CLEAR, FOUR, even(60, hosts=4, cpu=20), earlier=heeded(8)),
    row(FOUND, FOUR, even(60, hosts=4, cpu=20), earlier=heeded(4)),
    row(FOUND, FOUR, even(60, hosts=4, cpu=20), earlier=heeded(None)),
    "Late GPU points are too few to judge. Two thirds of them.",
    row("unknown: coverage_low", GPUS,
        lines(*[series(metric, points, host=f"train/algo-{n}") for n in range(1, 5) for metric,
        points in ((Metric.CPU, [160] * 60), (Metric.GPU, [None] * 20 + [10] * 40))])),
)  # fmt: skip
