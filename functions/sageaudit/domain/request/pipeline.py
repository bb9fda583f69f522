"""The requests in a pipeline definition.

A step's Arguments are its job's request, without the job's name, which the pipeline sets. The
parameters' default values are filled in. Source: AWS's JSON schema of pipeline definitions, and
definitions that the SageMaker SDK writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.aws_names import plain_name
from sageaudit.domain.request.definitions import parse_definition
from sageaudit.domain.request.request import (
    REQUEST_SHAPES,
    Origin,
    ParsedRequests,
    Path,
    Request,
    UnknownValue,
    text,
)
from sageaudit.errors import MalformedData

_KIND_BY_STEP_TYPE = {
    "Training": JobKind.TRAINING,
    "Processing": JobKind.PROCESSING,
    "QualityCheck": JobKind.PROCESSING,
    "ClarifyCheck": JobKind.PROCESSING,
    "Transform": JobKind.TRANSFORM,
    "Tuning": JobKind.TUNING,
}
"""The steps whose arguments are the request of an audited job."""
_STEPS_WITHOUT_JOBS = {"Callback", "Condition", "Fail", "Lambda", "Model", "RegisterModel"}
"""The steps that start no job of SageMaker or EMR, and cost next to nothing."""
_NOT_STARTED = {
    "SageMaker.CAPACITY_ERROR",
    "SageMaker.RESOURCE_LIMIT",
    "Step.SERVICE_FAULT",
    "Step.THROTTLING",
}
"""The exceptions of a RetryPolicy for which the failed attempt has no instances, so no bill."""
_DEFINITION_NAMES = ("pipelinedefinition", "pipelinedefinitionbody")
_LOCATION_NAME = "pipelinedefinitions3location"
_BRANCH_KEYS = ("IfSteps", "ElseSteps")
_JOIN = "Std:Join"
_PARAMETER_PREFIX = "Parameters."
_WHOLE_FILE = Origin()
_MAX_JOINED_CHARACTERS = 1_000_000
"""The most characters that all joins of a definition may produce. AWS takes definitions of 1 MB."""
_MAX_DEPTH = 32
"""The most nested conditions that are read. AWS allows far fewer."""


def has_definition(holder: Mapping[str, Any]) -> bool:
    """Returns whether an object has a pipeline definition under AWS's key, or names it."""
    return any(plain_name(key) in (*_DEFINITION_NAMES, _LOCATION_NAME) for key in holder)


def open_definition(
    holder: Mapping[str, Any], origin: Origin = _WHOLE_FILE
) -> tuple[Mapping[str, Any], Origin]:
    """Returns the definition in a pipeline's request, answer or resource, and its place.

    `origin`: the place of `holder`, which may be the definition itself. Raises MalformedData.
    """
    definition = holder
    while has_definition(definition):
        key_by_name = {plain_name(key): key for key in definition}
        key = next((key_by_name[name] for name in _DEFINITION_NAMES if name in key_by_name), None)
        if key is None:
            raise MalformedData("its definition", "is in S3: give the file that is there")
        body, definition = definition[key], parse_definition(definition[key])
        is_inline = origin.is_inline and definition is body
        origin = Origin((*origin.base_path, key), is_inline=is_inline)
    return definition, origin


def requests_in_definition(
    definition: Mapping[str, Any],
    *,
    name: str | None = None,
    region: str | None = None,
    origin: Origin = _WHOLE_FILE,
    label: str = "",
) -> ParsedRequests:
    """Returns the requests of all steps of a pipeline, including those in branches of conditions.

    `name` is the pipeline's name, which its definition does not contain. `origin` says where the
    definition is in its file. `label` is a prefix of each step's label.
    """
    defaults = _defaults(definition.get("Parameters"))
    requests, unchecked, remaining_characters = [], [], [_MAX_JOINED_CHARACTERS]
    for step, place, branch in _steps(definition.get("Steps"), ("Steps",), None):
        title = f"{label}{_title(step)}"
        kind = _KIND_BY_STEP_TYPE.get(text(step.get("Type")))
        if kind is None:
            if step.get("Type") != "Condition":
                unchecked.append(f"{title}: {_type_text(step)} is not checked")
            continue
        arguments = step.get("Arguments")
        arguments_object = arguments if isinstance(arguments, Mapping) else {}
        values = _PipelineValues(defaults, remaining_characters)
        body = values.resolve(arguments_object)
        if not isinstance(body, Mapping):
            unchecked.append(f"{title}: its Arguments are not an object")
            continue
        step_name = f"pipeline/{name.lower()}/{text(step.get('Name'))}" if name else None
        requests.append(
            Request(
                kind=kind,
                body=body,
                label=title,
                shape=REQUEST_SHAPES[kind],
                origin=origin.of_part((*place, "Arguments")),
                name_source="its pipeline",
                region=region,
                step=step_name,
                is_pipeline_step=True,
                attempts=_attempts(step, kind),
                note=f"runs only in {branch}" if branch else None,
                parameters=values.used_parameters,
            )
        )
    return ParsedRequests(tuple(requests), tuple(unchecked))


def unpriced_steps(holder: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns a sentence for each step of a pipeline that starts a job which is not checked."""
    definition, _ = open_definition(holder)
    checked_types = _KIND_BY_STEP_TYPE.keys() | _STEPS_WITHOUT_JOBS
    return tuple(
        f"{_title(step)}: the cost of {_type_text(step)} is not known"
        for step, _, _ in _steps(definition.get("Steps"), ("Steps",), None)
        if text(step.get("Type")) not in checked_types
    )


def _title(step: Mapping[str, Any]) -> str:
    return f"step {text(step.get('Name')) or '(without a name)'}"


def _type_text(step: Mapping[str, Any]) -> str:
    """Returns the type of a step with its article, such as `an AutoML step`."""
    step_type = text(step.get("Type")) or "?"
    return f"{'an' if step_type[0] in 'AEIO' else 'a'} {step_type} step"


def _attempts(step: Mapping[str, Any], kind: JobKind) -> int | None:
    """Returns how many attempts of a step may be billed; None if its policies do not limit them.

    SageMaker does not retry a tuning job that failed. Source: SageMaker guide, retry policy for
    pipeline steps.
    """
    policies = step.get("RetryPolicies") or []
    attempts = 1
    if kind is JobKind.TUNING:
        return attempts
    for policy in policies if isinstance(policies, list) else [policies]:
        exceptions = policy.get("ExceptionType") if isinstance(policy, Mapping) else None
        if isinstance(exceptions, list) and _NOT_STARTED.issuperset(map(str, exceptions)):
            continue
        retries = policy.get("MaxAttempts") if isinstance(policy, Mapping) else None
        if not isinstance(retries, int):
            return None
        attempts += max(retries, 0)
    return attempts


def _defaults(parameters: object) -> dict[str, Any]:
    """Returns the default values of a pipeline's parameters, by name.

    A parameter without a plain default value gets an UnknownValue.
    """
    defaults: dict[str, Any] = {}
    for item in parameters if isinstance(parameters, list) else []:
        name = item.get("Name") if isinstance(item, Mapping) else None
        if isinstance(name, str):
            missing = UnknownValue(f"the pipeline parameter {name} has no default value")
            value = item.get("DefaultValue", missing)
            no_plain_value = UnknownValue(
                f"the default of the pipeline parameter {name} is no plain value"
            )
            defaults[name] = no_plain_value if isinstance(value, list | dict) else value
    return defaults


def _steps(
    steps: object, place: Path, branch: str | None
) -> Iterator[tuple[Mapping[str, Any], Path, str | None]]:
    """Yields each step, its path, and the branch of a condition that contains the step.

    The branch is None outside conditions.
    """
    if len(place) > 3 * _MAX_DEPTH or not isinstance(steps, list):
        return
    for index, step in enumerate(steps):
        if not isinstance(step, Mapping):
            continue
        yield step, (*place, index), branch
        arguments = step.get("Arguments")
        if step.get("Type") != "Condition" or not isinstance(arguments, Mapping):
            continue
        for key in _BRANCH_KEYS:
            title = f"{key} of {text(step.get('Name')) or 'a condition'}"
            yield from _steps(arguments.get(key), (*place, index, "Arguments", key), title)


class _PipelineValues(Struct, frozen=True):
    """Replaces the functions (Get, Std:Join) of a pipeline definition by their values.

    `remaining_characters` is a list of one number: the characters that joins may still produce.
    `used_parameters` names the pipeline parameter that each value comes from, by path.
    """

    defaults: Mapping[str, Any]
    remaining_characters: list[int]
    used_parameters: dict[Path, str] = field(default_factory=dict)

    def resolve(self, value: Any, place: Path = ()) -> Any:
        if isinstance(value, list):
            return [self.resolve(item, (*place, index)) for index, item in enumerate(value)]
        if not isinstance(value, Mapping):
            return value
        [(function, argument)] = value.items() if len(value) == 1 else [("", None)]
        if function == "Get" and isinstance(argument, str):
            return self._resolve_reference(argument, place)
        if function == _JOIN and isinstance(argument, Mapping):
            return self._resolve_join(argument)
        if function.startswith("Std:"):
            return UnknownValue(f"{function} is worked out when the pipeline runs")
        return {key: self.resolve(item, (*place, key)) for key, item in value.items()}

    def _resolve_reference(self, reference: str, place: Path) -> Any:
        """Returns an UnknownValue for anything but a parameter: only a run has its value."""
        name = reference.removeprefix(_PARAMETER_PREFIX)
        if name == reference:
            return UnknownValue(f"it is {reference} of the running pipeline")
        self.used_parameters[place] = name
        return self.defaults.get(name, UnknownValue(f"the pipeline has no parameter {name}"))

    def _resolve_join(self, call: Mapping[str, Any]) -> Any:
        separator, values = call.get("On", ""), call.get("Values")
        if not isinstance(values, list) or not isinstance(separator, str):
            return UnknownValue("its Std:Join has no list of values")
        resolver = _PipelineValues(self.defaults, self.remaining_characters)
        parts = [resolver.resolve(part) for part in values]
        unknown = next((part for part in parts if isinstance(part, UnknownValue)), None)
        if unknown is not None:
            return unknown
        texts = [_plain(part) for part in parts]
        self.remaining_characters[0] -= sum(map(len, texts)) + len(separator) * len(texts)
        if self.remaining_characters[0] < 0:
            return UnknownValue(f"what {_JOIN} gives is longer than any definition")
        return separator.join(texts)


def _plain(part: object) -> str:
    return str(part).lower() if isinstance(part, bool) else str(part)
