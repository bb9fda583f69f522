from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.finding import Found
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes import trainium
from tests.fakes.jobs import Points, phases, ran, series, usage
from tests.fakes.judging import outcome
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, later, lines, row
from tests.fakes.trainium import MARKET, TRAINIUM

cpu_alone = later(trainium.cpu_alone)
RULE = "idle-start"
CPU_JOB = ran(7200, "ml.m5.4xlarge")
GPU_JOB = ran(7200, "ml.g4dn.2xlarge")


def on_cpu(cores: Points, run: Job = CPU_JOB) -> Measurements:
    """Busy cores, minute by minute."""
    return usage(run, series(Metric.CPU, [None if c is None else 100 * c for c in cores]))


def on_gpu(
    cores: Points, gpu: Points, run: Job = GPU_JOB, memory: Points | None = None
) -> Measurements:
    """Busy cores, the GPU and host memory in percent, minute by minute; GPU memory is even."""
    cpu = series(Metric.CPU, [None if c is None else 100 * c for c in cores])
    full = series(Metric.MEMORY, [20.0] * len(cores) if memory is None else memory)
    return usage(run, cpu, series(Metric.GPU, gpu), full, series(Metric.GPU_MEMORY, [9.0] * 120))


test_cases = cases(
    RULE,
    "An idle start is measured.",
    # 24 of 120 minutes of 2 hours at $0.92 were billed and produced nothing.
    # a fifth of 2 h x $0.92, and of 30 GB x $0.14 x 2 h / 744 h
    row(finds("All hosts were idle for 24 min of 2 h on 1 x ml.m5.4xlarge, before work began.",
        builder="measured", usd="0.370258", span=None, evidence={"idle_s": 1440}), CPU_JOB,
        on_cpu([0.05] * 24 + [9.0] * 96)),
    "A job on a CPU type is not advised to move to one.",
    # A processing job and a training job with channels: what to do is to find what it waits for.
    *(row(finds(fix=[], first_step="Look in the job's log for what it waited for…", without="CPU"),
        run, on_cpu([0.05] * 24 + [9.0] * 96, run)) for run in (ran(7200, "ml.m5.4xlarge"),
        ran(7200, "ml.m5.4xlarge", kind=JobKind.PROCESSING, phases=phases(("Processing", 7200))))),
    row(finds(fix=["S3Prefix", "s3://<bucket>/<prefix>", "FastFile"]), ran(7200, "ml.m5.4xlarge",
        channels=()), on_cpu([0.05] * 24 + [9.0] * 96)),
    "Ten minutes are long and nine are not. Imports and late points take up to six.",
    row(FOUND, CPU_JOB, on_cpu([0] * 10 + [9.0] * 110)),
    row(CLEAR, CPU_JOB, on_cpu([0] * 9 + [9.0] * 111)),
    "Two percent of the run are much and less is not. 10 of 500 minutes, and of 501.",
    row(FOUND, ran(60 * 500, "ml.m5.4xlarge"), on_cpu([0] * 10 + [9.0] * (500 - 10), ran(60 * 500,
        "ml.m5.4xlarge"))),
    row(CLEAR, ran(60 * 501, "ml.m5.4xlarge"), on_cpu([0] * 10 + [9.0] * (501 - 10), ran(60 * 501,
        "ml.m5.4xlarge"))),
    "Imports before the wait do not hide it.",
    # Two busy minutes, then twenty idle ones, then the work.
    row(finds(evidence={"idle_s": 1200}), CPU_JOB, on_cpu([1, 1] + [0.05] * 20 + [9.0] * 98)),
    "A pause after the first minutes is no start.",
    # Eight busy minutes are work; so is one of the GPU.
    row(CLEAR, CPU_JOB, on_cpu([9.0] * 8 + [0] * 20 + [9.0] * 92)),
    row(CLEAR, GPU_JOB, on_gpu([2] * 2 + [0] * 20 + [2] * 98, [90] * 2 + [0] * 20 + [90] * 98)),
    "Late points are not idle ones.",
    # Only the known minutes count: 12 of 16 on CPU, and a gap ends them.
    row(finds(evidence={"idle_s": 720}), CPU_JOB, on_cpu([None] * 4 + [0] * 12 + [9.0] * 104)),
    row(CLEAR, CPU_JOB, on_cpu([0] * 6 + [None] * 6 + [0] * 6 + [9.0] * 102)),
    row(CLEAR, CPU_JOB, on_cpu([None] * 20 + [0] * 12 + [9.0] * 88)),
    "An idle GPU job is measured although its GPU points come late.",
    # From the first GPU point to the first work 26 minutes, of which 20 are granted.
    row(finds(confidence="measured", usd="0.094000"), GPU_JOB, on_gpu([0.05] * 30 + [2] * 90,
        [None] * 4 + [0] * 26 + [90] * 90)),
    "A download by hand is counted beyond 20 minutes, less the small CPU type that could do it.",
    # One core for 30 minutes before the GPU's first work: 600 s x (1 - 0.115 / 0.94).
    row(finds("No GPU worked in the first 30 min of 2 h on 1 x ml.g4dn.2xlarge; after 20 min, "
        "at most 1.25 of 8 cores were busy for 10 min.", confidence="derived", usd="0.137344",
        span=None, evidence={"calm_s": 600},
        fix=[("InputDataConfig[train].DataSource.S3DataSource.S3DataType", None, "S3Prefix"),
        ("InputDataConfig[train].DataSource.S3DataSource.S3Uri", None, "s3://<bucket>/<prefix>"),
        ("InputDataConfig[train].InputMode", None, "FastFile")]), ran(7200, "ml.g4dn.2xlarge",
        channels=()), on_gpu([1.0] * 30 + [2] * 90, [0] * 30 + [90] * 90,
        ran(7200, "ml.g4dn.2xlarge", channels=()))),
    row(CLEAR, GPU_JOB, on_gpu([1.0] * 20 + [2] * 100, [0] * 20 + [90] * 100)),
    "A job with a channel is not told to add one. Something else than its data came late.",
    row(finds(fix=[]), GPU_JOB, on_gpu([1.0] * 30 + [2] * 90, [0] * 30 + [90] * 90)),
    "The first 20 minutes are granted, whatever happened in them.",
    row(finds("No GPU worked in the first 30 min of 2 h on 1 x ml.g4dn.2xlarge; after 20 min, at "
        "most 1.25 of 8 cores were busy for 10 min.", builder="measured", usd="0.156667"), GPU_JOB,
        on_gpu([6.0] * 20 + [0.05] * 10 + [2] * 90, [0] * 30 + [90] * 90)),
    row(CLEAR, GPU_JOB, on_gpu([0.05] * 20 + [2] * 100, [0] * 20 + [90] * 100)),
    "Idle minutes count whole, calm ones less a CPU type.",
    row(finds(builder="derived", evidence={"idle_s": 600, "calm_s": 900}, usd="0.362683"), GPU_JOB,
        on_gpu([0.05] * 30 + [1.0] * 15 + [2] * 75, [0] * 45 + [90] * 75)),
    "Missing GPU points take none of the granted minutes away.",
    row(finds(usd="0.078333"), GPU_JOB, on_gpu([0.05] * 30 + [2] * 90,
        [0] * 25 + [None] * 4 + [0] + [90] * 90)),
    "A burst of imports hides nothing.",
    # 40 idle minutes, and three in which six cores import.
    row(finds(usd="0.313333"), GPU_JOB, on_gpu([0.05] * 40 + [6.0] * 3 + [2] * 77,
        [0] * 43 + [90] * 77)),
    "Loading weights is no idleness: a memory fills up meanwhile.",
    row(CLEAR, GPU_JOB, on_gpu([1.0] * 50 + [2] * 70, [0] * 50 + [90] * 70,
        memory=[20 + 0.5 * n for n in range(50)] + [45] * 70)),
    "Cores at work before the GPU are a range from nothing, beyond 20 minutes and ten.",
    # They may prepare data, which a CPU type can do as well.
    row(finds("No GPU worked in the first 30 min of 2 h on 1 x ml.g4dn.2xlarge, while 6.0 of 8 "
        "cores were busy on average.", usd="0.000000", span=("0.000000", "0.079900"),
        caution="…processing job…"), GPU_JOB, on_gpu([6.0] * 30 + [2] * 90, [0] * 30 + [90] * 90)),
    row(CLEAR, GPU_JOB, on_gpu([6.0] * 29 + [2] * 91, [0] * 29 + [90] * 91)),
    "What more cores did is the range above what is counted.",
    row(finds(usd="0.188000", span=("0.188000", "0.267900"), caution="…not counted."), GPU_JOB,
        on_gpu([6.0] * 30 + [0.05] * 12 + [2] * 78, [0] * 42 + [90] * 78)),
    "Where host memory is not known, a core at work may load weights.",
    row(finds(usd="0.000000"), GPU_JOB, on_gpu([1.0] * 40 + [2] * 80, [0] * 40 + [90] * 80,
        memory=[])),
    "A GPU that never works is another story. There is no first work to wait for.",
    row(CLEAR, GPU_JOB, on_gpu([1.0] * 120, [0] * 120)),
    "A run that never works has no start. All of it is an idle tail.",
    row(CLEAR, CPU_JOB, on_cpu([0.05] * 120)),
    row(CLEAR, CPU_JOB, on_cpu([1, 1] + [0.05] * 118)),
    "One busy host is no idle start. Every host must be known to be idle.",
    row(CLEAR, ran(7200, "ml.m5.4xlarge", 2), lines(series(Metric.CPU, [0] * 30 + [900] * 90),
        series(Metric.CPU, [900] * 120, host="train/algo-2"))),
    "Other kinds lose their own phase. 12 of 60 minutes at $0.92, and of the volume.",
    row(finds(alone="0.184000"), ran(3600, "ml.m5.4xlarge", kind=JobKind.PROCESSING,
        phases=phases(("Processing", 3600)), volume_gb=None), on_cpu([0] * 12 + [9.0] * 48,
        ran(3600, "ml.m5.4xlarge", kind=JobKind.PROCESSING, phases=phases(("Processing", 3600)),
        volume_gb=None))),
    row(finds(alone="0.184000"), ran(3600, "ml.m5.4xlarge", kind=JobKind.TRANSFORM,
        phases=phases(("Transform", 3600)), volume_gb=None), on_cpu([0] * 12 + [9.0] * 48,
        ran(3600, "ml.m5.4xlarge", kind=JobKind.TRANSFORM, phases=phases(("Transform", 3600)),
        volume_gb=None))),
    "Without the GPU of a GPU job it does not know.",
    # Its card asks for CPU alone, which CPU jobs have too.
    row("unknown: metric_missing", GPU_JOB, even(120, cpu=1)),
    "Accelerators that nobody measures may have worked. Trainium reports no such metric.",
    row("unknown: accelerator_unseen", ran(7200, TRAINIUM), cpu_alone([0] * 30 + [200] * 90),
        on=MARKET),
    "1.25 cores are one process, and more are several.",
    row(finds(usd="0.137344"), GPU_JOB, on_gpu([1.25] * 30 + [2] * 90, [0] * 30 + [90] * 90)),
    row(finds(usd="0.000000"), GPU_JOB, on_gpu([1.3] * 30 + [2] * 90, [0] * 30 + [90] * 90)),
)  # fmt: skip


LEVELS = (0.05, 1.0, 6.0)


def counted_s(cores: list[float]) -> Decimal:
    """Of a start with so many busy cores in each minute before the first GPU work."""
    work = 120 - len(cores)
    said = outcome(RULE, GPU_JOB, on_gpu([*cores, *[2.0] * work], [0] * len(cores) + [90] * work))
    if not isinstance(said, Found):
        return Decimal(0)
    assert isinstance(said.change, CutPhase)
    return said.change.seconds


@given(cores=st.lists(st.sampled_from(LEVELS), min_size=1, max_size=60), data=st.data())
def test_more_idleness_never_counts_less(cores: list[float], data: st.DataObject) -> None:
    """A minute with less work, or one more minute without any."""
    at = data.draw(st.integers(0, len(cores) - 1))
    less = LEVELS[max(LEVELS.index(cores[at]) - 1, 0)]
    before = counted_s(cores)
    assert counted_s([*cores[:at], less, *cores[at + 1 :]]) >= before
    assert before <= counted_s([*cores, LEVELS[0]]) <= before + 60 + 2 * 72
