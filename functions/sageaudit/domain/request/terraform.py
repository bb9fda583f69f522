"""The jobs of a Terraform plan, as `terraform show -json` prints it.

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

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.request import (
    CREATE,
    FoundRequests,
    NotKnown,
    Origin,
    Path,
    Request,
    text,
)
from sageaudit.domain.request.sources import of_definition
from sageaudit.domain.request.validity import ApiModel
from sageaudit.errors import Malformed

_JOBS = {
    "aws_sagemaker_training_job": JobKind.TRAINING,
    "aws_sagemaker_hyper_parameter_tuning_job": JobKind.TUNING,
    "awscc_sagemaker_processing_job": JobKind.PROCESSING,
}
_PIPELINES = {"aws_sagemaker_pipeline", "awscc_sagemaker_pipeline"}
SHORTENED = "hyper_parameter_tuning_job_"
"""What arguments of aws_sagemaker_hyper_parameter_tuning_job leave out of the API's names."""
_LATER = NotKnown("known after apply")
_NO_CHANGE = (["no-op"], ["read"], ["delete"], ["forget"])


def of_plan(plan: Mapping[str, Any], model: ApiModel) -> FoundRequests:
    """The requests of all resources that a plan would create, replace or change.

    Raises Malformed for a plan without any resource of AWS.
    """
    resources = [*_resources(plan.get("resource_changes"))]
    if not any(_is_aws(resource) for resource, _, _ in resources):
        raise Malformed("the top level", "is a plan without any resource of AWS")
    requests: list[Request] = []
    left_out: list[str] = []
    for resource, change, place in resources:
        kind, values = text(resource.get("type")), change.get("after")
        if not isinstance(values, Mapping) or resource.get("mode") == "data":
            continue
        address, stays = text(resource.get("address")) or kind, change.get("actions") in _NO_CHANGE
        if kind not in _JOBS and kind not in _PIPELINES:
            continue
        if stays:
            left_out.append(f"{address}: the plan does not change it")
            continue
        region = text(values.get("region")) or _provider_region(plan, kind)
        unknown = change.get("after_unknown")
        if kind in _JOBS:
            requests.append(_job(kind, address, values, unknown, place, model, region))
        else:
            found = _pipeline(address, values, unknown, place, region)
            requests += found.requests
            left_out += found.left_out
    return FoundRequests(tuple(requests), tuple(left_out))


def _is_aws(resource: Mapping[str, Any]) -> bool:
    kind, provider = text(resource.get("type")), text(resource.get("provider_name"))
    return kind.startswith(("aws_", "awscc_")) or "/aws" in provider


def _resources(listed: object) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], Path]]:
    """Each resource of the plan, in any module, with its change and the path of its values."""
    for index, item in enumerate(listed if isinstance(listed, list) else []):
        change = item.get("change") if isinstance(item, Mapping) else None
        if isinstance(change, Mapping):
            yield item, change, ("resource_changes", index, "change", "after")


def _provider_region(plan: Mapping[str, Any], kind: str) -> str | None:
    """The region that the plan's configuration writes for the provider, if it is a constant."""
    found: Any = plan.get("configuration")
    provider = "awscc" if kind.startswith("awscc_") else "aws"
    for key in ("provider_config", provider, "expressions", "region", "constant_value"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return text(found) or None


def _job(
    kind: str,
    address: str,
    values: Mapping[str, Any],
    unknown: object,
    place: Path,
    model: ApiModel,
    region: str | None,
) -> Request:
    """The request that the provider would send."""
    shape = CREATE[_JOBS[kind]]
    later = unknown if isinstance(unknown, Mapping) else {}
    if "tags_all" in {*values, *later}:  # with the provider's default tags
        values = {**values, "tags": values.get("tags_all")}
        unknown = {**later, "tags": later.get("tags_all", False)}
    return Request(
        kind=_JOBS[kind],
        body=_structure(model, shape, values, unknown),
        label=address,
        shape=shape,
        origin=Origin(place, inline=False, terraform=True),
        named_later="AWS" if kind.startswith("awscc_") else None,
        region=region,
    )


def _pipeline(
    address: str, values: Mapping[str, Any], unknown: object, place: Path, region: str | None
) -> FoundRequests:
    """The requests of a pipeline's steps."""
    key = "pipeline_definition"
    written, later = values.get(key), _of(unknown, key)
    if isinstance(written, Mapping):
        later = _of(later, "pipeline_definition_body")
        written = written.get("pipeline_definition_body")
    if written is None or later is True:
        why = "is known after apply" if later is True else "is in S3, or missing"
        sentence = f"{address}: its definition {why}, so its steps are not checked"
        return FoundRequests((), (sentence,))
    try:
        definition = json.loads(written)
    except (TypeError, ValueError, RecursionError):
        definition = None
    if not isinstance(definition, Mapping):
        return FoundRequests((), (f"{address}: its definition is no JSON object",))
    return of_definition(
        definition,
        name=text(values.get("pipeline_name")) or None,
        region=region,
        origin=Origin((*place, key), inline=False),
        label=f"{address}, ",
    )


def _structure(
    model: ApiModel, shape: str, values: Mapping[str, Any], unknown: object
) -> dict[str, Any]:
    """An object by its arguments; what AWS's model does not have is the provider's own.

    `unknown` has in the same form what is known after apply.
    """
    members = model.members(shape)
    by_form = {name.lower(): name for name in members}
    body: dict[str, Any] = {}
    for key in sorted({*values, *(unknown if isinstance(unknown, Mapping) else ())}):
        forms = (form.replace("_", "") for form in (key, SHORTENED + key))
        name = next((by_form[form] for form in forms if form in by_form), None)
        if name is not None:
            value = _value(model, members[name]["shape"], values.get(key), _of(unknown, key))
            if value is not None:
                body[name] = value
    return body


def _value(model: ApiModel, shape: str, value: Any, unknown: object) -> Any:
    if unknown is True:
        return _LATER
    of = model.shapes.get(shape, {})
    kind = of.get("type")
    if kind == "structure" and isinstance(value, list):
        if not value:
            return None
        unknown = unknown[0] if isinstance(unknown, list) and unknown else unknown
        value = value[0]
    if kind == "structure" and isinstance(value, Mapping):
        return _structure(model, shape, value, unknown)
    if kind == "list" and isinstance(value, Mapping) and of["member"]["shape"] == "Tag":
        later = (
            {key for key in unknown if _of(unknown, key)} if isinstance(unknown, Mapping) else {}
        )
        known = [{"Key": key, "Value": tag} for key, tag in value.items() if key not in later]
        return [*known, *({"Key": key, "Value": _LATER} for key in sorted(later))]
    if kind == "list" and isinstance(value, list):
        later = unknown if isinstance(unknown, list) else []
        items = zip_longest(value, later[: len(value)], fillvalue=False)
        return [_value(model, of["member"]["shape"], item, late) for item, late in items] or None
    if kind == "map" and isinstance(value, Mapping):
        return {key: _LATER if _of(unknown, key) is True else v for key, v in value.items()}
    return value if value != "" else None


def _of(unknown: object, key: str) -> object:
    if unknown is True:
        return True
    return unknown.get(key, False) if isinstance(unknown, Mapping) else False
