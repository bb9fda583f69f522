"""VolumeSizeInGB is larger than the type's local storage, and SageMaker provisions no volume.

What it checks: All types of the request have local NVMe storage of a known size, and VolumeSizeInGB
    is larger than that.
Why it costs: SageMaker provisions no volume for such types. A training job that needs the space
    fails when its disk is full, and is billed until then. AWS refuses a processing request.
Saving: None: it is not known what a failed run would cost.
When it is wrong: The size may be left over from another type, and the data small.
What to do: Take a larger size of the type, a type with EBS volumes, or FastFile mode.
Sources: botocore, ResourceConfig.VolumeSizeInGB: "Available storage is fixed to the NVMe-type
    instance's storage capacity"; ProcessingClusterConfig: "You can't request a VolumeSizeInGB
    greater than the total size of the local instance storage". Sizes: EC2 DescribeInstanceTypes.
"""

from __future__ import annotations

from sageaudit.rules import api


@api.rule(
    id="SA504",
    scope=api.RequestCase,
    kinds=set(api.VOLUME_PATHS),
    request_severity=api.Severity.HIGH,
    required_parameters=(*api.VOLUME_PATHS.values(), *api.TYPE_PARAMETERS),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Compares VolumeSizeInGB with the local storage of the types in the catalogue."""
    job, path = case.job, api.VOLUME_PATHS[case.job.kind]
    sizes = [
        (instance_type.local_gb if instance_type else None) or 0
        for instance_type in case.instance_types
    ]
    local_gb = min(sizes, default=0)
    if not local_gb or job.volume_gb is None or job.volume_gb <= local_gb:
        return api.Clear()
    is_processing = job.kind is api.JobKind.PROCESSING
    consequence_text = "AWS refuses the request" if is_processing else "SageMaker adds no volume"
    return api.measured_fact(
        f"VolumeSizeInGB is {job.volume_gb}, and each of {job.instances} has {local_gb} GB "
        f"of local storage: {consequence_text}.",
        {"volume_gb": job.volume_gb, "local_gb": local_gb},
        fix=(api.Parameter(path, job.volume_gb, local_gb),),
        caution=(
            "If the data needs more, take a larger size, a type with EBS volumes, or FastFile mode."
        ),
    )
