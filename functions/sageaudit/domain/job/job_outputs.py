"""Other parts of an answer: algorithm metrics, outputs, batching and tuning."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.kept import DERIVED
from sageaudit.domain.job.parts import Direction, Objective, TransformBatching, Tuning, Upload
from sageaudit.domain.job.phases import DOWNLOADS

MOST_METRICS = 40
"""MetricDefinitionList and FinalMetricDataList: at most 40 entries."""
_LONGEST_NAME = 255


def metric_names(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """The first 40 algorithm metrics that SageMaker publishes, in their order.

    Of a job that ended, those with a last value: XGBoost defines 36 and publishes 2. Of a trial,
    the objective of its tuning job alone: no rule looks at another one beside it.
    """
    algorithm = fields.section(answer, "AlgorithmSpecification")
    names = (fields.text(item, "Name") for item in fields.items(algorithm, "MetricDefinitions"))
    fit = [name for name in names if name is not None and len(name) <= _LONGEST_NAME]
    last = {fields.text(item, "MetricName") for item in fields.items(answer, "FinalMetricDataList")}
    own = objective(answer)
    last = {own.metric} if own is not None and own.metric in last else last
    published = (name for name in fit if not last or name in last)
    return tuple(dict.fromkeys(published))[:MOST_METRICS]


def final_metrics(answer: Mapping[str, Any]) -> dict[str, Decimal]:
    """The last value of each algorithm metric; one that is not finite is left out."""
    return {
        name: value
        for item in fields.items(answer, "FinalMetricDataList")
        if (name := fields.text(item, "MetricName"))
        and (value := fields.number(item, "Value")) is not None
    }


def objective(answer: Mapping[str, Any]) -> Objective | None:
    """The objective of a tuning job's trial. Its direction is unknown here: only the tuning job
    has it.
    """
    name = fields.text(fields.section(answer, DERIVED), "TunedFor")
    return None if name is None else Objective(name, None)


def image_pull_in_download(answer: Mapping[str, Any]) -> bool | None:
    """Whether a Downloading phase's message mentions the image; None without such messages.

    83 recorded jobs: "Downloading input data" until 2023, "Downloading the training image" since
    February 2024, whatever their inputs. So the first does not prove that no image was pulled, nor
    the second that the pull took the time.
    """
    messages = [
        message
        for item in fields.items(answer, "SecondaryStatusTransitions")
        if fields.text(item, "Status") in DOWNLOADS
        and (message := fields.text(item, "StatusMessage"))
    ]
    return any("image" in message for message in messages) if messages else None


def uploads(answer: Mapping[str, Any]) -> tuple[Upload, ...]:
    """A processing job's outputs; an output that the application writes itself has no mode."""
    found = []
    for item in fields.items(fields.section(answer, "ProcessingOutputConfig"), "Outputs"):
        mode = fields.at("S3Output.S3UploadMode", fields.text)(item)
        own = fields.flag(item, "AppManaged")
        found.append(Upload(fields.text(item, "OutputName") or "output", None if own else mode))
    return tuple(found)


def batch(answer: Mapping[str, Any]) -> TransformBatching:
    """How a transform job sends requests to its container.

    0 concurrent transforms means the same as none given: the container may then say how many it
    accepts, else it gets one request at a time (CreateTransformJob).
    """
    return TransformBatching(
        strategy=fields.text(answer, "BatchStrategy"),
        max_concurrent=fields.count(answer, "MaxConcurrentTransforms") or None,
        max_payload_mb=fields.count(answer, "MaxPayloadInMB"),
    )


def tuning(answer: Mapping[str, Any]) -> Tuning:
    """A tuning job's settings, and the counters of its training jobs."""
    config = fields.section(answer, "HyperParameterTuningJobConfig")
    limits = fields.section(config, "ResourceLimits")
    counters = fields.section(answer, "TrainingJobStatusCounters")
    return Tuning(
        strategy=fields.text(config, "Strategy"),
        early_stopping=fields.text(config, "TrainingJobEarlyStoppingType"),
        counters={key: fields.count(counters, key) or 0 for key in counters},
        objective=_objective(answer, config),
        max_jobs=fields.count(limits, "MaxNumberOfTrainingJobs"),
        max_parallel=fields.count(limits, "MaxParallelTrainingJobs"),
    )


def _objective(answer: Mapping[str, Any], config: Mapping[str, Any]) -> Objective | None:
    """The tuning job's own objective, or the one shared by all its training job definitions."""
    shared = [
        fields.section(definition, "TuningObjective")
        for definition in fields.items(answer, "TrainingJobDefinitions")
    ]
    given = fields.section(config, "HyperParameterTuningJobObjective")
    directions = {direction.value: direction for direction in Direction}
    found = {
        (fields.text(item, "MetricName"), directions.get(fields.text(item, "Type") or ""))
        for item in ([given] if given else shared)
    }
    metric, direction = found.pop() if len(found) == 1 else (None, None)
    return None if metric is None else Objective(metric, direction)
