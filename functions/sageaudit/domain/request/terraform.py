"""The requests in a Terraform plan, as `terraform show -json` prints it.

| resource | since | what is read |
|---|---|---|
| aws_sagemaker_training_job | provider aws 6.38 (2026) | the whole resource |
| aws_sagemaker_hyper_parameter_tuning_job | provider aws (April 2026) | the whole resource |
| aws_sagemaker_pipeline | | pipeline_definition |
| awscc_sagemaker_processing_job | | the whole resource |
| awscc_sagemaker_pipeline | | pipeline_definition.pipeline_definition_body |
| aws_sfn_state_machine | | definition |

The providers name an argument like AWS's parameter, in snake case (`volume_size_in_gb`), and write
an object as a list of one. Source: the providers' documentation (hashicorp/terraform-provider-aws,
hashicorp/terraform-provider-awscc) and Terraform's page on its JSON output format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.aws_names import AwsNames
from sageaudit.domain.request.definitions import parse_definition
from sageaudit.domain.request.pipeline import requests_in_definition
from sageaudit.domain.request.request import (
    MAX_REQUESTS,
    REQUEST_SHAPES,
    Origin,
    ParsedRequests,
    Path,
    Request,
    UnknownValue,
    text,
)
from sageaudit.domain.request.state_machine import requests_in_state_machine
from sageaudit.domain.request.validity import ApiModel
from sageaudit.errors import MalformedData

_KIND_BY_RESOURCE_TYPE = {
    "aws_sagemaker_training_job": JobKind.TRAINING,
    "aws_sagemaker_hyper_parameter_tuning_job": JobKind.TUNING,
    "awscc_sagemaker_processing_job": JobKind.PROCESSING,
}
_STATE_MACHINE = "aws_sfn_state_machine"
_DEFINITION_KEYS = {
    "aws_sagemaker_pipeline": ("pipeline_definition",),
    "awscc_sagemaker_pipeline": ("pipeline_definition", "pipeline_definition_body"),
    _STATE_MACHINE: ("definition",),
}
"""The path of the definition in a resource, by type."""
TUNING_ARGUMENT_PREFIX = "hyper_parameter_tuning_job_"
"""Some of AWS's parameter names begin with this. The arguments of
aws_sagemaker_hyper_parameter_tuning_job omit it."""
_KNOWN_AFTER_APPLY = UnknownValue("known after apply")
_UNCHANGING_ACTIONS = (["no-op"], ["read"], ["delete"], ["forget"])
"""The actions of a plan that neither create nor change a resource."""


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
        if len(requests) > MAX_REQUESTS:  # the definitions after them take minutes to read
            break
        resource_type, values = text(resource.get("type")), change.get("after")
        if not isinstance(values, Mapping) or resource.get("mode") == "data":
            continue
        if resource_type not in _KIND_BY_RESOURCE_TYPE and resource_type not in _DEFINITION_KEYS:
            continue
        address = text(resource.get("address")) or resource_type
        if change.get("actions") in _UNCHANGING_ACTIONS:
            unchecked.append(f"{address}: the plan does not change it")
            continue
        region = text(values.get("region")) or _provider_region(plan, resource_type)
        values = _with_unknown(values, change.get("after_unknown"))
        if resource_type in _KIND_BY_RESOURCE_TYPE:
            requests.append(_job_request(resource_type, address, values, place, model, region))
        else:
            parsed = _definition_requests(resource_type, address, values, place, region)
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
    place: Path,
    model: ApiModel,
    region: str | None,
) -> Request:
    shape = REQUEST_SHAPES[_KIND_BY_RESOURCE_TYPE[resource_type]]
    if "tags_all" in values:  # with the provider's default tags
        values = {**values, "tags": values["tags_all"]}
    names = AwsNames(model, omitted_prefix=TUNING_ARGUMENT_PREFIX)
    return Request(
        kind=_KIND_BY_RESOURCE_TYPE[resource_type],
        body=names.structure(shape, values),
        label=address,
        shape=shape,
        origin=Origin(place, is_inline=False, is_terraform=True),
        name_source="AWS" if resource_type.startswith("awscc_") else None,
        region=region,
    )


def _definition_requests(
    resource_type: str, address: str, values: Mapping[str, Any], place: Path, region: str | None
) -> ParsedRequests:
    """Returns the requests in the definition of a pipeline or state machine."""
    definition: Any = values
    for key in _DEFINITION_KEYS[resource_type]:
        definition = definition.get(key) if isinstance(definition, Mapping) else definition
    reason = "is known after apply" if isinstance(definition, UnknownValue) else None
    if definition is None:
        reason = "is in S3, or missing"
    if reason is not None:
        sentence = f"{address}: its definition {reason}, so its steps are not checked"
        return ParsedRequests((), (sentence,))
    try:
        parsed = parse_definition(definition)
    except MalformedData as error:
        return ParsedRequests((), (f"{address}: {error}, so its steps are not checked",))
    origin, label = Origin((*place, _DEFINITION_KEYS[resource_type][0]), is_inline=False), address
    if resource_type == _STATE_MACHINE:
        return requests_in_state_machine(parsed, region=region, origin=origin, label=f"{label}, ")
    return requests_in_definition(
        parsed,
        name=text(values.get("pipeline_name")) or None,
        region=region,
        origin=origin,
        label=f"{label}, ",
    )


def _with_unknown(value: Any, unknown: object) -> Any:
    """Returns a resource's values with an UnknownValue for each that is known only after apply.

    `unknown` has the same structure, with True for each such value.
    """
    if unknown is True:
        return _KNOWN_AFTER_APPLY
    if isinstance(value, Mapping) and isinstance(unknown, Mapping):
        keys = dict.fromkeys((*value, *sorted(unknown)))
        return {key: _with_unknown(value.get(key), unknown.get(key)) for key in keys}
    if isinstance(value, list) and isinstance(unknown, list):
        return [_with_unknown(*pair) for pair in zip_longest(value, unknown[: len(value)])]
    return value
