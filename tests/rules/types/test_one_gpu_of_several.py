from functools import partial

from tests.fakes.planned import KMEANS, XGBOOST, request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, finds

RULE = "one-gpu-of-several"
IMAGE, TYPE = "AlgorithmSpecification.TrainingImage", "ResourceConfig.InstanceType"
FOUR = {TYPE: "ml.g4dn.12xlarge", IMAGE: XGBOOST}


verdict = partial(request_answer, RULE)


def test_xgboost_without_dask_uses_one_gpu() -> None:
    # The cheapest type with one such GPU is named with both rates.
    assert verdict(FOUR) == finds(
        "…ml.g4dn.xlarge has one for $0.736 instead of $4.89…", fix=["ml.g4dn.xlarge"]
    )


def test_dask_uses_all_of_them() -> None:
    """A hyperparameter is a text."""
    assert verdict(FOUR | {"HyperParameters": {"use_dask_gpu_training": "true"}}) == CLEAR


def test_one_gpu_or_none_is_clear() -> None:
    """There is nothing to leave idle."""
    assert verdict(FOUR | {TYPE: "ml.g4dn.xlarge"}) == CLEAR
    assert verdict({IMAGE: XGBOOST}) == CLEAR


def test_k_means_uses_one_device() -> None:
    """On each instance."""
    assert verdict(FOUR | {IMAGE: KMEANS}) == FOUND
