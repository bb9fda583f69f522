"""What the Downloading phase of a training job contains, and when it is long."""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.phases import phase_share
from sageaudit.rules.phases.phase_share import DEAR_FROM, DEAR_OVER, PhaseShare

SHARE_FROM = api.Threshold(
    "share_from_percent", 20, "percent of billed seconds", "a fifth of the bill", "our choice"
)
OVER = api.Threshold(
    "over_s", 300, "seconds", "13 of 14 recorded image pulls take less", "recorded jobs"
)
PULL_AT_MOST = api.Threshold(
    "pull_at_most_s", 1800, "seconds", "six times the longest recorded image pull", "recorded jobs"
)
"""A phase whose message names the image may be the pull alone up to here, and not above."""
THRESHOLDS = (SHARE_FROM, OVER, DEAR_FROM, DEAR_OVER)
_IMAGE_PULL_INSIDE_SINCE = 2024
"""18 of 18 recorded jobs from 2024 on say "Downloading the training image" in this phase."""
_SDK_CHANNELS = frozenset({"code", "sm_drivers"})
"""ModelTrainer of the SageMaker Python SDK sends its script and its drivers as channels."""


def copied_channels(job: api.Job) -> list[api.InputChannel]:
    """The data channels that SageMaker copies from S3 before the code starts."""
    return [
        channel
        for channel in job.channels
        if channel.source is api.DataSource.S3
        and channel.mode == "File"
        and channel.name not in _SDK_CHANNELS
    ]


def holds_image_pull(job: api.Job) -> bool:
    """Is the image pull part of Downloading, by the job's own message or by its year?"""
    started_at = job.started_at
    recent = started_at is not None and started_at.year >= _IMAGE_PULL_INSIDE_SINCE
    return bool(job.image_pull_in_download) or recent


def may_be_all_image(case: api.JobCase) -> bool:
    """Does the phase's own message name the image, and is it short enough to be its pull alone?

    Each transition keeps its last message only, so that a copy of data beside it is not excluded.
    """
    seconds = case.job.phase_s("Downloading")
    short = seconds is not None and seconds <= case.limit(PULL_AT_MOST)
    return bool(case.job.image_pull_in_download) and short


def image_was_pulled(case: api.JobCase) -> str | None:
    """For advice about data: nothing shows that a copy took the time."""
    pulled = may_be_all_image(case)
    return "its message says that the image was pulled: see image-pull-heavy" if pulled else None


def large_share(case: api.JobCase, *names: str) -> PhaseShare | api.Clear | api.Unknown:
    """The share of Downloading, and of phases of these names, when it passes both thresholds."""
    return phase_share.large_share(
        case,
        "Downloading",
        *names,
        over_s=case.limit(OVER),
        from_percent=case.limit(SHARE_FROM),
    )


def evidence(share: PhaseShare) -> dict[str, api.Evidence]:
    """The evidence that all rules about Downloading have."""
    return {
        "downloading_s": share.seconds,
        "billed_s": share.billed_s,
        "downloading_percent": round(share.percent, 1),
    }
