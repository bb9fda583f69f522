"""Each host with its own part of the data: advice for hosts with uneven loads."""

from __future__ import annotations

from sageaudit.rules import api

_PATHS = {
    api.JobKind.TRAINING: "InputDataConfig[{}].DataSource.S3DataSource.S3DataDistributionType",
    api.JobKind.PROCESSING: "ProcessingInputs[{}].S3Input.S3DataDistributionType",
}


def shard(job: api.Job) -> tuple[api.Parameter, ...]:
    """For channels that give all data to every host, unless a sampler splits them."""
    path = _PATHS.get(job.kind)
    if path is None or job.hints.distributed_sampler:
        return ()
    return tuple(
        api.Parameter(path.format(channel.name), channel.distribution, "ShardedByS3Key")
        for channel in job.channels
        if channel.source is api.DataSource.S3 and channel.distribution == "FullyReplicated"
    )
