"""The settings that a policy may require, by their paths in a training request, and their values.

A kept answer has null for a setting that the job does not have, so that it differs from one that an
older kept answer lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.job import fields
from sageaudit.domain.job.fields import UNKNOWN, KeptAs, Paths
from sageaudit.domain.job.kinds import JobKind

RUN_LIMIT = "StoppingCondition.MaxRuntimeInSeconds"
"""The setting that limits the run time."""
SET = "set"
"""Stands for a value of which only that it is there is kept."""
SettingValue = bool | int | str | None
"""None: the job does not set it."""
_CLUSTER = "ProcessingResources.ClusterConfig"
_MISSING = object()


class Setting(Struct, frozen=True):
    """How a setting is kept, its paths in other kinds of jobs, and what AWS takes without it.

    A roll-up has the paths of the jobs that it launches, in each of its definitions, or none.
    """

    kept: KeptAs
    paths: Mapping[JobKind, str] = field(default_factory=dict)
    """By kind, beside training jobs."""
    default: SettingValue = None


def _paths_by_kind(processing: str, transform: str | None = None) -> dict[JobKind, str]:
    """The paths of a setting by kind."""
    paths = {JobKind.PROCESSING: processing, JobKind.TRANSFORM: transform}
    return {kind: path for kind, path in paths.items() if path is not None}


SETTINGS: Mapping[str, Setting] = {
    "EnableNetworkIsolation": Setting(
        KeptAs.SWITCH, _paths_by_kind("NetworkConfig.EnableNetworkIsolation"), default=False
    ),
    "EnableInterContainerTrafficEncryption": Setting(
        KeptAs.SWITCH,
        _paths_by_kind("NetworkConfig.EnableInterContainerTrafficEncryption"),
        default=False,
    ),
    "EnableManagedSpotTraining": Setting(KeptAs.SWITCH, default=False),
    "VpcConfig": Setting(KeptAs.GIVEN, _paths_by_kind("NetworkConfig.VpcConfig")),
    RUN_LIMIT: Setting(KeptAs.COUNT, _paths_by_kind(RUN_LIMIT), default=86_400),
    "StoppingCondition.MaxWaitTimeInSeconds": Setting(KeptAs.COUNT),
    "ResourceConfig.VolumeSizeInGB": Setting(
        KeptAs.COUNT, _paths_by_kind(f"{_CLUSTER}.VolumeSizeInGB")
    ),
    "ResourceConfig.VolumeKmsKeyId": Setting(
        KeptAs.GIVEN,
        _paths_by_kind(f"{_CLUSTER}.VolumeKmsKeyId", "TransformResources.VolumeKmsKeyId"),
    ),
    "ResourceConfig.KeepAlivePeriodInSeconds": Setting(KeptAs.COUNT),
    "OutputDataConfig.KmsKeyId": Setting(
        KeptAs.GIVEN, _paths_by_kind("ProcessingOutputConfig.KmsKeyId", "TransformOutput.KmsKeyId")
    ),
    "OutputDataConfig.CompressionType": Setting(KeptAs.STATE),
    "AlgorithmSpecification.TrainingInputMode": Setting(KeptAs.STATE),
    "CheckpointConfig.S3Uri": Setting(KeptAs.ADDRESS),
    "RetryStrategy.MaximumRetryAttempts": Setting(KeptAs.COUNT),
}
"""Sources: botocore's sagemaker model, the shapes Create*JobRequest and
HyperParameterTrainingJobDefinition; StoppingCondition: "The default value is 1 day"; a switch that
is not set is off.
"""


def kept_settings() -> Paths:
    """What of an answer is kept for them, of every kind."""
    training = {path: row.kept for path, row in SETTINGS.items()}
    return training | {
        path: row.kept
        for setting, row in SETTINGS.items()
        for path in (*row.paths.values(), *_in_definitions(setting))
    }


def _in_definitions(setting: str) -> Iterator[str]:
    """The paths of a setting in what roll-ups ask of the jobs that they launch."""
    for kind in JobKind:
        one, path = _definition(kind), path_of(kind, setting)
        if one and path:
            yield from (f"{one}.{path}", f"{one}s[].{path}")


def path_of(kind: JobKind, setting: str) -> str | None:
    """The setting's path in jobs of a kind, or None; of a tuning job, in its definitions."""
    rollup = kind.row.rollup
    asked = rollup.child_kind if rollup and rollup.definition else kind
    if asked is JobKind.TRAINING:
        return setting
    return SETTINGS[setting].paths.get(asked) if asked else None


def _definition(kind: JobKind) -> str | None:
    """The key of the requests for its jobs in a roll-up's; None of any other kind."""
    rollup = kind.row.rollup
    return rollup.definition if rollup else None


def places(kind: JobKind, body: Mapping[str, Any], setting: str) -> tuple[str, ...]:
    """The full paths of a setting in an answer or request: of a tuning job one a definition."""
    path, one = path_of(kind, setting), _definition(kind)
    if path is None:
        return ()
    if one is None:
        return (path,)
    several = body.get(f"{one}s")
    if isinstance(several, list) and several:
        return tuple(f"{one}s[{number}].{path}" for number in range(len(several)))
    return (f"{one}.{path}",) if isinstance(body.get(one), Mapping) else ()


def settings_of(kind: JobKind, kept: Mapping[str, Any]) -> dict[str, dict[str, SettingValue]]:
    """By setting the values that a kept answer has, by their full paths.

    A setting that the answer says nothing of is left out, and so is one with an unknown word.
    """
    found: dict[str, dict[str, SettingValue]] = {}
    for setting, row in SETTINGS.items():
        values = {place: _value(kept, place) for place in places(kind, kept, setting)}
        if values and _MISSING not in values.values():
            found[setting] = {place: shown(row, value) for place, value in values.items()}
    return found


def shown(setting: Setting, value: Any) -> SettingValue:
    """A value as it is kept; of an address or a key only that there is one."""
    hidden = setting.kept in {KeptAs.GIVEN, KeptAs.ADDRESS}
    kept: SettingValue = SET if hidden and value else None if hidden else value
    return kept


def mark_not_set(kind: JobKind, answer: Mapping[str, Any], kept: dict[str, Any]) -> None:
    """Writes null for each setting that AWS's own answer does not have, if it is whole."""
    known = filter(None, (path_of(kind, setting) for setting in SETTINGS))
    paths = [path.split(".") for path in known]
    for section, place in zip(_sections(kind, answer), _sections(kind, kept), strict=True):
        for path in paths if kind.row.required_key in section else ():
            _mark(place, path)


def _sections(kind: JobKind, body: Mapping[str, Any]) -> Iterator[Any]:
    """Where the settings are: of a tuning job, in each of its definitions."""
    one = _definition(kind)
    if one is None:
        yield body
        return
    yield from body.get(f"{one}s") or []
    if body.get(one) is not None:
        yield body[one]


def _mark(section: dict[str, Any], path: list[str]) -> None:
    """At the first part of the path that is not there."""
    for key in path[:-1]:
        inner = section.setdefault(key, None)
        if inner is None:
            return
        section = inner
    section.setdefault(path[-1], None)


def _value(kept: Mapping[str, Any], place: str) -> Any:
    """The value at a full path, None where it or a section around it is null, else _MISSING."""
    found: Any = kept
    for part in place.split("."):
        key, _, number = part.partition("[")
        if key not in found:
            return _MISSING
        found = found[key]
        if number:
            found = fields.items({key: found}, key)[int(number[:-1])]
        if found is None:
            return None
    return _MISSING if found == UNKNOWN else found
