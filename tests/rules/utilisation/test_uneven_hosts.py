from sageaudit.domain.job.job import Hints, Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.usage.measurements import Measurements, Metric, RawSeries
from sageaudit.structs import replace
from tests.fakes.jobs import Points, phases, ran, series, usage
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, later, lines, row

RULE = "uneven-hosts"
TWO = ran(7200, "ml.m5.4xlarge", 2)
FOUR_PROCESS = ran(
    7200, "ml.m5.4xlarge", 4, kind=JobKind.PROCESSING, phases=phases(("Processing", 7200))
)
SPARK = replace(
    FOUR_PROCESS,
    groups=TWO.groups,
    image="173754725891.dkr.ecr.us-east-1.amazonaws.com/sagemaker-spark-processing:3.3",
)
GPUS = ran(7200, "ml.g4dn.2xlarge", 2)


@later
def cpu(run: Job, *hosts: Points) -> Measurements:
    """CPU of each host in percent of all its vCPUs, minute by minute."""
    return usage(run, *(_line(Metric.CPU, of, n, 16) for n, of in enumerate(hosts, start=1)))


@later
def gpu(run: Job, *hosts: Points, busy_cpu: float = 10) -> Measurements:
    """GPU of each host in percent, minute by minute, beside an even CPU."""
    lines = [_line(Metric.GPU, of, n, 1) for n, of in enumerate(hosts, start=1)]
    lines += [_line(Metric.CPU, [busy_cpu] * len(of), n, 8) for n, of in enumerate(hosts, start=1)]
    return usage(run, *lines)


def _line(metric: Metric, percent: Points, n: int, units: int) -> RawSeries:
    values = [None if value is None else value * units for value in percent]
    return series(metric, values, host=f"train/algo-{n}")


test_cases = cases(
    RULE,
    "A lazy host is a range from nothing.",
    # 80% and 20%: evenly 50%, so the run could be 3/8 shorter; nothing of it is counted.
    # 3/8 of 2 x (2 h x $0.92 + 30 GB x $0.14 x 2 h / 744 h)
    row(finds("While all hosts worked, the CPU of algo-1 averaged 80% and that of algo-2 20%, "
        "over 2 h on 2 x ml.m5.4xlarge.", builder="derived", usd="0.000000", span=("0.000000",
        "1.388468"), evidence={"histogram_distance": 1, "lazy_hosts": 1,
        "lazy_hosts_idle_percent": 0.0}), TWO, cpu([80] * 120, [20] * 120)),
    "A replicated channel is sharded.",
    # The exact parameter; not where a sampler splits the data, nor where it is sharded.
    row(finds(fix=[("InputDataConfig[train].DataSource.S3DataSource.S3DataDistributionType",
        "FullyReplicated", "ShardedByS3Key")]), TWO, cpu([80] * 120, [20] * 120)),
    row(finds(fix=[]), replace(TWO, hints=Hints(distributed_sampler=True)), cpu([80] * 120,
        [20] * 120)(TWO)),
    row(finds(fix=[]), replace(TWO, channels=(InputChannel("train", DataSource.S3, "File",
        "ShardedByS3Key"),)), cpu([80] * 120, [20] * 120)(TWO)),
    "A processing job shards its own input. Another path, and no path on a transform job.",
    row(finds(paths=["ProcessingInputs[train].S3Input.S3DataDistributionType"]), replace(TWO,
        kind=JobKind.PROCESSING, phases=phases(("Processing", 7200))), cpu([80] * 120, [20] * 120)),
    row(finds(fix=[]), replace(TWO, kind=JobKind.TRANSFORM, phases=phases(("Transform", 7200))),
        cpu([80] * 120, [20] * 120)),
    "A driver is not compared with its workers. The first host of a processing job, as Spark has.",
    row(CLEAR, FOUR_PROCESS, cpu([10] * 120, *[[80] * 120] * 3)),
    row(CLEAR, FOUR_PROCESS, cpu([0] * 120, *[[80] * 120] * 3)),
    row(CLEAR, FOUR_PROCESS, cpu([95] * 120, *[[50] * 120] * 3)),
    row(FOUND, FOUR_PROCESS, cpu(*[[80] * 120] * 3, [10] * 120)),
    row(FOUND, replace(FOUR_PROCESS, kind=JobKind.TRAINING), cpu([10] * 120, *[[80] * 120] * 3)),
    row(CLEAR, SPARK, cpu([10] * 120, [80] * 120)),
    "Workers that do nothing are found beside a driver that works.",
    row(finds("3 of 4 hosts did no work…", evidence={"hosts_without_part": 3}), FOUR_PROCESS,
        cpu([80] * 120, *[[0] * 120] * 3)),
    row(finds("1 of 2 hosts did no work…"), SPARK, cpu([80] * 120, [0] * 120)),
    "20 points and 30 percent are far. A leader that evaluates works a little more.",
    # Exactly 20 points; exactly 30%.
    row(FOUND, TWO, cpu([45] * 120, [25] * 120)),
    row(CLEAR, TWO, cpu([45] * 120, [25.1] * 120)),
    row(FOUND, TWO, cpu([95] * 120, [66.5] * 120)),
    row(CLEAR, TWO, cpu([95] * 120, [66.6] * 120)),
    row(CLEAR, TWO, cpu([80] * 120, [72] * 120)),
    "Half the minutes apart are not far apart. Debugger's distance: exactly 0.5 is not over it.",
    row(CLEAR, TWO, cpu([95] * 120, [15] * 60 + [95] * (120 - 60))),
    row(FOUND, TWO, cpu([95] * 120, [15] * 61 + [95] * (120 - 61))),
    "A busy start is no part.",
    # Six minutes of imports; a host that works for seven ended early, which idle-tail tells.
    row(finds(evidence={"hosts_without_part": 1}), TWO, cpu([50] * 120, [10] * 6 + [0.2] * 114)),
    row("unknown: hosts_apart", TWO, cpu([50] * 120, [10] * 7 + [0.2] * 113)),
    "Little work beside an idle host is not told.",
    # Exactly one core of 16 is work, and so is 5% of the GPUs.
    row(FOUND, TWO, cpu([6.25] * 120, [0] * 120)),
    row(CLEAR, TWO, cpu([6.2] * 120, [0] * 120)),
    row(FOUND, GPUS, gpu([5] * 120, [0] * 120, busy_cpu=0)),
    row(CLEAR, GPUS, gpu([4.9] * 120, [0] * 120, busy_cpu=0)),
    "Only minutes in which all still work count.",
    # Even until one ends: the other's rest is no lazy host.
    row(CLEAR, TWO, cpu([80] * 120, [80] * 30 + [0] * 90)),
    "An idle head is no lazy host. Its length does not count, neither in the range.",
    row(finds(evidence={"minutes": 60}), TWO, cpu([0] * 60 + [80] * 60, [0] * 60 + [20] * 60)),
    "A host that joins late is compared from then on.",
    # Two minutes together are no comparison; an hour is, and imports at the start are no work.
    row("unknown: hosts_apart: all hosts worked together for 2 minutes, and 15…", TWO,
        cpu([87] * 120, [0] * 118 + [80] * 2)),
    row("unknown: hosts_apart: all hosts worked together for 2 minutes, and 15…", TWO,
        cpu([87] * 120, [50] * 3 + [0] * 115 + [80] * 2)),
    row(finds("While all hosts worked, the CPU of algo-1 averaged 80% and that of algo-2 20%, over "
        "1 h on 2 x ml.m5.4xlarge."), TWO, cpu([80] * 120, [50] * 3 + [0] * 57 + [20] * 60)),
    "Fourteen shared minutes are too few. Fifteen are enough.",
    row(FOUND, TWO, cpu([80] * 120, [20] * 15 + [0] * 105)),
    row("unknown: hosts_apart", TWO, cpu([80] * 120, [20] * 14 + [0] * 106)),
    "Gaps are left out of the comparison. Only minutes in which every host has a point.",
    row(finds(evidence={"minutes": 90}), TWO, cpu([80] * 120, [None] * 30 + [20] * 90)),
    "One instance is not compared. With what?",
    row("not applicable: it ran on one instance", ran(7200, "ml.m5.4xlarge"), cpu([80] * 120)),
    "Without the GPU of a GPU job or a host it does not know.",
    # Its card asks for CPU alone, which CPU jobs have too.
    row("unknown: metric_missing", GPUS, lines(*(_line(Metric.CPU, [80] * 120, n, 8) for n in (1,
        2)))),
    row("unknown: hosts_missing", ran(7200, "ml.m5.4xlarge", 4), cpu(*([80] * 120,) * 3)),
    "Hosts that all do nothing are even. An idle run is another story.",
    row(CLEAR, TWO, cpu([0] * 120, [0] * 120)),
    "The run without the idle host gets no advice back. One instance is compared with nothing.",
    row("not applicable: …one instance…", ran(7200, "ml.m5.4xlarge"), cpu([50] * 120)),
    "A host that took no part is left out: one instance does the same in the same time.",
    # 2 h x $0.92 + 30 GB x $0.14 x 2 h / 744 h
    row(finds("1 of 2 hosts did no work, while the CPU of algo-1 averaged 50% over 2 h on 2 x "
        "ml.m5.4xlarge.", fix=[("ResourceConfig.InstanceCount", 2, 1)], ways=[["ShardedByS3Key"]],
        usd="1.851290", evidence={"lazy_hosts_idle_percent": 100.0, "hosts_without_part": 1}), TWO,
        cpu([50] * 120, [0.2] * 120)),
    "On GPU jobs the GPUs are compared, whatever the CPUs do.",
    row(finds("…the GPU of algo-1 averaged 90% and that of algo-2 30%…"), GPUS, gpu([90] * 120,
        [30] * 120)),
    row(CLEAR, GPUS, lines(*[_line(metric, [use] * 120, n, units) for metric, use, n,
        units in ((Metric.CPU, 80, 1, 8), (Metric.CPU, 20, 2, 8), (Metric.GPU, 90, 1, 1),
        (Metric.GPU, 90, 2, 1))])),
)  # fmt: skip
