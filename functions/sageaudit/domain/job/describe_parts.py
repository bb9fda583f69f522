"""The parts of a job that need more than one value of its Describe answer."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.addresses import repository
from sageaudit.domain.job.course import DOWNLOADS
from sageaudit.domain.job.fields import DERIVED, nested_reader
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import IMAGE_PATHS, JobKind
from sageaudit.domain.job.parts import (
    DataSource,
    Direction,
    InputChannel,
    Objective,
    ProcessingOutput,
    TransformBatching,
    TuningSettings,
    WarmPool,
)
from sageaudit.domain.job.ref import JobRef

Answer = Mapping[str, Any]
MAX_METRICS = 40
"""The API's limit for MetricDefinitionList and FinalMetricDataList."""
_LONGEST_NAME = 255
_DEBUGGER_RULES = "sagemaker-debugger-rules"
"""The repository of Debugger's built-in rules. Their processing jobs run "at no additional cost"
(AWS guide)."""
_EARLY_END_STATUSES = frozenset({"Failed", "Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"})


def seconds(answer: Answer, key: str) -> Decimal | None:
    """Returns a whole number of seconds; None if absent."""
    seconds = fields.count(answer, key)
    return None if seconds is None else Decimal(seconds)


def instances(resources: Answer) -> tuple[tuple[InstanceGroup, ...], tuple[str, ...]]:
    """Returns the billed instances, and a sentence for each unknown part.

    SelectedInstanceType comes first: "The job is billed for this instance type and count"
    (botocore). A type without a count, or a count without a type, is unknown.
    """
    for prefix in ("Selected", ""):
        instance_type = fields.text(resources, f"{prefix}InstanceType")
        count = fields.count(resources, f"{prefix}InstanceCount")
        if instance_type and count:
            return (InstanceGroup(instance_type, count),), ()
        if instance_type or (count and prefix):
            return (), (f"the instance {'count' if instance_type else 'type'} is not known",)
    parts, unknown = [], []
    for group in fields.items(resources, "InstanceGroups"):
        name = fields.text(group, "InstanceGroupName")
        instance_type = fields.text(group, "InstanceType")
        count = fields.count(group, "InstanceCount")
        if instance_type and count:
            parts.append(InstanceGroup(instance_type, count, name))
        else:
            unknown_part = "count" if instance_type else "type"
            unknown.append(f"instance group {name or '?'}: its {unknown_part} is not known")
    return tuple(parts), tuple(unknown)


def purchase(answer: Answer, resources: Answer) -> Purchase:
    """Returns how the capacity was bought.

    If the job has InstancePreferences, only the selected type's training plan counts.
    """
    preferred = fields.items(resources, "InstancePreferences")
    selected = {option.instance_type for option in instances(resources)[0]} if preferred else set()
    plans = [
        item.get("TrainingPlanArns")
        for item in preferred
        if fields.text(item, "InstanceType") in selected
    ]
    if answer.get("ServerlessJobConfig"):
        return Purchase.SERVERLESS
    if fields.text(resources, "TrainingPlanArn") or any(isinstance(p, list) and p for p in plans):
        return Purchase.TRAINING_PLAN
    return Purchase.SPOT if fields.flag(answer, "EnableManagedSpotTraining") else Purchase.ON_DEMAND


def training_image(answer: Answer) -> str | None:
    """Returns a training job's container image, or the name of its algorithm."""
    algorithm = fields.section(answer, "AlgorithmSpecification")
    return fields.text(algorithm, "TrainingImage") or fields.text(algorithm, "AlgorithmName")


def training_channels(answer: Answer) -> tuple[InputChannel, ...]:
    """Returns a training job's channels. A channel without a mode gets the job's mode."""
    job_mode = nested_reader("AlgorithmSpecification.TrainingInputMode", fields.text)(answer)
    channels = []
    for item in fields.items(answer, "InputDataConfig"):
        data = fields.section(item, "DataSource")
        s3 = fields.section(data, "S3DataSource")
        files = fields.section(data, "FileSystemDataSource")
        source = DataSource.S3 if s3 else DataSource.OTHER
        if files and not s3:
            is_lustre = files.get("FileSystemType") == "FSxLustre"
            source = DataSource.FSX if is_lustre else DataSource.EFS
        channels.append(
            InputChannel(
                name=fields.text(item, "ChannelName") or "channel",
                source=source,
                mode=fields.text(item, "InputMode") or job_mode,
                distribution=fields.text(s3, "S3DataDistributionType"),
            )
        )
    return tuple(channels)


def processing_inputs(answer: Answer) -> tuple[InputChannel, ...]:
    """Returns a processing job's inputs. An input that is not in S3 has the source OTHER."""
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


def has_artifact(answer: Answer) -> bool | None:
    """Returns whether a model reached S3; None if the answer does not show it.

    Describe returns a path even if no model was written. Recorded answers of completed jobs have
    ModelArtifacts (50 of 50), those of other jobs do not (8 of 8). If a run that ended early has no
    Uploading transition, nothing was uploaded.
    """
    transitions = fields.items(answer, "SecondaryStatusTransitions")
    path = nested_reader("ModelArtifacts.S3ModelArtifacts", fields.text)(answer)
    if any(item.get("Status") == "Uploading" for item in transitions):
        return True
    if "ModelArtifacts" not in answer:
        return (
            False if transitions and transitions[-1].get("Status") in _EARLY_END_STATUSES else None
        )
    return False if path is None else None


def custom_rules(answer: Answer) -> tuple[str, ...]:
    """Returns the names of the Debugger rules that have an instance type.

    Built-in rules without an instance type are free.
    """
    return tuple(
        fields.text(rule, "RuleConfigurationName") or "without a name"
        for prefix in ("Debug", "Profiler")
        for rule in fields.items(answer, f"{prefix}RuleConfigurations")
        if fields.text(rule, "InstanceType")
    )


def warm_pool(answer: Answer) -> WarmPool | None:
    """Returns the warm pool that the job requested or has, or None."""
    keep_alive = nested_reader("ResourceConfig.KeepAlivePeriodInSeconds", fields.count)(answer)
    status = fields.section(answer, "WarmPoolStatus")
    if not keep_alive and not status:
        return None
    return WarmPool(
        status=fields.text(status, "Status"),
        keep_alive_s=keep_alive,
        retained_s=seconds(status, "ResourceRetainedBillableTimeInSeconds"),
    )


def free_reason(answer: Answer) -> str | None:
    """Returns why AWS does not bill the job; None for a billed job.

    Only the image of Debugger's built-in rules is free. An image in the account's own registry is
    billed.
    """
    image = nested_reader(IMAGE_PATHS[JobKind.PROCESSING], fields.text)(answer)
    arn = fields.text(answer, "ProcessingJobArn")
    ref = JobRef.from_arn(arn) if arn else None
    is_own = ref is not None and image is not None and image.startswith(f"{ref.account}.")
    return "built-in Debugger rule" if repository(image) == _DEBUGGER_RULES and not is_own else None


def metric_names(answer: Answer) -> tuple[str, ...]:
    """Returns the names of the algorithm metrics that SageMaker publishes, at most 40.

    If the answer has final values, only metrics with a final value were published. XGBoost defines
    36 metrics and publishes 2. For a tuning job's trial, only the objective is returned, since no
    rule reads another metric.
    """
    algorithm = fields.section(answer, "AlgorithmSpecification")
    names = (fields.text(item, "Name") for item in fields.items(algorithm, "MetricDefinitions"))
    valid_names = [name for name in names if name is not None and len(name) <= _LONGEST_NAME]
    reported_names = {
        fields.text(item, "MetricName") for item in fields.items(answer, "FinalMetricDataList")
    }
    objective_of_trial = objective(answer)
    reported_names = (
        {objective_of_trial.metric}
        if objective_of_trial is not None and objective_of_trial.metric in reported_names
        else reported_names
    )
    published = (name for name in valid_names if not reported_names or name in reported_names)
    return tuple(dict.fromkeys(published))[:MAX_METRICS]


def final_metrics(answer: Answer) -> dict[str, Decimal]:
    """Returns the final value of each algorithm metric. Values that are not finite are left out."""
    return {
        name: value
        for item in fields.items(answer, "FinalMetricDataList")
        if (name := fields.text(item, "MetricName"))
        and (value := fields.number(item, "Value")) is not None
    }


def objective(answer: Answer) -> Objective | None:
    """Returns the objective of a tuning job's trial, without its direction."""
    name = fields.text(fields.section(answer, DERIVED), "TunedFor")
    return None if name is None else Objective(name, None)


def image_pull_in_download(answer: Answer) -> bool | None:
    """Returns whether a Downloading phase's message mentions the image; None without messages.

    A mention does not prove that the pull took the time. Without a mention, an image may still have
    been pulled. In 83 recorded jobs the message is "Downloading input data" until 2023, and
    "Downloading the training image" since February 2024.
    """
    messages = [
        message
        for item in fields.items(answer, "SecondaryStatusTransitions")
        if fields.text(item, "Status") in DOWNLOADS
        and (message := fields.text(item, "StatusMessage"))
    ]
    return any("image" in message for message in messages) if messages else None


def uploads(answer: Answer) -> tuple[ProcessingOutput, ...]:
    """Returns a processing job's outputs. An output that the application writes has no mode."""
    outputs = []
    for item in fields.items(fields.section(answer, "ProcessingOutputConfig"), "Outputs"):
        mode = nested_reader("S3Output.S3UploadMode", fields.text)(item)
        is_app_managed = fields.flag(item, "AppManaged")
        outputs.append(
            ProcessingOutput(
                fields.text(item, "OutputName") or "output", None if is_app_managed else mode
            )
        )
    return tuple(outputs)


def batch(answer: Answer) -> TransformBatching:
    """Returns how a transform job sends requests to its container.

    AWS's 0 for `max_concurrent` becomes None. It means that the container may set the number;
    otherwise the container gets one request at a time (CreateTransformJob).
    """
    return TransformBatching(
        strategy=fields.text(answer, "BatchStrategy"),
        max_concurrent=fields.count(answer, "MaxConcurrentTransforms") or None,
        max_payload_mb=fields.count(answer, "MaxPayloadInMB"),
    )


def tuning(answer: Answer) -> TuningSettings:
    """Returns a tuning job's settings, and the number of its training jobs by status."""
    config = fields.section(answer, "HyperParameterTuningJobConfig")
    limits = fields.section(config, "ResourceLimits")
    counters = fields.section(answer, "TrainingJobStatusCounters")
    return TuningSettings(
        strategy=fields.text(config, "Strategy"),
        early_stopping=fields.text(config, "TrainingJobEarlyStoppingType"),
        counters={key: fields.count(counters, key) or 0 for key in counters},
        objective=_objective(answer, config),
        max_jobs=fields.count(limits, "MaxNumberOfTrainingJobs"),
        max_parallel=fields.count(limits, "MaxParallelTrainingJobs"),
    )


def _objective(answer: Answer, config: Answer) -> Objective | None:
    """Returns the objective of a tuning job, or the one that all its definitions share.

    Returns None if there is no such objective.
    """
    definition_objectives = [
        fields.section(definition, "TuningObjective")
        for definition in fields.items(answer, "TrainingJobDefinitions")
    ]
    section = fields.section(config, "HyperParameterTuningJobObjective")
    directions = {direction.value: direction for direction in Direction}
    objectives = {
        (fields.text(item, "MetricName"), directions.get(fields.text(item, "Type") or ""))
        for item in ([section] if section else definition_objectives)
    }
    metric, direction = objectives.pop() if len(objectives) == 1 else (None, None)
    return None if metric is None else Objective(metric, direction)
