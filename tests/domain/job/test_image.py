"""What an image's name shows: CUDA toolkit, PyTorch version, built-in algorithm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.addresses import Version, builtin_algorithm, cuda, pytorch, tag

DLC = "763104351884.dkr.ecr.us-east-1.amazonaws.com/"


@pytest.mark.parametrize(
    ("image", "toolkit"),
    [
        (f"{DLC}pytorch-training:2.3.0-gpu-py311-cu121-ubuntu20.04-sagemaker", (12, 1)),
        (f"{DLC}huggingface-pytorch-training:2.1.0-transformers4.36.0-gpu-py310-cu121", (12, 1)),
        (f"{DLC}pytorch-training:2.1-gpu-py310", (12, 1)),
        (f"{DLC}pytorch-training:1.4-gpu-py3", (10, 1)),
        (f"{DLC}tensorflow-training:2.13.0-gpu-py310", (11, 8)),
        (f"{DLC}mxnet-training:1.6.0-gpu-py3", (10, 1)),
        (f"{DLC}tensorflow-training:2.3.0-gpu-py37", None),
        (f"{DLC}pytorch-training:2.1-cpu-py310", None),
        (f"{DLC}pytorch-inference:2.1-gpu-py310", None),
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com/train-cuda11.1:v3", (11, 1)),
        ("pytorch/pytorch:1.13.1-cuda11.6-cudnn8-runtime", (11, 6)),
        ("nvidia/cuda:11.8.0-cudnn8-devel-ubuntu22.04", (11, 8)),
        ("registry.example:5000/team/cu92:latest", (9, 2)),
        ("team/focus101:1", None),
        ("team/train:cu12", None),
        ("team/train:cuda12", None),
        ("team/train@sha256:cu121cu121", None),
        (None, None),
    ],
)
def test_the_toolkit_is_in_the_name_or_follows_from_the_framework(
    image: str | None, toolkit: Version | None
) -> None:
    """A name without a toolkit, or with one of two possible ones, gives an unknown toolkit."""
    assert cuda(image) == toolkit


def test_the_pytorch_version_is_that_of_a_pytorch_image() -> None:
    """Other images have none, even if their tag begins with a version."""
    assert pytorch(f"{DLC}pytorch-training:2.11.0-gpu-py312-cu130") == (2, 11)
    assert pytorch(f"{DLC}tensorflow-training:2.13.0-gpu-py310") is None
    assert pytorch(f"{DLC}pytorch-training@sha256:12") is None
    assert tag("registry.example:5000/team/train") == ""


@given(st.text(max_size=60))
def test_any_text_has_a_toolkit_or_none(image: str) -> None:
    """Names may be any text."""
    result = cuda(image)
    assert result is None or 0 <= result[1] <= 9


@pytest.mark.parametrize(
    ("image", "name"),
    [
        (
            "811284229777.dkr.ecr.us-east-1.amazonaws.com/image-classification:1",
            "Image Classification",
        ),
        (
            "685385470294.dkr.ecr.eu-west-1.amazonaws.com/object-detection:latest",
            "Object Detection",
        ),
        ("522234722520.dkr.ecr.us-east-1.amazonaws.com/forecasting-deepar:1", "DeepAR"),
        ("141502667606.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-xgboost:1.5-1", "XGBoost 1.5-1"),
        ("766337827248.dkr.ecr.us-east-1.amazonaws.com/lda:1", "LDA"),
        # a mirror in another account may have been changed; frameworks are not algorithms
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1", None),
        ("683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1", None),
        (f"{DLC}pytorch-training:2.1-gpu-py310", None),
        ("kmeans:1", None),
        (None, None),
    ],
)
def test_an_image_of_awss_registries_is_an_algorithm(image: str | None, name: str | None) -> None:
    """In AWS's account of each region. Other images have none."""
    result = builtin_algorithm(image)
    assert (result and result.name) == name


@pytest.mark.parametrize(
    ("version", "families"),
    [
        *((version, set()) for version in ("1", "latest", "0.90-2", "1.0-1")),
        ("1.2-1", {"p2", "p3"}),
        *((version, {"p2", "p3", "g4dn", "g5"}) for version in ("1.2-2", "1.5-1")),
        *((version, {"p3", "g4dn", "g5"}) for version in ("1.7-1", "3.0-5", "1.7-1-cpu-py3")),
    ],
)
def test_the_gpu_families_of_xgboost_depend_on_its_version(
    version: str, families: set[str]
) -> None:
    """CPU only until 1.0-1."""
    image = f"683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:{version}"
    result = builtin_algorithm(image)
    assert result is not None
    assert result.families == families
    assert result.is_cpu_only == (not families)
