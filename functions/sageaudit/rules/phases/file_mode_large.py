"""File mode on a volume that is made for very much data.

What it checks: A channel from S3 in File mode, and VolumeSizeInGB of 1,000 or more.
Why it costs: File mode copies all data before the first step, and the instances are billed
    meanwhile: at 1 GB a second a terabyte takes 17 minutes on each of them.
Saving: None: the size of the data is not in the request.
When it is wrong: Code that reads each file many times, or at random places; a volume that is for
    checkpoints or temporary files.
What to do: InputMode FastFile, which starts at once and reads what is asked for; then a smaller
    volume.
Sources: SageMaker guide, access training data: File mode "downloads training data to a local
    directory", FastFile "streams". The 1,000 GB are our choice.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.phases.phase_share import copied_channels, input_mode_fix

MIN_VOLUME = api.Threshold("min_volume_gb", 1000, "GB an instance", "made for much data")
_MODES = ("AlgorithmSpecification.TrainingInputMode", "InputDataConfig[].InputMode")


@api.rule(
    id="SA107",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_VOLUME,),
    request_severity=api.Severity.LOW,
    required_parameters=(api.VOLUME_PATHS[api.JobKind.TRAINING], *_MODES),
)
def check(case: api.RequestCase) -> api.Outcome:
    """By two settings."""
    job = case.job
    copied = copied_channels(job)
    if not copied or (job.volume_gb or 0) < case.threshold(MIN_VOLUME):
        return api.Clear()
    names = ", ".join(channel.name for channel in copied)
    return api.recommendation(
        f"File mode will copy all of {names} before the first step; VolumeSizeInGB is "
        f"{job.volume_gb}.",
        {"volume_gb": job.volume_gb, "channels": len(copied)},
        fix=input_mode_fix(copied, "FastFile"),
        caution="How large the data is, is not in the request.",
    )
