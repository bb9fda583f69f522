from sageaudit.domain.bill.finding import Found
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import Points, phases, ran, series, usage
from tests.fakes.judging import outcome
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, later, lines, row

RULE = "idle-middle"
ONE = ran(7200, "ml.g4dn.2xlarge")
TWO = ran(7200, "ml.g4dn.2xlarge", 2)


FIVE = ran(18000, "ml.g4dn.2xlarge")


def beat(works: list[int], waits: list[int], cores: float = 1.0) -> tuple[list[float], list[float]]:
    """Minutes of work and of a wait in turns: GPU in percent and busy cores."""
    gpu, busy = list[float](), list[float]()
    for at, minutes in enumerate(works):
        wait = waits[at] if at < len(waits) else 0
        gpu += [90.0] * minutes + [0.0] * wait
        busy += [2.0] * minutes + [cores] * wait
    return gpu, busy


@later
def on(run: Job, *hosts: tuple[Points, Points]) -> Measurements:
    """GPU in percent and busy cores of each host, minute by minute."""
    raw = []
    for number, (gpu, cores) in enumerate(hosts, start=1):
        host = f"train/algo-{number}"
        percent = [None if c is None else 100 * c for c in cores]
        raw += [series(Metric.GPU, gpu, host=host), series(Metric.CPU, percent, host=host)]
    return usage(run, *raw)


def wait(minutes: int, cores: float) -> tuple[list[float], list[float]]:
    """40 minutes of work, a wait, and work until two hours are over."""
    after = 80 - minutes
    return (
        [90.0] * 40 + [0.0] * minutes + [90.0] * after,
        [2.0] * 40 + [cores] * minutes + [2.0] * after,
    )


test_cases = cases(
    RULE,
    "A hung process is counted. 30 of 120 minutes on one core: a quarter of 2 h x $0.94.",
    row(finds("No GPU worked for 30 min in the middle of 2 h on 1 x ml.g4dn.2xlarge, "
        "and no host used more than one core; it began 40 min after the start.", builder="derived",
        usd="0.470000", caution="…timeout in the code…"), ONE, on(wait(30, 1.01))),
    "Under half an hour is a pause. A checkpoint, an evaluation, a download between epochs.",
    row(CLEAR, ONE, on(wait(29, 1.0))),
    row(CLEAR, ONE, on(wait(29, 6.0))),
    "Two waits are one finding. Their minutes are added up.",
    # 5 h x $0.94 x 105 / 300: the second is over twice as long
    row(finds("No GPU worked for 1 h 45 min in 2 stretches in the…", usd="1.645000"), FIVE,
        on(beat([60, 60, 75], [30, 75]))),
    "Work of the CPU is shown in GPU hours. An evaluation on six cores: no dollars.",
    row(finds("The GPUs did nothing for 40 min in the middle of 2 h on 1 x ml.g4dn.2xlarge "
        "(0.7 GPU-hours), while 6.0 of 8 cores worked.", usd=None, bucket="none",
        caution="…processing job…"), ONE, on(wait(40, 6.0))),
    "One host at work while the others wait is no standstill.",
    # The hours of the host that waits are shown.
    row(finds("The GPUs of 1 of 2 hosts did nothing for 1 h in the middle of 2 h on "
        "2 x ml.g4dn.2xlarge (1.0 GPU-hours), while GPUs of other hosts worked.", usd=None), TWO,
        on(([90.0] * 120, [2.0] * 120), wait(60, 0.9))),
    row(finds("The GPUs of 1 of 2 hosts did nothing for 1 h in the middle of 2 h on "
        "2 x ml.g4dn.2xlarge (1.0 GPU-hours), while GPUs of other hosts worked.", usd=None), TWO,
        on(([30.0] * 120, [1.0] * 120), wait(60, 0.9))),
    "One host that evaluates on its CPU is work.",
    # All GPUs wait for it: both hosts' hours are shown, no dollars.
    row(finds(usd=None, evidence={"gpu_hours_not_counted": 2.0}), TWO, on(wait(60, 5.0),
        wait(60, 1.0))),
    "What is counted is not shown again.",
    # 35 minutes hung and 40 of evaluation later: dollars for the first, hours for the second.
    # 2 h x $0.94 x 35 / 120
    row(finds(usd="0.548333", evidence={"gpu_hours_not_counted": 0.7}), ONE,
        on((([90.0] * 20 + [0.0] * 35 + [90.0] * 10 + [0.0] * 40 + [90.0] * 15),
        ([1.0] * 65 + [6.0] * 40 + [1.0] * 15)))),
    "Waits of similar length with one core may be an evaluation. Possible at most, and no timeout.",
    # 3 x 40 min of 5 h at $0.94: $1.88 are possible
    row(finds("No GPU worked for 2 h of 5 h on 1 x ml.g4dn.2xlarge: 3 times for about 40 min, "
        "while one core was busy.", builder="possible", usd="0.000000",
        span=("0.000000", "1.880000"), first_step="If the core evaluates…separate job…less often…",
        caution="…they are not counted…", evidence={"recurrences": 3, "recurring_s": 7200,
        "first_recurrence_after_s": 3600, "between_recurrences_s": 2400}), FIVE,
        on(beat([60, 40, 40, 40], [40, 40, 40]))),
    row(finds(builder="measured", usd="1.880000"), FIVE, on(beat([60, 40, 40, 40], [40, 40, 40],
        cores=0.1))),
    row(finds(builder="possible", span=("0.000000", "1.253333")), FIVE,
        on(beat([60, 40, 120], [40, 40]))),
    "They vary with data and storage. The middle one is what the sentence says.",
    row(finds("…3 times for about 38 min, while…", builder="possible"), FIVE,
        on(beat([46, 46, 46, 48], [31, 45, 38]))),
    "A hang beside an evaluation is counted. The evaluation is the upper end.",
    # 66 of 300 minutes, in two parts of one session between the second and the third evaluation
    row(finds("No GPU worked for 1 h 6 min in the middle of 5 h…", builder="derived",
        usd="1.034000", span=("1.034000", "2.444000"), caution="…evaluation: not counted.",
        evidence={"standstill_s": 3960, "recurring_s": 5400}), FIVE,
        on(beat([36, 36, 18, 18, 36], [30, 30, 66, 30]))),
    "An evaluation that ends the run is no idle end. One that hangs there is.",
    row(finds(span=("0.000000", "1.880000")), FIVE, on(beat([60, 60, 60], [40, 40, 40]))),
    row(finds("No GPU worked in the last 40 min…1.0 of 8 cores worked.", usd=None), FIVE,
        on(beat([60, 60, 60], [40, 40, 40])), rule="idle-tail"),
    row(finds("No GPU worked in the last 1 h 20 min of 5 h…", usd="1.253333"), FIVE,
        on(beat([40, 50, 50], [40, 40, 80])), rule="idle-tail"),
    "The end is left to idle tail. And the start to idle-start: neither is told twice.",
    row(CLEAR, ONE, on(([90.0] * 60 + [0.0] * 60, [2.0] * 60 + [1.0] * 60))),
    row(FOUND, ONE, on(([90.0] * 60 + [0.0] * 60, [2.0] * 60 + [1.0] * 60)), rule="idle-tail"),
    row(CLEAR, ONE, on(([0.0] * 60 + [90.0] * 60, [1.0] * 60 + [2.0] * 60))),
    row(CLEAR, ONE, on(wait(60, 1.0)), rule="idle-tail"),
    row(CLEAR, ONE, on(wait(60, 1.0)), rule="idle-start"),
    row(CLEAR, ONE, on(wait(60, 1.0)), rule="gpu-underused"),
    "Another type is sized by the minutes at work.",
    # 10% busy for 40 minutes and hung for 80: no rule takes the hung minutes for spare speed.
    row(finds(evidence={"gpu_mean_percent": 10.0}), ONE,
        on((([10.0] * 20 + [0.0] * 80 + [10.0] * 20), ([1.0] * 120))), rule="gpu-underused"),
    "A prepaid run has no dollars to save. It stood still all the same.",
    row(finds(usd="0.000000"), ran(7200, "ml.g4dn.2xlarge", purchase=Purchase.TRAINING_PLAN),
        on(wait(60, 1.0))),
    "Processing and transform jobs are judged too. Their one phase is cut.",
    row(finds(alone="0.940000"), ran(7200, "ml.g4dn.2xlarge", kind=JobKind.PROCESSING,
        phases=phases(("Processing", 7200)), billable_s=None), on(wait(60, 1.0))),
    row(finds(alone="0.940000"), ran(7200, "ml.g4dn.2xlarge", kind=JobKind.TRANSFORM,
        phases=phases(("Transform", 7200)), billable_s=None), on(wait(60, 1.0))),
    "Hosts that slept are measured. 2 hosts x 2 h x $0.94 x 40 / 120.",
    row(finds(confidence="measured", usd="1.253333", without="one core"), TWO, on(wait(40, 0.05),
        wait(40, 0.1))),
    "Who cannot be judged is not. No GPU; no points of one host.",
    row("not applicable: …", ran(7200), lines(series(Metric.CPU, [100] * 120))),
    row("unknown: hosts_missing", TWO, on(wait(60, 1.0))),
)  # fmt: skip


def test_a_gap_is_not_a_standstill() -> None:
    """Without points nobody knows."""
    points: Points = [90.0] * 40 + [None] * 40 + [90.0] * 40
    cores: Points = [2.0] * 40 + [None] * 40 + [2.0] * 40
    assert not isinstance(outcome(RULE, ONE, on((points, cores))), Found)
