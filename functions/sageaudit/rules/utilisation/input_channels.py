"""Advice on the channels of a job: one where it has none, and each host its own part of one."""

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


def first_channel(job: api.Job) -> tuple[api.Parameter, ...]:
    """A training job without any channel fetches its data itself."""
    if job.channels or job.kind is not api.JobKind.TRAINING:
        return ()
    source = "InputDataConfig[train].DataSource.S3DataSource"
    return (
        api.Parameter(f"{source}.S3DataType", None, "S3Prefix"),
        api.Parameter(f"{source}.S3Uri", None, "s3://<bucket>/<prefix>"),
        api.Parameter("InputDataConfig[train].InputMode", None, "FastFile"),
    )
