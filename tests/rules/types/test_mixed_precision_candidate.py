from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.job import Hints, InstanceGroup, Job
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from tests.fakes.jobs import FixedPrices, even_use, ran
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, later, row

RULE = "mixed-precision-candidate"
REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
HUGGING_FACE = f"{REGISTRY}/huggingface-pytorch-training:2.1"
MARKET = Market(packaged.types(), FixedPrices())


def hour(instance: str = "ml.g5.2xlarge", seconds: int = 3600, **changes: Any) -> Job:
    """An hour of deep learning without a sign of its precision."""
    plain: dict[str, Any] = {"hints": Hints(deep_learning=True)}
    return ran(seconds, instance, **plain | changes)


@later
def busy(run: Job, gpu: float = 80) -> Measurements:
    """Even use of the GPU alone."""
    return even_use(run, (60, 60), 1, {"gpu": gpu}, packaged.types())


test_cases = cases(
    RULE,
    "A busy GPU without a sign is worth a trial. No dollars, and in no sum.",
    row(finds("The GPU averaged 80% over 1 h on 1 x ml.g5.2xlarge, with no sign of 16-bit "
        "precision: bf16 is worth a trial.", usd=None, builder="possible",
        caution="The code may set …"), hour(), busy()),
    "Exactly half busy is busy. A thousandth less is waiting for something else.",
    row(FOUND, hour(), busy(50)),
    row(CLEAR, hour(), busy(49.9)),
    "Plain PyTorch has no parameter for it. The change is one of the code.",
    row(finds(fix=[]), hour(), busy()),
    "Where there is nothing to try it says so.",
    # And why; a job that took the advice shows the sign.
    row("not applicable: …deep-learning…", hour(hints=Hints()), busy()),
    row("not applicable: …16-bit…", hour(hints=Hints(deep_learning=True, mixed_precision=True)),
        busy()),
    row("not applicable: …tensor cores…", hour(groups=(InstanceGroup("ml.p2.xlarge", 1),)), busy()),
    row("not applicable: …tensor cores…", hour(groups=(InstanceGroup("ml.m5.xlarge", 1),)), busy()),
    "Not applicable needs no metrics. What was given to the job suffices.",
    row("not applicable: …16-bit…", hour(hints=Hints(deep_learning=True, mixed_precision=True))),
    "The precision is one that the GPU has. bf16 came with Ampere.",
    row(finds(fix=[("HyperParameters.fp16", None, "true")]), hour("ml.g4dn.xlarge",
        image=HUGGING_FACE), busy()),
    row(finds(fix=[("HyperParameters.fp16", None, "true")]), hour("ml.p3.2xlarge",
        image=HUGGING_FACE), busy()),
    row(finds(fix=[("HyperParameters.bf16", None, "true")]), hour("ml.p4d.24xlarge",
        image=HUGGING_FACE), busy()),
    on=MARKET,
)  # fmt: skip
