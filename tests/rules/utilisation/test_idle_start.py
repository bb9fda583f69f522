from __future__ import annotations

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes import trainium
from tests.fakes.jobs import (
    Points,
    phases,
    ran,
    series,
    usage,
)
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, later, lines, row
from tests.fakes.trainium import MARKET, TRAINIUM

cpu_alone = later(trainium.cpu_alone)
RULE = "idle-start"
CPU_JOB = ran(7200, "ml.m5.4xlarge")
GPU_JOB = ran(7200, "ml.g4dn.2xlarge")


def on_cpu(cores: Points, run: Job = CPU_JOB) -> Measurements:
    """Busy cores, minute by minute."""
    return usage(run, series(Metric.CPU, [None if c is None else 100 * c for c in cores]))


def on_gpu(cores: Points, gpu: Points, run: Job = GPU_JOB) -> Measurements:
    """Busy cores and the GPU in percent, minute by minute."""
    cpu = series(Metric.CPU, [None if c is None else 100 * c for c in cores])
    return usage(run, cpu, series(Metric.GPU, gpu))


test_cases = cases(
    RULE,
    "An idle start is measured.",
    # 24 of 120 minutes of 2 hours at $0.92 were billed and produced nothing.
    # a fifth of 2 h x $0.92, and of 30 GB x $0.14 x 2 h / 744 h
    row(finds("All hosts were idle for 24 min of 2 h on 1 x ml.m5.4xlarge, before work began.",
        builder="measured", usd="0.370258", span=None, evidence={"idle_s": 1440}), CPU_JOB,
        on_cpu([0.05] * 24 + [9.0] * 96)),
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
    # From the first GPU point to the first work: 26 minutes of 120.
    # 2 h x $0.94 x 26 / 120
    row(finds(confidence="measured", usd="0.407333"), GPU_JOB, on_gpu([0.05] * 30 + [2] * 90,
        [None] * 4 + [0] * 26 + [90] * 90)),
    "A download by hand is a range from nothing.",
    # One core for 30 minutes before the GPU's first work: what it does must be done somewhere.
    # 2 h x $0.94 x 30 / 120
    row(finds("No GPU work came for the first 30 min of 2 h on 1 x ml.g4dn.2xlarge, "
        "with 1.0 of 8 cores busy on average.", confidence="derived", usd="0.000000",
        span=("0.000000", "0.470000"),
        fix=[("InputDataConfig[train].DataSource.S3DataSource.S3DataType", None, "S3Prefix"),
        ("InputDataConfig[train].DataSource.S3DataSource.S3Uri", None, "s3://<bucket>/<prefix>"),
        ("InputDataConfig[train].InputMode", None, "FastFile")]), ran(7200, "ml.g4dn.2xlarge",
        channels=()), on_gpu([1.0] * 30 + [2] * 90, [0] * 30 + [90] * 90,
        ran(7200, "ml.g4dn.2xlarge", channels=()))),
    "A job with a channel is not told to add one. Something else than its data came late.",
    row(finds(fix=[]), GPU_JOB, on_gpu([1.0] * 30 + [2] * 90, [0] * 30 + [90] * 90)),
    "Idle minutes are counted and the others are the range. 15 idle minutes, then 15 of one core.",
    row(finds("All hosts were idle for 15 min of 2 h on 1 x ml.g4dn.2xlarge before work began; "
        "no GPU work came for the first 30 min, with 0.5 of 8 cores busy on average.",
        usd="0.235000", span=("0.235000", "0.470000")), GPU_JOB,
        on_gpu([0.05] * 15 + [1.0] * 15 + [2] * 90, [0] * 30 + [90] * 90)),
    "Half an hour of CPU work before the GPU is told without dollars.",
    # The cores prepared something: GPU-hours, and a processing job as the way out.
    row(finds("No GPU work came for the first 30 min of 2 h on 1 x ml.g4dn.2xlarge "
        "(0.5 GPU-hours), while 6.0 of 8 cores worked.", usd=None, bucket="none",
        caution="…processing job…"), GPU_JOB, on_gpu([6.0] * 30 + [2] * 90, [0] * 30 + [90] * 90)),
    row(CLEAR, GPU_JOB, on_gpu([6.0] * 29 + [2] * 91, [0] * 29 + [90] * 91)),
    "CPU work after an idle start is mentioned.",
    # 12 idle minutes are counted; the 40 in which six cores prepared something are not.
    # 2 h x $0.94 x 12 / 120
    row(finds(usd="0.188000", caution="…No GPU worked in the first 52 min…"), GPU_JOB,
        on_gpu([0.05] * 12 + [6.0] * 40 + [2] * 68, [0] * 52 + [90] * 68)),
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
    "Many busy cores before the GPU are work: 1.25 cores are one process with a range.",
    row(finds(span=("0.000000", "0.470000")), GPU_JOB, on_gpu([1.25] * 30 + [2] * 90,
        [0] * 30 + [90] * 90)),
    row(finds(best=None), GPU_JOB, on_gpu([1.3] * 30 + [2] * 90, [0] * 30 + [90] * 90)),
    row(finds(best=None), GPU_JOB, on_gpu([6.0] * 30 + [2] * 90, [0] * 30 + [90] * 90)),
)  # fmt: skip
