"""A File-mode download takes a large share of the billed time.

What it checks: A data channel reads S3 in File mode, which copies the data to every instance before
    the code starts. Downloading takes over 5 minutes and at least 20% of the billed phases, or over
    10 minutes that cost at least $10. The SDK's own channels `code` and `sm_drivers` do not count.
    If the phase lasts at most 30 minutes and its message names the image pull, image-pull-heavy
    judges it instead.
Why it costs: Downloading is billed like Training, and all instances wait for the copy.
Saving: Possible: 40 to 60% of the phase, without 5 minutes for an image pull. FastFile and Pipe
    move the reads into Training, where some of them run in parallel with the work.
When it is wrong: Since 2024 Downloading includes the image pull, which SageMaker does not report
    separately.
    - FastFile may be slower for code that opens many small files or reads in random order. It
      cannot read an augmented manifest.
    - A `model` channel (incremental training) must stay in File mode.
What to do: Use FastFile mode, or Pipe for RecordIO. A file system (FSx for Lustre, EFS) adds its
    own cost. If the image is large, use a smaller one.
Sources: AWS blog "Analyze Amazon SageMaker spend", part 4: charged phases; File, FastFile and Pipe
    mode. botocore, AlgorithmSpecification.TrainingInputMode and Channel.InputMode. 40 to 60% are
    our choice.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.rules import api
from sageaudit.rules.phases import phase_share as phases

_MODEL_CHANNEL = "model"
_SAVED_SHARES = (Decimal("0.4"), Decimal("0.6"))
"""The shares of the phase that count as the saving and as the best case. Our choice."""


def _no_copy_reason(case: api.JobCase) -> str | None:
    channels = phases.copied_channels(case.job)
    return None if channels else "no data channel reads S3 in File mode"


@api.rule(
    id="SA101",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=phases.DOWNLOAD_THRESHOLDS,
    not_applicable=(api.serverless_reason, _no_copy_reason, phases.image_pull_reason),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges only the phases, not the metrics."""
    share = phases.find_large_download(case)
    if not isinstance(share, phases.PhaseShare):
        return share
    channels = phases.copied_channels(case.job)
    has_pull = phases.has_image_pull_in_download(case.job)
    cause = "includes copying the data and pulling the image" if has_pull else "is the data copy"
    data_channels = [channel for channel in channels if channel.name != _MODEL_CHANNEL]
    pipe_fix = phases.input_mode_fix(data_channels, "Pipe")
    pull_s = Decimal(str(case.threshold(phases.DOWNLOAD_MIN_LENGTH))) if has_pull else Decimal(0)
    low, high = (
        api.CutPhase("Downloading", share_saved * (share.seconds - pull_s))
        for share_saved in _SAVED_SHARES
    )
    return api.possible_saving(
        f"Downloading took {share.text}. This {cause}, before the code starts.",
        {**phases.download_evidence(share), "file_mode_channels": len(channels)},
        fix=phases.input_mode_fix(data_channels, "FastFile"),
        alternatives=(pipe_fix,) if pipe_fix else (),
        change=low,
        best=high,
        caution=(
            "The data is then read during Training, so try it on one run first. FSx or EFS adds "
            "its own cost."
        ),
    )
