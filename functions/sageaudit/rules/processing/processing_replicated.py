"""Every instance of a processing job gets all of its data.

What it checks: A processing request asks for several instances, and its inputs from S3 are all
    FullyReplicated, AWS's default.
Why it costs: Each instance copies all data and is billed meanwhile. Unless the code splits the
    work, all instances do the same work.
Saving: None: it is not known whether the code splits the work.
When it is wrong: The code may split the work by the host's number in resourceconfig.json. Spark and
    Ray containers split it themselves: images with these names are not judged.
What to do: Set S3DataDistributionType to ShardedByS3Key for the data. Keep FullyReplicated for
    inputs that each instance needs as a whole, such as a model. Or use one instance.
Sources: botocore, ProcessingS3Input.S3DataDistributionType: "whether to distribute the data from
    Amazon S3 to all processing instances with FullyReplicated, or whether the data is sharded".
"""

from __future__ import annotations

from sageaudit.domain.job.addresses import cluster_framework
from sageaudit.domain.request.request import image_name
from sageaudit.rules import api

_TYPE = "ProcessingInputs[].S3Input.S3DataDistributionType"
_COUNT = "ProcessingResources.ClusterConfig.InstanceCount"
_CODE_INPUTS = frozenset(
    {"code", "entrypoint", "analysis_config", "conf", "jars", "py-files", "files"}
)
"""The SDK sends code and settings with these inputs."""


@api.rule(
    id="SA805",
    scope=api.RequestCase,
    kinds={api.JobKind.PROCESSING},
    request_severity=api.Severity.LOW,
    required_parameters=(_TYPE, _COUNT),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Judges only by the request's inputs."""
    count = case.request.value(_COUNT)
    if not isinstance(count, int) or count <= 1:
        return api.Clear()
    if cluster_framework(image_name(case.request)):
        return api.Clear()
    channels = [
        channel
        for channel in case.job.channels
        if channel.source is api.DataSource.S3 and channel.name not in _CODE_INPUTS
    ]
    if not channels or any(channel.distribution == "ShardedByS3Key" for channel in channels):
        return api.Clear()
    names = [channel.name for channel in channels]
    return api.recommendation(
        f"Each of {count} instances gets all of {', '.join(names)}: unless the code splits the "
        "work, all of them do the same work.",
        {"instances": count, "inputs": len(names)},
        fix=tuple(
            api.Parameter(
                _TYPE.replace("[]", f"[{channel.name}]"), channel.distribution, "ShardedByS3Key"
            )
            for channel in channels
        ),
        caution=(
            "Change nothing if the code splits the work. Keep inputs that each instance needs as "
            "a whole."
        ),
    )
