"""Runs that could move to another GPU model: the machine there, not our range, makes the truth.

Each story knows what CloudWatch and the settings do not show: in which numbers its code computes,
how its GPUs work together, and what its image was built for. On another GPU the GPU's part of each
minute takes as long as the works of that precision were measured to take, anywhere in the range.
"""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from msgspec import Struct, field

from sageaudit.adapters.prices import packaged
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.bill.finding import Finding
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Precision, TimesAsLong, times_as_long
from tests.labelled.audits import audit
from tests.labelled.machine import REGION, Doing, Plot, machine, training
from tests.labelled.test_no_ping_pong import standing

DLC = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:"
NEW, CUDA_10 = f"{DLC}2.0.1-gpu-py310-cu118-ubuntu20.04", f"{DLC}1.4.0-gpu-py36-cu101-ubuntu16.04"
ALGORITHM = "811284229777.dkr.ecr.us-east-1.amazonaws.com/image-classification:1"
HALF, FP32 = Precision.HALF, Precision.FP32
PLACES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Where in the measured range the truth lies."""
_NOISE_USD = Decimal("0.05")
"""Phases around the work do not take longer on another GPU; they are minutes."""


class Told(Struct, frozen=True):
    """A run. `computes`: the precision of its code; `runs_on`: the GPUs its image has code for."""

    instance: str
    shares: Sequence[float]
    computes: Precision
    says: dict[str, str] = field(default_factory=dict)
    image: str = NEW
    cores: float = 2.0
    gib: float = 12.0
    gpu_gib: float = 4.0
    runs_on: frozenset[str] = frozenset({"T4", "V100", "A10G", "A100", "L4", "L40S", "H100"})
    moves: bool = True

    def audit(self) -> Audit:
        """Three hours of it, audited."""
        work = Doing(
            180, self.cores, tuple(self.shares), self.gib, (self.gpu_gib,) * len(self.shares), 0.02
        )
        plot = Plot(self.instance, ((work,),), self.image, hyperparameters=self.says, name="moves")
        return audit(training(plot, 1))

    def times_as_long(self, other: str, where: float) -> float:
        """In truth: the slowest GPU takes its turns there, all else takes as long as today."""
        today, there = machine(self.instance), machine(other)
        found = times_as_long(
            today.gpu_model or "",
            there.gpu_model or "",
            today.gpu_ratios,
            frozenset({self.computes}),
        )
        assert isinstance(found, TimesAsLong), f"{self.instance} -> {other} was never measured"
        times = float(found.low) + where * float(found.high - found.low)
        spread = sum(self.shares) / min(len(self.shares), there.gpus)
        return 1 - max(self.shares) + times * spread


TOLD = {
    "half-asleep-v100-in-fp16-that-no-setting-shows": Told("ml.p3.2xlarge", [0.3], HALF),
    "half-asleep-v100-in-fp32": Told("ml.p3.2xlarge", [0.3], FP32),
    "busy-v100-that-an-a10g-replaces": Told("ml.p3.2xlarge", [0.93], HALF, gib=20, cores=4),
    "one-of-eight-a100-in-bf16": Told("ml.p4d.24xlarge", [0.95], HALF, gpu_gib=30),
    "one-of-eight-a100-in-tf32": Told("ml.p4d.24xlarge", [0.95], FP32, gpu_gib=30),
    "copies-on-eight-a100": Told("ml.p4d.24xlarge", [0.03] * 8, HALF, gpu_gib=3),
    "a-little-on-an-a10g-in-fp32": Told("ml.g5.2xlarge", [0.08], FP32, cores=5),
    "a-little-on-an-a10g-that-says-fp16": Told(
        "ml.g5.2xlarge", [0.08], HALF, {"fp16": "true"}, cores=5, moves=False
    ),
    "a-little-on-eight-h100": Told("ml.p5.48xlarge", [0.08], HALF, gpu_gib=3),
    "bf16-on-an-h100": Told("ml.p5.48xlarge", [0.3], HALF, {"bf16": "true"}, gpu_gib=30),
    "an-image-of-cuda-10-on-a-v100": Told(
        "ml.p3.2xlarge", [0.2], HALF, image=CUDA_10, runs_on=frozenset({"T4", "V100"}), gib=40
    ),
    "flash-attention-on-an-a10g": Told(
        "ml.g5.2xlarge", [0.08], HALF, {"attn_implementation": "flash_attention_2"},
        runs_on=frozenset({"A10G", "A100", "L4", "L40S", "H100"}), cores=5, moves=False,
    ),
    "two-of-eight-h100": Told("ml.p5.48xlarge", [0.9] * 2, HALF, gpu_gib=48, moves=False),
    "eight-linked-v100-beside-eight-linked-a100": Told(
        "ml.p3.16xlarge", [0.5] * 8, HALF, gpu_gib=12
    ),
    "four-linked-v100": Told("ml.p3.8xlarge", [0.5] * 4, HALF, gpu_gib=12, moves=False),
}  # fmt: skip


def to_another_gpu(audit: Audit) -> list[tuple[Finding, SetType]]:
    """The standing findings that count a move to another GPU model."""
    own = audit.job.groups[0].instance_type
    return [
        (one, one.found.change)
        for one in standing(audit)
        if isinstance(one.found.change, SetType)
        and machine(one.found.change.instance_type).gpus
        and machine(one.found.change.instance_type).gpu_model != machine(own).gpu_model
    ]


@pytest.mark.parametrize("name", TOLD)
def test_a_move_saves_what_it_promises_wherever_in_the_range_the_truth_lies(name: str) -> None:
    """The counted dollars, at every multiplier that was measured in the code's own precision."""
    story = TOLD[name]
    audit = story.audit()
    found = to_another_gpu(audit)
    assert bool(found) == story.moves, [one.found.summary for one in standing(audit)]
    market, total = packaged.market(), audit.bill.total_usd
    for one, change in found:
        rates = [
            market.hourly(REGION, JobKind.TRAINING, kind)
            for kind in (story.instance, change.instance_type)
        ]
        assert rates[0] is not None
        assert rates[1] is not None
        assert total is not None
        for where in PLACES:
            longer = Decimal(str(story.times_as_long(change.instance_type, where)))
            saves = total - total * longer * rates[1].usd / rates[0].usd
            assert (one.saving_usd or 0) <= saves + _NOISE_USD, (str(change), where)


@pytest.mark.parametrize("name", TOLD)
def test_no_type_is_named_on_which_the_image_does_not_run(name: str) -> None:
    """Neither counted nor as the second best."""
    story = TOLD[name]
    for one in standing(story.audit()):
        for fix in (one.found.fix, *one.found.alternatives):
            for parameter in fix:
                if parameter.path.endswith("InstanceType") and "<" not in str(parameter.new):
                    there = machine(str(parameter.new))
                    assert there.gpu_model is None or there.gpu_model in story.runs_on


def test_a_built_in_algorithm_keeps_to_the_families_of_its_guide() -> None:
    """Image Classification on a V100 at a fifth: g4dn or g5, and never g6e, whatever it saves."""
    story = Told("ml.p3.2xlarge", [0.2], FP32, image=ALGORITHM, gib=40)
    for one in standing(story.audit()):
        for fix in (one.found.fix, *one.found.alternatives):
            for parameter in fix:
                if parameter.path.endswith("InstanceType"):
                    assert machine(str(parameter.new)).family in {"g4dn", "g5", "p3"}


@pytest.mark.parametrize("instance", ["ml.p3.2xlarge", "ml.p4d.24xlarge", "ml.g5.2xlarge"])
def test_a_busier_gpu_never_saves_more_on_a_slower_one(instance: str) -> None:
    """What is counted for one and the same type falls with the use of the GPU."""
    counted: dict[str, list[Decimal]] = {}
    for percent in (5, 8, 12, 16, 20):
        story = Told(instance, [percent / 100], FP32, cores=5 if "g5" in instance else 2)
        for one, change in to_another_gpu(story.audit()):
            counted.setdefault(change.instance_type, []).append(one.saving_usd or Decimal(0))
    assert counted
    for kind, savings in counted.items():
        assert savings == sorted(savings, reverse=True), kind
