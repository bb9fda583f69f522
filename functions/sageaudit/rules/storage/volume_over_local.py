"""VolumeSizeInGB is larger than the local storage of the type, and no volume is made.

What it checks: A request whose types all have local NVMe storage of a known size, with more
    VolumeSizeInGB than that.
Why it costs: SageMaker provisions no volume for such types. A training job that needs the size
    fails when its disk is full, after it was billed; AWS refuses a processing request.
Saving: None: what a failed run would cost is not known.
When it is wrong: Where the size was only left over from another type, and the data is small.
What to do: A larger size of the type, FastFile mode, or a type with EBS volumes.
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
    """Reads the request and the catalogue."""
    job, path = case.job, api.VOLUME_PATHS[case.job.kind]
    sizes = [(found.local_gb if found else None) or 0 for found in case.instance_types]
    local_gb = min(sizes, default=0)
    if not local_gb or job.volume_gb is None or job.volume_gb <= local_gb:
        return api.Clear()
    processing = job.kind is api.JobKind.PROCESSING
    end = "AWS refuses the request" if processing else "there is no volume beside it"
    return api.measured_fact(
        f"VolumeSizeInGB is {job.volume_gb}, and each of {job.instances} has {local_gb} GB "
        f"of local storage: {end}.",
        {"volume_gb": job.volume_gb, "local_gb": local_gb},
        fix=(api.Parameter(path, job.volume_gb, local_gb),),
        caution="Where the data needs more: a larger size, FastFile, or a type with EBS volumes.",
    )
