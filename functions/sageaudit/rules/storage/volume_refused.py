"""A volume parameter that AWS refuses on the instances of the request.

What it checks: A training request whose types all need an EBS volume, without VolumeSizeInGB; or a
    request whose types all have local NVMe storage, with VolumeKmsKeyId.
Why it costs: Nothing: AWS refuses the request.
Saving: None.
When it is wrong: A type that the catalogue does not know is left out.
What to do: Set VolumeSizeInGB to what data and model need; remove VolumeKmsKeyId, since local
    storage is encrypted by the instance.
Sources: botocore, ResourceConfig: "When using an ML instance with the EBS-only storage option and
    without instance storage, you must define the size of EBS volume"; VolumeKmsKeyId: "You can't
    request a VolumeKmsKeyId when using an instance type with local storage".
"""

from __future__ import annotations

from sageaudit.rules import api

_CONFIG = {
    api.JobKind.TRAINING: "ResourceConfig",
    api.JobKind.PROCESSING: "ProcessingResources.ClusterConfig",
    api.JobKind.TRANSFORM: "TransformResources",
}


@api.rule(
    id="SA503",
    scope=api.RequestCase,
    kinds=set(_CONFIG),
    before_run=api.Severity.HIGH,
    reads=api.TYPE_READS,
)
def check(case: api.RequestCase) -> api.Outcome:
    """Reads the request and the catalogue."""
    config, kind = _CONFIG[case.job.kind], case.job.kind
    volumes = {None if found is None else found.ebs_billed for found in case.types}
    size, key = f"{config}.VolumeSizeInGB", f"{config}.VolumeKmsKeyId"
    if volumes == {True} and kind is api.JobKind.TRAINING and not case.request.value(size):
        return api.fact(
            f"{case.job.instances} needs an EBS volume and VolumeSizeInGB is missing: AWS refuses "
            "the request.",
            {"instances": case.job.instances},
            fix=(api.Parameter(size, case.request.value(size), 30),),
            caution="30 GB are what the SageMaker SDK fills in: data and model must fit.",
        )
    if volumes == {False} and case.request.value(key):
        return api.fact(
            f"{case.job.instances} has local storage, which takes no VolumeKmsKeyId: AWS refuses "
            "the request.",
            {"instances": case.job.instances},
            fix=(api.Parameter(key, "set", None),),
            caution="Local storage is encrypted by the instance itself.",
        )
    return api.Clear()
