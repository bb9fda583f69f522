"""The settings that a policy may require: their paths in a training request, and their values.

A stored answer has null for a setting that the job does not have. Older stored answers lack some
settings; these are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.job import fields
from sageaudit.domain.job.fields import UNKNOWN, Paths, StoredAs
from sageaudit.domain.job.kinds import JobKind

RUN_LIMIT = "StoppingCondition.MaxRuntimeInSeconds"
"""The setting that limits the run time."""
PRESENT = "set"
"""Stored instead of a value whose presence alone matters."""
SettingValue = bool | int | str | None
"""The value of a setting; None if the job does not set it."""
_CLUSTER = "ProcessingResources.ClusterConfig"
_MISSING = object()


class Setting(Struct, frozen=True):
    """How a setting is stored, its paths by kind of job, and AWS's default.

    A roll-up's definitions have the same paths as the jobs that it launches.
    """

    stored_as: StoredAs
    paths: Mapping[JobKind, str] = field(default_factory=dict)
    """The setting's path by kind, except for training jobs."""
    default: SettingValue = None


def _paths_by_kind(processing: str, transform: str | None = None) -> dict[JobKind, str]:
    paths = {JobKind.PROCESSING: processing, JobKind.TRANSFORM: transform}
    return {kind: path for kind, path in paths.items() if path is not None}


SETTINGS: Mapping[str, Setting] = {
    "EnableNetworkIsolation": Setting(
        StoredAs.FLAG, _paths_by_kind("NetworkConfig.EnableNetworkIsolation"), default=False
    ),
    "EnableInterContainerTrafficEncryption": Setting(
        StoredAs.FLAG,
        _paths_by_kind("NetworkConfig.EnableInterContainerTrafficEncryption"),
        default=False,
    ),
    "EnableManagedSpotTraining": Setting(StoredAs.FLAG, default=False),
    "VpcConfig": Setting(StoredAs.PRESENCE, _paths_by_kind("NetworkConfig.VpcConfig")),
    RUN_LIMIT: Setting(StoredAs.COUNT, _paths_by_kind(RUN_LIMIT), default=86_400),
    "StoppingCondition.MaxWaitTimeInSeconds": Setting(StoredAs.COUNT),
    "ResourceConfig.VolumeSizeInGB": Setting(
        StoredAs.COUNT, _paths_by_kind(f"{_CLUSTER}.VolumeSizeInGB")
    ),
    "ResourceConfig.VolumeKmsKeyId": Setting(
        StoredAs.PRESENCE,
        _paths_by_kind(f"{_CLUSTER}.VolumeKmsKeyId", "TransformResources.VolumeKmsKeyId"),
    ),
    "ResourceConfig.KeepAlivePeriodInSeconds": Setting(StoredAs.COUNT),
    "OutputDataConfig.KmsKeyId": Setting(
        StoredAs.PRESENCE,
        _paths_by_kind("ProcessingOutputConfig.KmsKeyId", "TransformOutput.KmsKeyId"),
    ),
    "OutputDataConfig.CompressionType": Setting(StoredAs.STATE),
    "AlgorithmSpecification.TrainingInputMode": Setting(StoredAs.STATE),
    "CheckpointConfig.S3Uri": Setting(StoredAs.ADDRESS),
    "RetryStrategy.MaximumRetryAttempts": Setting(StoredAs.COUNT),
}
"""The settings by path in a training request.

Sources: botocore's sagemaker model, the shapes Create*JobRequest and
HyperParameterTrainingJobDefinition; StoppingCondition: "The default value is 1 day"; a switch that
is not set is off."""


def stored_setting_paths() -> Paths:
    """Returns how each setting is stored, by its path in answers of any kind."""
    training = {path: row.stored_as for path, row in SETTINGS.items()}
    return training | {
        path: row.stored_as
        for setting, row in SETTINGS.items()
        for path in (*row.paths.values(), *_definition_paths(setting))
    }


def _definition_paths(setting: str) -> Iterator[str]:
    for kind in JobKind:
        rollup, path = _definition(kind), setting_path(kind, setting)
        if rollup and path:
            yield from (f"{rollup}.{path}", f"{rollup}s[].{path}")


@cache  # every answer has all settings of its kind
def setting_path(kind: JobKind, setting: str) -> str | None:
    """Returns a setting's path in jobs of a kind; None if the kind does not have the setting.

    For a tuning job, the path is relative to a definition of its training jobs.
    """
    rollup = kind.spec.rollup
    job_kind = rollup.child_kind if rollup and rollup.definition_key else kind
    if job_kind is JobKind.TRAINING:
        return setting
    return SETTINGS[setting].paths.get(job_kind) if job_kind else None


def _definition(kind: JobKind) -> str | None:
    rollup = kind.spec.rollup
    return rollup.definition_key if rollup else None


def setting_paths(kind: JobKind, body: Mapping[str, Any], setting: str) -> tuple[str, ...]:
    """Returns a setting's full paths in an answer or request.

    A tuning job has one path for each of its definitions.
    """
    path, key = setting_path(kind, setting), _definition(kind)
    if path is None:
        return ()
    if key is None:
        return (path,)
    definitions = body.get(f"{key}s")
    if isinstance(definitions, list) and definitions:
        return tuple(f"{key}s[{number}].{path}" for number in range(len(definitions)))
    return (f"{key}.{path}",) if isinstance(body.get(key), Mapping) else ()


def read_settings(
    kind: JobKind, stored_settings: Mapping[str, Any]
) -> dict[str, dict[str, SettingValue]]:
    """Returns the values of the settings in a stored answer, by setting and full path.

    Settings that are absent from the answer or unknown are left out.
    """
    result: dict[str, dict[str, SettingValue]] = {}
    for setting, spec in SETTINGS.items():
        values = {
            place: _value(stored_settings, place)
            for place in setting_paths(kind, stored_settings, setting)
        }
        if values and _MISSING not in values.values():
            result[setting] = {place: stored_value(spec, value) for place, value in values.items()}
    return result


def stored_value(setting: Setting, value: Any) -> SettingValue:
    """Returns a value in its stored form. For an address or a key, this is only its presence."""
    is_hidden = setting.stored_as in {StoredAs.PRESENCE, StoredAs.ADDRESS}
    stored: SettingValue = PRESENT if is_hidden and value else None if is_hidden else value
    return stored


def mark_unset_settings(
    kind: JobKind, answer: Mapping[str, Any], stored_settings: dict[str, Any]
) -> None:
    """Writes null into `stored_settings` for each setting that AWS's complete answer lacks."""
    known_settings = filter(None, (setting_path(kind, setting) for setting in SETTINGS))
    paths = [path.split(".") for path in known_settings]
    for section, place in zip(
        _sections(kind, answer), _sections(kind, stored_settings), strict=True
    ):
        for path in paths if kind.spec.required_key in section else ():
            _set_null(place, path)


def _sections(kind: JobKind, body: Mapping[str, Any]) -> Iterator[Any]:
    key = _definition(kind)
    if key is None:
        yield body
        return
    yield from body.get(f"{key}s") or []
    if body.get(key) is not None:
        yield body[key]


def _set_null(section: dict[str, Any], path: list[str]) -> None:
    for key in path[:-1]:
        inner = section.setdefault(key, None)
        if inner is None:
            return
        section = inner
    section.setdefault(path[-1], None)


def _value(stored_settings: Mapping[str, Any], place: str) -> Any:
    """Returns None if a part of the path is null, _MISSING if a part is absent."""
    value: Any = stored_settings
    for part in place.split("."):
        key, _, number = part.partition("[")
        if key not in value:
            return _MISSING
        value = value[key]
        if number:
            value = fields.items({key: value}, key)[int(number[:-1])]
        if value is None:
            return None
    return _MISSING if value == UNKNOWN else value
