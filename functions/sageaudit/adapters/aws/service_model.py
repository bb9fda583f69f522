"""Reads SageMaker's API model from the installed SDK, for commands that check requests.

The functions do not need it, and their SDK has only a part of it.
"""

from __future__ import annotations

from functools import cache

import botocore
from botocore.loaders import Loader

from sageaudit.domain.request.validity import ApiModel


@cache
def api_model() -> ApiModel:
    """Returns SageMaker's API model from the installed SDK."""
    model = Loader().load_service_model("sagemaker", "service-2")
    return ApiModel(model["shapes"], f"botocore {botocore.__version__}")


def instance_types() -> frozenset[str]:
    """Returns the instance types that SageMaker's API accepts for jobs."""
    shapes = api_model().shapes
    kinds = ("Training", "Processing", "Transform")
    return frozenset().union(*(shapes[f"{kind}InstanceType"]["enum"] for kind in kinds))
