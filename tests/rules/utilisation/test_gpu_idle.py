from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, instance_type, market, phases, ran, series, usage
from tests.fakes.judging import unknown
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, lines, row

RULE = "gpu-idle"
ONE = ran(3600, "ml.g4dn.xlarge")


test_cases = cases(
    RULE,
    "A GPU that never worked is not needed.",
    # The same hour on ml.m5.xlarge: 4 vCPU and 16 GiB as before, plus its volume.
    row(finds("The GPU did nothing for 1 h on 1 x ml.g4dn.xlarge.", usd="0.500355",
        builder="derived", caution="…correct that instead…", fix=[("ResourceConfig.InstanceType",
        "ml.g4dn.xlarge", "ml.m5.xlarge")], evidence={"cpu_mean_cores": 2.0}), ONE, even(60, gpu=0,
        cpu=50)),
    "The cheapest CPU type that holds the rest is named.",
    # 1 of 4 cores and 3.2 of 16 GiB with 20% fit 2 vCPUs and 8 GiB.
    row(finds(fix=["ml.m5.large"]), ONE, even(60, gpu=0, cpu=25, memory=20)),
    "A GPU at three percent did almost nothing.",
    # It is told with its figure, and no CPU type is counted for it.
    row(finds("The GPU averaged 3% over 1 h on 1 x ml.g4dn.xlarge: almost nothing.", bucket="none",
        change=None, caution="…try a CPU type…"), ONE, even(60, gpu=3, cpu=50)),
    "Almost nothing is of one GPU not of all.",
    # 3% of each of four GPUs is 12% of one: little work, but work.
    row(CLEAR, ran(3600, "ml.g4dn.12xlarge"), even(60, gpu=3, cpu=50)),
    row(finds("…The 4 GPUs of a host together averaged 2% of one GPU over 1 h…"),
        ran(3600, "ml.g4dn.12xlarge"), even(60, gpu=0.5, cpu=50)),
    "The limits of almost nothing.",
    # A mean under 5% and a P95 of at most 10%: six minutes of an hour above it are work.
    row(FOUND, ONE, lines(series(Metric.GPU, ([4.9] * 60)), series(Metric.CPU,
        [200] * len([4.9] * 60)))),
    row(CLEAR, ONE, lines(series(Metric.GPU, ([5.0] * 60)), series(Metric.CPU,
        [200] * len([5.0] * 60)))),
    row(FOUND, ONE, lines(series(Metric.GPU, ([0.5] * 60 + [1.2])), series(Metric.CPU,
        [200] * len([0.5] * 60 + [1.2])))),
    row(CLEAR, ONE, lines(series(Metric.GPU, ([2.0] * 54 + [12.0] * 6)), series(Metric.CPU,
        [200] * len([2.0] * 54 + [12.0] * 6)))),
    "A GPU that waits for a CPU at its limit is left to CPU bottleneck.",
    # 4% is all that the cores could feed it.
    row(CLEAR, ONE, even(60, gpu=4, cpu=97)),
    row(FOUND, ONE, even(60, gpu=4, cpu=97), rule="cpu-bottleneck"),
    "A GPU that only starts late is another story.",
    # Half an hour of 0 and then work: idle-start tells it.
    row(CLEAR, ONE, lines(series(Metric.GPU, [0] * 30 + [90] * 30), series(Metric.CPU,
        [200] * 60))),
    "Exactly fifteen minutes are enough. Of the whole run, idle head and tail among them.",
    row(FOUND, ran(900, "ml.g4dn.xlarge"), even(15, gpu=0, cpu=50)),
    row(FOUND, ran(900, "ml.g4dn.xlarge"), lines(series(Metric.GPU, [0] * 15), series(Metric.CPU,
        [0] * 5 + [200] * 10))),
    "The policy may wait longer. As Job Defense Shield does: 120 minutes; an hour is clear then.",
    row(CLEAR, ONE, even(60, gpu=0, cpu=50), limits={"from_minutes": 61}),
    row(FOUND, ONE, even(60, gpu=0, cpu=50), limits={"from_minutes": 60}),
    "Late points leave enough.",
    # The first GPU points come 3 to 6 minutes late: 54 of 60 are judged.
    row(FOUND, ONE, lines(series(Metric.GPU, [None] * 6 + [0] * 54), series(Metric.CPU,
        [200] * 60))),
    "A host without points may have worked.",
    # Three of four hosts are 75% of the points; the fourth is not known to be idle.
    row("unknown: hosts_missing", ran(3600, "ml.g4dn.xlarge", 4), even(60, hosts=3, gpu=0, cpu=50)),
    row(FOUND, ran(3600, "ml.g4dn.xlarge", 4), even(60, hosts=4, gpu=0, cpu=50)),
    "A training plan gets no other type.",
    # It is prepaid for this one; that the GPU did nothing is said all the same.
    row(finds(fix=[], change=None, bucket="none", caution="…prepaid…"), replace(ONE,
        purchase=Purchase.TRAINING_PLAN), even(60, gpu=0, cpu=50)),
    "A mixed cluster gets no other type.",
    # Two sizes with one GPU each, all idle: no single type is the one to replace.
    row(finds(fix=[], bucket="none", caution="…its instances are of several types…"), replace(ONE,
        groups=(InstanceGroup("ml.g4dn.xlarge", 1), InstanceGroup("ml.g5.2xlarge", 1))),
        lines(*(series(Metric.GPU, [0] * 60, host=f"train/algo-{n}") for n in (1, 2)))),
    "CPU use that no cheaper type holds gets no figure.",
    # 95% of 4 vCPUs with 20% fit today's 4, and not where only 2 are cheaper.
    row(finds(fix=["ml.m5.xlarge"]), ONE, even(60, gpu=0, cpu=95, memory=10)),
    row(finds(fix=[], caution="…ml.m5.large, does not fit (vCPU: 4.6 needed…"), ONE, even(60, gpu=0,
        cpu=95, memory=10), on=market(hourly_usd={"ml.g4dn.xlarge": "0.736",
        "ml.m5.large": "0.115"})),
    row(finds(caution="…no type with a known price is cheaper by the hour…"), ONE, even(60, gpu=0,
        cpu=95, memory=10), on=market(hourly_usd={"ml.g4dn.xlarge": "0.736"})),
    "Unrecorded use does not shrink.",
    # Without a memory series the type has no less of it: 16 GiB, not 8.
    row(finds(fix=["ml.m5.xlarge"]), ONE, even(60, gpu=0, cpu=5)),
    "Processing and transform jobs are judged too. The path is that of their own Create request.",
    row(finds(paths=["ProcessingResources.ClusterConfig.InstanceType"]), ran(3600, "ml.g4dn.xlarge",
        kind=JobKind.PROCESSING, phases=phases(("Processing", 3600)), billable_s=None),
        lines(series(Metric.GPU, [0] * 60), series(Metric.CPU, [200] * 60))),
    row(finds(paths=["TransformResources.InstanceType"]), ran(3600, "ml.g4dn.xlarge",
        kind=JobKind.TRANSFORM, phases=phases(("Transform", 3600)), billable_s=None),
        lines(series(Metric.GPU, [0] * 60), series(Metric.CPU, [200] * 60))),
    "One percent of one GPU is nothing and more in one minute is not.",
    # Of all GPUs of a host together: CloudWatch gives their sum.
    row(finds("…did nothing…"), ONE, lines(series(Metric.GPU, [0.0] * 59 + [1.0]),
        series(Metric.CPU, [200] * 60))),
    row(finds(without="did nothing"), ONE, lines(series(Metric.GPU, [0.0] * 59 + [1.1]),
        series(Metric.CPU, [200] * 60))),
    row(finds("…did nothing…"), ran(3600, "ml.g4dn.12xlarge"), lines(series(Metric.GPU,
        [0.0] * 59 + [1.0]), series(Metric.CPU, [200] * 60))),
    row(finds(without="did nothing"), ran(3600, "ml.g4dn.12xlarge"), lines(series(Metric.GPU,
        [0.0] * 59 + [1.1]), series(Metric.CPU, [200] * 60))),
    "It is one story: other rules of GPU use leave it to this one, or are shown under it.",
    row("not applicable: …", ran(3600, "ml.g4dn.12xlarge"), even(60, gpu=0, gpu_memory=2, cpu=95,
        memory=5), rule="gpu-underused"),
    row("not applicable: …", ran(3600, "ml.g4dn.12xlarge"), even(60, gpu=0, gpu_memory=2, cpu=95,
        memory=5), rule="some-gpus-unused"),
    row(CLEAR, ran(3600, "ml.g4dn.12xlarge"), even(60, gpu=0, gpu_memory=2, cpu=95, memory=5),
        rule="gpu-starved"),
    row(FOUND, ran(3600, "ml.g4dn.12xlarge"), even(60, gpu=0, gpu_memory=2, cpu=95, memory=5),
        rule="cpu-bottleneck"),
    "The advised job gets no advice back. On the CPU type the same work is well placed.",
    row(finds(fix=["ml.m5.xlarge"]), ONE, even(60, gpu=0, cpu=60, memory=50)),
    row("not applicable: …", ran(3600, "ml.m5.xlarge"), even(60, cpu=60, memory=50),
        rule="gpu-idle"),
    row("not applicable: …", ran(3600, "ml.m5.xlarge"), even(60, cpu=60, memory=50),
        rule="gpu-underused"),
    row("not applicable: …", ran(3600, "ml.m5.xlarge"), even(60, cpu=60, memory=50),
        rule="cpu-bottleneck"),
    row(CLEAR, ran(3600, "ml.m5.xlarge"), even(60, cpu=60, memory=50), rule="cpu-underused"),
    "Several hosts all move. 2 x (0.736 - 0.23 - 30 GB x 1 h / 744 h x 0.14).",
    row(finds(usd="1.000710"), ran(3600, "ml.g4dn.xlarge", 2), even(60, hosts=2, gpu=0, cpu=50)),
)  # fmt: skip


def test_trainium_reports_no_such_metric() -> None:
    """Unknown, not free of waste."""
    types = TYPES | {
        "ml.trn1.2xlarge": instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron")
    }
    run = ran(3600, "ml.trn1.2xlarge")
    raw = [series(Metric.CPU, [100] * 60)]
    of = usage(run, *raw, types=types)
    assert of.missing[Metric.GPU].code == "accelerator_unseen"
    assert unknown(RULE, run, of) == "accelerator_unseen"
