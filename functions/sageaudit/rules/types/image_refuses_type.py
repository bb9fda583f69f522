"""The request's image does not work on the GPU of its instances.

What it checks: One of these is true:
    - The image's name gives its CUDA version, which does not support the GPU of the type.
    - The image's tag says that it is for CPUs.
    - The image is a built-in algorithm that uses no GPU, or one that needs a GPU, on a type without
      one.
Why it costs: The job fails after the image was pulled and the data downloaded, both of which are
    billed. Or the job pays for a GPU that the algorithm does not use.
Saving: None: how much is lost depends on when the job fails.
When it is wrong: The image may have another CUDA version than its name says. An algorithm may run
    on an instance family that its guide (last published in 2023) does not name.
What to do: Take an image for the GPU, or a type for which the image was built.
Sources: CUDA and PyTorch documentation, and the SageMaker guide of each algorithm, as listed in
    functions/sageaudit/domain/resize/type_vetoes.py.
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
    """Compares the image's name with the GPU of the type in the catalogue."""
    types = case.instance_types
    if not types or None in types:
        return api.Unknown("type_unknown", "the instance type is not in the catalogue")
    for instance_type in types:
        if instance_type and (refusal := own_image_refusal(case.job, instance_type)):
            return api.measured_fact(
                f"The image does not fit {instance_type.name}: {refusal}.",
                {"instance_type": instance_type.name, "why": refusal},
                fix=(
                    api.Parameter(
                        api.IMAGE_PATHS[case.job.kind], case.job.image, "<an image for this type>"
                    ),
                ),
                caution="Judged by the image's name alone.",
            )
    return api.Clear()
