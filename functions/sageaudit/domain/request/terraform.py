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
from dataclasses import dataclass, replace
from typing import Any

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.pipeline import of_definition
from sageaudit.domain.request.request import CREATE, Origin, Request
from sageaudit.domain.request.validity import ApiModel
from sageaudit.domain.request.values import NotKnown, Path

_JOBS = {
    "aws_sagemaker_training_job": JobKind.TRAINING,
    "aws_sagemaker_hyper_parameter_tuning_job": JobKind.TUNING,
    "awscc_sagemaker_processing_job": JobKind.PROCESSING,
}
_PIPELINES = {"aws_sagemaker_pipeline", "awscc_sagemaker_pipeline"}
_RENAMED = {
    "CreateHyperParameterTuningJobRequest": {
        "name": "HyperParameterTuningJobName",
        "config": "HyperParameterTuningJobConfig",
    },
    "HyperParameterTuningJobConfig": {"objective": "HyperParameterTuningJobObjective"},
}
"""Arguments of aws_sagemaker_hyper_parameter_tuning_job with a shorter name than the API's."""
_LATER = NotKnown("known after apply")
_PLAN = ("planned_values", "root_module")
_NO_CHANGE = (["no-op"], ["read"], ["delete"], ["forget"])
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a plan; `left_out`: sentences about what is in it and cannot be checked.

    `aws`: whether any resource of the plan is AWS's.
    """

    requests: tuple[Request, ...]
    left_out: tuple[str, ...]
    aws: bool


def of_plan(plan: Mapping[str, Any], model: ApiModel) -> Plan:
    """The requests of all resources that a plan would create, replace or change."""
    changes = _changes(plan)
    requests: list[Request] = []
    left_out: list[str] = []
    aws = False
    for resource, place in _resources(plan):
        kind = _text(resource.get("type"))
        aws = (
            aws
            or kind.startswith(("aws_", "awscc_"))
            or "/aws" in _text(resource.get("provider_name"))
        )
        address = _text(resource.get("address")) or kind
        change = changes.get(address, {})
        values, unknown = resource.get("values"), change.get("after_unknown")
        if not isinstance(values, Mapping) or resource.get("mode") == "data":
            continue
        if kind not in _JOBS and kind not in _PIPELINES:
            continue
        if change.get("actions") in _NO_CHANGE:
            left_out.append(f"{address}: the plan does not change it")
            continue
        read = _Resource(kind, address, values, unknown, (*place, "values"), model)
        region = _text(values.get("region")) or _provider_region(plan, resource)
        if kind in _JOBS:
            requests.append(replace(read.job(_JOBS[kind]), region=region))
        else:
            found, sentences = read.pipeline(region)
            requests += found
            left_out += sentences
    return Plan(tuple(requests), tuple(left_out), aws)


def _changes(plan: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What becomes of each resource, by address: actions, and what is known after apply."""
    found: dict[str, dict[str, Any]] = {}
    listed = plan.get("resource_changes")
    for item in listed if isinstance(listed, list) else []:
        change = item.get("change") if isinstance(item, Mapping) else None
        if isinstance(change, Mapping) and isinstance(item.get("address"), str):
            found[item["address"]] = dict(change)
    return found


def _resources(plan: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Each resource of the plan with its path; of a plan without planned_values, of its changes."""
    root = plan.get(_PLAN[0])
    root = root.get(_PLAN[1]) if isinstance(root, Mapping) else None
    if isinstance(root, Mapping):
        yield from _of_module(root, _PLAN)
        return
    listed = plan.get("resource_changes")
    for index, item in enumerate(listed if isinstance(listed, list) else []):
        change = item.get("change") if isinstance(item, Mapping) else None
        if isinstance(change, Mapping) and isinstance(change.get("after"), Mapping):
            yield {**item, "values": change["after"]}, ("resource_changes", index)


def _of_module(module: Mapping[str, Any], place: Path) -> Iterator[tuple[Mapping[str, Any], Path]]:
    for key, nested in (("resources", False), ("child_modules", True)):
        listed = module.get(key)
        for index, item in enumerate(listed if isinstance(listed, list) else []):
            if not isinstance(item, Mapping):
                continue
            if not nested:
                yield item, (*place, key, index)
            elif len(place) < _DEEPEST:
                yield from _of_module(item, (*place, key, index))


def _provider_region(plan: Mapping[str, Any], resource: Mapping[str, Any]) -> str | None:
    """The region that the plan's configuration writes for the provider, if it is a constant."""
    found: Any = plan.get("configuration")
    provider = "awscc" if _text(resource.get("type")).startswith("awscc_") else "aws"
    for key in ("provider_config", provider, "expressions", "region", "constant_value"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return _text(found) or None


@dataclass(frozen=True, slots=True)
class _Resource:
    """One resource: its values, and in the same form what of them is known after apply."""

    type: str
    address: str
    values: Mapping[str, Any]
    unknown: object
    place: Path
    model: ApiModel

    def job(self, kind: JobKind) -> Request:
        """The request that the provider would send."""
        exact: dict[Path, Path] = {}
        body = self._structure(CREATE[kind], self.values, self.unknown, (), self.place, exact)
        return Request(
            kind=kind,
            body=body,
            label=self.address,
            shape=CREATE[kind],
            origin=Origin(self.place, exact),
            named_later="AWS" if self.type.startswith("awscc_") else None,
        )

    def pipeline(self, region: str | None) -> tuple[tuple[Request, ...], list[str]]:
        """The requests of its definition's steps."""
        key, values = "pipeline_definition", self.values
        text, place = values.get(key), (*self.place, key)
        later = _of(self.unknown, key)
        if isinstance(text, Mapping):
            later = _of(later, "pipeline_definition_body")
            text = text.get("pipeline_definition_body")
        if text is None or later is True:
            why = "is known after apply" if later is True else "is in S3, or missing"
            return (), [f"{self.address}: its definition {why}, so its steps are not checked"]
        try:
            definition = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            return (), [f"{self.address}: its definition is not JSON"]
        if not isinstance(definition, Mapping):
            return (), [f"{self.address}: its definition is not an object"]
        found = of_definition(
            definition,
            name=_text(values.get("pipeline_name")) or None,
            region=region,
            origin=Origin(place, inline=False),
            label=f"{self.address}, ",
        )
        return found.requests, list(found.left_out)

    def _structure(
        self,
        shape: str,
        values: Mapping[str, Any],
        unknown: object,
        at: Path,
        place: Path,
        exact: dict[Path, Path],
    ) -> dict[str, Any]:
        """An object by its arguments; what AWS's model does not have is the provider's own."""
        by_form = {name.lower(): name for name in self.model.members(shape)}
        renamed = _RENAMED.get(shape, {})
        keys = {*values, *(unknown if isinstance(unknown, Mapping) else ())}
        body: dict[str, Any] = {}
        for key in sorted(map(str, keys)):
            name = renamed.get(key) or by_form.get(key.replace("_", ""))
            if name is None:
                continue
            inner = self.model.members(shape)[name]["shape"]
            exact[(*at, name)] = (*place, key)
            value = self._value(
                inner, values.get(key), _of(unknown, key), (*at, name), (*place, key), exact
            )
            if value is not None:
                body[name] = value
        return body

    def _value(
        self,
        shape: str,
        value: Any,
        unknown: object,
        at: Path,
        place: Path,
        exact: dict[Path, Path],
    ) -> Any:
        if unknown is True:
            return _LATER
        of = self.model.shapes.get(shape, {})
        kind = of.get("type")
        if kind == "structure":
            if isinstance(value, list):
                if not value:
                    return None
                unknown = unknown[0] if isinstance(unknown, list) and unknown else unknown
                value, place = value[0], (*place, 0)
            if not isinstance(value, Mapping):
                return value
            return self._structure(shape, value, unknown, at, place, exact)
        if kind == "list" and isinstance(value, Mapping) and of["member"]["shape"] == "Tag":
            return [{"Key": key, "Value": tag} for key, tag in value.items()]
        if kind == "list" and isinstance(value, list):
            return self._list(of["member"]["shape"], value, unknown, at, place, exact) or None
        if kind == "map" and isinstance(value, Mapping):
            return {key: _LATER if _of(unknown, key) is True else v for key, v in value.items()}
        return value if value != "" else None

    def _list(
        self,
        shape: str,
        values: list[Any],
        unknown: object,
        at: Path,
        place: Path,
        exact: dict[Path, Path],
    ) -> list[Any]:
        """Each item; sensitive or unknown ones stay in their place."""
        items = []
        for index, value in enumerate(values):
            later = unknown[index] if isinstance(unknown, list) and index < len(unknown) else False
            exact[(*at, index)] = (*place, index)
            items.append(self._value(shape, value, later, (*at, index), (*place, index), exact))
        return items


def _of(unknown: object, key: str) -> object:
    if unknown is True:
        return True
    return unknown.get(key, False) if isinstance(unknown, Mapping) else False


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
