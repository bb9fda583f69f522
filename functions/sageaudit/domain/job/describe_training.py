"""The fields of a DescribeTrainingJob answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from sageaudit.domain.job import fields, job_outputs, phases
from sageaudit.domain.job.cluster import instances, purchase
from sageaudit.domain.job.data_version import data_pinned
from sageaudit.domain.job.job import CustomRule, DataSource, InputChannel, WarmPool
from sageaudit.domain.job.kept import DERIVED

_ENDED_EARLY = frozenset({"Failed", "Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"})


def fields_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Job that a training job's answer gives. Raises Malformed."""
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
        "entry_point": fields.text(fields.section(answer, DERIVED), "EntryPoint"),
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
    }


def _channels(answer: Mapping[str, Any], job_mode: str | None) -> Iterator[InputChannel]:
    for item in fields.items(answer, "InputDataConfig"):
        data = fields.section(item, "DataSource")
        s3 = fields.section(data, "S3DataSource")
        files = fields.section(data, "FileSystemDataSource")
        if s3:
            source = DataSource.S3
        elif files:
            source = (
                DataSource.FSX if files.get("FileSystemType") == "FSxLustre" else DataSource.EFS
            )
        else:
            source = DataSource.OTHER
        yield InputChannel(
            name=fields.text(item, "ChannelName") or "channel",
            source=source,
            mode=fields.text(item, "InputMode") or job_mode,
            distribution=fields.text(s3, "S3DataDistributionType"),
        )


def _addresses(answer: Mapping[str, Any]) -> Iterator[tuple[str | None, str | None]]:
    for item in fields.items(answer, "InputDataConfig"):
        s3 = fields.section(fields.section(item, "DataSource"), "S3DataSource")
        yield fields.text(item, "ChannelName"), fields.text(s3, "S3Uri")


def _left_artifact(answer: Mapping[str, Any], transitions: list[Mapping[str, Any]]) -> bool | None:
    """Whether a model reached S3; Describe gives a path even if no model was written.

    Recorded answers of completed jobs have ModelArtifacts (50 of 50), those of other jobs lack it
    (8 of 8). Where it lacks, the transitions of a run that ended early must be there to its end:
    without Uploading among them nothing was uploaded.
    """
    path = fields.text(fields.section(answer, "ModelArtifacts"), "S3ModelArtifacts")
    if any(item.get("Status") == "Uploading" for item in transitions):
        return True
    if "ModelArtifacts" not in answer:
        return False if transitions and transitions[-1].get("Status") in _ENDED_EARLY else None
    return False if path is None or transitions else None


def _custom_rules(answer: Mapping[str, Any]) -> Iterator[CustomRule]:
    """Debugger rules with their own instance type; built-in rules have none and are free."""
    for profiler in (False, True):
        key = "ProfilerRuleConfigurations" if profiler else "DebugRuleConfigurations"
        for rule in fields.items(answer, key):
            if instance_type := fields.text(rule, "InstanceType"):
                name = fields.text(rule, "RuleConfigurationName") or "without a name"
                yield CustomRule(name, instance_type, profiler)


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
