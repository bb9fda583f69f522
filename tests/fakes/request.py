"""Looks up parameters of SageMaker's Create*Job requests in botocore's model."""

import re
from functools import cache

import botocore.session
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape

from sageaudit.domain.job.kinds import JobKind

_STEP = re.compile(r"(?P<member>\w+)(?:\[(?P<item>[^\]]+)\])?\Z")


@cache
def _model() -> ServiceModel:
    return botocore.session.get_session().get_service_model("sagemaker")


@cache
def has_parameter(kind: JobKind, path: str) -> bool:
    """Whether the request that creates a job of this kind has this parameter."""
    return _shape(kind, path) is not None


@cache
def is_free_text(path: str) -> bool:
    """Whether a request of any kind takes any text for this parameter (no enum, no number)."""
    shapes = [_shape(kind, path) for kind in JobKind]
    return any(shape and shape.type_name == "string" and not shape.enum for shape in shapes)


@cache
def is_number(path: str) -> bool:
    """Whether a request of any kind takes a number for this parameter."""
    shapes = [_shape(kind, path) for kind in JobKind]
    return any(shape and shape.type_name in {"integer", "long", "float"} for shape in shapes)


def _shape(kind: JobKind, path: str) -> Shape | None:
    """Returns the shape at a path: list items are `List[name]`, map values `Map.key`."""
    operation = {JobKind.TUNING: "CreateHyperParameterTuningJob"}.get(
        kind, f"Create{kind.spec.prefix}Job"
    )
    shape: Shape = _model().operation_model(operation).input_shape
    steps = path.split(".")
    while steps:
        if isinstance(shape, MapShape):
            return shape.value if shape.value.type_name == "string" and any(steps) else None
        step = _STEP.match(steps.pop(0))
        if step is None or not isinstance(shape, StructureShape):
            return None
        shape = shape.members.get(step["member"])
        if (step["item"] is not None) is not isinstance(shape, ListShape):
            return None
        if isinstance(shape, ListShape):
            shape = shape.member
    return shape
