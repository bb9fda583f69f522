"""Pulling the container image, or mounting the data, takes a large share of the billed time.

What it checks: Downloading takes over 5 minutes and at least 20% of the billed phases, or over 10
    minutes that cost at least $10. The phase includes the image pull: its message says so, or the
    job started in 2024 or later.
    - If a data channel is copied in File mode, download-dominates judges the phase. This rule
      judges it only if it lasts up to 30 minutes and its message names the image.
    - Without such a channel, a phase of more than 30 minutes cannot be an image pull: file systems
      were mounted, or data was fetched. Each attempt of a run has its own 30 minutes, because a
      restart pulls the image again.
Why it costs: The phase is billed like Training, on every instance.
Saving: Between 0 and the whole phase, because every image must be pulled. The low end, 0, is
    counted; the next run measures the rest.
When it is wrong: SageMaker also mounts file systems and copies data in this phase, and does not
    report how long each takes. If a channel is copied, the only recommendation about the image is
    to keep it in the job's region.
What to do: Use a smaller image (multi-stage build, no compilers, no caches, the CPU variant for CPU
    types), from a registry in the job's region. A warm pool keeps the image too, and is billed
    while it waits. If a mount is slow, check these:
    - A mount target is in the instances' own zone.
    - Security groups let NFS (port 2049) or Lustre (988 and 1018 to 1023) pass.
    - The file system has enough throughput.
Sources: AWS blog "Analyze Amazon SageMaker spend", part 4: charged phases. Recorded jobs whose
    message says "Downloading the training image": 96 to 314 s, 13 of 14 under 300 s. 30 minutes are
    about six times the longest. EFS and FSx for Lustre guides: security groups and ports.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sageaudit.domain.bill.bill_facts import image_region
from sageaudit.domain.job.course import DOWNLOADS
from sageaudit.rules import api
from sageaudit.rules.phases import phase_share as phases


def _copied_data_reason(case: api.JobCase) -> str | None:
    is_copied = phases.copied_channels(case.job) and not phases.can_be_image_pull_only(case)
    return "a channel copies data in the same phase: see download-dominates" if is_copied else None


def _pull_in_training_reason(case: api.JobCase) -> str | None:
    is_in_download = phases.has_image_pull_in_download(case.job)
    return None if is_in_download else "before 2024 the image was pulled inside Training"


@api.rule(
    id="SA105",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=phases.DOWNLOAD_THRESHOLDS,
    not_applicable=(api.serverless_reason, _copied_data_reason, _pull_in_training_reason),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the phases, the channels and the image's registry, not the metrics."""
    job = case.job
    if any(
        channel.source is api.DataSource.S3 and channel.mode is None for channel in job.channels
    ):
        reason = "whether a channel copies its data is not recorded"
        return api.Unknown("input_mode_unknown", reason)
    share = phases.find_large_download(case, *DOWNLOADS)
    if not isinstance(share, phases.PhaseShare):
        return share
    attempts = phases.phase_seconds_by_attempt(job, *DOWNLOADS)
    if any(seconds and seconds > case.threshold(phases.PULL_AT_MOST) for seconds in attempts):
        return _mount_finding(case, share)
    region = image_region(job.image)
    origin = f", from {region}" if region and region != job.region else ""
    copied_channels = phases.copied_channels(job)
    mounted = [source for source in _sources(job) if source is not api.DataSource.S3]
    pulls_text = f"{len(attempts)} image pulls" if attempts[1:] else "the image pull"
    cause_text = f" and no channel copies data: {pulls_text}{origin}"
    if copied_channels:
        cause_text = (
            f"; its message names the image pull{origin}, and channels in File mode copy data too"
        )
    elif mounted:
        cause_text += f", or mounting {' and '.join(_MOUNT_NAMES[source] for source in mounted)}"
    return api.derived_saving(
        f"Downloading took {share.text}{cause_text}.",
        {
            **phases.download_evidence(share),
            "file_mode_channels": len(copied_channels),
            "image_region": region,
            "message_says_image": job.image_pull_in_download,
        },
        fix=_fix(job, region, has_copied_data=bool(copied_channels)),
        first_step=f"Check {_slow_mount_steps(mounted)}"
        if mounted and not copied_channels
        else None,
        caution=(
            f"{phases.range_caution('Every image must be pulled')}"
            f"{' How much of the phase the data took is not recorded.' if copied_channels else ''}"
        ),
        **api.phase_cut_range("Downloading", share.seconds),
    )


_MOUNT_NAMES = {
    api.DataSource.EFS: "EFS",
    api.DataSource.FSX: "FSx for Lustre",
    api.DataSource.S3: "S3 channels",
}
"""The sources that SageMaker mounts or opens in Downloading, the slowest first."""
_SLOW_MOUNT_CAUSES = {
    api.DataSource.EFS: "the mount of EFS: its security group must let NFS (port 2049) pass, a "
    "mount target belongs in the instances' own zone, and Elastic throughput feeds many hosts",
    api.DataSource.FSX: "the mount of FSx: its security group must let Lustre (ports 988 and 1018 "
    "to 1023) pass, and its subnet belongs in the instances' own zone",
    api.DataSource.S3: "the opening of the S3 channels: many small objects take long to list, so "
    "pack them into fewer larger ones",
}


def _sources(job: api.Job) -> list[api.DataSource]:
    sources = {channel.source for channel in phases.data_channels(job)}
    return [source for source in _MOUNT_NAMES if source in sources]


def _slow_mount_steps(sources: Sequence[api.DataSource]) -> str:
    return "; ".join(_SLOW_MOUNT_CAUSES[source] for source in sources)


def _mount_finding(case: api.JobCase, share: phases.PhaseShare) -> api.Detection:
    """Returns a finding on a phase that is too long for an image pull, although no channel is
    copied.
    """
    sources = _sources(case.job)
    mounts_text = " and ".join(_MOUNT_NAMES[source] for source in sources)
    cause_text = (
        f"it mounted {mounts_text} or fetched from there"
        if mounts_text
        else "the cause is not recorded"
    )
    longest_pull_text = api.duration_text(Decimal(str(case.threshold(phases.PULL_AT_MOST))))
    return api.derived_saving(
        f"Downloading took {share.text}. No channel copies data, and no image pull takes over "
        f"{longest_pull_text}: {cause_text}.",
        {
            **phases.download_evidence(share),
            "file_mode_channels": 0,
            "message_says_image": case.job.image_pull_in_download,
        },
        first_step=(
            f"Check {_slow_mount_steps(sources) or 'what was fetched before the code started'}"
        ),
        caution=phases.range_caution("Every run needs some of the phase"),
        **api.phase_cut_range("Downloading", share.seconds),
    )


def _fix(job: api.Job, region: str | None, *, has_copied_data: bool) -> tuple[api.Parameter, ...]:
    """Returns the parameter for the same image in the job's region, or for a smaller image.

    `region`: where the image is. Empty if the image is in the job's region and data was copied,
    because that image may be small.
    """
    if job.image is None or region is None:
        return ()
    local_image = (
        job.image.replace(f".{region}.", f".{job.region}.", 1) if job.region else job.image
    )
    if local_image == job.image and has_copied_data:
        return ()
    new_image = "<a smaller image>" if local_image == job.image else local_image
    return (api.Parameter("AlgorithmSpecification.TrainingImage", job.image, new_image),)
