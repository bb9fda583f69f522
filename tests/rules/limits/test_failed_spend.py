from decimal import Decimal
from typing import Any

from sageaudit.domain.job.job import Hints, Job, Parent, Phase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import Upload
from sageaudit.domain.usage.measurements import Metric
from sageaudit.structs import replace
from tests.fakes.jobs import START, Points, job, market, phases, ran, series, usage
from tests.fakes.rule_cases import CLEAR, FOUND, Measured, cases, even, finds, lines, row

RULE = "failed-spend"
SEARCH = JobKind.TUNING.row.rollup


def failed(reason: str | None = None, **changes: Any) -> Job:
    """An hour on ml.m5.xlarge that failed."""
    return ran(3600, status="Failed", secondary_status="Failed", failure=reason, **changes)


def with_checkpoints(**changes: Any) -> Job:
    """Failed after an hour with CheckpointConfig."""
    return failed("InternalServerError: try again", checkpointed=True, **changes)


GPU_RUN = "ml.g4dn.xlarge"


def out_of_memory(reason: str) -> Job:
    """Two hours on one T4 that failed."""
    return ran(7200, GPU_RUN, status="Failed", secondary_status="Failed", failure=reason)


def hosts(*cores: list[float]) -> Any:
    """Busy cores of hosts without GPU, minute by minute."""
    return lines(
        *(
            series(Metric.CPU, [100 * one for one in line], host=f"train/algo-{number}")
            for number, line in enumerate(cores, 1)
        )
    )


def on_gpu(gpu: list[float], cores: list[float]) -> Any:
    """GPU in percent and busy cores of one host, minute by minute."""
    percent = [100 * one for one in cores]
    return lines(series(Metric.GPU, gpu), series(Metric.CPU, percent))


SPIN = on_gpu([90.0] * 40 + [0.0] * 80, [3.0] * 40 + [1.01] * 80)
IN_PARTS = [0.1] * 15 + [3.0] * 10 + [0.1] * 20 + [3.0] * 15


def grew(
    *hosts: Points,
    gpus: int = 1,
    period_s: int = 60,
    instance: str = GPU_RUN,
    failure: str = "CUDA out of memory",
) -> tuple[Job, Measured]:
    """A run on busy hosts whose GPU memory has these values to its end, in percent of all GPUs."""
    seconds = len(hosts[0]) * period_s
    failed = ran(seconds, instance, len(hosts), status="Failed", failure=failure)
    raw = [
        series(metric, values, host=f"train/algo-{number}", period_s=period_s)
        for number, memory in enumerate(hosts, 1)
        for metric, values in (
            (Metric.CPU, [50] * len(memory)),
            (Metric.GPU, [90 * gpus] * len(memory)),
            (Metric.GPU_MEMORY, [None if value is None else value * gpus for value in memory]),
        )
    ]
    return failed, lambda on: usage(on, *raw)


def rising(minutes: int, first: float = 40, last: float = 98) -> list[float]:
    """The same growth each minute."""
    return [first + (last - first) * minute / (minutes - 1) for minute in range(minutes)]


LEAK = rising(50)
STEADY = "…GPU memory rose steadily…"

test_cases = cases(
    RULE,
    "A run that was idle for most of its time says so first, whatever it failed with then.",
    row(finds("The run was idle from minute 20 on, for 40 min. The run failed after 1 h on "
        "1 x ml.m5.xlarge (code error).", usd="0.235645", first_step="Read its log after 20 min "
        "for what it waited for, and set a timeout there", evidence={"idle_from_s": 1200}),
        failed("AlgorithmError: exit code 1"), hosts([3.0] * 20 + [0.1] * 40)),
    row(finds("The run was idle from minute 20 on…", first_step="Read its log after 20 min…",
        fix=[2]), failed("InternalServerError: try again"), hosts([3.0] * 20 + [0.1] * 40)),
    row(finds("The run was idle…(host out of memory…", first_step="Read its log…. Use fewer…"),
        failed("AlgorithmError: MemoryError: Unable to allocate 9 GiB"),
        hosts([3.0] * 20 + [0.1] * 40)),
    row(finds("The run used no GPU, and at most one core of a host, from minute 40 on, for "
        "1 h 20 min. The run failed…", evidence={"idle_s": 4800}),
        ran(7200, GPU_RUN, status="Failed", secondary_status="Failed"), SPIN),
    "Several waits are added up. No moment is given where work came after most of them.",
    row(finds("The run was idle for 35 min. The run failed…", first_step="Read its log for what…",
        evidence={"idle_s": 2100}, lacks="idle_from_s"), failed(), hosts(IN_PARTS)),
    "A run is idle while all its hosts are. One that works makes it a run at work.",
    row(finds("The run failed…", lacks="idle_s"), ran(3600, instances=2, status="Failed",
        secondary_status="Failed"), hosts([3.0] * 60, [0.1] * 60)),
    "Short waits are no idle run. Nine minutes of each ten: any program that polls.",
    row(finds("The run failed…", lacks="idle_s"), failed(), hosts(([0.1] * 9 + [3.0]) * 6)),
    "A spot run of several attempts ran for all of them together, and not for the last alone.",
    row(finds("The run failed after 2 h on…"), failed(phases=(*phases(("Training", 3600)),
        Phase("Interrupted", START, Decimal(1800), billed=False), *phases(("Training", 3600))))),
    "A completed run is clear. It gave its results.",
    row(CLEAR, job()),
    "A job that never started cost nothing. Nothing was lost.",
    row(CLEAR, job(status="Failed", started_at=None, ended_at=None, training_s=None,
        billable_s=None, phases=phases(("Starting", -600)))),
    row(CLEAR, job(status="Stopped", started_at=None, ended_at=None, training_s=None,
        billable_s=None, phases=phases(("Starting", -600)))),
    "A stopped run that left nothing is lost. Neither artifact nor checkpoints.",
    row(finds("…left no artifact…", bucket="lost"), ran(3600, status="Stopped",
        left_artifact=False)),
    "A stopped run that kept something is not judged.",
    # An artifact, a run that can be resumed, an early-stopped trial.
    row("not applicable: …artifact…", ran(3600, status="Stopped", left_artifact=True)),
    row("not applicable: …checkpoints…", ran(3600, status="Stopped", left_artifact=False,
        checkpointed=True)),
    row("not applicable: …tuning job…", ran(3600, status="Stopped", left_artifact=False,
        parent=Parent(SEARCH, "arn:t"))),
    "A failed trial is lost all the same. Failed is not early-stopped.",
    row(FOUND, failed(parent=Parent(SEARCH, "arn:t"))),
    "Whether a stopped job left anything may not be known.",
    # Processing and transform jobs write their outputs themselves.
    row("unknown: artifact_unknown", ran(3600, status="Stopped", kind=JobKind.PROCESSING,
        left_artifact=None)),
    "A free job lost nothing. A built-in Debugger rule.",
    row("not applicable: …Debugger…", failed(kind=JobKind.PROCESSING,
        free="built-in Debugger rule")),
    "The sentence says how long on what and why.",
    # One sentence with its numbers; the known words of the failure are evidence.
    row(finds("The run failed after 1 h on 1 x ml.m5.xlarge (GPU out of memory: its GPU memory "
        "was not recorded).", evidence={"reason_class": "GPU out of memory",
        "failure_reason": "AlgorithmError: GPU out of memory"}),
        failed("AlgorithmError: CUDA out of memory")),
    "A time box is not lost.",
    # MaxRuntimeExceeded with checkpoints; with nothing it is lost, as limit-hit says too.
    row("not applicable: …checkpoints…", ran(3600, checkpointed=True, status="Stopped",
        secondary_status="MaxRuntimeExceeded", left_artifact=False)),
    row(finds(evidence={"reason_class": "limit reached"}), ran(3600, status="Stopped",
        secondary_status="MaxRuntimeExceeded", left_artifact=False)),
    "An error of AWS advises retries.",
    # RetryStrategy covers InternalServerError only, and training jobs only.
    row(finds(paths=["RetryStrategy.MaximumRetryAttempts"]),
        failed("InternalServerError: try again")),
    row(finds(fix=[]), failed("AlgorithmError: exit code 1")),
    row(finds(fix=[]), failed("InternalServerError: try again", kind=JobKind.PROCESSING)),
    "Checkpoints that cannot hold work change nothing.",
    # It failed before its training began; or it is a trial, which nobody resumes.
    row(finds(confidence="measured", best=None), with_checkpoints(phases=phases(("Starting", -60),
        ("Downloading", 3600)))),
    row(finds(confidence="measured", best=None), with_checkpoints(parent=Parent(SEARCH,
        "arn:t"))),
    "A long run that failed without checkpoints gets them.",
    # The next failure loses less; an hour is not long, and a sign of its own is enough.
    row(finds(paths=["CheckpointConfig.S3Uri"]), failed("AlgorithmError: exit code 1",
        training_s=Decimal(3601))),
    row(finds(fix=[]), replace(failed("AlgorithmError: exit code 1", training_s=Decimal(3601)),
        hints=Hints(own_checkpoints=True))),
    row(finds(fix=[]), replace(failed("AlgorithmError: exit code 1", training_s=Decimal(3601)),
        kind=JobKind.PROCESSING)),
    "Several GPUs have only their mean. CloudWatch has the sum of a host's GPUs.",
    row(finds("…60% on average over 4 GPUs…"), ran(7200, "ml.g4dn.12xlarge", status="Failed",
        failure="CUDA out of memory"), even(120, gpu_memory=60)),
    "A run without known cost is still said to be lost. Its dollars are unknown, not 0.",
    row(finds(usd=None, bucket="lost"), failed(region="xx-west-9")),
    "A full GPU is named with its last use.",
    # A larger GPU is the alternative that a setting has: of T4 and A10G the fake prices both.
    row(finds("The run failed after 2 h on 1 x ml.g4dn.xlarge (GPU out of memory: GPU memory "
        "was last recorded at 96%).", first_step="Halve the batch and accumulate gradients…",
        evidence={"gpu_memory_last_percent": 96}),
        out_of_memory("CUDA out of memory"), even(120, cpu=50, gpu=90, gpu_memory=96)),
    "A full host is named and gets a larger type. The next larger T4 host has twice as much.",
    row(finds("…(host out of memory: host memory was last recorded at 97%)…",
        ways=[["ml.g4dn.2xlarge"]], first_step="Use fewer data-loader workers…",
        caution="A larger type makes every run dearer…"),
        out_of_memory("AlgorithmError: , exit code: 137"), even(120, cpu=50, memory=97, gpu=90)),
    "A larger type is named up to four times the rate: twelve times as dear is no fix to paste.",
    # $0.736 an hour today; the next larger T4 host would cost four times that, and a little more.
    *(row(finds(ways=ways), out_of_memory("AlgorithmError: , exit code: 137"),
        even(120, cpu=50, memory=97, gpu=90), on=market(
            hourly_usd={"ml.g4dn.xlarge": "0.736", "ml.g4dn.2xlarge": larger_usd}))
        for larger_usd, ways in (("2.944", [["ml.g4dn.2xlarge"]]), ("2.945", []))),
    "A killed process is no proof of full memory. 137 is SIGKILL.",
    row(finds("…40%, which does not show that it ran out…"),
        out_of_memory("AlgorithmError: , exit code: 137"), even(120, cpu=50, memory=40, gpu=90)),
    "A failed run is lost whole. $0.23 + 30 GB x 1 h / 744 h x $0.14.",
    row(finds("…failed after 1 h on 1 x ml.m5.xlarge…", usd="0.235645", builder="lost"),
        failed("AlgorithmError: exit code 1")),
    "Checkpoints of the script's own, and outputs uploaded meanwhile, are no certain loss either.",
    row(finds("…(AWS error); checkpoints or outputs of its script's own may hold a part of the…",
        usd="0.000000", span=("0.000000", "0.235645"), evidence={"checkpointed": True}),
        replace(failed("InternalServerError: try again"), hints=Hints(own_checkpoints=True))),
    row(finds("…was stopped and left no artifact…of its script's own may hold…", usd="0.000000"),
        replace(ran(3600, status="Stopped", left_artifact=False),
        hints=Hints(own_checkpoints=True))),
    row(finds("…outputs that were uploaded while it ran may hold…", usd="0.000000"),
        failed("AlgorithmError: exit code 1", kind=JobKind.PROCESSING,
        uploads=(Upload("out", "Continuous"),))),
    "With checkpoints lost is up to the whole bill. A resume keeps the work.",
    row(finds("The run failed after 1 h on 1 x ml.m5.xlarge (AWS error); its checkpoints may "
        "hold a part of the work.", bucket="lost", confidence="derived", usd="0.000000",
        span=("0.000000", "0.235645"), caution="…if nobody resumes it, all of it is lost…"),
        with_checkpoints()),
    "Memory that rose steadily until it ran out is said, with its numbers.",
    # 40% to 98% over 50 minutes: the median of the first ten is 45.3. The next step is another one.
    row(finds("The run failed after 50 min on 1 x ml.g4dn.xlarge (GPU out of memory: GPU memory "
        "rose steadily over 50 min, from about 45% to 98%).",
        first_step="Find what keeps growing, as a smaller batch only delays…",
        evidence={"gpu_memory_rose_from_percent": 45.3, "gpu_memory_rose_to_percent": 98,
        "gpu_memory_rose_minutes": 50, "gpu_memory_last_percent": 98}), *grew(LEAK)),
    "The minutes in which the process dies are no part of the rise.",
    row(finds("…rose steadily over 50 min, from about 45% to 98%…"), *grew([*LEAK, 60, 3])),
    "Memory that is full from the start, or filled at once, does not rise steadily.",
    # A model that is loaded, one step in the middle, an end at 79.9%, and a rise of 8 points.
    *(
        row(finds("…GPU memory was last recorded at…", without="rose",
            lacks="gpu_memory_rose_minutes", first_step="Halve the batch…"), *grew(memory))
        for memory in (
            [96.0] * 50, [10.0] * 3 + [95.0] * 47, [*rising(25, 40, 44), *rising(25, 90, 94)],
            rising(50, 20, 79.9), rising(50, 88, 98),
        )
    ),
    "A rise of 10 points from the first fifth to the last is enough, of less it is not.",
    # By 0.25 a minute the medians of the first and the last ten minutes are 40 x 0.25 apart.
    row(finds(STEADY), *grew(rising(50, 80, 92.25))),
    row(finds(without="rose"), *grew(rising(50, 80, 92.2))),
    "A sawtooth does not rise steadily, however its teeth lie.",
    *(
        row(finds(without="rose"),
            *grew([18 + 80 * (minute % tooth) / tooth for minute in range(60)] + [98]))
        for tooth in (5, 7, 10, 13, 20, 30, 45)
    ),
    "Small falls on the way do not hide the rise, and half of it does.",
    row(finds(STEADY), *grew([value - 5 * (at % 7 == 0) for at, value in enumerate(LEAK)])),
    row(finds(without="rose"), *grew([value - 30 * (at == 40) for at, value in enumerate(LEAK)])),
    "Too few points, or a gap among them, say nothing of a rise.",
    # 25 points are five in each fifth, of a minute or of five minutes; a gap of 6 minutes is short.
    row(finds(STEADY), *grew(rising(25))),
    row(finds(without="rose"), *grew(rising(24))),
    row(finds("…over 2 h 5 min…"), *grew(rising(25), period_s=300)),
    row(finds("…over 50 min…"), *grew([*LEAK[:20], *[None] * 6, *LEAK[26:]])),
    row(finds(without="rose"), *grew([*LEAK[:20], *[None] * 7, *LEAK[27:]])),
    "Of several GPUs the mean is named, of several hosts the one that was fullest at its end.",
    # Of those that rose; where a host has no points, nothing is said.
    row(finds("…over 50 min, from about 45% to 98% on average over 4 GPUs…"),
        *grew(LEAK, gpus=4, instance="ml.g4dn.12xlarge")),
    row(finds("…rose steadily over 50 min on algo-2, from about 45% to 98%)…"),
        *grew([99.0] * 50, LEAK, rising(50, 40, 90))),
    row(finds(without="rose"), *grew(LEAK, [None] * 50)),
    "Only a failure for lack of GPU memory is explained by it.",
    row(finds(without="rose"), *grew(LEAK, failure="AlgorithmError: exit code 1")),
    row(finds(without="rose"), *grew(LEAK, failure="AlgorithmError: , exit code: 137")),
)  # fmt: skip
