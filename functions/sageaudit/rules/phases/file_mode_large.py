"""File mode copies the data to a volume that is sized for very much of it.

What it checks: A channel reads S3 in File mode, and VolumeSizeInGB is 1,000 or more.
Why it costs: File mode copies all data before the first step, and the instances are billed
    meanwhile. At 1 GB a second, a terabyte takes 17 minutes on each of them.
Saving: None: the request does not say how large the data is.
When it is wrong: The code reads each file many times, or at random positions. Or the volume is for
    checkpoints or temporary files.
What to do: Set InputMode to FastFile, which starts immediately and reads only what the code asks
    for. Then take a smaller volume.
Sources: SageMaker guide, access training data: File mode "downloads training data to a local
    directory", FastFile "streams". The 1,000 GB are our choice.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.phases.phase_share import copied_channels, input_mode_fix

MIN_VOLUME = api.Threshold("min_volume_gb", 1000, "GB per instance", "sized for much data")
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
    """Judges two settings of the request."""
    job = case.job
    channels = copied_channels(job)
    if not channels or (job.volume_gb or 0) < case.threshold(MIN_VOLUME):
        return api.Clear()
    names_text = ", ".join(channel.name for channel in channels)
    return api.recommendation(
        f"File mode will copy all of {names_text} before the first step; VolumeSizeInGB is "
        f"{job.volume_gb}.",
        {"volume_gb": job.volume_gb, "channels": len(channels)},
        fix=input_mode_fix(channels, "FastFile"),
        caution="The request does not say how large the data is.",
    )
