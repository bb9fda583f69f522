"""Every instance of a processing job gets all of its data.

What it checks: A processing request on several instances, whose inputs from S3 are all
    FullyReplicated, which is AWS's default.
Why it costs: Each instance copies all data and is billed meanwhile. Unless the code splits the work
    itself, all of them do the same work, and the instances above the first are paid for nothing.
Saving: None is counted: whether the code splits the work is not known.
When it is wrong: Code that splits the work by the host's number in resourceconfig.json. Spark and
    Ray containers split it themselves; images with these names are left out.
What to do: S3DataDistributionType ShardedByS3Key for the data, FullyReplicated for what each
    instance needs as a whole, such as a model; or one instance.
Sources: botocore, ProcessingS3Input.S3DataDistributionType: "whether to distribute the data from
    Amazon S3 to all processing instances with FullyReplicated, or whether the data is sharded".
"""

from __future__ import annotations

from sageaudit.domain.job.addresses import cluster_framework
from sageaudit.domain.request.request import image_name
from sageaudit.rules import api

_TYPE = "ProcessingInputs[].S3Input.S3DataDistributionType"
_COUNT = "ProcessingResources.ClusterConfig.InstanceCount"
_CODE = frozenset({"code", "entrypoint", "analysis_config", "conf", "jars", "py-files", "files"})
"""Inputs of the SDK that are no data."""


@api.rule(
    id="SA805",
    scope=api.RequestCase,
    kinds={api.JobKind.PROCESSING},
    request_severity=api.Severity.LOW,
    required_parameters=(_TYPE, _COUNT),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Reads the inputs alone."""
    count = case.request.value(_COUNT)
    if not isinstance(count, int) or count <= 1:
        return api.Clear()
    if cluster_framework(image_name(case.request)):
        return api.Clear()
    inputs = [one for one in case.job.channels if one.source is api.DataSource.S3]
    data = [one for one in inputs if one.name not in _CODE]
    if not data or any(one.distribution == "ShardedByS3Key" for one in data):
        return api.Clear()
    names = [one.name for one in data]
    return api.recommendation(
        f"Each of {count} instances gets all of {', '.join(names)}: unless the code splits the "
        "work, all of them do the same.",
        {"instances": count, "inputs": len(names)},
        fix=tuple(
            api.Parameter(_TYPE.replace("[]", f"[{one.name}]"), one.distribution, "ShardedByS3Key")
            for one in data
        ),
        caution="Not where the code splits the work itself. Keep what each instance needs whole.",
    )
