"""The S3 buckets that a job reads and writes, and the regions in which they lie.

Describe has the names only. The regions are asked from S3 (`ports.Buckets`) and stored under `KEY`
beside the answer, so that a run that is judged again says the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.job import UsedBucket
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import REGION

KEY = "BucketRegions"
"""The key under which a stored answer has the regions, by bucket name."""
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_IP_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}\Z")
_NOT_BUCKETS = ("-s3alias", "--x-s3", "--ol-s3", "--table-s3")
"""Endings of access point aliases, directory buckets, Object Lambda and table buckets."""


def bucket_of(address: str | None) -> str | None:
    """The bucket of an `s3://` address; None for ARNs, access points and any other address."""
    scheme, found, rest = (address or "").partition("://")
    name = re.split("[/?#]", rest, maxsplit=1)[0]
    plain = _NAME.match(name) and not _IP_ADDRESS.match(name) and not name.endswith(_NOT_BUCKETS)
    return name if found and scheme.lower() == "s3" and plain else None


def known_region(value: object) -> str | None:
    """A region's name as S3 gives it; None for anything else."""
    return value if isinstance(value, str) and REGION.fullmatch(value) else None


def used_buckets(kind: JobKind, answer: Mapping[str, Any]) -> tuple[UsedBucket, ...]:
    """The buckets of inputs, outputs and checkpoints, each once, in the order of the answer.

    A tuning job's own definition is not read: its training jobs name the same buckets.
    """
    read = _PARAMETERS.get(kind)
    parameters: dict[str, list[str]] = {}
    for parameter, address in read(answer) if read else ():
        if (name := bucket_of(address)) is not None:
            parameters.setdefault(name, []).append(parameter)
    regions = fields.section(answer, KEY)
    return tuple(
        UsedBucket(name, tuple(paths), known_region(regions.get(name)))
        for name, paths in parameters.items()
    )


def located(buckets: tuple[UsedBucket, ...], regions: Mapping[str, str]) -> tuple[UsedBucket, ...]:
    """The buckets with the regions that are known now."""
    return tuple(
        replace(bucket, region=regions.get(bucket.name, bucket.region)) for bucket in buckets
    )


_Addresses = Iterator[tuple[str, str | None]]


def _training(answer: Mapping[str, Any]) -> _Addresses:
    for item in fields.items(answer, "InputDataConfig"):
        name = fields.text(item, "ChannelName") or "channel"
        s3 = fields.section(fields.section(item, "DataSource"), "S3DataSource")
        yield f"InputDataConfig[{name}].DataSource.S3DataSource.S3Uri", fields.text(s3, "S3Uri")
    output = fields.section(answer, "OutputDataConfig")
    yield "OutputDataConfig.S3OutputPath", fields.text(output, "S3OutputPath")
    checkpoints = fields.section(answer, "CheckpointConfig")
    yield "CheckpointConfig.S3Uri", fields.text(checkpoints, "S3Uri")


def _processing(answer: Mapping[str, Any]) -> _Addresses:
    for item in fields.items(answer, "ProcessingInputs"):
        name = fields.text(item, "InputName") or "input"
        s3 = fields.section(item, "S3Input")
        yield f"ProcessingInputs[{name}].S3Input.S3Uri", fields.text(s3, "S3Uri")
    for item in fields.items(fields.section(answer, "ProcessingOutputConfig"), "Outputs"):
        name = fields.text(item, "OutputName") or "output"
        path = f"ProcessingOutputConfig.Outputs[{name}].S3Output.S3Uri"
        yield path, fields.text(fields.section(item, "S3Output"), "S3Uri")


def _transform(answer: Mapping[str, Any]) -> _Addresses:
    data = fields.section(fields.section(answer, "TransformInput"), "DataSource")
    s3 = fields.section(data, "S3DataSource")
    yield "TransformInput.DataSource.S3DataSource.S3Uri", fields.text(s3, "S3Uri")
    output = fields.section(answer, "TransformOutput")
    yield "TransformOutput.S3OutputPath", fields.text(output, "S3OutputPath")


_PARAMETERS = {
    JobKind.TRAINING: _training,
    JobKind.PROCESSING: _processing,
    JobKind.TRANSFORM: _transform,
}
