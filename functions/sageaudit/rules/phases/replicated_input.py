"""Every instance downloads all of the training data.

What it checks: A training job on several instances of one type. Downloading is at least 20% of the
    billed phases and over 5 minutes, or costs at least $10 and takes over 10 minutes, and a
    File-mode channel named like "train" is distributed FullyReplicated. Up to 30 minutes whose
    message says that the image was pulled belong to image-pull-heavy.
Why it costs: Each of n instances copies all data, and is billed for it. Data-parallel training
    gives each instance 1/n of the data to work on.
Saving: Possible, never in a total: between 0 and (n - 1)/n of the Downloading phase. How much of
    the phase this channel, other channels and the image pull take is not recorded.
When it is wrong: A distributed sampler, or model parallelism, needs all data on every host: change
    nothing then. Uneven shards can hang DistributedDataParallel: the host that runs out of batches
    first leaves the others waiting. With fewer objects than instances, some hosts get no data.
What to do: S3DataDistributionType ShardedByS3Key, with more objects than instances, all of similar
    size, and no sampler that splits the data again. FastFile mode is the alternative: use only one
    of the two.
Sources: botocore, S3DataSource.S3DataDistributionType: "each instance gets approximately 1/n of the
    number of S3 objects".
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.phases import phase_share as phases

_CAUTION = (
    "Not with a sampler that splits the data itself. Uneven shards can hang "
    "DistributedDataParallel. Use it instead of FastFile, not together."
)


def _replicated(job: api.Job) -> list[api.InputChannel]:
    return [
        channel
        for channel in phases.copied_channels(job)
        if channel.distribution == "FullyReplicated" and "train" in channel.name.lower()
    ]


def _not_replicated(case: api.JobCase) -> str | None:
    return None if _replicated(case.job) else "no training channel is copied to all instances"


def _sampler_reason(case: api.JobCase) -> str | None:
    sampled = case.job.hints.distributed_sampler and case.duration_basis is None
    return "its distributed sampler needs all data on every host" if sampled else None


@api.rule(
    id="SA102",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=phases.DOWNLOAD_THRESHOLDS,
    not_applicable=(
        api.serverless,
        api.one_instance,
        _not_replicated,
        _sampler_reason,
        phases.image_pull_reason,
    ),
    request_severity=api.Severity.MEDIUM,
    required_parameters=(
        *api.TYPE_PARAMETERS,
        "ResourceConfig.InstanceCount",
        "AlgorithmSpecification.TrainingInputMode",
        "InputDataConfig[].InputMode",
        "InputDataConfig[].DataSource.S3DataSource.S3DataDistributionType",
    ),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges phases and channels; needs no metrics."""
    job, count = case.job, case.job.instance_count
    if count is None:
        return api.Unknown("type_unknown", "the number of instances is not known")
    if len(job.groups) > 1:
        reason = "which instance group reads a channel is not recorded"
        return api.Unknown("groups_unmapped", reason)
    if case.duration_basis is not None:
        return _check_request(job, count)
    share = phases.find_large_download(case)
    if not isinstance(share, phases.PhaseShare):
        return share
    names = [channel.name for channel in _replicated(job)]
    return api.possible_saving(
        f"Each of {count} instances downloaded all of {', '.join(names)}: {share.text}.",
        {**phases.download_evidence(share), "instances": count, "replicated_channels": len(names)},
        fix=api.sharding_fix(job, _replicated(job)),
        caution=_CAUTION,
        **api.phase_cut_range("Downloading", share.seconds * (count - 1) / count),
    )


def _check_request(job: api.Job, count: int) -> api.Detection:
    """FastFile reads what a sampler asks for; shards are for code without one."""
    channels, sampled = _replicated(job), job.hints.distributed_sampler
    names, stream = (
        ", ".join(one.name for one in channels),
        phases.input_mode_fix(channels, "FastFile"),
    )
    return api.recommendation(
        f"Each of {count} instances will download all of {names}, and is billed for it.",
        {"instances": count, "replicated_channels": len(channels)},
        fix=stream if sampled else api.sharding_fix(job, channels),
        alternatives=() if sampled else (stream,),
        caution="Small data that each instance needs as a whole may stay as it is."
        if sampled
        else f"How long the download takes is not known. {_CAUTION}",
    )
