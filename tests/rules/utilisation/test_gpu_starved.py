from sageaudit.domain.job.job import Hints, Job
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import ran, series, usage
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, lines, row

RULE = "gpu-starved"
ONE = ran(3600, "ml.g4dn.xlarge")
SWINGS = [*[90.0] * 9, *[2.0] * 6] * 4


def gpu(percent: list[float], cpu: float = 30, run: Job = ONE) -> Measurements:
    """One GPU minute by minute, beside an even use of 4 vCPUs."""
    return usage(
        run, series(Metric.GPU, percent), series(Metric.CPU, [4 * cpu] * len(percent))
    )  # fmt: skip


test_cases = cases(
    RULE,
    "A GPU that waits between bursts is found.",
    # 6 of 15 minutes, four times, the last one up to the end: no dollars.
    row(finds("The GPU fell under 10% 3 times and waited there for 40% of 1 h on "
        "1 x ml.g4dn.xlarge; its P95 is 90%.", usd=None, builder="advice",
        caution="…only a run shows…"), ONE, gpu(SWINGS)),
    "A steady GPU is clear. Busy or little used, it does not swing.",
    row(CLEAR, ONE, gpu([90.0] * 60)),
    row(CLEAR, ONE, gpu([5.0] * 60)),
    "The limits of Debugger decide. P95 over 70 and P5 under 10.",
    row(FOUND, ONE, gpu([*[70.1] * 9, *[9.9] * 6] * 4)),
    row(CLEAR, ONE, gpu([*[70] * 9, *[9.9] * 6] * 4)),
    row(CLEAR, ONE, gpu([*[70.1] * 9, *[10] * 6] * 4)),
    "Exactly a tenth of the time is found. 6 of 60 minutes in three waits; 5 are not.",
    row(FOUND, ONE, gpu([*([*[90.0] * 18, *[0.0] * 2] * 3)[10:],
        *([*[90.0] * 18, *[0.0] * 2] * 3)[:10]])),
    row(CLEAR, ONE, gpu([*[90.0, *([*[90.0] * 18, *[0.0] * 2] * 3)[1:-1], 90.0][10:],
        *[90.0, *([*[90.0] * 18, *[0.0] * 2] * 3)[1:-1], 90.0][:10]])),
    "Three falls are needed.",
    # A start and an evaluation are two waits: once low is no swing, and back it must come.
    row(CLEAR, ONE, gpu([*[90.0] * 15, *[0.0] * 5] * 2 + [90.0] * 20)),
    row(FOUND, ONE, gpu([*[90.0] * 15, *[0.0] * 4] * 3 + [90.0] * 3)),
    "A long start and a long end are other stories.",
    # The CPU prepares for 20 minutes and writes for 20.
    row(CLEAR, ONE, gpu([*[0.0] * 20, *[95.0] * 20, *[0.0] * 20])),
    "A GPU that waits for its CPU is another story.",
    # CPU at 90% while it waits; at 89.9% it is not at its limit.
    row(CLEAR, ONE, gpu(SWINGS, cpu=90)),
    row(FOUND, ONE, gpu(SWINGS, cpu=89.9)),
    "Only the CPU of the waiting minutes counts.",
    # At its limit while the GPU works, and nearly idle while it waits.
    row(finds(evidence={"cpu_while_waiting_percent": 10.0}), ONE, lines(series(Metric.GPU, SWINGS),
        series(Metric.CPU, [4 * (99.0 if percent > 10 else 10.0) for percent in SWINGS]))),
    "A host without CPU points in those minutes is not blamed. It may wait for its CPU.",
    row(CLEAR, ONE, lines(series(Metric.GPU, [*[90.0] * 11, *[2.0] * 4] * 4), series(Metric.CPU,
        [None if percent < 10 else 100.0 for percent in [*[90.0] * 11, *[2.0] * 4] * 4]))),
    "Few loader workers are named where the job sets them. One for 4 vCPUs.",
    row(finds(fix=[("HyperParameters.num_workers", "4")]), replace(ONE,
        hints=Hints(loader_workers=1)), gpu(SWINGS)),
    row(finds(fix=[]), ONE, gpu(SWINGS)),
    "The policy may set its limits. More falls, or a larger share, than this run has.",
    row(CLEAR, ONE, gpu(SWINGS), limits={"times_from": 4}),
    row(CLEAR, ONE, gpu(SWINGS), limits={"share_from": 41}),
    row(CLEAR, ONE, gpu(SWINGS), limits={"cpu_from": 30}),
    "The host that waits longest speaks. One of two hosts waits.",
    row(finds(evidence={"hosts_that_wait": 1}), ran(3600, "ml.g4dn.xlarge", 2),
        lines(*[series(Metric.CPU, [100] * 60, host=f"train/algo-{n}") for n in (1, 2)],
        series(Metric.GPU, [90] * 60), series(Metric.GPU, SWINGS, host="train/algo-2"))),
)  # fmt: skip
