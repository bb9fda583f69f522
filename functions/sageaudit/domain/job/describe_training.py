"""The fields of a DescribeTrainingJob answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from sageaudit.domain.job import fields, job_outputs, phases
from sageaudit.domain.job.data_version import CODE_INPUTS, data_pinned
from sageaudit.domain.job.job import Channel, CustomRule, InstanceGroup, Purchase, Source, WarmPool

_SCRIPT = re.compile(r"[\w./][\w./+-]*\Z")
ENTRY_POINT = "EntryPoint"
"""Where a scrubbed answer keeps it, beside what AWS said."""
_SDK_PREFIX = "sagemaker_"
"""Hyperparameters that the SageMaker SDK adds itself: job name, source archive, log level."""


def fields_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Job's fields that only a training job has, or reads in its own way."""
    resources = fields.section(answer, "ResourceConfig")
    algorithm = fields.section(answer, "AlgorithmSpecification")
    stopping = fields.section(answer, "StoppingCondition")
    chosen, unknown = instances(resources)
    transitions = fields.items(answer, "SecondaryStatusTransitions")
    begun, over = phases.run_of(transitions)
    start = fields.time(answer, "TrainingStartTime") or begun
    end = fields.time(answer, "TrainingEndTime") or (over if start else None)
    split = phases.from_transitions(transitions, start, end)
    split_up = start is None or any(phase.billed for phase in split)
    created = fields.time(answer, "CreationTime")
    seconds = fields.count(answer, "TrainingTimeInSeconds")
    billable = fields.count(answer, "BillableTimeInSeconds")
    return {
        "secondary_status": fields.text(answer, "SecondaryStatus"),
        "started_at": start,
        "ended_at": end,
        "phases": split if split_up else phases.whole_run("Running", created, start, end),
        "groups": chosen,
        "groups_unknown": unknown,
        "purchase": purchase(answer, resources, chosen),
        "training_s": None if seconds is None else Decimal(seconds),
        "billable_s": None if billable is None else Decimal(billable),
        "volume_gb": fields.count(resources, "VolumeSizeInGB"),
        "channels": tuple(_channels(answer, fields.text(algorithm, "TrainingInputMode"))),
        "image": fields.text(algorithm, "TrainingImage") or fields.text(algorithm, "AlgorithmName"),
        "entry_point": entry_point(answer),
        "max_runtime_s": fields.count(stopping, "MaxRuntimeInSeconds"),
        "max_wait_s": fields.count(stopping, "MaxWaitTimeInSeconds"),
        "checkpointed": bool(fields.section(answer, "CheckpointConfig").get("S3Uri")),
        "left_artifact": _left_artifact(answer, transitions),
        "warm_pool": _warm_pool(answer, resources),
        "custom_rules": tuple(_custom_rules(answer)),
        "data_pinned": data_pinned(_addresses(answer)),
        "image_pull_in_download": job_outputs.image_pull_in_download(transitions),
        "output_compression": fields.text(
            fields.section(answer, "OutputDataConfig"), "CompressionType"
        ),
        "network_isolation": fields.known_flag(answer, "EnableNetworkIsolation"),
        "profiled": job_outputs.profiled(answer),
        "evaluations": tuple(job_outputs.evaluations(answer)),
        "metric_names": job_outputs.metric_names(algorithm),
        "final_metrics": job_outputs.final_metrics(answer),
        "objective": job_outputs.objective(answer),
        "hashed": {
            "image": algorithm.get("TrainingImage") or algorithm.get("AlgorithmName"),
            "entry": entry_point(answer),
            "data": _data(answer),
            "hyperparameters": {
                name: value
                for name, value in fields.section(answer, "HyperParameters").items()
                if not name.startswith(_SDK_PREFIX)
            },
            "environment": answer.get("Environment"),
        },
    }


def instances(
    resources: Mapping[str, Any],
) -> tuple[tuple[InstanceGroup, ...], tuple[str, ...]]:
    """The instances that are billed, and a sentence for each part that is not known.

    "The job is billed for this instance type and count": botocore on SelectedInstanceType. A pair
    of which one half is there is unknown; nothing falls back from it.
    """
    for prefix in ("Selected", ""):
        kind = fields.text(resources, f"{prefix}InstanceType")
        count = fields.count(resources, f"{prefix}InstanceCount")
        if kind and count:
            return (InstanceGroup(kind, count),), ()
        if kind or (count and prefix):
            return (), (f"the instance {'count' if kind else 'type'} is not known",)
    known, unknown = [], []
    for group in fields.items(resources, "InstanceGroups"):
        name = fields.text(group, "InstanceGroupName")
        kind, count = fields.text(group, "InstanceType"), fields.count(group, "InstanceCount")
        if kind and count:
            known.append(InstanceGroup(kind, count, name))
        else:
            lacks = "count" if kind else "type"
            unknown.append(f"instance group {name or '?'}: its {lacks} is not known")
    return tuple(known), tuple(unknown)


def purchase(
    answer: Mapping[str, Any], resources: Mapping[str, Any], chosen: tuple[InstanceGroup, ...]
) -> Purchase:
    """How the capacity was bought."""
    if answer.get("ServerlessJobConfig"):
        return Purchase.SERVERLESS
    if fields.text(resources, "TrainingPlanArn") or _preference_has_plan(resources, chosen):
        return Purchase.TRAINING_PLAN
    return Purchase.SPOT if fields.flag(answer, "EnableManagedSpotTraining") else Purchase.ON_DEMAND


def _preference_has_plan(resources: Mapping[str, Any], chosen: tuple[InstanceGroup, ...]) -> bool:
    """Has the preference that was selected a training plan? A type appears only once in them."""
    selected = {group.instance_type for group in chosen}
    return any(
        fields.text(item, "InstanceType") in selected
        and isinstance(plans := item.get("TrainingPlanArns"), list)
        and bool(plans)
        for item in fields.items(resources, "InstancePreferences")
    )


def _data(answer: Mapping[str, Any]) -> list[Any]:
    """The channels that hold data: the SDK's own code channels lie at another address each run."""
    channels = fields.items(answer, "InputDataConfig")
    return [item for item in channels if item.get("ChannelName") not in CODE_INPUTS]


def _channels(answer: Mapping[str, Any], job_mode: str | None) -> Iterator[Channel]:
    for item in fields.items(answer, "InputDataConfig"):
        data = fields.section(item, "DataSource")
        s3 = fields.section(data, "S3DataSource")
        files = fields.section(data, "FileSystemDataSource")
        if s3:
            source = Source.S3
        elif files:
            source = Source.FSX if files.get("FileSystemType") == "FSxLustre" else Source.EFS
        else:
            source = Source.OTHER
        yield Channel(
            name=fields.text(item, "ChannelName") or "channel",
            source=source,
            mode=fields.text(item, "InputMode") or job_mode,
            distribution=fields.text(s3, "S3DataDistributionType"),
        )


def _addresses(answer: Mapping[str, Any]) -> Iterator[tuple[str | None, str | None]]:
    for item in fields.items(answer, "InputDataConfig"):
        s3 = fields.section(fields.section(item, "DataSource"), "S3DataSource")
        yield fields.text(item, "ChannelName"), fields.text(s3, "S3Uri")


def entry_point(answer: Mapping[str, Any]) -> str | None:
    """The script: `sagemaker_program` of the SDK, a JSON string; the end of a processing command.

    A scrubbed answer has neither, and keeps its name.
    """
    program = fields.section(answer, "HyperParameters").get("sagemaker_program")
    if isinstance(program, str):
        return script(program.strip('"'))
    command = fields.section(answer, "AppSpecification").get("ContainerEntrypoint")
    if isinstance(command, list) and command:
        return script(str(command[-1]))
    kept = fields.text(answer, ENTRY_POINT)
    return script(kept) if kept else None


def script(word: str) -> str | None:
    """A script's file name; None for anything else, such as an inline command with its secrets."""
    return word.rpartition("/")[2] or None if _SCRIPT.match(word) else None


def _left_artifact(answer: Mapping[str, Any], transitions: list[Mapping[str, Any]]) -> bool | None:
    """Did a model reach S3? Describe names the path also of a model that was never written."""
    path = fields.text(fields.section(answer, "ModelArtifacts"), "S3ModelArtifacts")
    if any(item.get("Status") == "Uploading" for item in transitions):
        return True
    if "ModelArtifacts" not in answer:
        return None
    return False if path is None or transitions else None


def _custom_rules(answer: Mapping[str, Any]) -> Iterator[CustomRule]:
    """Rules with an instance type of their own; built-in ones have none and are free."""
    for profiler in (False, True):
        key = "ProfilerRuleConfigurations" if profiler else "DebugRuleConfigurations"
        for rule in fields.items(answer, key):
            if kind := fields.text(rule, "InstanceType"):
                name = fields.text(rule, "RuleConfigurationName") or "without a name"
                yield CustomRule(name, kind, profiler)


def _warm_pool(answer: Mapping[str, Any], resources: Mapping[str, Any]) -> WarmPool | None:
    keep_alive = fields.count(resources, "KeepAlivePeriodInSeconds")
    status = fields.section(answer, "WarmPoolStatus")
    if not keep_alive and not status:
        return None
    retained = fields.count(status, "ResourceRetainedBillableTimeInSeconds")
    return WarmPool(
        status=fields.text(status, "Status"),
        keep_alive_s=keep_alive,
        retained_s=None if retained is None else Decimal(retained),
    )
