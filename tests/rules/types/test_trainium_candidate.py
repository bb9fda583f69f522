from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import ACCOUNT, FixedPrices, ran
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "trainium-candidate"
REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
USD = {
    "ml.g5.2xlarge": "1.515",
    "ml.g5.12xlarge": "7.09",
    "ml.p4d.24xlarge": "25.25",
    "ml.trn1.2xlarge": "1.55",
    "ml.trn1.32xlarge": "24.73",
}
NEURON = f"{REGISTRY}/pytorch-training-neuronx:<tag>"
MARKET = Market(packaged.types(), FixedPrices(hourly_usd=USD))


def long(seconds: int = 21_600, instance: str = "ml.g5.12xlarge", **changes: Any) -> Job:
    """Six hours of PyTorch in AWS's own container."""
    plain: dict[str, Any] = {"hints": Hints(deep_learning=True)}
    return ran(seconds, instance, **plain | changes)


test_cases = cases(
    RULE,
    "A long run is worth a trial. 24.73 / 7.09 = 3.49; both parameters change together.",
    row(finds("6 h of deep learning on 1 x ml.g5.12xlarge: worth a trial on ml.trn1.32xlarge, "
        "which costs less if it is over 3.49 times as fast.", fix=[("ResourceConfig.InstanceType",
        "ml.g5.12xlarge", "ml.trn1.32xlarge"), ("AlgorithmSpecification.TrainingImage",
        f"{REGISTRY}/pytorch-training:2.0", f"{REGISTRY}/pytorch-training-neuronx:<tag>")]), long(),
        on=MARKET),
    "It has no dollars. A trial, in no sum.",
    row(finds(usd=None, span=None, builder="possible", caution="How fast …"), long(), on=MARKET),
    "Exactly four hours are long. One second less is not.",
    row(FOUND, long(14_400), on=MARKET),
    row(CLEAR, long(14_399), on=MARKET),
    "One GPU goes to one chip. Several go to the sixteen that belong together.",
    row(finds(fix=["ml.trn1.2xlarge", NEURON]), long(instance="ml.g5.2xlarge"), on=MARKET),
    row(finds(fix=["ml.trn1.32xlarge", NEURON]), long(instance="ml.g5.12xlarge"), on=MARKET),
    row(finds(fix=["ml.trn1.32xlarge", NEURON]), long(instance="ml.p4d.24xlarge"), on=MARKET),
    "Where Trainium is no way it says nothing.",
    row("not applicable: …g5 and p4…", long(groups=(InstanceGroup("ml.g6.12xlarge", 1),))),
    row("not applicable: …g5 and p4…", long(groups=(InstanceGroup("ml.trn1.32xlarge", 1),))),
    row("not applicable: …g5 and p4…", long(groups=(InstanceGroup("ml.g5.12xlarge", 1),) * 2)),
    row("not applicable: …g5 and p4…", long(groups=())),
    row("not applicable: …prepaid…", long(purchase=Purchase.TRAINING_PLAN)),
    row("not applicable: …complete…", long(status="Failed")),
    row("not applicable: …container…", long(hints=Hints())),
    row("not applicable: …container…", long(image=f"{REGISTRY}/tensorflow-training:2.0")),
    row("not applicable: …container…",
        long(image=f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.0")),
    row("not applicable: …container…", long(image=None)),
    row("not applicable: …processing…", long(kind=JobKind.PROCESSING)),
    "Without a price it does not know. Trainium is not sold in every region.",
    row("unknown: price_unknown", long(), on=Market(packaged.types(),
        FixedPrices(hourly_usd={name: usd for name, usd in USD.items() if "trn1" not in name}))),
    "Without times or type it does not know.",
    # A completed job whose answer has no times, a type of tomorrow.
    row("unknown: times_missing", long(started_at=None, ended_at=None, training_s=None), on=MARKET),
    row("unknown: type_unknown", long(groups=(InstanceGroup("ml.g5.96xlarge", 1),)), on=MARKET),
    "Hugging Face has its own container. Of the same name, for Neuron.",
    row(finds(fix=["ml.trn1.32xlarge", f"{REGISTRY}/huggingface-pytorch-training-neuronx:<tag>"]),
        long(image=f"{REGISTRY}/huggingface-pytorch-training:2.1"), on=MARKET),
)  # fmt: skip
