from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, Unknown
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import SKLEARN, XGBOOST, said, told

RULE = "image-refuses-type"
IMAGE, TYPE = "AlgorithmSpecification.TrainingImage", "ResourceConfig.InstanceType"
GPU = {TYPE: "ml.g5.2xlarge"}


def test_an_image_for_cpus_uses_no_gpu() -> None:
    """Its tag says so."""
    finding = told(RULE, GPU | {IMAGE: SKLEARN})
    assert "for CPUs" in finding.found.summary
    assert said(RULE, {IMAGE: SKLEARN}) == Clear()


def test_a_built_in_algorithm_without_a_gpu_is_found_on_one() -> None:
    """XGBoost has no GPU until 1.2-1."""
    old = XGBOOST.replace("1.7-1", "0.90-2")
    assert "uses no GPU" in told(RULE, GPU | {IMAGE: old}).found.summary
    assert said(RULE, GPU | {IMAGE: XGBOOST}) == Clear()


def test_a_processing_image_is_read_too() -> None:
    """scikit-learn on a GPU."""
    changes = {"ProcessingResources.ClusterConfig.InstanceType": "ml.g5.2xlarge"}
    assert told(RULE, changes, kind=JobKind.PROCESSING)
    assert said(RULE, kind=JobKind.PROCESSING) == Clear()


def test_a_type_outside_the_catalogue_is_not_judged() -> None:
    """Whether it has a GPU is not known."""
    assert isinstance(said(RULE, {TYPE: "ml.g9.2xlarge"}), Unknown)
