"""The request's image is not for the GPU of its instances.

What it checks: The image's name says its CUDA version, which has no code for the GPU of the type;
    or its tag says that it is for CPUs; or it is a built-in algorithm that uses no GPU, or that
    does not train without one.
Why it costs: The job fails after the image was pulled and the data downloaded, both of which are
    billed; or a GPU is paid for that the algorithm does not use.
Saving: None: how much is lost depends on when it fails.
When it is wrong: An image whose name says another CUDA version than it has. An algorithm may run on
    a family that its guide, whose last public text is of 2023, does not name.
What to do: Take an image for the GPU, or a type that the image is for.
Sources: docs of CUDA and PyTorch, SageMaker guide of each algorithm: `domain/resize/type_vetoes`.
"""

from __future__ import annotations

from sageaudit.domain.resize.type_vetoes import own_image_refusal
from sageaudit.rules import api


@api.rule(
    id="SA307",
    scope=api.RequestCase,
    kinds=set(api.IMAGE_PATHS),
    request_severity=api.Severity.HIGH,
    required_parameters=(*api.IMAGE_PATHS.values(), *api.TYPE_PARAMETERS),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Compares the image's name with the catalogue."""
    types = case.instance_types
    if not types or None in types:
        return api.Unknown("type_unknown", "the instance type is not in the catalogue")
    for instance_type in types:
        if instance_type and (why := own_image_refusal(case.job, instance_type)):
            return api.measured_fact(
                f"{instance_type.name} and the image do not fit: {why}.",
                {"instance_type": instance_type.name, "why": why},
                fix=(
                    api.Parameter(
                        api.IMAGE_PATHS[case.job.kind], case.job.image, "<an image for this type>"
                    ),
                ),
                caution="By the image's name alone.",
            )
    return api.Clear()
