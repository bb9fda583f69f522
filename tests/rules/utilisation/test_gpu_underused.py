from decimal import Decimal

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, market, phases, ran, series, usage
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, later, lines, row

RULE = "gpu-underused"
FOUR = ran(3600, "ml.g4dn.12xlarge")
ONE = ran(3600, "ml.g4dn.xlarge")


@later
def spiky(run: Job, *percent: float) -> Measurements:
    """A GPU series of its own; one core of four is busy."""
    return usage(run, series(Metric.GPU, percent), series(Metric.CPU, [100] * len(percent)))


def sourced() -> Market:
    """The same types with the packaged ratios of T4 and A10G."""
    known = {kind.gpu_model: kind.gpu_ratios for kind in packaged.types().values()}
    types = {name: replace(kind, gpu_ratios=known[kind.gpu_model]) for name, kind in TYPES.items()}
    return replace(market(), types=types)


test_cases = cases(
    RULE,
    "A little used GPU is found. 10% for an hour: the sentence says it with its numbers.",
    row(finds("…The GPU averaged 10% (P95 10%) over 1 h…", evidence={"gpu_mean_percent": 10.0,
        "cpu_mean_cores": 2.0, "active_minutes": 60}), ONE, even(60, gpu=10, cpu=50)),
    "A busy GPU is clear. 80% and more.",
    row(CLEAR, ONE, even(60, gpu=80, cpu=50)),
    "A mean of exactly 25 is not low.",
    # Bursts at 100% for a quarter of the time: P95 is high, only the mean decides.
    row(CLEAR, ONE, spiky(*[100] * 7, *([0] * 22), *[100] * 8, *([0] * 22), 0)),
    row(FOUND, ONE, spiky(*[100] * 7, *([0] * 22), *[100] * 7, 99, *([0] * 22), 0)),
    "A P95 of exactly 70 is not low.",
    # Half at 20%, half at 70%: the mean of 45% is under the target, the P95 is not under 70.
    row(CLEAR, ONE, spiky(*[20] * 30, *[70] * 30)),
    row(FOUND, ONE, spiky(*[20] * 30, *[69.9] * 30)),
    "A mean at the target is busy enough. An even 50% is clear, 49% is not.",
    row(CLEAR, ONE, even(60, gpu=50, cpu=50)),
    row(FOUND, ONE, even(60, gpu=49, cpu=50)),
    "The busiest host speaks for the P95.",
    # One of two hosts at 80%, the other at 10%: 45% on average, and no flat run.
    row(CLEAR, ran(3600, "ml.g4dn.xlarge", 2), lines(series(Metric.GPU, [10] * 60),
        series(Metric.GPU, [80] * 60, host="train/algo-2"), series(Metric.CPU, [100] * 60),
        series(Metric.CPU, [100] * 60, host="train/algo-2"))),
    "Idle head and tail are not held against it.",
    # Ten idle minutes at each end of 40 at 60%: judged on the 40.
    row(CLEAR, ONE, lines(series(Metric.GPU, [0] * 10 + [60] * 40 + [0] * 10), series(Metric.CPU,
        [0] * 10 + [100] * 40 + [0] * 10))),
    "A GPU that never worked is left to gpu-idle.",
    # One story, told once; so is one that did almost nothing. A GPU at 5% is told here.
    row("not applicable: …gpu-idle…", ONE, even(60, gpu=0, cpu=50)),
    row("not applicable: …gpu-idle…", ONE, spiky(*[0] * 59, 1)),
    row("not applicable: …gpu-idle…", ONE, even(60, gpu=4.9, cpu=50)),
    row(FOUND, ONE, even(60, gpu=5, cpu=50)),
    "The whole sentence. As the owner reads it.",
    row(finds("The GPU averaged 10% (P95 10%) over 1 h on 1 x ml.g4dn.xlarge."), ONE,
        even(60, gpu=10, cpu=50)),
    "The lines of Jobstats are named. Red at 15% or less, amber under 25%.",
    row(finds(evidence={"jobstats": "red"}), ONE, even(60, gpu=15, cpu=50)),
    row(finds(evidence={"jobstats": "amber"}), ONE, even(60, gpu=15.1, cpu=50)),
    row(finds(evidence={"jobstats": "amber"}), ONE, even(60, gpu=24.9, cpu=50)),
    row(finds(evidence={"jobstats": "below target"}), ONE, even(60, gpu=25, cpu=50)),
    "A GPU over the target is healthy.",
    # 50 to 70% on average, in a saw-tooth or even, whatever a larger batch might add.
    row(CLEAR, ONE, even(60, gpu=50, gpu_memory=20, cpu=50)),
    row(CLEAR, ONE, even(60, gpu=60, gpu_memory=20, cpu=50)),
    row(CLEAR, ONE, even(60, gpu=70, gpu_memory=20, cpu=50)),
    row(CLEAR, ONE, spiky(*([90, 85, 30, 15] * 15))),
    "One GPU of four is enough.",
    # 20% of 4 T4 and 5% of the rest fit one: 4.89 less 1 + 0.2 x 3 times 0.736, for an hour.
    row(finds(fix=["ml.g4dn.xlarge"], usd="3.712400", alone="3.712400",
        best=SetType("ml.g4dn.xlarge", Decimal(1))), FOUR, even(60, gpu=20, gpu_memory=5, cpu=5,
        memory=5)),
    "One GPU of four that is busy all the time takes no longer alone.",
    # The sum sits at 95% of one and never goes above it: 4.89 - 0.736.
    row(finds(usd="4.154000"), FOUR, even(60, gpu=95 / 4, gpu_memory=5, cpu=5, memory=5)),
    "The cheapest type that holds everything is advised.",
    # P99.5 with 20% headroom of vCPU and memory must fit.
    # vCPU: 5% of 48 x 1.2 = 2.9, 10% = 5.8, 20% = 11.5
    # host memory: 10% of 192 x 1.2 = 23 GiB
    row(finds(fix=["ml.g4dn.xlarge"]), FOUR, even(60, gpu=20, gpu_memory=5, cpu=5, memory=5)),
    row(finds(fix=["ml.g4dn.2xlarge"]), FOUR, even(60, gpu=20, gpu_memory=5, cpu=10, memory=5)),
    row(finds(fix=["ml.g4dn.4xlarge"]), FOUR, even(60, gpu=20, gpu_memory=5, cpu=20, memory=5)),
    row(finds(fix=["ml.g4dn.2xlarge"]), FOUR, even(60, gpu=20, gpu_memory=5, cpu=5, memory=10)),
    "A type is refused with the constraint that binds.",
    # No figure then, and no fix: an advice whose reason is shown.
    row(finds(change=None, fix=[], builder="advice", caution="…1.1 busy on average, 1…"), FOUR,
        even(60, gpu=28, gpu_memory=5, cpu=5, memory=5)),
    row(finds(change=None, fix=[], builder="advice", caution="…GPU memory: 18.3 GiB needed…"), FOUR,
        even(60, gpu=20, gpu_memory=26, cpu=5, memory=5)),
    row(finds(change=None, fix=[], builder="advice", caution="…vCPU: 17.3 needed…"), FOUR,
        even(60, gpu=20, gpu_memory=5, cpu=30, memory=5)),
    row(finds(change=None, fix=[], builder="advice", caution="…host memory: 69.1 GiB needed…"),
        FOUR, even(60, gpu=20, gpu_memory=5, cpu=5, memory=30)),
    row(finds(change=None, fix=[], builder="advice", caution="…the GPU memory used is not known…"),
        FOUR, even(60, gpu=20, cpu=5, memory=5)),
    row(finds(change=None, fix=[], builder="advice", caution="…the host memory used is not known…"),
        FOUR, even(60, gpu=20, gpu_memory=5, cpu=5)),
    "The smallest type has no figure.",
    # (1 - utilisation) x cost is never a saving: no cheaper GPU can be bought.
    row(finds(usd=None, bucket="none",
        caution="…no GPU type with a known price is cheaper by the hour…", severity="info"), ONE,
        even(60, gpu=10, cpu=50)),
    "Another GPU model without a sourced throughput is not advised.",
    # A T4 is cheaper than an A10G, and nobody says how much slower.
    row(finds(fix=[]), ran(3600, "ml.g5.2xlarge"), even(60, gpu=10, gpu_memory=5, cpu=10,
        memory=5)),
    "Another GPU model is not advised at a loss or in the dark.",
    # Over twice as long at 23% busy; dearer at 14% on 8 vCPUs; GPU memory that nobody recorded.
    row(finds(fix=[]), ran(3600, "ml.g5.2xlarge"), even(60, gpu=23, gpu_memory=5, cpu=10, memory=5),
        on=replace(sourced(), types={**sourced().types, replace(sourced().types["ml.g5.2xlarge"],
        gpu_memory_gib=Decimal(24)).name: replace(sourced().types["ml.g5.2xlarge"],
        gpu_memory_gib=Decimal(24))})),
    row(finds(fix=[]), ran(3600, "ml.g5.2xlarge"), even(60, gpu=14, gpu_memory=5, cpu=60, memory=5),
        on=replace(sourced(), types={**sourced().types, replace(sourced().types["ml.g5.2xlarge"],
        gpu_memory_gib=Decimal(24)).name: replace(sourced().types["ml.g5.2xlarge"],
        gpu_memory_gib=Decimal(24))})),
    row(finds(fix=[]), ran(3600, "ml.g5.2xlarge"), even(60, gpu=5, cpu=10, memory=5),
        on=replace(sourced(), types={**sourced().types, replace(sourced().types["ml.g5.2xlarge"],
        gpu_memory_gib=Decimal(24)).name: replace(sourced().types["ml.g5.2xlarge"],
        gpu_memory_gib=Decimal(24))})),
    "What was not recorded must not shrink.",
    # Host memory is unknown: 32 GiB hold it, 16 may not, however much cheaper.
    row(finds(fix=["ml.g4dn.2xlarge"], ways=[]), ran(3600, "ml.g5.2xlarge"), even(60, gpu=5,
        gpu_memory=5, cpu=10), on=sourced()),
    "The policy's headroom decides what holds.",
    # 6.8% of 48 vCPUs need 3.9 of four with 20% and 5.2, 1.31 times as many, with 60%.
    row(finds(fix=["ml.g4dn.xlarge"]), FOUR, even(60, gpu=20, gpu_memory=5, cpu=6.8, memory=5)),
    row(finds(fix=["ml.g4dn.2xlarge"]), FOUR, even(60, gpu=20, gpu_memory=5, cpu=6.8, memory=5),
        limits={"headroom_percent": 60}),
    "A training plan gets no other type. It is prepaid for this one.",
    row(finds(fix=[], bucket="none", caution="…prepaid…"), ran(3600, "ml.g4dn.12xlarge",
        purchase=Purchase.TRAINING_PLAN), even(60, gpu=20, gpu_memory=5, cpu=5, memory=5)),
    "Coarse points refuse every smaller type.",
    # Hourly means hide every peak: no size is derived from them.
    row(finds(fix=[]), ran(4 * 3600, "ml.g4dn.12xlarge"),
        lines(*[series(metric, [value] * 4, period_s=3600) for metric, value in ((Metric.GPU, 80),
        (Metric.GPU_MEMORY, 20), (Metric.CPU, 240), (Metric.MEMORY, 5))])),
    "A larger batch is named where GPU memory is known to be free.",
    # 20% is; 70% is not, and not recorded is not known; nor where no CPU could feed it.
    row(finds(caution="…A larger batch may help: the P95 of GPU memory was 20%…"), ONE,
        even(60, gpu=30, gpu_memory=20, cpu=50)),
    row(finds(caution="…feed the GPU faster…", without="larger batch"), ONE, even(60, gpu=30,
        cpu=50, gpu_memory=70)),
    row(finds(caution="…feed the GPU faster…", without="larger batch"), ONE, even(60, gpu=30,
        cpu=50)),
    row(finds(without="larger batch"), ONE, even(60, gpu=30, gpu_memory=20, cpu=70)),
    "Another GPU model with one is a range whose slow end counts. Up to 1.515 / 0.736 = 2.06.",
    # A T4 takes up to 5.53 times: busy for 5%, at most 1.23 times as long at $0.736 of $1.515.
    row(finds(fix=["ml.g4dn.xlarge"], change=SetType("ml.g4dn.xlarge", Decimal("1.2265")),
        best=SetType("ml.g4dn.xlarge", Decimal(1)), ways=[["ml.g4dn.2xlarge"]],
        caution="…T4 took 1.55 to 5.53 times as long as A10G…up to 2.06 times…"),
        ran(3600, "ml.g5.2xlarge"), even(60, gpu=5, gpu_memory=5, cpu=10, memory=5), on=sourced()),
    "Processing and transform jobs are judged too, by their own parameter.",
    row(finds(paths=["ProcessingResources.ClusterConfig.InstanceType"]),
        ran(3600, "ml.g4dn.12xlarge", kind=JobKind.PROCESSING, phases=phases(("Processing", 3600)),
        billable_s=None), lines(series(Metric.GPU, [80] * 60), series(Metric.GPU_MEMORY, [20] * 60),
        series(Metric.CPU, [240] * 60), series(Metric.MEMORY, [5] * 60))),
    row(finds(paths=["TransformResources.InstanceType"]), ran(3600, "ml.g4dn.12xlarge",
        kind=JobKind.TRANSFORM, phases=phases(("Transform", 3600)), billable_s=None),
        lines(series(Metric.GPU, [80] * 60), series(Metric.GPU_MEMORY, [20] * 60),
        series(Metric.CPU, [240] * 60), series(Metric.MEMORY, [5] * 60))),
    "A larger batch is named while GPU memory and CPU are under 70%, and the GPU under 50%.",
    row(finds(caution="…A larger batch may help…"), ONE, even(60, gpu=49.9, gpu_memory=69.9,
        cpu=69.9)),
    row(CLEAR, ONE, even(60, gpu=50, gpu_memory=10, cpu=10)),
)  # fmt: skip
