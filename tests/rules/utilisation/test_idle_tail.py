from datetime import timedelta
from decimal import Decimal

from sageaudit.domain.bill.finding import Found, Unknown
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Phase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes import trainium
from tests.fakes.jobs import START, FixedPrices, Points, instance_type, phases, ran, series, usage
from tests.fakes.judging import found, outcome
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, later, lines, row
from tests.fakes.trainium import MARKET, TRAINIUM

cpu_alone = later(trainium.cpu_alone)
RULE = "idle-tail"
ONE = ran(7200, "ml.m5.4xlarge")
TWO = ran(7200, "ml.m5.4xlarge", 2)
GPU = ran(7200, "ml.g4dn.2xlarge")


@later
def cores(run: Job, *hosts: Points) -> Measurements:
    """Busy cores of each host, minute by minute."""
    return usage(
        run,
        *(
            series(Metric.CPU, [None if c is None else 100 * c for c in of], host=f"train/algo-{n}")
            for n, of in enumerate(hosts, start=1)
        ),
    )


def gpu_end(minutes: int, cores: float, run: Job = GPU) -> Measurements:
    """A GPU at work, and so many last minutes of two hours without it on these cores."""
    before = 120 - minutes
    return usage(
        run,
        series(Metric.CPU, [200] * before + [100 * cores] * minutes),
        series(Metric.GPU, [90] * before + [0] * minutes),
    )


test_cases = cases(
    RULE,
    "A hung exit is measured. 30 of 2 h on a GPU instance: a quarter of 2 h x $0.94.",
    row(finds("All hosts were idle for the last 30 min of 2 h on 1 x ml.g4dn.2xlarge.",
        builder="measured", fix=[], usd="0.470000", span=None), GPU, lines(series(Metric.CPU,
        [200] * 90 + [5] * 30), series(Metric.GPU, [None] * 4 + [90] * 86 + [0] * 30))),
    "Hosts that waited for one that was gone are counted after half an hour, if the job failed.",
    # The second host is idle for the last 90 of 120 minutes: 60 of them, 2 x $0.92 an hour.
    row(finds(builder="derived", alone="1.840000", caution="…init_process_group…"),
        replace(TWO, status="Failed", volume_gb=0, hints=Hints(distribution="ddp")),
        cores([9.0] * 120, [9.0] * 30 + [0.05] * 90)),
    # what all hosts were idle for is counted in any case
    row(finds(alone="0.613333", span=("0.613333", "0.981333")), replace(TWO, status="Failed",
        volume_gb=0, hints=Hints(distribution="ddp")),
        cores([9.0] * 100 + [0.05] * 20, [9.0] * 88 + [0.05] * 32)),
    row(finds(usd="0.000000"), replace(TWO, volume_gb=0, hints=Hints(distribution="ddp")),
        cores([9.0] * 120, [9.0] * 30 + [0.05] * 90)),
    "Ten minutes are long and nine are not. Zeros trail the end of healthy jobs for three.",
    row(FOUND, ONE, cores([9.0] * 110 + [0] * 10)),
    row(CLEAR, ONE, cores([9.0] * 111 + [0] * 9)),
    "Missing points are idle only in short gaps.",
    # Four at the end may have been work; four in between begin the tail anew.
    row(CLEAR, ONE, cores([9.0] * 90 + [0] * 26 + [None] * 4)),
    row(finds(evidence={"idle_s": 1800}), ONE, cores([9.0] * 90 + [0] * 10 + [None] + [0] * 19)),
    row(finds(evidence={"idle_s": 1080}), ONE, cores([9.0] * 90 + [0] * 8 + [None] * 4 + [0] * 18)),
    "Work at the end leaves no tail. A run that waited and then wrote its results.",
    row(CLEAR, ONE, cores([9.0] * 60 + [0] * 59 + [9.0])),
    "A host that ended early is a range from nothing.",
    # 60 minutes of one host of two: a quarter of 2 x 2 h at best, if it shared the work.
    # 30 of 120 minutes: 2 x 2 h x $0.92 / 4, and 2 x 30 GB x $0.14 x 2 h / 744 h / 4
    row(finds("1 of 2 hosts did nothing for up to 1 h before the last one ended, in 2 h on…",
        confidence="derived", usd="0.000000", span=("0.000000", "0.925645"), severity="low",
        evidence={"algo-2 idle_before_s": 3600}), TWO, cores([9.0] * 120, [9.0] * 60 + [0] * 60)),
    "Nine minutes earlier are not early. Ten are; both after the idle minutes of all.",
    row(FOUND, TWO, cores([9.0] * 120, [9.0] * 110 + [0] * 10)),
    row(CLEAR, TWO, cores([9.0] * 120, [9.0] * 111 + [0] * 9)),
    row(CLEAR, TWO, cores([9.0] * 117 + [0] * 3, [9.0] * 108 + [0] * 12)),
    "The idle end of all is counted and the early host is the range.",
    # 20 minutes of both, and 40 more of one.
    # 20 and 40 of 120 minutes of 2 x 2 h x $0.92 + 2 x 30 GB x $0.14 x 2 h / 744 h = $3.702581
    row(finds("All hosts were idle for the last 20 min of 2 h on 2 x ml.m5.4xlarge; "
        "1 of 2 hosts did nothing for up to 40 min before that.", span=("0.617097", "1.234194"),
        usd="0.617097"), TWO, cores([9.0] * 100 + [0] * 20, [9.0] * 60 + [0] * 60)),
    "A host that took no part did not end early.",
    # It was idle after its start: uneven-hosts tells that.
    row(CLEAR, TWO, cores([9.0] * 120, [0] * 120)),
    row(CLEAR, TWO, cores([9.0] * 120, [1] * 6 + [0] * 114)),
    row(FOUND, TWO, cores([9.0] * 120, [1] * 7 + [0] * 113)),
    "A run without any work is one idle tail.",
    # Measured as a whole; the start that came too late to be seen stays out.
    row(finds("No host worked in 2 h on 1 x ml.m5.4xlarge.", usd="1.851290"), ONE,
        cores([0.05] * 120)),
    row(finds(evidence={"idle_s": 6900}), GPU, lines(series(Metric.CPU, [0] * 120),
        series(Metric.GPU, [None] * 5 + [0] * 115))),
    "A run seen late is not said to have done nothing.",
    # It may have worked in the 30 minutes without points.
    row(finds("…last 1 h 30 min of 2 h…"), ONE, cores([None] * 30 + [0] * 90)),
    "A host without points may have worked. Three of four hosts idle at the end are not all.",
    row("unknown: hosts_missing", ran(7200, "ml.m5.4xlarge", 4),
        cores(*([[9.0] * 60 + [0] * 60] * 3))),
    "The tail of a restarted spot run is its last one.",
    # Two times of Training with a gap between them: 20 idle minutes end the second.
    # a sixth of 2 h x $0.92 + 30 GB x $0.14 x 2 h / 744 h
    row(finds(usd="0.308548", evidence={"idle_s": 1200}), ran(7200, "ml.m5.4xlarge",
        phases=(Phase("Training", START, Decimal(3600), billed=True), Phase("Interrupted",
        START + timedelta(hours=1), Decimal(3600), billed=False), Phase("Training",
        (START + timedelta(hours=2)), Decimal(3600), billed=True))),
        cores([9.0] * 60 + [None] * 60 + [9.0] * 40 + [0] * 20)),
    "Other kinds lose their own phase. 12 of 60 minutes at $0.92.",
    row(finds(alone="0.184000"), ran(3600, "ml.m5.4xlarge", kind=JobKind.PROCESSING,
        phases=phases(("Processing", 3600)), volume_gb=None), cores([9.0] * 48 + [0] * 12)),
    row(finds(alone="0.184000"), ran(3600, "ml.m5.4xlarge", kind=JobKind.TRANSFORM,
        phases=phases(("Transform", 3600)), volume_gb=None), cores([9.0] * 48 + [0] * 12)),
    row(finds(alone="0.184000"), ran(3600, "ml.m5.4xlarge", kind=JobKind.TRAINING,
        phases=phases(("Running", 3600)), volume_gb=None), cores([9.0] * 48 + [0] * 12)),
    "Without the GPU of a GPU job it does not know.",
    # Its card asks for CPU alone, which CPU jobs have too.
    row("unknown: metric_missing", GPU, even(120, cpu=1)),
    "Accelerators that nobody measures may have worked. Trainium reports no such metric.",
    row("unknown: accelerator_unseen", ran(7200, TRAINIUM), cpu_alone([200] * 90 + [0] * 30),
        on=MARKET),
    "A hung process that spins on one core is counted.",
    # 60 of 120 minutes: half of 2 h x $0.94. What one core does needs no GPU.
    row(finds("No GPU worked in the last 1 h of 2 h on 1 x ml.g4dn.2xlarge, "
        "and no host used more than one core.", confidence="derived", usd="0.940000",
        caution="…needs none of these GPUs…"), GPU, gpu_end(60, 1.01)),
    "An evaluation on the CPU is told in GPU hours.",
    # 40 minutes on six of eight cores after the last GPU work.
    row(finds("No GPU worked in the last 40 min of 2 h on 1 x ml.g4dn.2xlarge (0.7 GPU-hours), "
        "while 6.0 of 8 cores worked.", usd=None, bucket="none"), GPU, gpu_end(40, 6.0)),
    "A host that spins at its end while another works ended early.",
    # 60 minutes on one core without its GPU: a range from nothing to half an hour of both.
    # an hour of one host, shared by two: 30 of 120 minutes of 2 x 2 h x $0.94
    row(finds("1 of 2 hosts did nothing for up to 1 h before the last one ended, in 2 h on…",
        span=("0.000000", "0.940000")), ran(7200, "ml.g4dn.2xlarge", 2), lines(series(Metric.CPU,
        [200] * 120), series(Metric.GPU, [90] * 120), series(Metric.CPU, [200] * 60 + [101] * 60,
        host="train/algo-2"), series(Metric.GPU, [90] * 60 + [0] * 60, host="train/algo-2"))),
    "Hosts of a declared distribution share the work already.",
    # an hour of one host of two without a word of a distribution, and with one
    row(finds(caution="Unused hosts save only if they take over work of the others: none…"),
        ran(7200, instances=2), lines(series(Metric.CPU, [300] * 120), series(Metric.CPU,
        [300] * 60 + [2] * 60, host="train/algo-2"))),
    *(row(finds(caution="Its code spreads the work over all hosts already:…None of it is counted.",
        without="take over"), ran(7200, instances=2, hints=Hints(distribution=named)),
        lines(series(Metric.CPU, [300] * 120), series(Metric.CPU, [300] * 60 + [2] * 60,
        host="train/algo-2"))) for named in ("ddp", "parameter_server")),
    "CPU work before the idle tail is mentioned.",
    # 40 minutes of evaluation on six cores, then 20 idle ones, of which alone the dollars are.
    # 2 h x $0.94 x 20 / 120
    row(finds(usd="0.313333", caution="…No GPU worked in the last 1 h…"), GPU,
        lines(series(Metric.CPU, [200] * 60 + [600] * 40 + [5] * 20), series(Metric.GPU,
        [90] * 60 + [0] * 60))),
    "One core of a CPU job may be its work. Only hosts with GPUs are too dear for it.",
    row(CLEAR, ONE, cores([9.0] * 60 + [1.0] * 60)),
    "A GPU that never worked is another story. gpu-idle tells it, hung or not.",
    row(CLEAR, GPU, gpu_end(120, 1.0)),
    "A core is counted from half an hour and more is told.",
    # Writing a model, a short evaluation are ordinary; longer CPU work has hours, no dollars.
    row(finds(bucket="avoidable"), GPU, gpu_end(30, 1.2)),
    row(CLEAR, GPU, gpu_end(29, 1.2)),
    row(finds(bucket="none"), GPU, gpu_end(30, 1.21)),
    row(CLEAR, GPU, gpu_end(29, 6.0)),
)  # fmt: skip


def test_at_most_four_early_hosts_are_told() -> None:
    """The earliest first."""
    run = ran(7200, "ml.m5.4xlarge", 7)
    early = [[9.0] * (40 + 10 * n) + [0] * (80 - 10 * n) for n in range(6)]
    evidence = found(RULE, run, cores([9.0] * 120, *early)).evidence
    told = [key for key in evidence if key.endswith(" idle_before_s")]
    assert told == [f"algo-{n} idle_before_s" for n in (2, 3, 4, 5)]
    assert evidence["hosts_ended_early"] == 6


def test_on_a_mixed_cluster_only_the_end_of_all_is_told() -> None:
    """Two types of one size: which host ended early at which price nobody knows."""
    types = {
        name: instance_type(name, 16, memory)
        for name, memory in (("ml.m5.4xlarge", 64), ("ml.c5.4xlarge", 32))
    }
    run = ran(7200, groups=tuple(InstanceGroup(name, 1) for name in types))

    def answer(*hosts: Points) -> object:
        raw = [
            series(Metric.CPU, [100 * (c or 0) for c in of], host=f"train/algo-{n}")
            for n, of in enumerate(hosts, start=1)
        ]
        return outcome(RULE, run, usage(run, *raw, types=types), on=Market(types, FixedPrices()))

    assert isinstance(answer([9.0] * 90 + [0] * 30, [9.0] * 90 + [0] * 30), Found)
    early = answer([9.0] * 120, [9.0] * 60 + [0] * 60)
    assert isinstance(early, Unknown)
    assert early.code == "hosts_unmapped"
