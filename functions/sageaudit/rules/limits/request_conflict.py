"""A request that AWS refuses: parameters that exclude each other, or of which one is needed.

What it checks: Training: both or none of TrainingImage and AlgorithmName; no instances, or an
    InstanceType beside InstanceGroups or InstancePreferences; a warm pool with instance groups; a
    channel for an instance group that is not there; no VolumeSizeInGB on types that all need an EBS
    volume. Every job with instances: VolumeKmsKeyId on types that all have local NVMe storage.
    Transform: MaxConcurrentTransforms x MaxPayloadInMB above 100 MB. Tuning: Hyperband with
    TrainingJobEarlyStoppingType Auto; no training job definition, or both TrainingJobDefinition and
    TrainingJobDefinitions; more parallel training jobs than the search may start at all.
Why it costs: Nothing: AWS refuses the request.
Saving: None.
When it is wrong: Where another tool fills a parameter in before it sends the request. A type that
    the catalogue does not know is left out, and so are serverless jobs. A payload size that is not
    set is taken as 6 MB, as AWS does.
What to do: The fix names the parameter. Keep the one that is meant.
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
_KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"
_SINGLE_DEFINITION, _DEFINITION_LIST = "TrainingJobDefinition", "TrainingJobDefinitions"

_Conflicts = Iterator[tuple[str, api.Parameter]]
"""Why AWS refuses a request, each with what removes the reason."""


@api.rule(
    id="SA608",
    scope=api.RequestCase,
    kinds={*api.INSTANCE_KINDS, api.JobKind.TUNING},
    not_applicable=(api.serverless,),
    request_severity=api.Severity.HIGH,
)
def check(case: api.RequestCase) -> api.Outcome:
    """All of them at once; a value that is not known yet counts as set."""
    found = [*_by_kind(case.request), *_volumes(case)]
    if not found:
        return api.Clear()
    reasons = "; ".join(why for why, _ in found)
    return api.measured_fact(
        f"AWS refuses the request: {reasons}.",
        {"conflicts": len(found)},
        fix=tuple(fix for _, fix in found),
        caution="The job does not start.",
    )


def _by_kind(request: Request) -> _Conflicts:
    if request.kind is api.JobKind.TRAINING:
        yield from _training(request)
        yield from _unknown_groups(request)
    elif request.kind is api.JobKind.TRANSFORM:
        yield from _payloads(request)
    elif request.kind is api.JobKind.TUNING:
        yield from _search(request)


def _training(request: Request) -> _Conflicts:
    has = request.is_set
    if has(_IMAGE) and has(_NAME):
        yield "it has both TrainingImage and AlgorithmName", api.Parameter(_NAME, "set", None)
    if not has(_IMAGE) and not has(_NAME):
        fix = api.Parameter(_IMAGE, None, "<image>")
        yield "it has neither TrainingImage nor AlgorithmName", fix
    chosen = [path for path in (_TYPE, _GROUPS, _PREFERRED) if has(path)]
    if not chosen and not has(_TUNING):
        yield "it has no instance type", api.Parameter(_TYPE, None, "<instance type>")
    if len(chosen) > 1:
        names = " and ".join(path.rpartition(".")[2] for path in chosen)
        yield f"it has {names}", api.Parameter(chosen[0], "set", None)
    if has(_GROUPS) and has(_KEEP):
        fix = api.Parameter(_KEEP, "set", None)
        yield "a warm pool does not take instance groups", fix


def _unknown_groups(request: Request) -> _Conflicts:
    """Channels for an instance group that the request does not have."""
    groups, channels = request.value(_GROUPS), request.value("InputDataConfig")
    if not isinstance(groups, list) or not isinstance(channels, list):
        return
    names = [group.get("InstanceGroupName") for group in groups if isinstance(group, dict)]
    if any(isinstance(name, api.UnknownValue) for name in names):
        return
    for position, channel in enumerate(channels):
        path = f"InputDataConfig[{position}].DataSource.S3DataSource.InstanceGroupNames"
        asked = request.value(path)
        for number, name in enumerate(asked if isinstance(asked, list) else []):
            if isinstance(name, str) and name not in names:
                of = channel.get("ChannelName", position)
                fix = api.Parameter(f"{path}[{number}]", name, "<one of InstanceGroups>")
                yield f"channel {of} is for the instance group {name}, which is not there", fix


def _volumes(case: api.RequestCase) -> _Conflicts:
    """A volume needs a size, which processing and transform requests must give anyway."""
    config = case.request.kind.spec.cluster_path
    volumes = {None if found is None else found.is_ebs_billed for found in case.instance_types}
    size, key = f"{config}.VolumeSizeInGB", f"{config}.VolumeKmsKeyId"
    given, training = case.request.value(size), case.request.kind is api.JobKind.TRAINING
    if volumes == {True} and training and not given:
        why = f"{case.job.instances} needs an EBS volume and VolumeSizeInGB is missing"
        yield why, api.Parameter(size, given, 30)
    if volumes == {False} and case.request.value(key):
        why = f"{case.job.instances} has local storage, which takes no VolumeKmsKeyId"
        yield why, api.Parameter(key, "set", None)


def _payloads(request: Request) -> _Conflicts:
    at_once, payload = request.value(CONCURRENT), request.value(PAYLOAD)
    size_mb = DEFAULT_PAYLOAD_MB if payload is None else payload
    if isinstance(at_once, int) and isinstance(size_mb, int) and at_once * size_mb > MAX_PAYLOAD_MB:
        fix = api.Parameter(CONCURRENT, at_once, max(MAX_PAYLOAD_MB // size_mb, 1))
        total = f"{at_once} requests at a time of up to {size_mb} MB are {at_once * size_mb} MB"
        yield f"{total}, and it takes {MAX_PAYLOAD_MB} MB", fix


def _search(request: Request) -> _Conflicts:
    stopping = request.value(EARLY_STOPPING)
    why = early_stopping_refusal(request.value(f"{CONFIG}.Strategy"))
    if why and stopping == "Auto":
        fix = api.Parameter(EARLY_STOPPING, stopping, "Off")
        yield f"{why}, and takes no early stopping of the tuning job", fix
    one, several = request.value(_SINGLE_DEFINITION), request.value(_DEFINITION_LIST)
    if not one and not several:
        fix = api.Parameter(_SINGLE_DEFINITION, None, "<definition>")
        yield "it has no definition of its training jobs", fix
    if one and several:
        yield (
            f"it has {_SINGLE_DEFINITION} and {_DEFINITION_LIST}",
            api.Parameter(_SINGLE_DEFINITION, "set", None),
        )
    parallel, trials = request.value(MAX_PARALLEL), request.value(MAX_TRIALS)
    if isinstance(parallel, int) and isinstance(trials, int) and parallel > trials:
        fix = api.Parameter(MAX_PARALLEL, parallel, trials)
        yield f"{parallel} training jobs in parallel are more than the {trials} of the search", fix
