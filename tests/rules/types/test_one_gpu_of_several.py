from __future__ import annotations

from sageaudit.domain.bill.finding import Clear
from tests.fakes.planned import KMEANS, XGBOOST, said, told

RULE = "one-gpu-of-several"
IMAGE, TYPE = "AlgorithmSpecification.TrainingImage", "ResourceConfig.InstanceType"
FOUR = {TYPE: "ml.g4dn.12xlarge", IMAGE: XGBOOST}


def test_xgboost_without_dask_uses_one_gpu() -> None:
    """The cheapest type with one such GPU is named with both rates."""
    finding = told(RULE, FOUR)
    assert "ml.g4dn.xlarge has one for $0.74 instead of $4.89" in finding.found.summary
    assert finding.found.fix[0].new == "ml.g4dn.xlarge"


def test_dask_uses_all_of_them() -> None:
    """A hyperparameter is a text."""
    assert said(RULE, FOUR | {"HyperParameters": {"use_dask_gpu_training": "true"}}) == Clear()


def test_one_gpu_or_none_is_clear() -> None:
    """There is nothing to leave idle."""
    assert said(RULE, FOUR | {TYPE: "ml.g4dn.xlarge"}) == Clear()
    assert said(RULE, {IMAGE: XGBOOST}) == Clear()


def test_k_means_uses_one_device() -> None:
    """On each instance."""
    assert told(RULE, FOUR | {IMAGE: KMEANS})
