"""Reads SageMaker's service model, which the AWS SDK for Python brings with it; no network."""

from __future__ import annotations

from functools import cache

import botocore
from botocore.loaders import Loader

from sageaudit.domain.request.validity import ApiModel


@cache
def api_model() -> ApiModel:
    """The model of the SDK that is installed: a newer SDK knows newer parameters."""
    model = Loader().load_service_model("sagemaker", "service-2")
    return ApiModel(model["shapes"], f"botocore {botocore.__version__}")


def instance_types() -> frozenset[str]:
    """The instance types that jobs can have."""
    shapes = api_model().shapes
    kinds = ("Training", "Processing", "Transform")
    return frozenset().union(*(shapes[f"{kind}InstanceType"]["enum"] for kind in kinds))
