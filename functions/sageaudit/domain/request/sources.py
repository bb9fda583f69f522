"""The requests in a pipeline definition or a Terraform plan.

A step's Arguments are its job's request, without the job's name, which the pipeline sets. The
parameters' default values are filled in. Source: AWS's JSON schema of pipeline definitions, and
definitions that the SageMaker SDK writes.

A Terraform plan is read as `terraform show -json` prints it.

| resource | since | what is read |
|---|---|---|
| aws_sagemaker_training_job | provider aws 6.38 (2026) | the whole resource |
| aws_sagemaker_hyper_parameter_tuning_job | provider aws (April 2026) | the whole resource |
| aws_sagemaker_pipeline | | pipeline_definition |
| awscc_sagemaker_processing_job | | the whole resource |
| awscc_sagemaker_pipeline | | pipeline_definition.pipeline_definition_body |

The providers name an argument like AWS's parameter, in snake case (`volume_size_in_gb`), and write
an object as a list of one. Source: the providers' documentation (hashicorp/terraform-provider-aws,
hashicorp/terraform-provider-awscc) and Terraform's page on its JSON output format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.request import (
    REQUEST_SHAPES,
    Origin,
    ParsedRequests,
    Path,
    Request,
    UnknownValue,
    text,
)
from sageaudit.domain.request.validity import ApiModel
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
_BRANCH_KEYS = ("IfSteps", "ElseSteps")
_JOIN = "Std:Join"
_PARAMETER_PREFIX = "Parameters."
_WHOLE_FILE = Origin()
_MAX_JOINED_CHARACTERS = 1_000_000
"""The most characters that all joins of a definition may produce. AWS takes definitions of 1 MB."""
_MAX_DEPTH = 32
"""The most nested conditions that are read. AWS allows far fewer."""

_KIND_BY_RESOURCE_TYPE = {
    "aws_sagemaker_training_job": JobKind.TRAINING,
    "aws_sagemaker_hyper_parameter_tuning_job": JobKind.TUNING,
    "awscc_sagemaker_processing_job": JobKind.PROCESSING,
}
_PIPELINE_RESOURCE_TYPES = {"aws_sagemaker_pipeline", "awscc_sagemaker_pipeline"}
TUNING_ARGUMENT_PREFIX = "hyper_parameter_tuning_job_"
"""Some of AWS's parameter names begin with this. The arguments of
aws_sagemaker_hyper_parameter_tuning_job omit it."""
_KNOWN_AFTER_APPLY = UnknownValue("known after apply")
_UNCHANGING_ACTIONS = (["no-op"], ["read"], ["delete"], ["forget"])
"""The actions of a plan that neither create nor change a resource."""


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
        title = f"{label}step {text(step.get('Name')) or '(without a name)'}"
        kind = _KIND_BY_STEP_TYPE.get(text(step.get("Type")))
        if kind is None:
            if step.get("Type") != "Condition":
                unchecked.append(f"{title}: a {text(step.get('Type')) or '?'} step is not checked")
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
                origin=Origin((*origin.base_path, *place, "Arguments"))
                if origin.is_inline
                else origin,
                name_source="its pipeline",
                region=region,
                step=step_name,
                is_pipeline_step=True,
                note=f"runs only in {branch}" if branch else None,
                parameters=values.used_parameters,
            )
        )
    return ParsedRequests(tuple(requests), tuple(unchecked))


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


def requests_in_plan(plan: Mapping[str, Any], model: ApiModel) -> ParsedRequests:
    """Returns the requests of all resources that a plan would create, replace or change.

    Raises MalformedData for a plan without any AWS resource.
    """
    resources = [*_resources(plan.get("resource_changes"))]
    if not any(_is_aws(resource) for resource, _, _ in resources):
        raise MalformedData("the top level", "is a plan without any resource of AWS")
    requests: list[Request] = []
    unchecked: list[str] = []
    for resource, change, place in resources:
        resource_type, values = text(resource.get("type")), change.get("after")
        if not isinstance(values, Mapping) or resource.get("mode") == "data":
            continue
        address, is_unchanged = (
            text(resource.get("address")) or resource_type,
            change.get("actions") in _UNCHANGING_ACTIONS,
        )
        if (
            resource_type not in _KIND_BY_RESOURCE_TYPE
            and resource_type not in _PIPELINE_RESOURCE_TYPES
        ):
            continue
        if is_unchanged:
            unchecked.append(f"{address}: the plan does not change it")
            continue
        region = text(values.get("region")) or _provider_region(plan, resource_type)
        unknown = change.get("after_unknown")
        if resource_type in _KIND_BY_RESOURCE_TYPE:
            requests.append(
                _job_request(resource_type, address, values, unknown, place, model, region)
            )
        else:
            parsed = _pipeline_requests(address, values, unknown, place, region)
            requests += parsed.requests
            unchecked += parsed.unchecked_sentences
    return ParsedRequests(tuple(requests), tuple(unchecked))


def _is_aws(resource: Mapping[str, Any]) -> bool:
    resource_type, provider = text(resource.get("type")), text(resource.get("provider_name"))
    return resource_type.startswith(("aws_", "awscc_")) or "/aws" in provider


def _resources(resources: object) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], Path]]:
    for index, item in enumerate(resources if isinstance(resources, list) else []):
        change = item.get("change") if isinstance(item, Mapping) else None
        if isinstance(change, Mapping):
            yield item, change, ("resource_changes", index, "change", "after")


def _provider_region(plan: Mapping[str, Any], resource_type: str) -> str | None:
    """Returns None unless the plan's configuration has the region as a constant."""
    value: Any = plan.get("configuration")
    provider = "awscc" if resource_type.startswith("awscc_") else "aws"
    for key in ("provider_config", provider, "expressions", "region", "constant_value"):
        value = value.get(key) if isinstance(value, Mapping) else None
    return text(value) or None


def _job_request(
    resource_type: str,
    address: str,
    values: Mapping[str, Any],
    unknown: object,
    place: Path,
    model: ApiModel,
    region: str | None,
) -> Request:
    shape = REQUEST_SHAPES[_KIND_BY_RESOURCE_TYPE[resource_type]]
    unknown_members = unknown if isinstance(unknown, Mapping) else {}
    if "tags_all" in {*values, *unknown_members}:  # with the provider's default tags
        values = {**values, "tags": values.get("tags_all")}
        unknown = {**unknown_members, "tags": unknown_members.get("tags_all", False)}
    return Request(
        kind=_KIND_BY_RESOURCE_TYPE[resource_type],
        body=_aws_structure(model, shape, values, unknown),
        label=address,
        shape=shape,
        origin=Origin(place, is_inline=False, is_terraform=True),
        name_source="AWS" if resource_type.startswith("awscc_") else None,
        region=region,
    )


def _pipeline_requests(
    address: str, values: Mapping[str, Any], unknown: object, place: Path, region: str | None
) -> ParsedRequests:
    key = "pipeline_definition"
    definition_text, unknown_definition = values.get(key), _unknown_part(unknown, key)
    if isinstance(definition_text, Mapping):
        unknown_definition = _unknown_part(unknown_definition, "pipeline_definition_body")
        definition_text = definition_text.get("pipeline_definition_body")
    if definition_text is None or unknown_definition is True:
        reason = "is known after apply" if unknown_definition is True else "is in S3, or missing"
        sentence = f"{address}: its definition {reason}, so its steps are not checked"
        return ParsedRequests((), (sentence,))
    try:
        definition = json.loads(definition_text)
    except (TypeError, ValueError, RecursionError):
        definition = None
    if not isinstance(definition, Mapping):
        return ParsedRequests((), (f"{address}: its definition is not a JSON object",))
    return requests_in_definition(
        definition,
        name=text(values.get("pipeline_name")) or None,
        region=region,
        origin=Origin((*place, key), is_inline=False),
        label=f"{address}, ",
    )


def _aws_structure(
    model: ApiModel, shape: str, values: Mapping[str, Any], unknown: object
) -> dict[str, Any]:
    """Returns the AWS request that a Terraform resource makes.

    Arguments that AWS's request lacks are left out. `shape`: the request's shape in `model`.
    `unknown` has the same structure as `values`, with True for what is known only after apply.
    """
    members = model.members(shape)
    member_by_plain_name = {name.lower(): name for name in members}
    body: dict[str, Any] = {}
    for key in sorted({*values, *(unknown if isinstance(unknown, Mapping) else ())}):
        plain_names = (
            plain_name.replace("_", "") for plain_name in (key, TUNING_ARGUMENT_PREFIX + key)
        )
        name = next(
            (
                member_by_plain_name[plain_name]
                for plain_name in plain_names
                if plain_name in member_by_plain_name
            ),
            None,
        )
        if name is not None:
            value = _aws_value(
                model, members[name]["shape"], values.get(key), _unknown_part(unknown, key)
            )
            if value is not None:
                body[name] = value
    return body


def _aws_value(model: ApiModel, shape: str, value: Any, unknown: object) -> Any:
    """Returns None for an empty argument."""
    if unknown is True:
        return _KNOWN_AFTER_APPLY
    spec = model.shapes.get(shape, {})
    kind = spec.get("type")
    if kind == "structure" and isinstance(value, list):
        if not value:
            return None
        unknown = unknown[0] if isinstance(unknown, list) and unknown else unknown
        value = value[0]
    if kind == "structure" and isinstance(value, Mapping):
        return _aws_structure(model, shape, value, unknown)
    if kind == "list" and isinstance(value, Mapping) and spec["member"]["shape"] == "Tag":
        unknown_keys = (
            {key for key in unknown if _unknown_part(unknown, key)}
            if isinstance(unknown, Mapping)
            else {}
        )
        tags = [{"Key": key, "Value": tag} for key, tag in value.items() if key not in unknown_keys]
        return [*tags, *({"Key": key, "Value": _KNOWN_AFTER_APPLY} for key in sorted(unknown_keys))]
    if kind == "list" and isinstance(value, list):
        unknown_items = unknown if isinstance(unknown, list) else []
        items = zip_longest(value, unknown_items[: len(value)], fillvalue=False)
        return [
            _aws_value(model, spec["member"]["shape"], item, item_unknown)
            for item, item_unknown in items
        ] or None
    if kind == "map" and isinstance(value, Mapping):
        return {
            key: _KNOWN_AFTER_APPLY if _unknown_part(unknown, key) is True else item
            for key, item in value.items()
        }
    return value if value != "" else None


def _unknown_part(unknown: object, key: str) -> object:
    """Returns what is unknown in the value under `key`.

    True: the whole value is known only after apply. False: nothing is unknown.
    """
    if unknown is True:
        return True
    return unknown.get(key, False) if isinstance(unknown, Mapping) else False
