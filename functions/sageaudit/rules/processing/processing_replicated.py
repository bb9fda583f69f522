"""Every instance of a processing job gets all of its data.

What it checks: A processing request on several instances, whose inputs from S3 are all
    FullyReplicated, which is what AWS takes where the request does not say.
Why it costs: Each instance copies all data and is billed meanwhile. Unless the code splits the work
    itself, all of them do the same work, and the instances above the first are paid for nothing.
Saving: None is counted: whether the code splits the work is not known.
When it is wrong: Code that splits the work by the host's number in resourceconfig.json, and Spark
    or Ray containers, which do so themselves: images named after them are left out.
What to do: S3DataDistributionType ShardedByS3Key for the data, FullyReplicated for what each
    instance needs as a whole, such as a model; or one instance.
Sources: botocore, ProcessingS3Input.S3DataDistributionType: "whether to distribute the data from
    Amazon S3 to all processing instances with FullyReplicated, or whether the data is sharded".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sageaudit.domain.request.request import image_name
from sageaudit.rules import api

_TYPE = "ProcessingInputs[].S3Input.S3DataDistributionType"
_COUNT = "ProcessingResources.ClusterConfig.InstanceCount"
_SPLITS = ("spark", "ray", "dask")
_CODE = frozenset({"code", "entrypoint", "analysis_config", "conf", "jars", "py-files", "files"})
"""Inputs of the SDK that are no data."""


@api.rule(
    id="SA805",
    scope=api.RequestCase,
    kinds={api.JobKind.PROCESSING},
    before_run=api.Severity.LOW,
    reads=(_TYPE, _COUNT),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Reads the inputs alone."""
    count = case.request.value(_COUNT)
    if not isinstance(count, int) or count <= 1:
        return api.Clear()
    if any(word in (image_name(case.request) or "") for word in _SPLITS):
        return api.Clear()
    data = [item for item in _inputs(case) if item.get("InputName") not in _CODE]
    kinds = [_distribution(item) for item in data]
    if not data or "ShardedByS3Key" in kinds:
        return api.Clear()
    names = [str(item.get("InputName") or index) for index, item in enumerate(data)]
    return api.advice(
        f"Each of {count} instances gets all of {', '.join(names)}: unless the code splits the "
        "work, all of them do the same.",
        {"instances": count, "inputs": len(names)},
        fix=tuple(
            api.Parameter(_TYPE.replace("[]", f"[{name}]"), kind, "ShardedByS3Key")
            for name, kind in zip(names, kinds, strict=True)
        ),
        caution="Not where the code splits the work itself. Keep what each instance needs whole.",
    )


def _inputs(case: api.RequestCase) -> list[Mapping[str, Any]]:
    """The inputs that are copied from S3."""
    listed = case.request.value("ProcessingInputs")
    return [
        item
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, Mapping) and isinstance(item.get("S3Input"), Mapping)
    ]


def _distribution(item: Mapping[str, Any]) -> str | None:
    found = item["S3Input"].get("S3DataDistributionType")
    return found if isinstance(found, str) else None
