"""A sanitized Describe answer and its tags for sharing: what audits read, under pseudonyms.

Nothing is kept unless it is named here: fields that audits do not read (roles, keys, networks,
users and whatever AWS adds later) are left out. Free texts become the class that audits read in
them. Numbers, times, types and states stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from sageaudit.domain.audit.pseudonyms import Pseudonyms
from sageaudit.domain.job import entry_point, failure_words, hints, job_outputs
from sageaudit.domain.job.family import FINGERPRINT
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.exemption import TAG as EXEMPTION
from sageaudit.domain.policy.policy import Policy

NOT_SHARED = "not shared"
"""In place of a free text in which no class is known."""
_STATE = re.compile(r"[A-Za-z0-9][\w.:+-]{0,63}\Z", re.ASCII)
_PULLS = frozenset({"Downloading", "DownloadingTrainingImage"})
_KNOWN_TAGS = frozenset(
    {
        *Policy().owner_tags, EXEMPTION, "Name", "name", "project", "Project", "env", "environment",
        "stage", "cost-center", "sagemaker:pipeline-step-name",
        "sagemaker:pipeline-execution-arn",
    }
)  # fmt: skip
"""Names of tags that stay: those that audits read by default, and common ones."""

_Leaf = Callable[[Pseudonyms, str], str]
_Shape = Mapping[str, "_Leaf | _Shape"]


def _state(names: Pseudonyms, text: str) -> str:
    """One of AWS's own words, an instance type, a number or a time."""
    return text if _STATE.match(text) else names.word("wrd", text)


_S3: _Shape = {"S3Uri": Pseudonyms.address, "S3DataType": _state, "S3DataDistributionType": _state}
_INPUT: _Shape = {
    "ChannelName": Pseudonyms.channel,
    "InputMode": _state,
    "DataSource": {
        "S3DataSource": _S3,
        "FileSystemDataSource": {"FileSystemType": _state},
        "DatasetSource": {},
    },
}
_OBJECTIVE: _Shape = {"MetricName": Pseudonyms.metric, "Type": _state}
_CLUSTER: _Shape = {
    **dict.fromkeys(
        (
            *("InstanceType", "InstanceCount", "SelectedInstanceType", "SelectedInstanceCount"),
            *("VolumeSizeInGB", "KeepAlivePeriodInSeconds"),
        ),
        _state,
    ),
    "InstanceGroups": {
        "InstanceGroupName": lambda names, text: names.word("grp", text),
        "InstanceType": _state,
        "InstanceCount": _state,
    },
    "TrainingPlanArn": Pseudonyms.arn,
    "InstancePreferences": {"InstanceType": _state, "TrainingPlanArns": Pseudonyms.arn},
}
_RULE: _Shape = {"RuleConfigurationName": Pseudonyms.debugger_rule, "InstanceType": _state}
_EVALUATION: _Shape = {
    "RuleConfigurationName": Pseudonyms.debugger_rule,
    "RuleEvaluationStatus": _state,
}
_ANSWER: _Shape = {
    **{f"{kind.row.prefix}JobName": Pseudonyms.job for kind in JobKind},
    **{f"{kind.row.prefix}JobArn": Pseudonyms.arn for kind in JobKind},
    **{f"{kind.row.prefix}JobStatus": _state for kind in JobKind},
    **{f"{kind.row.prefix}{end}Time": _state for kind in JobKind for end in ("Start", "End")},
    **dict.fromkeys(
        (
            *("TuningJobArn", "AutoMLJobArn", "LabelingJobArn", "MonitoringScheduleArn"),
            "TrainingJobArn",
        ),
        Pseudonyms.arn,
    ),
    **dict.fromkeys(
        (
            *("CreationTime", "LastModifiedTime", "SecondaryStatus", "EnableNetworkIsolation"),
            *("EnableManagedSpotTraining", "TrainingTimeInSeconds", "BillableTimeInSeconds"),
            *("ProfilingStatus", "BatchStrategy", "MaxConcurrentTransforms", "MaxPayloadInMB"),
        ),
        _state,
    ),
    "ResourceConfig": _CLUSTER,
    "AlgorithmSpecification": {
        "TrainingInputMode": _state,
        "MetricDefinitions": {"Name": Pseudonyms.metric},
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": _state, "MaxWaitTimeInSeconds": _state},
    "InputDataConfig": _INPUT,
    "CheckpointConfig": {"S3Uri": Pseudonyms.address},
    "OutputDataConfig": {"S3OutputPath": Pseudonyms.address, "CompressionType": _state},
    "ModelArtifacts": {"S3ModelArtifacts": Pseudonyms.address},
    "WarmPoolStatus": {"Status": _state, "ResourceRetainedBillableTimeInSeconds": _state},
    "ProfilerConfig": {"DisableProfiler": _state, "ProfilingIntervalInMilliseconds": _state},
    "ProfilerRuleConfigurations": _RULE,
    "DebugRuleConfigurations": _RULE,
    "ProfilerRuleEvaluationStatuses": _EVALUATION,
    "DebugRuleEvaluationStatuses": _EVALUATION,
    "FinalMetricDataList": {"MetricName": Pseudonyms.metric, "Value": _state, "Timestamp": _state},
    "ProcessingResources": {"ClusterConfig": _CLUSTER},
    "AppSpecification": {},
    "NetworkConfig": {"EnableNetworkIsolation": _state},
    "ProcessingInputs": {
        "InputName": Pseudonyms.channel,
        "S3Input": {**_S3, "S3InputMode": _state},
    },
    "ProcessingOutputConfig": {
        "Outputs": {
            "OutputName": Pseudonyms.channel,
            "AppManaged": _state,
            "S3Output": {"S3Uri": Pseudonyms.address, "S3UploadMode": _state},
        }
    },
    "TransformResources": _CLUSTER,
    "ModelName": Pseudonyms.model,
    "TransformInput": {"DataSource": {"S3DataSource": _S3}, "SplitType": _state},
    "TransformOutput": {"S3OutputPath": Pseudonyms.address, "AssembleWith": _state},
    "HyperParameterTuningJobConfig": {
        "Strategy": _state,
        "TrainingJobEarlyStoppingType": _state,
        "ResourceLimits": {"MaxNumberOfTrainingJobs": _state, "MaxParallelTrainingJobs": _state},
        "HyperParameterTuningJobObjective": _OBJECTIVE,
    },
    "TrainingJobDefinitions": {"TuningObjective": _OBJECTIVE},
    "TrainingJobStatusCounters": dict.fromkeys(
        ("Completed", "InProgress", "RetryableError", "NonRetryableError", "Stopped"), _state
    ),
    entry_point.ENTRY_POINT: Pseudonyms.script,
    job_outputs.TUNED_FOR: Pseudonyms.metric,
    FINGERPRINT: lambda names, text: names.word("fpr", text),
}
"""What is kept of an answer, with the function that a text goes through. Lists are walked into."""


def anonymous_answer(
    answer: Mapping[str, Any], names: Pseudonyms, own_account: str | None
) -> dict[str, Any]:
    """A sanitized answer for sharing. `own_account`: whose images are not AWS's."""
    kept: dict[str, Any] = _walked(answer, _ANSWER, names)
    for part, key in (
        ("AlgorithmSpecification", "TrainingImage"),
        ("AppSpecification", "ImageUri"),
    ):
        image = _section(answer, part).get(key)
        if isinstance(image, str) and image:
            kept[part][key] = names.image(image, own_account)
    if isinstance(name := _section(answer, "AlgorithmSpecification").get("AlgorithmName"), str):
        kept["AlgorithmSpecification"]["AlgorithmName"] = names.word("alg", name)
    if "SecondaryStatusTransitions" in answer:
        rows = answer["SecondaryStatusTransitions"]
        kept["SecondaryStatusTransitions"] = [
            _transition(row, names) for row in rows if isinstance(row, Mapping)
        ]
    if answer.get("ServerlessJobConfig"):
        kept["ServerlessJobConfig"] = {"JobType": NOT_SHARED}
    if found := hints.kept(hints.of_answer(answer)):
        kept[hints.KEY] = found
    if answer.get("FailureReason") or answer.get("ExitMessage"):
        said = failure_words.of_answer(answer)
        kept["FailureReason"] = said or NOT_SHARED
        if said:
            kept[failure_words.KEY] = said
    return kept


def _walked(value: Any, shape: _Leaf | _Shape, names: Pseudonyms) -> Any:
    if isinstance(value, list | tuple):
        return [_walked(one, shape, names) for one in value]
    if callable(shape):
        return shape(names, value) if isinstance(value, str) and value else _number(value)
    if not isinstance(value, Mapping):
        return _number(value)
    return {key: _walked(value[key], inner, names) for key, inner in shape.items() if key in value}


def _number(value: Any) -> Any:
    return None if isinstance(value, Mapping) else value


def _section(answer: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = answer.get(key)
    return value if isinstance(value, Mapping) else {}


def _transition(row: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    """A phase; of its message only whether it names the image, which tells what is downloaded."""
    times: _Shape = {"Status": _state, "StartTime": _state, "EndTime": _state}
    kept: dict[str, Any] = _walked(row, times, names)
    message = row.get("StatusMessage")
    if row.get("Status") in _PULLS and isinstance(message, str) and message:
        kept["StatusMessage"] = f"Downloading {'the image' if 'image' in message else 'data'}"
    return kept


def anonymous_tags(
    tags: Mapping[str, str], names: Pseudonyms, rules: frozenset[str]
) -> dict[str, str]:
    """Tags for sharing: values, and names that are not common, become pseudonyms.

    An exemption stays with the names of rules and its date, so that it has the same effect.
    """
    return {
        name if name in _KNOWN_TAGS else names.word("tag", name): _tag(name, value, names, rules)
        for name, value in tags.items()
    }


def _tag(name: str, value: str, names: Pseudonyms, rules: frozenset[str]) -> str:
    if name == EXEMPTION:
        return " ".join(_exempt(word, names, rules) for word in value.split())
    if not value:
        return value
    return names.arn(value) if value.startswith("arn:") else names.word("val", value)


def _exempt(word: str, names: Pseudonyms, rules: frozenset[str]) -> str:
    key, sign, until = word.partition("=")
    if not sign:
        return word if word in rules else names.word("val", word)
    try:
        return f"until={date.fromisoformat(until)}" if key == "until" else "-=-"
    except ValueError:
        return "until=-"
