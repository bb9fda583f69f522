from functools import partial
from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import ACCOUNT, FixedPrices, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "trainium-candidate"
REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
OWN_REGISTRY = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com"
USD = {
    "ml.g5.2xlarge": "1.515",
    "ml.g5.12xlarge": "7.09",
    "ml.p4d.24xlarge": "25.25",
    "ml.trn1.2xlarge": "1.55",
    "ml.trn1.32xlarge": "24.73",
}
NEURON = f"{REGISTRY}/pytorch-training-neuronx:<tag>"
MARKET = Market(packaged.instance_types(), FixedPrices(hourly_usd=USD))


def deep_learning(seconds: int = 21_600, instance: str = "ml.g5.12xlarge", **changes: Any) -> Job:
    """Six hours of PyTorch in AWS's own container."""
    plain: dict[str, Any] = {"hints": Hints(deep_learning=True)}
    return ran(seconds, instance, **plain | changes)


verdict = partial(answer, RULE)


def test_6_hours_are_worth_a_trial_on_a_type_at_3_49_times_the_rate() -> None:
    """$24.73 / $7.09 = 3.49; both parameters change together."""
    assert verdict(deep_learning(), market=MARKET) == finds(
        "6 h of deep learning on 1 x ml.g5.12xlarge: try ml.trn1.32xlarge, which costs less if it "
        "is over 3.49 times as fast.",
        fix=[
            ("ResourceConfig.InstanceType", "ml.g5.12xlarge", "ml.trn1.32xlarge"),
            (
                "AlgorithmSpecification.TrainingImage",
                f"{REGISTRY}/pytorch-training:2.0",
                f"{REGISTRY}/pytorch-training-neuronx:<tag>",
            ),
        ],
    )


def test_it_has_no_dollars() -> None:
    """A trial, in no sum."""
    assert verdict(deep_learning(), market=MARKET) == finds(
        usd=None, span=None, builder="possible", caution="How fast …"
    )


def test_4_hours_are_long_and_one_second_less_is_not() -> None:
    assert verdict(deep_learning(seconds=14_400), market=MARKET) == FOUND
    assert verdict(deep_learning(seconds=14_399), market=MARKET) == CLEAR


def test_one_gpu_goes_to_one_chip() -> None:
    """Several go to the sixteen that belong together."""
    assert verdict(deep_learning(instance="ml.g5.2xlarge"), market=MARKET) == finds(
        fix=["ml.trn1.2xlarge", NEURON]
    )
    result = verdict(deep_learning(instance="ml.g5.12xlarge"), market=MARKET)
    assert result == finds(fix=["ml.trn1.32xlarge", NEURON])
    result = verdict(deep_learning(instance="ml.p4d.24xlarge"), market=MARKET)
    assert result == finds(fix=["ml.trn1.32xlarge", NEURON])


def test_where_trainium_is_no_way_it_says_nothing() -> None:
    for changes, reason in (
        ({"groups": (InstanceGroup("ml.g6.12xlarge", 1),)}, "…g5 and p4…"),
        ({"groups": (InstanceGroup("ml.trn1.32xlarge", 1),)}, "…g5 and p4…"),
        ({"groups": (InstanceGroup("ml.g5.12xlarge", 1),) * 2}, "…g5 and p4…"),
        ({"groups": ()}, "…g5 and p4…"),
        ({"purchase": Purchase.TRAINING_PLAN}, "…prepaid…"),
        ({"status": "Failed"}, "…complete…"),
        ({"hints": Hints()}, "…container…"),
        ({"image": f"{REGISTRY}/tensorflow-training:2.0"}, "…container…"),
        ({"image": f"{OWN_REGISTRY}/pytorch-training:2.0"}, "…container…"),
        ({"image": None}, "…container…"),
        ({"kind": JobKind.PROCESSING}, "…processing…"),
    ):
        assert verdict(deep_learning(**changes)) == does_not_apply(reason)


def test_without_a_price_it_does_not_know() -> None:
    """Trainium is not sold in every region."""
    result = verdict(
        deep_learning(),
        market=Market(
            packaged.instance_types(),
            FixedPrices(hourly_usd={name: usd for name, usd in USD.items() if "trn1" not in name}),
        ),
    )
    assert result == cannot_judge("price_unknown")


def test_without_times_or_type_it_does_not_know() -> None:
    # A completed job whose answer has no times, a type of tomorrow.
    result = verdict(deep_learning(started_at=None, ended_at=None, training_s=None), market=MARKET)
    assert result == cannot_judge("times_missing")
    result = verdict(deep_learning(groups=(InstanceGroup("ml.g5.96xlarge", 1),)), market=MARKET)
    assert result == cannot_judge("type_unknown")


def test_hugging_face_has_its_own_container() -> None:
    """Of the same name, for Neuron."""
    result = verdict(
        deep_learning(image=f"{REGISTRY}/huggingface-pytorch-training:2.1"), market=MARKET
    )
    assert result == finds(
        fix=["ml.trn1.32xlarge", f"{REGISTRY}/huggingface-pytorch-training-neuronx:<tag>"]
    )
