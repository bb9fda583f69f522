"""From a Describe* answer and tags to a Job: JobRef's answer in, what ran out.

Every field but name and status may be absent (a job that failed early, an answer of 2018, a partial
recording); nonsense raises Malformed with its key. Field meanings: botocore's sagemaker model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sageaudit.domain.job import describe_training, fields, hints, job_outputs
from sageaudit.domain.job.data_version import data_pinned
from sageaudit.domain.job.family import fingerprint, repository, stem
from sageaudit.domain.job.job import Channel, Job, Parent, ParentKind, Phase, Source
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.phases import whole_run
from sageaudit.domain.job.redact import redact
from sageaudit.domain.job.ref import JobRef
from sageaudit.errors import Malformed

_PIPELINE = re.compile(r":pipeline/([^/]+)/execution/")
_DEBUGGER_RULES = "sagemaker-debugger-rules"
"""Image of Debugger's built-in rules: processing jobs "at no additional cost" (AWS guide)."""


def kind_of(answer: Mapping[str, Any]) -> JobKind | None:
    """The kind whose `...JobName` and `...JobStatus` the answer carries."""
    for kind in JobKind:
        if f"{kind.row.prefix}JobName" in answer and f"{kind.row.prefix}JobStatus" in answer:
            return kind
    return None


def parse(
    answer: Mapping[str, Any],
    tags: Mapping[str, str],
    *,
    account: str | None = None,
    region: str | None = None,
    key: bytes | None = None,
) -> Job:
    """Reads one job. Account and region fall back to the ARN's; without `key` no fingerprint.

    Raises Malformed when the answer is of no known kind, or a field holds nonsense.
    """
    kind = kind_of(answer)
    if kind is None:
        raise Malformed("describe", "has no ...JobName with a ...JobStatus of a known kind")
    name = fields.text(answer, f"{kind.row.prefix}JobName")
    status = fields.text(answer, f"{kind.row.prefix}JobStatus")
    if name is None or status is None:
        raise Malformed(f"{kind.row.prefix}Job{'Status' if name else 'Name'}", "is empty")
    arn = fields.text(answer, f"{kind.row.prefix}JobArn")
    ref = JobRef.from_arn(arn) if arn else None
    specific = {
        JobKind.TRAINING: describe_training.fields_of,
        JobKind.PROCESSING: _processing,
        JobKind.TRANSFORM: _transform,
        JobKind.TUNING: _tuning,
    }[kind](answer)
    failure = fields.text(answer, "FailureReason") or fields.text(answer, "ExitMessage")
    hashed = specific.pop("hashed", None)
    job = Job(
        kind=kind,
        name=name,
        arn=arn,
        account=account or (ref.account if ref else None),
        region=region or (ref.region if ref else None),
        status=status,
        failure=redact(failure) if failure else None,
        created_at=fields.time(answer, "CreationTime"),
        last_modified_at=fields.time(answer, "LastModifiedTime"),
        parent=_parent(answer),
        pipeline_step=_pipeline_step(tags),
        tags=dict(tags),
        hints=hints.of_answer(answer),
        fingerprint=(fingerprint(key, {"kind": kind.value, **hashed}) if key and hashed else None),
    )
    return replace(job, **specific)


def _parent(answer: Mapping[str, Any]) -> Parent | None:
    for field, kind in (
        ("TuningJobArn", ParentKind.TUNING),
        ("AutoMLJobArn", ParentKind.AUTOML),
        ("LabelingJobArn", ParentKind.LABELING),
        ("MonitoringScheduleArn", ParentKind.MONITORING),
        ("TrainingJobArn", ParentKind.TRAINING),
    ):
        own = field == "TrainingJobArn" and "TrainingJobName" in answer
        if not own and (arn := fields.text(answer, field)):
            return Parent(kind, arn)
    return None


def _pipeline_step(tags: Mapping[str, str]) -> str | None:
    """Pipeline and step, from the tags that SageMaker Pipelines puts on the jobs it starts."""
    step = tags.get("sagemaker:pipeline-step-name")
    execution = _PIPELINE.search(tags.get("sagemaker:pipeline-execution-arn", ""))
    return f"pipeline/{execution[1]}/{step}" if execution and step else None


def _processing(answer: Mapping[str, Any]) -> dict[str, Any]:
    cluster = fields.section(fields.section(answer, "ProcessingResources"), "ClusterConfig")
    app = fields.section(answer, "AppSpecification")
    image = fields.text(app, "ImageUri")
    start, end = (
        fields.time(answer, "ProcessingStartTime"),
        fields.time(answer, "ProcessingEndTime"),
    )
    selected, unknown = describe_training.instances(cluster)
    entry = app.get("ContainerEntrypoint")
    free = "built-in Debugger rule" if _is_builtin_rule(image, answer) else None
    return {
        "started_at": start,
        "ended_at": end,
        "phases": _run("Processing", answer, start, end),
        "groups": selected,
        "groups_unknown": unknown,
        "purchase": describe_training.purchase(answer, cluster, selected),
        "volume_gb": fields.count(cluster, "VolumeSizeInGB"),
        "channels": tuple(_processing_inputs(answer)),
        "image": image,
        "entry_point": describe_training.entry_point(answer),
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
        "hashed": {
            "image": image,
            "entry": entry,
            "arguments": app.get("ContainerArguments"),
            "inputs": answer.get("ProcessingInputs"),
            "environment": answer.get("Environment"),
        },
    }


def _is_builtin_rule(image: str | None, answer: Mapping[str, Any]) -> bool:
    """AWS's own image: exactly that repository, in a registry that is not the job's account."""
    arn = fields.text(answer, "ProcessingJobArn")
    ref = JobRef.from_arn(arn) if arn else None
    own = ref is not None and image is not None and image.startswith(f"{ref.account}.")
    return repository(image) == _DEBUGGER_RULES and not own


def _is_isolated(answer: Mapping[str, Any]) -> bool | None:
    """A whole answer without NetworkConfig asked for no isolation; a part of one says nothing."""
    if answer.get("NetworkConfig") is None:
        return False if "AppSpecification" in answer else None
    return fields.flag(fields.section(answer, "NetworkConfig"), "EnableNetworkIsolation")


def _processing_inputs(answer: Mapping[str, Any]) -> list[Channel]:
    channels = []
    for item in fields.items(answer, "ProcessingInputs"):
        s3 = fields.section(item, "S3Input")
        channels.append(
            Channel(
                name=fields.text(item, "InputName") or "input",
                source=Source.S3 if s3 else Source.OTHER,
                mode=fields.text(s3, "S3InputMode"),
                distribution=fields.text(s3, "S3DataDistributionType"),
            )
        )
    return channels


def _transform(answer: Mapping[str, Any]) -> dict[str, Any]:
    resources = fields.section(answer, "TransformResources")
    start, end = fields.time(answer, "TransformStartTime"), fields.time(answer, "TransformEndTime")
    model = fields.text(answer, "ModelName")
    data = fields.section(fields.section(answer, "TransformInput"), "DataSource")
    address = fields.text(fields.section(data, "S3DataSource"), "S3Uri")
    selected, unknown = describe_training.instances(resources)
    return {
        "started_at": start,
        "ended_at": end,
        "phases": _run("Transform", answer, start, end),
        "groups": selected,
        "groups_unknown": unknown,
        "entry_point": stem(model) if model else None,
        "data_pinned": data_pinned([("input", address)]),
        "batch": job_outputs.batch(answer),
        "hashed": {
            "model": model,
            "input": answer.get("TransformInput"),
            "strategy": answer.get("BatchStrategy"),
            "environment": answer.get("Environment"),
        },
    }


def _tuning(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "started_at": fields.time(answer, "CreationTime"),
        "ended_at": fields.time(answer, "HyperParameterTuningEndTime"),
        "tuning": job_outputs.tuning(answer),
    }


def _run(name: str, answer: Mapping[str, Any], start: Any, end: Any) -> tuple[Phase, ...]:
    return whole_run(name, fields.time(answer, "CreationTime"), start, end)
