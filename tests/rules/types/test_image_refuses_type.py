from functools import partial

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import SKLEARN, XGBOOST, request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, finds

RULE = "image-refuses-type"
IMAGE, TYPE = "AlgorithmSpecification.TrainingImage", "ResourceConfig.InstanceType"
GPU = {TYPE: "ml.g5.2xlarge"}


verdict = partial(request_answer, RULE)


def test_an_image_for_cpus_uses_no_gpu() -> None:
    """Its tag says so."""
    assert verdict(GPU | {IMAGE: SKLEARN}) == finds("…for CPUs…")
    assert verdict({IMAGE: SKLEARN}) == CLEAR


def test_a_built_in_algorithm_without_a_gpu_is_found_on_one() -> None:
    """XGBoost has no GPU until 1.2-1."""
    assert verdict(GPU | {IMAGE: XGBOOST.replace("1.7-1", "0.90-2")}) == finds("…uses no GPU…")
    assert verdict(GPU | {IMAGE: XGBOOST}) == CLEAR


def test_a_processing_image_is_read_too() -> None:
    """scikit-learn on a GPU."""
    result = verdict(
        {"ProcessingResources.ClusterConfig.InstanceType": "ml.g5.2xlarge"}, kind=JobKind.PROCESSING
    )
    assert result == FOUND
    assert verdict(kind=JobKind.PROCESSING) == CLEAR


def test_a_type_outside_the_catalogue_is_not_judged() -> None:
    """Whether it has a GPU is not known."""
    assert verdict({TYPE: "ml.g9.2xlarge"}) == cannot_judge("…")
