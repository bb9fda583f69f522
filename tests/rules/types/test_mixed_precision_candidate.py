from __future__ import annotations

from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, InstanceGroup, Job
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from tests.fakes.jobs import FixedPrices, ran, series
from tests.fakes.judging import found, not_applicable, outcome, priced

RULE = "mixed-precision-candidate"
MARKET = Market(packaged.types(), FixedPrices())


def hour(instance: str = "ml.g5.2xlarge", seconds: int = 3600, **changes: Any) -> Job:
    """An hour of deep learning without a sign of its precision."""
    plain: dict[str, Any] = {"hints": Hints(deep_learning=True)}
    return ran(seconds, instance, **plain | changes)


def busy(run: Job, gpu: float = 80, minutes: int = 60) -> Measurements:
    """Even use of the GPU alone."""
    return measure(
        run,
        [series(Metric.GPU, [gpu * packaged.types()[run.groups[0].instance_type].gpus] * minutes)],
        packaged.types(),
        absent=Missing("metric_missing", "no points"),
    )


def test_a_busy_gpu_without_a_sign_is_worth_a_trial() -> None:
    """No dollars, and in no sum."""
    run = hour()
    finding = priced(RULE, run, busy(run), on=MARKET)
    assert finding.found.summary == (
        "The GPU averaged 80% over 1 h on 1 x ml.g5.2xlarge, with no sign of 16-bit "
        "precision: bf16 is worth a trial."
    )
    assert finding.saving_usd is None
    assert (finding.found.bucket, finding.found.confidence) == (
        Bucket.POSSIBLE,
        Confidence.HEURISTIC,
    )
    assert (finding.found.caution or "").startswith("The code may set ")


def test_exactly_half_busy_is_busy() -> None:
    """A thousandth less is waiting for something else."""
    run = hour()
    assert isinstance(outcome(RULE, run, busy(run, 50), on=MARKET), Found)
    assert outcome(RULE, run, busy(run, 49.9), on=MARKET) == Clear()


@pytest.mark.parametrize(
    ("instance", "precision"),
    [("ml.g4dn.xlarge", "fp16"), ("ml.p3.2xlarge", "fp16"), ("ml.p4d.24xlarge", "bf16")],
)
def test_the_precision_is_one_that_the_gpu_has(instance: str, precision: str) -> None:
    """bf16 came with Ampere; Hugging Face's argument has the same name."""
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:2.1"
    run = hour(instance, image=image)
    [fix] = found(RULE, run, busy(run), on=MARKET).fix
    assert (fix.path, fix.old, fix.new) == (f"HyperParameters.{precision}", None, "true")


def test_plain_pytorch_has_no_parameter_for_it() -> None:
    """The change is one of the code."""
    run = hour()
    assert found(RULE, run, busy(run), on=MARKET).fix == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"hints": Hints()}, "deep-learning"),
        ({"hints": Hints(deep_learning=True, mixed_precision=True)}, "16-bit"),
        ({"groups": (InstanceGroup("ml.p2.xlarge", 1),)}, "tensor cores"),
        ({"groups": (InstanceGroup("ml.m5.xlarge", 1),)}, "tensor cores"),
    ],
)
def test_where_there_is_nothing_to_try_it_says_so(changes: dict[str, Any], why: str) -> None:
    """And why; a job that took the advice shows the sign."""
    run = hour(**changes)
    answer = outcome(RULE, run, busy(run), on=MARKET)
    assert why in getattr(answer, "reason", "")


def test_not_applicable_needs_no_metrics() -> None:
    """What was given to the job suffices."""
    assert "16-bit" in not_applicable(
        RULE, hour(hints=Hints(deep_learning=True, mixed_precision=True))
    )
