"""Several instances share an input of one object.

What it checks: The request asks for several instances. For a transform job, the S3Uri ends like a
    single file. For a training job, a ShardedByS3Key channel has such an S3Uri.
Why it costs: An object is processed by one instance. The others are billed and idle.
Saving: Derived: the run on one instance, with the run time that `sageaudit check` assumes.
When it is wrong: A prefix may end like a file. Then every object whose key begins with it is an
    input.
What to do: Set InstanceCount to 1. Or split the file into at least as many objects as there are
    instances.
Sources: SageMaker guide, batch transform: "only one instance processes the input file and the rest
    of the instances are idle". botocore, S3DataDistributionType: "some nodes won't get any data and
    you will pay for nodes that aren't getting any training data".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from sageaudit.rules import api

_SOURCE = "DataSource.S3DataSource"
_INPUT = f"TransformInput.{_SOURCE}"
_CHANNELS = f"InputDataConfig[].{_SOURCE}"
_FILE = re.compile(
    r"s3://[^/]+/.*\.(?:csv|tsv|txt|json|jsonl|ndjson|libsvm|svm|parquet|recordio|rec|pbr|protobuf"
    r"|tfrecords?|npy|gz|zip|bz2|zst)\Z",
    re.IGNORECASE,
)


@api.rule(
    id="SA807",
    scope=api.RequestCase,
    kinds={api.JobKind.TRANSFORM, api.JobKind.TRAINING},
    request_severity=api.Severity.HIGH,
    required_parameters=(
        *(api.COUNT_PATHS[kind] for kind in (api.JobKind.TRANSFORM, api.JobKind.TRAINING)),
        f"{_INPUT}.S3Uri",
        f"{_INPUT}.S3DataType",
        f"{_CHANNELS}.S3DataDistributionType",
    ),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Judges only by the inputs' addresses."""
    path = api.COUNT_PATHS[case.job.kind]
    count = case.request.value(path)
    if not isinstance(count, int) or count <= 1 or not any(_single_file_flags(case)):
        return api.Clear()
    return api.derived_saving(
        f"The input is one file, which one instance gets: {count - 1} of {count} instances stay "
        "idle.",
        {"instances": count},
        fix=(api.Parameter(path, count, 1),),
        change=api.SetCount(1, Decimal(1)),
        caution="Judged by the ending of its address. To use several instances, split the file.",
    )


def _single_file_flags(case: api.RequestCase) -> Iterator[bool]:
    """Yields whether an input is a single file, for each input that is split between instances."""
    value = case.request.value
    if case.job.kind is api.JobKind.TRANSFORM:
        yield _is_file(value(f"{_INPUT}.S3Uri"), value(f"{_INPUT}.S3DataType"))
        return
    channels = value("InputDataConfig")
    for position in range(len(channels) if isinstance(channels, list) else 0):
        source = f"InputDataConfig[{position}].{_SOURCE}"
        if value(f"{source}.S3DataDistributionType") == "ShardedByS3Key":
            yield _is_file(value(f"{source}.S3Uri"), value(f"{source}.S3DataType"))


def _is_file(address: object, kind: object) -> bool:
    is_manifest = kind in {"ManifestFile", "AugmentedManifestFile"}
    return isinstance(address, str) and not is_manifest and _FILE.fullmatch(address) is not None
