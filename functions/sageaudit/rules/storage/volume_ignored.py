"""A volume size is set on a type with local storage, where it does nothing.

What it checks: A training job whose instances all have local NVMe storage, with a VolumeSizeInGB
    other than the 30 that SDK and console fill in. Off by default: it saves nothing, and holds for
    most GPU jobs.
Why it costs: Nothing: SageMaker provisions and bills no volume. But the space is not the expected
    one: the type's local disks fix it.
Saving: None.
When it is wrong: The same configuration also runs on types with EBS volumes, where the size is
    needed.
What to do: Remove the parameter, and check that the type's own storage holds the data. A warm pool
    is reused only by jobs with the same VolumeSizeInGB: change it in all of them. Processing jobs
    must give a size, and are not judged.
Sources: botocore, ResourceConfig.VolumeSizeInGB: "When using an ML instance with NVMe SSD volumes,
    SageMaker doesn't provision Amazon EBS General Purpose SSD (gp2) storage".
"""

from __future__ import annotations

from sageaudit.rules import api

DEFAULT = api.Threshold(
    "default_gb", 30, "GB an instance", "filled in by default: no choice", "SageMaker Python SDK"
)


def _no_size(case: api.JobCase) -> str | None:
    return None if case.job.volume_gb else "no VolumeSizeInGB is recorded"


@api.rule(
    id="SA502",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(DEFAULT,),
    not_applicable=(api.never_started, api.serverless, _no_size, api.has_volume),
    on=False,
    before_run=api.Severity.INFO,
    reads=("ResourceConfig.InstanceType", "ResourceConfig.VolumeSizeInGB"),
    on_for_requests=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Reads the request and the catalogue; needs no metrics."""
    job = case.job
    if api.on_ebs(case) is None:
        return api.Unknown("storage_unknown", "whether each instance gets a volume is not known")
    if job.volume_gb == case.limit(DEFAULT):
        return api.Clear()
    return api.Found(
        api.Confidence.DERIVED,
        api.Bucket.NONE,
        f"VolumeSizeInGB is {job.volume_gb} and has no effect on {job.instances}: the storage is "
        "local NVMe.",
        {"volume_gb": job.volume_gb, "instances": job.instances},
        fix=(api.Parameter(api.VOLUME_PATHS[job.kind], job.volume_gb, None),),
        caution=(
            "No volume is provisioned or billed, so nothing is saved. The space is that of the "
            "local disks; a warm pool is reused only by jobs with the same size."
        ),
    )
