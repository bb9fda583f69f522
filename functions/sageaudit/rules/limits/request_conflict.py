"""AWS refuses the request: parameters exclude each other, or one is missing.

What it checks: AWS refuses a request with one of these:
    - Training: both or neither of TrainingImage and AlgorithmName.
    - Training: no instance type, or more than one of InstanceType, InstanceGroups and
      InstancePreferences.
    - Training: a warm pool with instance groups, or a channel for an instance group that is not in
      the request.
    - Training: no VolumeSizeInGB, although all its types need an EBS volume.
    - Any kind: VolumeKmsKeyId, although all its types have local NVMe storage.
    - Transform: MaxConcurrentTransforms x MaxPayloadInMB above 100 MB.
    - Tuning: Hyperband with TrainingJobEarlyStoppingType Auto.
    - Tuning: both or neither of TrainingJobDefinition and TrainingJobDefinitions.
    - Tuning: more training jobs in parallel than in total.
Why it costs: Nothing: AWS refuses the request.
Saving: None.
When it is wrong: Another tool may fill in a parameter before it sends the request. Serverless jobs,
    and types that the catalogue does not know, are not judged. If no payload size is set, AWS's
    default of 6 MB counts.
What to do: Change the parameter that the fix names. If two exclude each other, keep the one that
    you need.
Sources: botocore, AlgorithmSpecification: "You must specify either the algorithm name ... or the
    image URI"; ResourceConfig: InstancePreferences "is mutually exclusive with InstanceType,
    InstanceGroups", "When using an ML instance with the EBS-only storage option and without
    instance storage, you must define the size of EBS volume", VolumeKmsKeyId: "You can't request a
    VolumeKmsKeyId when using an instance type with local storage"; HyperParameterTuningJobConfig:
    "TrainingJobEarlyStoppingType must be OFF to use Hyperband". API reference, CreateTransformJob:
    "the value of (MaxConcurrentTransforms * MaxPayloadInMB) also cannot exceed 100 MB". SageMaker
    guide, heterogeneous clusters: no warm pools.
"""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.bill.billed_job import early_stopping_refusal
from sageaudit.domain.request.request import Request
from sageaudit.rules import api
from sageaudit.rules.processing.transform_requests import (
    CONCURRENT,
    DEFAULT_PAYLOAD_MB,
    MAX_PAYLOAD_MB,
    PAYLOAD,
)
from sageaudit.rules.tuning.trials import CONFIG, EARLY_STOPPING, MAX_PARALLEL, MAX_TRIALS

_IMAGE, _NAME = "AlgorithmSpecification.TrainingImage", "AlgorithmSpecification.AlgorithmName"
_TYPE, _GROUPS = "ResourceConfig.InstanceType", "ResourceConfig.InstanceGroups"
_PREFERRED = "ResourceConfig.InstancePreferences"
_TUNING = "HyperParameterTuningResourceConfig"
_SERVERLESS = "ServerlessJobConfig"
_KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"
_SINGLE_DEFINITION, _DEFINITION_LIST = "TrainingJobDefinition", "TrainingJobDefinitions"

_Conflicts = Iterator[tuple[str, api.Parameter]]
"""Each reason why AWS refuses the request, with the parameter that removes the conflict."""


@api.rule(
    id="SA608",
    scope=api.RequestCase,
    kinds={*api.INSTANCE_KINDS, api.JobKind.TUNING},
    not_applicable=(api.serverless_reason,),
    request_severity=api.Severity.HIGH,
)
def check(case: api.RequestCase) -> api.Outcome:
    """Reports all conflicts together. A value that is not known yet is in no conflict."""
    conflicts = [*_conflicts_by_kind(case.request), *_volume_conflicts(case)]
    if not conflicts:
        return api.Clear()
    reasons_text = "; ".join(reason for reason, _ in conflicts)
    return api.measured_fact(
        f"AWS refuses the request: {reasons_text}.",
        {"conflicts": len(conflicts)},
        fix=tuple(fix for _, fix in conflicts),
        caution="The job does not start.",
    )


def _conflicts_by_kind(request: Request) -> _Conflicts:
    if request.kind is api.JobKind.TRAINING:
        yield from _training_conflicts(request)
        yield from _unknown_group_conflicts(request)
    elif request.kind is api.JobKind.TRANSFORM:
        yield from _payload_conflicts(request)
    elif request.kind is api.JobKind.TUNING:
        yield from _tuning_conflicts(request)


def _training_conflicts(request: Request) -> _Conflicts:
    is_set, is_missing = request.is_set, request.is_missing
    if is_set(_IMAGE) and is_set(_NAME):
        yield "it has both TrainingImage and AlgorithmName", api.Parameter(_NAME, "set", None)
    if all(map(is_missing, (_IMAGE, _NAME, _SERVERLESS))):
        fix = api.Parameter(_IMAGE, None, "<image>")
        yield "it has neither TrainingImage nor AlgorithmName", fix
    chosen = [path for path in (_TYPE, _GROUPS, _PREFERRED) if is_set(path)]
    if all(map(is_missing, (_TYPE, _GROUPS, _PREFERRED, _TUNING, _SERVERLESS))):
        yield "it has no instance type", api.Parameter(_TYPE, None, "<instance type>")
    if len(chosen) > 1:
        names_text = " and ".join(path.rpartition(".")[2] for path in chosen)
        yield f"it has {names_text}", api.Parameter(chosen[0], "set", None)
    if is_set(_GROUPS) and is_set(_KEEP):
        fix = api.Parameter(_KEEP, "set", None)
        yield "a warm pool cannot have instance groups", fix


def _unknown_group_conflicts(request: Request) -> _Conflicts:
    groups, channels = request.value(_GROUPS), request.value("InputDataConfig")
    if not isinstance(groups, list) or not isinstance(channels, list):
        return
    names = [
        group.get("InstanceGroupName") if isinstance(group, dict) else group for group in groups
    ]
    if not all(isinstance(name, str) for name in names):
        return
    for position, channel in enumerate(channels):
        path = f"InputDataConfig[{position}].DataSource.S3DataSource.InstanceGroupNames"
        channel_groups = request.value(path)
        for index, name in enumerate(channel_groups if isinstance(channel_groups, list) else []):
            if isinstance(name, str) and name not in names:
                channel_name = channel.get("ChannelName", position)
                fix = api.Parameter(f"{path}[{index}]", name, "<one of InstanceGroups>")
                yield f"channel {channel_name} is for the unknown instance group {name}", fix


def _volume_conflicts(case: api.RequestCase) -> _Conflicts:
    """Yields a conflict for a missing volume size, and one for an encryption key without a volume.

    Only training requests can lack the size: processing and transform requests always give it, and
    the resources of a tuning job's definition need none.
    """
    config = case.request.kind.spec.cluster_path
    has_volume = {
        None if instance_type is None else instance_type.is_ebs_billed
        for instance_type in case.instance_types
    }
    size_path, key = f"{config}.VolumeSizeInGB", f"{config}.VolumeKmsKeyId"
    size_gb, is_training = case.request.value(size_path), case.request.kind is api.JobKind.TRAINING
    needs_size = is_training and case.request.is_missing(_TUNING)
    if has_volume == {True} and needs_size and size_gb in {None, 0}:
        reason = f"{case.job.instances} needs an EBS volume and VolumeSizeInGB is missing"
        yield reason, api.Parameter(size_path, size_gb, 30)
    if has_volume == {False} and case.request.is_set(key):
        reason = f"{case.job.instances} has local storage, which takes no VolumeKmsKeyId"
        yield reason, api.Parameter(key, "set", None)


def _payload_conflicts(request: Request) -> _Conflicts:
    concurrent, payload = request.value(CONCURRENT), request.value(PAYLOAD)
    size_mb = DEFAULT_PAYLOAD_MB if payload is None else payload
    if (
        isinstance(concurrent, int)
        and isinstance(size_mb, int)
        and concurrent * size_mb > MAX_PAYLOAD_MB
    ):
        fix = api.Parameter(CONCURRENT, concurrent, max(MAX_PAYLOAD_MB // size_mb, 1))
        payloads_text = (
            f"{concurrent} requests at a time of up to {size_mb} MB are {concurrent * size_mb} MB"
        )
        yield f"{payloads_text}, above AWS's limit of {MAX_PAYLOAD_MB} MB", fix


def _tuning_conflicts(request: Request) -> _Conflicts:
    stopping = request.value(EARLY_STOPPING)
    refusal = early_stopping_refusal(request.value(f"{CONFIG}.Strategy"))
    if refusal and stopping == "Auto":
        fix = api.Parameter(EARLY_STOPPING, stopping, "Off")
        yield f"{refusal}, so TrainingJobEarlyStoppingType must be Off", fix
    if request.is_missing(_SINGLE_DEFINITION) and request.is_missing(_DEFINITION_LIST):
        fix = api.Parameter(_SINGLE_DEFINITION, None, "<definition>")
        yield "it has no training job definition", fix
    if request.is_set(_SINGLE_DEFINITION) and request.is_set(_DEFINITION_LIST):
        yield (
            f"it has both {_SINGLE_DEFINITION} and {_DEFINITION_LIST}",
            api.Parameter(_SINGLE_DEFINITION, "set", None),
        )
    parallel, trials = request.value(MAX_PARALLEL), request.value(MAX_TRIALS)
    if isinstance(parallel, int) and isinstance(trials, int) and parallel > trials:
        fix = api.Parameter(MAX_PARALLEL, parallel, trials)
        yield f"it has {parallel} parallel training jobs, but {trials} in total", fix
