"""SageMaker's built-in algorithms by their image."""

from __future__ import annotations

import pytest

from sageaudit.domain.job.image import builtin_algorithm


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("811284229777.dkr.ecr.us-east-1/image-classification:1", "Image Classification"),
        ("685385470294.dkr.ecr.eu-west-1/object-detection:latest", "Object Detection"),
        ("522234722520.dkr.ecr.us-east-1/forecasting-deepar:1", "DeepAR"),
        ("141502667606.dkr.ecr.eu-west-1/sagemaker-xgboost:1.5-1", "XGBoost 1.5-1"),
        ("766337827248.dkr.ecr.us-east-1/lda:1", "LDA"),
    ],
)
def test_an_image_of_awss_registries_is_an_algorithm(image: str, name: str) -> None:
    """In each region's account."""
    found = builtin_algorithm(image.replace("/", ".amazonaws.com/"))
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "image",
    [
        "111122223333.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1",
        "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1",
        "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.1-gpu-py310",
        "kmeans:1",
        None,
    ],
)
def test_any_other_image_is_none(image: str | None) -> None:
    """A mirror in another account may have been changed; frameworks are no algorithms."""
    assert builtin_algorithm(image) is None


@pytest.mark.parametrize(
    ("version", "families"),
    [
        ("1", set()),
        ("latest", set()),
        ("0.90-2", set()),
        ("1.0-1", set()),
        ("1.2-1", {"p2", "p3"}),
        ("1.2-2", {"p2", "p3", "g4dn", "g5"}),
        ("1.5-1", {"p2", "p3", "g4dn", "g5"}),
        ("1.7-1", {"p3", "g4dn", "g5"}),
        ("3.0-5", {"p3", "g4dn", "g5"}),
        ("1.7-1-cpu-py3", {"p3", "g4dn", "g5"}),
    ],
)
def test_xgboosts_gpu_families_go_by_its_version(version: str, families: set[str]) -> None:
    """CPU only until 1.0-1."""
    image = f"683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:{version}"
    found = builtin_algorithm(image)
    assert found is not None
    assert found.families == families
    assert found.cpu_only == (not families)
