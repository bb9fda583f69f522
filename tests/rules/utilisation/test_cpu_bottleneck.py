from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import flat, phases, ran, series, usage
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, later, lines, row

RULE = "cpu-bottleneck"
ONE = ran(3600, "ml.g4dn.xlarge")
FOUR = ran(3600, "ml.g4dn.12xlarge")


@later
def minutes(run: Job, *spells: tuple[int, float, float]) -> Measurements:
    """So many minutes of CPU and GPU, in percent of one GPU and 4 vCPUs."""
    cpu = [4 * percent for count, percent, _ in spells for _ in range(count)]
    gpu = [percent for count, _, percent in spells for _ in range(count)]
    return usage(run, series(Metric.CPU, cpu), series(Metric.GPU, gpu))


def workers(count: int | None, run: Job = ONE, **hints: str) -> Job:
    """A run that sets so many data-loader workers."""
    return replace(run, hints=Hints(loader_workers=count, **hints))  # type: ignore[arg-type]


test_cases = cases(
    RULE,
    "A CPU at its limit before a waiting GPU is found.",
    # 40 of 60 minutes: the sentence says it with its numbers; no dollars.
    row(finds("In 67% of 1 h on 1 x ml.g4dn.xlarge the CPU was at 90% or more while the "
        "GPU was at 50% or less. The GPU averaged 19%.", usd=None, builder="advice",
        caution="…Only a run shows…", severity="info"), ONE, minutes((40, 98, 4), (20, 60, 50))),
    "Exactly half of the time is found.",
    # 30 of 60 minutes; 29 are not, while the means stay on the fine side of the milder tier.
    row(FOUND, ONE, minutes((30, 95, 5), (30, 50, 60))),
    row(CLEAR, ONE, minutes((29, 95, 5), (31, 50, 60))),
    "The limits themselves count. CPU at 90% or more, GPU at 50% or less, in the same minute.",
    row(FOUND, ONE, minutes((60, 90, 50))),
    row(CLEAR, ONE, minutes((60, 89.9, 50))),
    row(CLEAR, ONE, minutes((60, 90, 50.1))),
    row(FOUND, ONE, minutes((60, 90, 10))),
    "The milder tier looks at the means. CPU over 60% and GPU under 10% on average.",
    row(FOUND, ONE, minutes((60, 60.1, 9.9))),
    row(CLEAR, ONE, minutes((60, 60, 9.9))),
    row(CLEAR, ONE, minutes((60, 60.1, 10))),
    "CPU and GPU are compared in the same minute.",
    # Half the minutes CPU at its limit with the GPU busy, half the other way round.
    row(CLEAR, ONE, minutes((30, 95, 60), (30, 20, 5))),
    "Points of different minutes say nothing. CPU of one host, GPU of the other.",
    row("unknown: points_apart", ONE, lines(series(Metric.CPU, [400] * 60), series(Metric.GPU,
        [0] * 30 + [1] * 30, host="train/algo-2"))),
    "Every host counts alike. One of two hosts waits all the time: half of all minutes.",
    row(FOUND, ran(3600, "ml.g4dn.xlarge", 2), lines(*[series(Metric.CPU, [380] * 60),
        series(Metric.GPU, [3] * 60)], *[series(Metric.CPU, [100] * 60, host="train/algo-2"),
        series(Metric.GPU, [5.0] * 60, host="train/algo-2")])),
    row(FOUND, ran(3600, "ml.g4dn.xlarge", 2), lines(*[series(Metric.CPU, [380] * 60),
        series(Metric.GPU, [3] * 60)], *[series(Metric.CPU, [100] * 60, host="train/algo-2"),
        series(Metric.GPU, [80.0] * 60, host="train/algo-2")])),
    row(CLEAR, replace(ran(3600, "ml.g4dn.xlarge", 2), groups=(InstanceGroup("ml.g4dn.xlarge", 3),
        )), lines(*[series(Metric.CPU, [380] * 60), series(Metric.GPU, [3] * 60)],
        *[series(metric, [value] * 60, host=f"train/algo-{n}") for n in (2, 3) for metric,
        value in ((Metric.CPU, 100), (Metric.GPU, 80))])),
    "The next size with more vCPUs for its GPU is the other way.",
    # 4 vCPUs for one T4 today, 8 in the next size; it costs more, so no dollars.
    row(finds(caution="…heterogeneous cluster adds instances…",
        ways=[[("ResourceConfig.InstanceType", "ml.g4dn.xlarge", "ml.g4dn.2xlarge")]]), ONE,
        minutes((60, 98, 4))),
    "The largest size has no larger one.",
    # Of a T4 alone: 16 vCPUs; a training plan is prepaid for its type.
    row(finds(ways=[]), ran(3600, "ml.g4dn.4xlarge"), even(60, cpu=98, gpu=4)),
    row(finds(ways=[]), replace(ONE, purchase=Purchase.TRAINING_PLAN), even(60, cpu=98, gpu=4)),
    "The larger size is not turned back.",
    # The same 3.9 cores on 8 vCPUs: none of the rules names the smaller size.
    row(finds(fix=[]), ran(3600, "ml.g4dn.2xlarge"), even(60, cpu=49, memory=20, gpu=30,
        gpu_memory=80), rule="gpu-underused"),
    "A worker for each vCPU where the job says how many.",
    # 1 worker for 4 vCPUs is few; 9 are too many, and each thinks it has all cores.
    row(finds(fix=[("HyperParameters.num_workers", "1", "4")]), workers(1),
        minutes((60, 98, 4))(ONE)),
    row(finds(fix=[("HyperParameters.num_workers", "9", "4"), ("Environment.OMP_NUM_THREADS", None,
        "1")]), workers(9), minutes((60, 98, 4))(ONE)),
    "A fitting count of workers is left alone. Between 70% and 200% of 4 vCPUs, or not known.",
    row(finds(fix=[]), workers(None), minutes((60, 98, 4))(ONE)),
    row(finds(fix=[]), workers(3), minutes((60, 98, 4))(ONE)),
    row(finds(fix=[]), workers(4), minutes((60, 98, 4))(ONE)),
    row(finds(fix=[]), workers(8), minutes((60, 98, 4))(ONE)),
    "Each process of a distributed run has workers of its own.",
    # 4 workers for each of 4 GPUs are a third of 48 vCPUs: 12 each.
    row(finds(fix=[("…", "4", "12")]), workers(4, FOUR, distribution="ddp"), even(60, cpu=98,
        gpu=4)),
    row(finds(fix=[]), workers(12, FOUR, distribution="ddp"), flat(FOUR, 60, cpu=98, gpu=4)),
    "CPU work before the training is no bottleneck.",
    # Half an hour and more without GPU work at either end is told by idle-start and idle-tail.
    row(CLEAR, ONE, minutes((40, 98, 0), (20, 50, 90))),
    row(FOUND, ONE, minutes((40, 98, 0), (20, 50, 90)), rule="idle-start"),
    row(CLEAR, ONE, minutes((20, 50, 90), (40, 98, 0))),
    row(FOUND, ONE, minutes((20, 50, 90), (40, 98, 0)), rule="idle-tail"),
    row(finds(evidence={"gpu_mean_percent": 30.0}), ONE, minutes((31, 98, 0), (1, 98, 30),
        (28, 98, 30))),
    "A GPU at a third behind busy cores is found.",
    # The cores are the limit, although the GPU does far more than nothing.
    row(FOUND, ONE, minutes((60, 97, 33))),
    row(CLEAR, ONE, minutes((60, 97, 65))),
    "The milder tier says what it saw. Means, not minutes; and no larger size.",
    row(finds("The CPU averaged 70% and the GPU 5% over 1 h on 1 x ml.g4dn.xlarge.", ways=[],
        lacks="waiting_percent"), ONE, minutes((60, 70, 5))),
    "A processing job has no hyperparameters. It is told all the same.",
    row(finds(fix=[], ways=[[("ProcessingResources.ClusterConfig.InstanceType",
        "ml.g4dn.2xlarge")]]), replace(workers(1), kind=JobKind.PROCESSING,
        phases=phases(("Processing", 3600)), billable_s=None), minutes((60, 98, 4))),
    "Fewer workers than 70% of 8 vCPUs are few, more than 200% are many.",
    row(finds(fix=["8"]), replace(ran(3600, "ml.g4dn.2xlarge"), hints=Hints(loader_workers=5)),
        even(60, cpu=98, gpu=4)),
    row(finds(fix=[]), replace(ran(3600, "ml.g4dn.2xlarge"), hints=Hints(loader_workers=6)),
        even(60, cpu=98, gpu=4)),
    row(finds(fix=[]), replace(ran(3600, "ml.g4dn.2xlarge"), hints=Hints(loader_workers=16)),
        even(60, cpu=98, gpu=4)),
    row(finds(fix=["8", "1"]), replace(ran(3600, "ml.g4dn.2xlarge"),
        hints=Hints(loader_workers=17)), even(60, cpu=98, gpu=4)),
)  # fmt: skip
