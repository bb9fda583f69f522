"""The fields of Job that the Describe answer of each kind gives: a row for each field.

A field of one kind is added here and in Job (or a part of it), and where it is shown or judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from sageaudit.domain.job import fields, job_outputs, phases
from sageaudit.domain.job.buckets import data_pinned, s3_inputs
from sageaudit.domain.job.family import repository
from sageaudit.domain.job.fields import at
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kept import DERIVED
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel, WarmPool
from sageaudit.domain.job.ref import JobRef

Answer = Mapping[str, Any]

_DEBUGGER_RULES = "sagemaker-debugger-rules"
"""Image of Debugger's built-in rules: processing jobs "at no additional cost" (AWS guide)."""
_ENDED_EARLY = frozenset({"Failed", "Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"})


def fields_of(kind: JobKind, answer: Answer) -> dict[str, Any]:
    """The arguments of Job that an answer of this kind gives. Raises Malformed."""
    rows = {name: read(answer) for name, read in _ROWS.get(kind, {}).items()}
    return {**_times(kind, answer), **_cluster(kind, answer), **rows}


def _times(kind: JobKind, answer: Answer) -> dict[str, Any]:
    """Start, end and phases; a training job's transitions stand in for times that it lacks."""
    row = kind.row
    transitions = fields.items(answer, "SecondaryStatusTransitions")
    begun, over = phases.run_of(transitions)
    start = fields.time(answer, row.start_key) or begun
    end = fields.time(answer, row.end_key) or (over if start else None)
    billable_s = fields.count(answer, "BillableTimeInSeconds")
    found = phases.from_transitions(transitions, start, end, billable_s)
    if row.whole_run and start is not None and not any(phase.billed for phase in found):
        created = fields.time(answer, "CreationTime")
        found = phases.whole_run(row.whole_run, created, start, end)
    return {"started_at": start, "ended_at": end, "phases": found}


def _cluster(kind: JobKind, answer: Answer) -> dict[str, Any]:
    """The instances that the job is billed for, their volume, and how they were bought."""
    if kind.row.cluster is None:
        return {}
    resources = at(kind.row.cluster, fields.section)(answer)
    groups, unknown = _instances(resources)
    return {
        "groups": groups,
        "groups_unknown": unknown,
        "purchase": _purchase(answer, resources, groups),
        "volume_gb": fields.count(resources, "VolumeSizeInGB"),
    }


def _instances(resources: Answer) -> tuple[tuple[InstanceGroup, ...], tuple[str, ...]]:
    """The billed instances, and a sentence for each unknown part.

    "The job is billed for this instance type and count": botocore on SelectedInstanceType. A type
    without a count, or the reverse, is unknown; no other field is used instead.
    """
    for prefix in ("Selected", ""):
        instance_type = fields.text(resources, f"{prefix}InstanceType")
        count = fields.count(resources, f"{prefix}InstanceCount")
        if instance_type and count:
            return (InstanceGroup(instance_type, count),), ()
        if instance_type or (count and prefix):
            return (), (f"the instance {'count' if instance_type else 'type'} is not known",)
    known, unknown = [], []
    for group in fields.items(resources, "InstanceGroups"):
        name = fields.text(group, "InstanceGroupName")
        instance_type = fields.text(group, "InstanceType")
        count = fields.count(group, "InstanceCount")
        if instance_type and count:
            known.append(InstanceGroup(instance_type, count, name))
        else:
            lacks = "count" if instance_type else "type"
            unknown.append(f"instance group {name or '?'}: its {lacks} is not known")
    return tuple(known), tuple(unknown)


def _purchase(answer: Answer, resources: Answer, chosen: tuple[InstanceGroup, ...]) -> Purchase:
    """How the capacity was bought; of InstancePreferences the selected type's plan counts."""
    selected = {group.instance_type for group in chosen}
    plans = [
        item.get("TrainingPlanArns")
        for item in fields.items(resources, "InstancePreferences")
        if fields.text(item, "InstanceType") in selected
    ]
    if answer.get("ServerlessJobConfig"):
        return Purchase.SERVERLESS
    if fields.text(resources, "TrainingPlanArn") or any(isinstance(p, list) and p for p in plans):
        return Purchase.TRAINING_PLAN
    return Purchase.SPOT if fields.flag(answer, "EnableManagedSpotTraining") else Purchase.ON_DEMAND


def _seconds(answer: Answer, key: str) -> Decimal | None:
    seconds = fields.count(answer, key)
    return None if seconds is None else Decimal(seconds)


def _training_image(answer: Answer) -> str | None:
    algorithm = fields.section(answer, "AlgorithmSpecification")
    return fields.text(algorithm, "TrainingImage") or fields.text(algorithm, "AlgorithmName")


_processing_image = at("AppSpecification.ImageUri", fields.text)


def _pinned(kind: JobKind) -> Callable[[Answer], bool | None]:
    return lambda answer: data_pinned((one.name, one.address) for one in s3_inputs(kind, answer))


def _training_channels(answer: Answer) -> tuple[InputChannel, ...]:
    job_mode = at("AlgorithmSpecification.TrainingInputMode", fields.text)(answer)
    channels = []
    for item in fields.items(answer, "InputDataConfig"):
        data = fields.section(item, "DataSource")
        s3 = fields.section(data, "S3DataSource")
        files = fields.section(data, "FileSystemDataSource")
        source = DataSource.S3 if s3 else DataSource.OTHER
        if files and not s3:
            lustre = files.get("FileSystemType") == "FSxLustre"
            source = DataSource.FSX if lustre else DataSource.EFS
        channels.append(
            InputChannel(
                name=fields.text(item, "ChannelName") or "channel",
                source=source,
                mode=fields.text(item, "InputMode") or job_mode,
                distribution=fields.text(s3, "S3DataDistributionType"),
            )
        )
    return tuple(channels)


def _processing_inputs(answer: Answer) -> tuple[InputChannel, ...]:
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
    return tuple(channels)


def _left_artifact(answer: Answer) -> bool | None:
    """Whether a model reached S3; Describe gives a path even if no model was written.

    Recorded answers of completed jobs have ModelArtifacts (50 of 50), those of other jobs lack it
    (8 of 8). Where it lacks, the transitions of a run that ended early must be there to its end:
    without Uploading among them nothing was uploaded, but for a path, which leaves it open.
    """
    transitions = fields.items(answer, "SecondaryStatusTransitions")
    path = at("ModelArtifacts.S3ModelArtifacts", fields.text)(answer)
    if any(item.get("Status") == "Uploading" for item in transitions):
        return True
    if "ModelArtifacts" not in answer:
        return False if transitions and transitions[-1].get("Status") in _ENDED_EARLY else None
    return False if path is None else None


def _custom_rules(answer: Answer) -> tuple[str, ...]:
    """Debugger rules with their own instance type; built-in rules have none and are free."""
    return tuple(
        fields.text(rule, "RuleConfigurationName") or "without a name"
        for of in ("Debug", "Profiler")
        for rule in fields.items(answer, f"{of}RuleConfigurations")
        if fields.text(rule, "InstanceType")
    )


def _warm_pool(answer: Answer) -> WarmPool | None:
    keep_alive = at("ResourceConfig.KeepAlivePeriodInSeconds", fields.count)(answer)
    status = fields.section(answer, "WarmPoolStatus")
    if not keep_alive and not status:
        return None
    return WarmPool(
        status=fields.text(status, "Status"),
        keep_alive_s=keep_alive,
        retained_s=_seconds(status, "ResourceRetainedBillableTimeInSeconds"),
    )


def _free(answer: Answer) -> str | None:
    """Of AWS's rule image: exactly that repository, in a registry of another account."""
    image, arn = _processing_image(answer), fields.text(answer, "ProcessingJobArn")
    ref = JobRef.from_arn(arn) if arn else None
    own = ref is not None and image is not None and image.startswith(f"{ref.account}.")
    return "built-in Debugger rule" if repository(image) == _DEBUGGER_RULES and not own else None


_MAX_RUNTIME = at("StoppingCondition.MaxRuntimeInSeconds", fields.count)
_ROWS: Mapping[JobKind, Mapping[str, Callable[[Answer], Any]]] = {
    JobKind.TRAINING: {
        "secondary_status": at("SecondaryStatus", fields.text),
        "training_s": at("TrainingTimeInSeconds", _seconds),
        "billable_s": at("BillableTimeInSeconds", _seconds),
        "channels": _training_channels,
        "image": _training_image,
        "entry_point": at(f"{DERIVED}.EntryPoint", fields.text),
        "max_runtime_s": _MAX_RUNTIME,
        "max_wait_s": at("StoppingCondition.MaxWaitTimeInSeconds", fields.count),
        "checkpointed": at("CheckpointConfig.S3Uri", fields.has),
        "left_artifact": _left_artifact,
        "warm_pool": _warm_pool,
        "custom_rules": _custom_rules,
        "data_pinned": _pinned(JobKind.TRAINING),
        "image_pull_in_download": job_outputs.image_pull_in_download,
        "output_compression": at("OutputDataConfig.CompressionType", fields.text),
        "metric_names": job_outputs.metric_names,
        "final_metrics": job_outputs.final_metrics,
        "objective": job_outputs.objective,
    },
    JobKind.PROCESSING: {
        "channels": _processing_inputs,
        "image": _processing_image,
        "entry_point": at(f"{DERIVED}.EntryPoint", fields.text),
        "max_runtime_s": _MAX_RUNTIME,
        "free": _free,
        "data_pinned": _pinned(JobKind.PROCESSING),
        "uploads": job_outputs.uploads,
    },
    JobKind.TRANSFORM: {
        "entry_point": at("ModelName", fields.text),
        "data_pinned": _pinned(JobKind.TRANSFORM),
        "batch": job_outputs.batch,
    },
    JobKind.TUNING: {"tuning": job_outputs.tuning},
}
"""The reader of each field that is not common to all kinds; a kind may have none."""
