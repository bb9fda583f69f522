"""The fields of a DescribeProcessingJob answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sageaudit.domain.job import fields, job_outputs
from sageaudit.domain.job.cluster import instances, purchase
from sageaudit.domain.job.data_version import data_pinned
from sageaudit.domain.job.family import repository
from sageaudit.domain.job.job import DataSource, InputChannel
from sageaudit.domain.job.kept import DERIVED
from sageaudit.domain.job.phases import whole_run
from sageaudit.domain.job.ref import JobRef

_DEBUGGER_RULES = "sagemaker-debugger-rules"
"""Image of Debugger's built-in rules: processing jobs "at no additional cost" (AWS guide)."""


def fields_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Job that a processing job's answer gives. Raises Malformed."""
    cluster = fields.section(fields.section(answer, "ProcessingResources"), "ClusterConfig")
    app = fields.section(answer, "AppSpecification")
    image = fields.text(app, "ImageUri")
    start, end = (
        fields.time(answer, "ProcessingStartTime"),
        fields.time(answer, "ProcessingEndTime"),
    )
    selected, unknown = instances(cluster)
    free = "built-in Debugger rule" if _is_builtin_rule(image, answer) else None
    return {
        "started_at": start,
        "ended_at": end,
        "phases": whole_run("Processing", fields.time(answer, "CreationTime"), start, end),
        "groups": selected,
        "groups_unknown": unknown,
        "purchase": purchase(answer, cluster, selected),
        "volume_gb": fields.count(cluster, "VolumeSizeInGB"),
        "channels": tuple(_processing_inputs(answer)),
        "image": image,
        "entry_point": fields.text(fields.section(answer, DERIVED), "EntryPoint"),
        "max_runtime_s": fields.count(
            fields.section(answer, "StoppingCondition"), "MaxRuntimeInSeconds"
        ),
        "free": free,
        "data_pinned": data_pinned(
            (
                fields.text(item, "InputName"),
                fields.text(fields.section(item, "S3Input"), "S3Uri"),
            )
            for item in fields.items(answer, "ProcessingInputs")
        ),
        "network_isolation": _is_isolated(answer),
        "uploads": tuple(job_outputs.uploads(answer)),
    }


def _is_builtin_rule(image: str | None, answer: Mapping[str, Any]) -> bool:
    """True for AWS's image: exactly that repository, in a registry of another account."""
    arn = fields.text(answer, "ProcessingJobArn")
    ref = JobRef.from_arn(arn) if arn else None
    own = ref is not None and image is not None and image.startswith(f"{ref.account}.")
    return repository(image) == _DEBUGGER_RULES and not own


def _is_isolated(answer: Mapping[str, Any]) -> bool | None:
    """Network isolation: False for a full answer without NetworkConfig, None for a partial one."""
    if answer.get("NetworkConfig") is None:
        return False if "AppSpecification" in answer else None
    return fields.flag(fields.section(answer, "NetworkConfig"), "EnableNetworkIsolation")


def _processing_inputs(answer: Mapping[str, Any]) -> list[InputChannel]:
    channels = []
    for item in fields.items(answer, "ProcessingInputs"):
        s3 = fields.section(item, "S3Input")
        channels.append(
            InputChannel(
                name=fields.text(item, "InputName") or "input",
                source=DataSource.S3 if s3 else DataSource.OTHER,
                mode=fields.text(s3, "S3InputMode"),
                distribution=fields.text(s3, "S3DataDistributionType"),
            )
        )
    return channels
