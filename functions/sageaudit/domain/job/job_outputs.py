"""What SageMaker reports about a job besides its run: Debugger results, metrics, outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.job import (
    Direction,
    Objective,
    RuleEvaluation,
    TransformBatching,
    Tuning,
    Upload,
)
from sageaudit.domain.job.redact import redact

_MOST_METRICS = 40
"""MetricDefinitionList and FinalMetricDataList: at most 40 entries."""
_LONGEST_NAME = 255
_TUNED_FOR = "_tuning_objective_metric"
TUNED_FOR = "TunedFor"
"""Where a sanitized answer keeps the name, beside what AWS said."""
_EVALUATIONS = ("ProfilerRuleEvaluationStatuses", "DebugRuleEvaluationStatuses")


def profiled(answer: Mapping[str, Any]) -> bool | None:
    """Was a profiler on? ProfilingStatus knows; else what was asked for."""
    status = fields.text(answer, "ProfilingStatus")
    if status is not None:
        return status == "Enabled"
    config = fields.section(answer, "ProfilerConfig")
    if fields.flag(config, "DisableProfiler"):
        return False
    asked = bool(config) or bool(fields.items(answer, "ProfilerRuleConfigurations"))
    return True if asked else None


def evaluations(answer: Mapping[str, Any]) -> Iterator[RuleEvaluation]:
    """Debugger's rules and their verdicts, those of the profiler first."""
    for key in _EVALUATIONS:
        for item in fields.items(answer, key):
            status = fields.text(item, "RuleEvaluationStatus")
            details = fields.text(item, "StatusDetails")
            if status is not None:
                yield RuleEvaluation(
                    rule=fields.text(item, "RuleConfigurationName") or "without a name",
                    status=status,
                    details=redact(details).strip() if details else None,
                )


def metric_names(algorithm: Mapping[str, Any]) -> tuple[str, ...]:
    """The algorithm metrics that SageMaker publishes, in their order; the first 40."""
    names = (fields.text(item, "Name") for item in fields.items(algorithm, "MetricDefinitions"))
    fit = [name for name in names if name is not None and len(name) <= _LONGEST_NAME]
    return tuple(dict.fromkeys(fit))[:_MOST_METRICS]


def final_metrics(answer: Mapping[str, Any]) -> dict[str, Decimal]:
    """The last value of each algorithm metric; one that is not finite is left out."""
    found = {}
    for item in fields.items(answer, "FinalMetricDataList"):
        name, value = fields.text(item, "MetricName"), fields.number(item, "Value")
        if name is not None and value is not None:
            found[name] = value
    return found


def objective(answer: Mapping[str, Any]) -> Objective | None:
    """What its tuning job judges it by, from the hyperparameter that tuning adds to each trial.

    The direction stands in the tuning job alone. Only a name that is one of its metrics is taken:
    a value of the user's never leaves here.
    """
    given = fields.section(answer, "HyperParameters").get(_TUNED_FOR)
    name = given.strip('"') if isinstance(given, str) else fields.text(answer, TUNED_FOR)
    algorithm = fields.section(answer, "AlgorithmSpecification")
    own = {*metric_names(algorithm), *final_metrics(answer)}
    return Objective(name, None) if name in own else None


def image_pull_in_download(transitions: list[Mapping[str, Any]]) -> bool | None:
    """Does a Downloading phase say that it pulled the image? None where none says anything.

    83 recorded jobs: "Downloading input data" until 2023, "Downloading the training image" since
    February 2024, whatever their inputs: the one does not prove that no image was pulled, nor the
    other that it took the time.
    """
    messages = [
        message
        for item in transitions
        if item.get("Status") in {"Downloading", "DownloadingTrainingImage"}
        and (message := fields.text(item, "StatusMessage"))
    ]
    return any("image" in message for message in messages) if messages else None


def uploads(answer: Mapping[str, Any]) -> Iterator[Upload]:
    """A processing job's outputs; one that the application itself writes has no mode."""
    config = fields.section(answer, "ProcessingOutputConfig")
    for item in fields.items(config, "Outputs"):
        s3 = fields.section(item, "S3Output")
        own = fields.flag(item, "AppManaged")
        yield Upload(
            name=fields.text(item, "OutputName") or "output",
            mode=None if own else fields.text(s3, "S3UploadMode"),
        )


def batch(answer: Mapping[str, Any]) -> TransformBatching:
    """How a transform job asks its container.

    0 concurrent transforms are as good as none given: then the container may say how many it takes,
    and it is asked one by one if it does not (CreateTransformJob).
    """
    return TransformBatching(
        strategy=fields.text(answer, "BatchStrategy"),
        max_concurrent=fields.count(answer, "MaxConcurrentTransforms") or None,
        max_payload_mb=fields.count(answer, "MaxPayloadInMB"),
    )


def tuning(answer: Mapping[str, Any]) -> Tuning:
    """A tuning job's plan and what became of it."""
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
    """The job's own, or the one that its training job definitions share."""
    shared = [
        fields.section(definition, "TuningObjective")
        for definition in fields.items(answer, "TrainingJobDefinitions")
    ]
    given = fields.section(config, "HyperParameterTuningJobObjective")
    found = {_as_objective(item) for item in ([given] if given else shared)}
    return found.pop() if len(found) == 1 else None


def _as_objective(item: Mapping[str, Any]) -> Objective | None:
    metric, better = fields.text(item, "MetricName"), fields.text(item, "Type")
    if metric is None:
        return None
    directions = {direction.value: direction for direction in Direction}
    return Objective(metric, directions.get(better or ""))
