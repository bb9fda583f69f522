from decimal import Decimal

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from tests.fakes.jobs import FixedPrices, even_use, gpu_type, phases, ran, series
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, later, lines, row

RULE = "some-gpus-unused"
FOUR = ran(3600, "ml.g4dn.12xlarge")
LITTLE = even(60, gpu=20, gpu_memory=5, cpu=5, memory=5)
DDP = ("HyperParameters.sagemaker_torch_distributed_enabled", None, "true")
EIGHT = gpu_type("ml.p4d.24xlarge", 96, 1152, 8, "A100")
EIGHT = replace(EIGHT, gpu_memory_gib=Decimal(40), family="p4d")
HALF = replace(EIGHT, name="ml.p4d.12xlarge", vcpu=48, memory_gib=Decimal(576), gpus=4)
P4 = ran(3600, EIGHT.name)


def p4(*types: object) -> Market:
    """Eight A100 for $32.77 an hour; the smaller size is made up, for $16.39."""
    usd_by_name = {EIGHT.name: "32.77", HALF.name: "16.39"}
    return Market({kind.name: kind for kind in (EIGHT, *types)}, FixedPrices(usd_by_name))  # type: ignore[attr-defined, misc]


@later
def used(run: Job, **percent: float) -> Measurements:
    """Even use of eight GPUs and 96 vCPUs, 0..100 of all."""
    return even_use(run, (60, 60), 1, percent, {EIGHT.name: EIGHT})


test_cases = cases(
    RULE,
    "The work of four GPUs that fits on one is found.",
    # 20% of 4 T4 are 0.8 of one; 4.89 less 1 + 0.2 x 3 times 0.736, for an hour.
    row(finds("The work of the 4 GPUs over 1 h on 1 x ml.g4dn.12xlarge fits on one of them "
        "(at its peak 0.8 GPUs and 3.2 GiB of GPU memory).", usd="3.712400", span=("3.712400",
        "4.154000"), builder="derived", caution="…only the sum…",
        fix=[("ResourceConfig.InstanceType", "ml.g4dn.12xlarge", "ml.g4dn.xlarge")]), FOUR, LITTLE),
    "One GPU did the work only where no distribution is known.",
    # 4.89 less 0.736 once, and less 1 + 0.24 x 3 times; stages that take turns look like one GPU
    row(finds(usd="4.154000", builder="derived", caution="…one of them did the work…"), FOUR,
        even(60, gpu=24, gpu_memory=5, cpu=5, memory=5)),
    row(finds(usd="3.624080", builder="derived", caution="…of 4 GPUs takes turns on one…"),
        replace(FOUR, hints=Hints(distribution="parameter_server")),
        even(60, gpu=24, gpu_memory=5, cpu=5, memory=5)),
    *(row(finds(bucket="possible", caution=f"…does a part of the work ({word})…"),
        replace(FOUR, hints=Hints(distribution=word)),
        even(60, gpu=24, gpu_memory=5, cpu=5, memory=5)) for word in ("smp", "xla", "accelerate")),
    "Half of the GPUs is the line.",
    # At the peak, GPU work and GPU memory both; three of four may be four at work.
    # 50% of 4 = 2.0; 50.2% = 2.008
    # of 64 GiB: 32.0, then 32.1
    row(FOUND, FOUR, even(60, gpu=50, gpu_memory=5, cpu=5, memory=5)),
    row(CLEAR, FOUR, even(60, gpu=50.2, gpu_memory=5, cpu=5, memory=5)),
    row(FOUND, FOUR, even(60, gpu=5, gpu_memory=50, cpu=5, memory=5)),
    row(CLEAR, FOUR, even(60, gpu=5, gpu_memory=50.2, cpu=5, memory=5)),
    "The policy may draw the line elsewhere. At a quarter, work for two of four is clear.",
    row(CLEAR, FOUR, even(60, gpu=40, gpu_memory=5, cpu=5, memory=5),
        limits={"fits_on_at_most": 25}),
    "Work on all GPUs is clear. 90% of each.",
    row(CLEAR, FOUR, even(60, gpu=90, gpu_memory=80, cpu=30, memory=30)),
    "The peak of the busiest host decides. One of two hosts at 90%.",
    row(CLEAR, ran(3600, "ml.g4dn.12xlarge", 2), lines(*[series(metric, [4 * value] * 60,
        host=f"train/algo-{n}") for n, gpu in ((1, 20), (2, 90)) for metric,
        value in ((Metric.GPU, gpu), (Metric.GPU_MEMORY, 5))])),
    "Without a size that holds it there is no figure.",
    # 30% of 48 vCPUs with 20% are 17.3, and one T4 comes with 16 at most.
    row(finds(change=None, builder="advice",
        caution="…ml.g4dn.4xlarge, does not fit (vCPU: 17.3 needed…",
        paths=["HyperParameters.sagemaker_torch_distributed_enabled"]), FOUR, even(60, gpu=20,
        gpu_memory=5, cpu=30, memory=5)),
    "Without a type the work is spread, or there is more of it.",
    row(finds(fix=[], caution="…does not fit…Spread the work over all GPUs instead."),
        replace(FOUR, image=None), even(60, gpu=20, gpu_memory=5, cpu=30, memory=5)),
    # spread already
    row(finds(fix=[], caution="…Give each GPU more work instead: a larger batch."), replace(FOUR,
        hints=Hints(distribution="ddp")), even(60, gpu=20, gpu_memory=5, cpu=30, memory=5)),
    "P4 types take Amazon's own library.",
    # SMDDP, whose switch goes with the type; no smaller size of a p4d can be bought.
    row(finds(fix=[("HyperParameters.sagemaker_distributed_dataparallel_enabled", "true"),
        ("HyperParameters.sagemaker_instance_type", "ml.p4d.24xlarge")],
        caution="…no GPU type with a known price is cheaper by the hour…"), P4, used(gpu=10,
        gpu_memory=10, cpu=5, memory=5), on=p4()),
    "A smaller size may have more GPUs than needed.",
    # One GPU's work on the made-up half of a p4d: still the smaller size.
    row(finds(fix=[HALF.name]), P4, used(gpu=10, gpu_memory=10, cpu=5, memory=5), on=p4(HALF)),
    "One GPU is not its concern. There are no fewer.",
    row("not applicable: …one GPU…", ran(3600, "ml.g4dn.xlarge"), even(60, gpu=5, gpu_memory=5)),
    row("not applicable: …several groups…", replace(FOUR, groups=(*FOUR.groups,
        InstanceGroup("ml.g4dn.xlarge", 1)))),
    "GPUs that did nothing are left to gpu-idle. That is another story.",
    row("not applicable: …gpu-idle…", FOUR, even(60, gpu=0, gpu_memory=1, cpu=50)),
    "A catalogue without the GPUs memory says nothing. How many GPUs hold it cannot be said.",
    row("unknown: not_recorded", P4, used(gpu=10, gpu_memory=10),
        on=Market({replace(EIGHT, gpu_memory_gib=None).name: replace(EIGHT, gpu_memory_gib=None)},
        FixedPrices({replace(EIGHT, gpu_memory_gib=None).name: "32.77"}))),
    "A training plan gets no other size.",
    # It is prepaid for this one; to distribute the work is free.
    row(finds(change=None, bucket="none", caution="…prepaid…"), replace(FOUR,
        purchase=Purchase.TRAINING_PLAN), even(60, gpu=20, gpu_memory=5, cpu=5, memory=5)),
    "Work may be distributed instead, where the image is PyTorch and no sign says that it is.",
    row(finds(ways=[["ml.g4dn.2xlarge"], [DDP]]), FOUR, LITTLE),
    # Four processes may wait one after the other on one GPU: its saving is possible at most.
    row(finds(ways=[["ml.g4dn.2xlarge"]], bucket="possible"), replace(FOUR,
        hints=Hints(distribution="ddp")), LITTLE),
    row(finds(ways=[["ml.g4dn.2xlarge"]]), replace(FOUR,
        image="683313688378.dkr.ecr.us-east-1.amazonaws.com/own:1"), LITTLE),
    row(finds(fix=[]), replace(FOUR, kind=JobKind.PROCESSING, phases=phases(("Processing", 3600)),
        billable_s=None), lines(series(Metric.GPU, [80] * 60), series(Metric.GPU_MEMORY,
        [80] * 60))),
    "It tells gpu-underused's story; on the advised size nothing is said again.",
    row("not applicable: …", ran(3600, "ml.g4dn.xlarge"), even(60, gpu=80, gpu_memory=20, cpu=60,
        memory=60)),
    row(CLEAR, ran(3600, "ml.g4dn.xlarge"), even(60, gpu=80, gpu_memory=20, cpu=60, memory=60),
        rule="gpu-underused"),
)  # fmt: skip


def test_its_first_step_needs_no_type() -> None:
    """It is shown where no type is advised, beside the reason why none fits."""
    [rule] = [one for one in catalogue.load() if one.name.name == RULE]
    assert (rule.name.first_step or "").startswith("Spread the work over all GPUs")
