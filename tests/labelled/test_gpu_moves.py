"""Runs that could move to another GPU model, compared with simulated truth.

Each run knows what CloudWatch and the settings do not show: its code's precision, how its GPUs work
together, and which GPUs its image supports. On another GPU the GPU's share of each minute takes as
long as measured for that precision, anywhere in the measured range.
"""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from msgspec import Struct, field

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.bill.finding import Finding
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Precision, RuntimeRange, runtime_range
from tests.fakes.packaged_prices import packaged_market
from tests.labelled.audits import audit, standing_findings
from tests.labelled.machine import Doing, machine
from tests.labelled.made_up_job import REGION, Plot, training

DLC = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:"
CUDA_11_IMAGE = f"{DLC}2.0.1-gpu-py310-cu118-ubuntu20.04"
CUDA_10_IMAGE = f"{DLC}1.4.0-gpu-py36-cu101-ubuntu16.04"
ALGORITHM = "811284229777.dkr.ecr.us-east-1.amazonaws.com/image-classification:1"
HALF = Precision.HALF
FP32 = Precision.FP32
ALL_GPUS = frozenset({"T4", "V100", "A10G", "A100", "L4", "L40S", "H100"})
AMPERE_AND_NEWER = frozenset({"A10G", "A100", "L4", "L40S", "H100"})
PLACES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Positions in the measured range at which the truth may lie."""
_NOISE_USD = Decimal("0.05")
"""Tolerance for phases around the work, minutes that do not take longer on another GPU."""


class GpuRun(Struct, frozen=True):
    """A run on one host, and the truth about it."""

    instance: str
    gpu_shares: Sequence[float]
    """Busy share (0..1) of each used GPU."""
    precision: Precision
    """The real precision of its code, which its settings may not show."""
    settings: dict[str, str] = field(default_factory=dict)
    image: str = CUDA_11_IMAGE
    cores: float = 2.0
    gib: float = 12.0
    gpu_gib: float = 4.0
    image_runs_on: frozenset[str] = ALL_GPUS
    should_move: bool = True

    def audit(self) -> Audit:
        """Audits three hours of the run."""
        work = Doing(
            minutes=180,
            cores=self.cores,
            gpus=tuple(self.gpu_shares),
            gib=self.gib,
            gpu_gib=(self.gpu_gib,) * len(self.gpu_shares),
            jitter=0.02,
        )
        plot = Plot(
            instance=self.instance,
            hosts=((work,),),
            image=self.image,
            hyperparameters=self.settings,
            name="moves",
        )
        return audit(training(plot, 1))

    def times_as_long(self, other: str, position: float) -> float:
        """Returns the true factor of the run time on another type.

        Only the GPU's part takes longer; GPUs that remain take turns.
        """
        today, new_type = machine(self.instance), machine(other)
        measured_range = runtime_range(
            today.gpu_model or "",
            new_type.gpu_model or "",
            today.gpu_ratios,
            frozenset({self.precision}),
        )
        assert isinstance(measured_range, RuntimeRange), (
            f"{self.instance} -> {other} was never measured"
        )
        times = float(measured_range.low) + position * float(
            measured_range.high - measured_range.low
        )
        spread = sum(self.gpu_shares) / min(len(self.gpu_shares), new_type.gpus)
        return 1 - max(self.gpu_shares) + times * spread


RUNS = {
    "a half-asleep V100 in fp16 that no setting shows": GpuRun(
        instance="ml.p3.2xlarge", gpu_shares=[0.3], precision=HALF
    ),
    "a half-asleep V100 in fp32": GpuRun(
        instance="ml.p3.2xlarge", gpu_shares=[0.3], precision=FP32
    ),
    "a busy V100 that an A10G replaces": GpuRun(
        instance="ml.p3.2xlarge", gpu_shares=[0.93], precision=HALF, gib=20, cores=4
    ),
    "one of eight A100 in bf16": GpuRun(
        instance="ml.p4d.24xlarge", gpu_shares=[0.95], precision=HALF, gpu_gib=30
    ),
    "one of eight A100 in TF32": GpuRun(
        instance="ml.p4d.24xlarge", gpu_shares=[0.95], precision=FP32, gpu_gib=30
    ),
    "copies on eight A100": GpuRun(
        instance="ml.p4d.24xlarge", gpu_shares=[0.03] * 8, precision=HALF, gpu_gib=3
    ),
    "a little on an A10G in fp32": GpuRun(
        instance="ml.g5.2xlarge", gpu_shares=[0.08], precision=FP32, cores=5
    ),
    "a little on an A10G whose setting says fp16": GpuRun(
        instance="ml.g5.2xlarge",
        gpu_shares=[0.08],
        precision=HALF,
        settings={"fp16": "true"},
        cores=5,
        should_move=False,
    ),
    "a little on eight H100": GpuRun(
        instance="ml.p5.48xlarge", gpu_shares=[0.08], precision=HALF, gpu_gib=3
    ),
    "bf16 on an H100": GpuRun(
        instance="ml.p5.48xlarge",
        gpu_shares=[0.3],
        precision=HALF,
        settings={"bf16": "true"},
        gpu_gib=30,
    ),
    "an image of CUDA 10 on a V100": GpuRun(
        instance="ml.p3.2xlarge",
        gpu_shares=[0.2],
        precision=HALF,
        image=CUDA_10_IMAGE,
        image_runs_on=frozenset({"T4", "V100"}),
        gib=40,
    ),
    "FlashAttention on an A10G": GpuRun(
        instance="ml.g5.2xlarge",
        gpu_shares=[0.08],
        precision=HALF,
        settings={"attn_implementation": "flash_attention_2"},
        image_runs_on=AMPERE_AND_NEWER,
        cores=5,
        should_move=False,
    ),
    "two of eight H100": GpuRun(
        instance="ml.p5.48xlarge",
        gpu_shares=[0.9] * 2,
        precision=HALF,
        gpu_gib=48,
        should_move=False,
    ),
    "eight linked V100 beside eight linked A100": GpuRun(
        instance="ml.p3.16xlarge", gpu_shares=[0.5] * 8, precision=HALF, gpu_gib=12
    ),
    "four linked V100": GpuRun(
        instance="ml.p3.8xlarge",
        gpu_shares=[0.5] * 4,
        precision=HALF,
        gpu_gib=12,
        should_move=False,
    ),
}
EVERY_RUN = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


def to_another_gpu(audit: Audit) -> list[tuple[Finding, SetType]]:
    """Returns the counted findings that move to another GPU model."""
    own = audit.job.groups[0].instance_type
    return [
        (finding, finding.detection.change)
        for finding in standing_findings(audit)
        if isinstance(finding.detection.change, SetType)
        and machine(finding.detection.change.instance_type).gpus
        and machine(finding.detection.change.instance_type).gpu_model != machine(own).gpu_model
    ]


@EVERY_RUN
def test_a_move_saves_what_it_promises_wherever_in_the_range_the_truth_lies(run: GpuRun) -> None:
    """A move saves the counted dollars or more, at every factor measured for the precision."""
    audit = run.audit()
    gpu_moves = to_another_gpu(audit)
    assert bool(gpu_moves) == run.should_move, [
        finding.detection.summary for finding in standing_findings(audit)
    ]
    market, total = packaged_market(), audit.bill.total_usd
    for finding, change in gpu_moves:
        rates = [
            market.hourly(REGION, JobKind.TRAINING, kind)
            for kind in (run.instance, change.instance_type)
        ]
        assert rates[0] is not None
        assert rates[1] is not None
        assert total is not None
        for position in PLACES:
            longer = Decimal(str(run.times_as_long(change.instance_type, position)))
            saves = total - total * longer * rates[1].usd / rates[0].usd
            assert (finding.saving_usd or 0) <= saves + _NOISE_USD, (str(change), position)


@EVERY_RUN
def test_no_type_is_named_on_which_the_image_does_not_run(run: GpuRun) -> None:
    """No fix or alternative names a type that the image does not support."""
    for finding in standing_findings(run.audit()):
        for fix in (finding.detection.fix, *finding.detection.alternatives):
            for parameter in fix:
                if parameter.path.endswith("InstanceType") and "<" not in str(parameter.new):
                    named_type = machine(str(parameter.new))
                    assert named_type.gpu_model is None or named_type.gpu_model in run.image_runs_on


def test_a_built_in_algorithm_keeps_to_the_families_of_its_guide() -> None:
    """Image Classification on a V100 at 20% may move to g4dn or g5, never to g6e."""
    run = GpuRun(
        instance="ml.p3.2xlarge", gpu_shares=[0.2], precision=FP32, image=ALGORITHM, gib=40
    )
    for finding in standing_findings(run.audit()):
        for fix in (finding.detection.fix, *finding.detection.alternatives):
            for parameter in fix:
                if parameter.path.endswith("InstanceType"):
                    assert machine(str(parameter.new)).family in {"g4dn", "g5", "p3"}


@pytest.mark.parametrize("instance", ["ml.p3.2xlarge", "ml.p4d.24xlarge", "ml.g5.2xlarge"])
def test_a_busier_gpu_never_saves_more_on_a_slower_one(instance: str) -> None:
    """The saving on the same type falls as the GPU gets busier."""
    counted: dict[str, list[Decimal]] = {}
    for percent in (5, 8, 12, 16, 20):
        run = GpuRun(
            instance=instance,
            gpu_shares=[percent / 100],
            precision=FP32,
            cores=5 if "g5" in instance else 2,
        )
        for finding, change in to_another_gpu(run.audit()):
            counted.setdefault(change.instance_type, []).append(finding.saving_usd or Decimal(0))
    assert counted
    for kind, savings in counted.items():
        assert savings == sorted(savings, reverse=True), kind
