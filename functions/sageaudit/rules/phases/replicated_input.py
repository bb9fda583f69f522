"""Every instance downloads all of the training data.

What it checks: A training job runs on several instances of one type, and a File-mode channel whose
    name contains "train" is FullyReplicated. Downloading takes over 5 minutes and at least 20% of
    the billed phases, or over 10 minutes that cost at least $10. If the phase lasts at most 30
    minutes and its message names the image pull, image-pull-heavy judges it instead.
Why it costs: Each of n instances copies all data, and is billed meanwhile. In data-parallel
    training each instance works on 1/n of it.
Saving: Possible: between 0 and (n - 1)/n of the phase. How much of the phase this channel takes is
    not recorded.
When it is wrong: If a distributed sampler or model parallelism needs all data on every host, change
    nothing.
    - Uneven shards can hang DistributedDataParallel: the host that runs out of batches first leaves
      the others waiting.
    - With fewer objects than instances, some hosts get no data.
What to do: Set S3DataDistributionType to ShardedByS3Key. It needs more objects than instances, all
    of similar size, and no sampler that splits the data again. Or use FastFile mode, but only one
    of the two.
Sources: botocore, S3DataSource.S3DataDistributionType: "each instance gets approximately 1/n of the
    number of S3 objects".
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.phases import phase_share as phases

_CAUTION = (
    "Do not use it with a sampler that splits the data itself. Uneven shards can hang "
    "DistributedDataParallel. Use either ShardedByS3Key or FastFile, not both."
)


def _replicated_channels(job: api.Job) -> list[api.InputChannel]:
    return [
        channel
        for channel in phases.copied_channels(job)
        if channel.distribution == "FullyReplicated" and "train" in channel.name.lower()
    ]


def _not_replicated_reason(case: api.JobCase) -> str | None:
    return (
        None if _replicated_channels(case.job) else "no training channel is copied to all instances"
    )


def _sampler_reason(case: api.JobCase) -> str | None:
    has_sampler = case.job.hints.distributed_sampler and case.duration_basis is None
    return "its distributed sampler needs all data on every host" if has_sampler else None


@api.rule(
    id="SA102",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=phases.DOWNLOAD_THRESHOLDS,
    not_applicable=(
        api.serverless_reason,
        api.one_instance_reason,
        _not_replicated_reason,
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
    """Judges only the phases and the channels, not the metrics."""
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
    names = [channel.name for channel in _replicated_channels(job)]
    return api.possible_saving(
        f"Each of {count} instances downloaded all of {', '.join(names)}: {share.text}.",
        {**phases.download_evidence(share), "instances": count, "replicated_channels": len(names)},
        fix=api.sharding_fix(job, _replicated_channels(job)),
        caution=_CAUTION,
        **api.phase_cut_range("Downloading", share.seconds * (count - 1) / count),
    )


def _check_request(job: api.Job, count: int) -> api.Detection:
    channels, has_sampler = _replicated_channels(job), job.hints.distributed_sampler
    names_text = ", ".join(channel.name for channel in channels)
    fast_file = phases.input_mode_fix(channels, "FastFile")
    return api.recommendation(
        f"Each of {count} instances will download all of {names_text}, and is billed meanwhile.",
        {"instances": count, "replicated_channels": len(channels)},
        fix=fast_file if has_sampler else api.sharding_fix(job, channels),
        alternatives=() if has_sampler else (fast_file,),
        caution="If each instance needs all of it and it is small, change nothing."
        if has_sampler
        else f"How long the download takes is not known. {_CAUTION}",
    )
