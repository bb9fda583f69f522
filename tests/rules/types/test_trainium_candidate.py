from __future__ import annotations

from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import ACCOUNT, FixedPrices, ran
from tests.fakes.judging import found, not_applicable, outcome, priced

RULE = "trainium-candidate"
REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
USD = {
    "ml.g5.2xlarge": "1.515",
    "ml.g5.12xlarge": "7.09",
    "ml.p4d.24xlarge": "25.25",
    "ml.trn1.2xlarge": "1.55",
    "ml.trn1.32xlarge": "24.73",
}
MARKET = Market(packaged.types(), FixedPrices(hourly_usd=USD))


def long(seconds: int = 21_600, instance: str = "ml.g5.12xlarge", **changes: Any) -> Job:
    """Six hours of PyTorch in AWS's own container."""
    plain: dict[str, Any] = {"hints": Hints(deep_learning=True)}
    return ran(seconds, instance, **plain | changes)


def test_a_long_run_is_worth_a_trial() -> None:
    """24.73 / 7.09 = 3.49; both parameters change together."""
    finding = priced(RULE, long(), on=MARKET)
    assert finding.found.summary == (
        "6 h of deep learning on 1 x ml.g5.12xlarge: worth a trial on ml.trn1.32xlarge, "
        "which costs less if it is over 3.49 times as fast."
    )
    assert [(fix.path, fix.old, fix.new) for fix in finding.found.fix] == [
        ("ResourceConfig.InstanceType", "ml.g5.12xlarge", "ml.trn1.32xlarge"),
        (
            "AlgorithmSpecification.TrainingImage",
            f"{REGISTRY}/pytorch-training:2.0",
            f"{REGISTRY}/pytorch-training-neuronx:<tag>",
        ),
    ]


def test_it_has_no_dollars() -> None:
    """A trial, in no sum."""
    finding = priced(RULE, long(), on=MARKET)
    assert (finding.saving_usd, finding.range_usd) == (None, None)
    assert (finding.found.bucket, finding.found.confidence) == (
        Bucket.POSSIBLE,
        Confidence.HEURISTIC,
    )
    assert (finding.found.caution or "").startswith("How fast ")


def test_exactly_four_hours_are_long() -> None:
    """One second less is not."""
    assert isinstance(outcome(RULE, long(14_400), on=MARKET), Found)
    assert outcome(RULE, long(14_399), on=MARKET) == Clear()


@pytest.mark.parametrize(
    ("instance", "target"),
    [
        ("ml.g5.2xlarge", "ml.trn1.2xlarge"),
        ("ml.g5.12xlarge", "ml.trn1.32xlarge"),
        ("ml.p4d.24xlarge", "ml.trn1.32xlarge"),
    ],
)
def test_one_gpu_goes_to_one_chip(instance: str, target: str) -> None:
    """Several go to the sixteen that belong together."""
    assert found(RULE, long(instance=instance), on=MARKET).fix[0].new == target


def test_hugging_face_has_its_own_container() -> None:
    """Of the same name, for Neuron."""
    image = f"{REGISTRY}/huggingface-pytorch-training:2.1"
    [_, fix] = found(RULE, long(image=image), on=MARKET).fix
    assert fix.new == f"{REGISTRY}/huggingface-pytorch-training-neuronx:<tag>"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"groups": (InstanceGroup("ml.g6.12xlarge", 1),)}, "g5 and p4"),
        ({"groups": (InstanceGroup("ml.trn1.32xlarge", 1),)}, "g5 and p4"),
        ({"groups": (InstanceGroup("ml.g5.12xlarge", 1),) * 2}, "g5 and p4"),
        ({"groups": ()}, "g5 and p4"),
        ({"purchase": Purchase.TRAINING_PLAN}, "prepaid"),
        ({"status": "Failed"}, "complete"),
        ({"hints": Hints()}, "container"),
        ({"image": f"{REGISTRY}/tensorflow-training:2.0"}, "container"),
        ({"image": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.0"}, "container"),
        ({"image": None}, "container"),
        ({"kind": JobKind.PROCESSING}, "processing"),
    ],
)
def test_where_trainium_is_no_way_it_says_nothing(changes: dict[str, Any], why: str) -> None:
    """And why."""
    assert why in not_applicable(RULE, long(**changes))


def test_without_a_price_it_does_not_know() -> None:
    """Trainium is not sold in every region."""
    rates = {name: usd for name, usd in USD.items() if "trn1" not in name}
    answer = outcome(RULE, long(), on=Market(packaged.types(), FixedPrices(hourly_usd=rates)))
    assert isinstance(answer, Unknown)
    assert answer.code == "price_unknown"
    nowhere = outcome(RULE, long(region=None), on=MARKET)
    assert isinstance(nowhere, Unknown)


def test_without_times_or_type_it_does_not_know() -> None:
    """A completed job whose answer has no times, a type of tomorrow."""
    timeless = long(started_at=None, ended_at=None, training_s=None)
    for run, code in (
        (timeless, "times_missing"),
        (long(groups=(InstanceGroup("ml.g5.96xlarge", 1),)), "type_unknown"),
    ):
        answer = outcome(RULE, run, on=MARKET)
        assert isinstance(answer, Unknown)
        assert answer.code == code
