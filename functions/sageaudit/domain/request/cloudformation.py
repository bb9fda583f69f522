"""The requests in a CloudFormation template, also in one that the CDK or SAM writes.

| resource | what is read |
|---|---|
| AWS::SageMaker::TrainingJob, ProcessingJob, TransformJob | the whole resource |
| AWS::SageMaker::Pipeline | PipelineDefinition.PipelineDefinitionBody |
| AWS::StepFunctions::StateMachine | Definition or DefinitionString |
| AWS::Serverless::StateMachine | Definition |

A resource's properties have the names of the API. Source: CloudFormation's template reference,
which has no resource of a tuning job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.aws_names import AwsNames
from sageaudit.domain.request.definitions import parse_definition
from sageaudit.domain.request.pipeline import open_definition, requests_in_definition
from sageaudit.domain.request.placeholders import mark_unknown
from sageaudit.domain.request.request import (
    REQUEST_SHAPES,
    Origin,
    ParsedRequests,
    Path,
    Request,
    text,
)
from sageaudit.domain.request.state_machine import requests_in_state_machine
from sageaudit.domain.request.validity import ApiModel
from sageaudit.errors import MalformedData

_PREFIX = "AWS::SageMaker::"
_KIND_BY_TYPE = {
    f"{_PREFIX}{kind.spec.prefix}Job": kind
    for kind in (JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM)
}
_STATE_MACHINE_TYPES = {"AWS::StepFunctions::StateMachine", "AWS::Serverless::StateMachine"}
_STATE_MACHINE_KEYS = ("Definition", "DefinitionString")
_UNCHECKED_ENDINGS = ("JobDefinition", "Job", "MonitoringSchedule")
"""The endings of other types of resources that start jobs."""


def is_template(document: Mapping[str, Any]) -> bool:
    """Returns whether a document has CloudFormation resources."""
    return any(_resources(document))


def requests_in_template(template: Mapping[str, Any], model: ApiModel) -> ParsedRequests:
    """Returns the requests of all resources. Raises MalformedData if none can start a job."""
    parts = [
        part
        for name, resource in _resources(template)
        if (part := _resource_requests(name, resource, model)) is not None
    ]
    if not parts:
        raise MalformedData(
            "the top level",
            "is a CloudFormation template without a SageMaker job, pipeline or state machine",
        )
    return ParsedRequests(
        tuple(request for part in parts for request in part.requests),
        tuple(sentence for part in parts for sentence in part.unchecked_sentences),
    )


def _resources(template: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    resources = template.get("Resources")
    for name, resource in resources.items() if isinstance(resources, Mapping) else ():
        if isinstance(resource, Mapping) and "::" in text(resource.get("Type")):
            yield str(name), resource


def _resource_requests(
    name: str, resource: Mapping[str, Any], model: ApiModel
) -> ParsedRequests | None:
    """Returns the requests of one resource; None if it is not about jobs."""
    resource_type, properties = text(resource.get("Type")), resource.get("Properties")
    properties = properties if isinstance(properties, Mapping) else {}
    place: Path = ("Resources", name, "Properties")
    if (kind := _KIND_BY_TYPE.get(resource_type)) is not None:
        return _job_request(name, kind, properties, place, model)
    if resource_type == f"{_PREFIX}Pipeline":
        return _pipeline_requests(name, properties, place)
    if resource_type in _STATE_MACHINE_TYPES:
        return _state_machine_requests(name, properties, place)
    if resource_type.startswith(_PREFIX) and resource_type.endswith(_UNCHECKED_ENDINGS):
        return _unchecked(name, f"sageaudit does not check {resource_type}")
    return None


def _job_request(
    name: str, kind: JobKind, properties: Mapping[str, Any], place: Path, model: ApiModel
) -> ParsedRequests:
    names = AwsNames(model, left_out=[])
    body = names.structure(REQUEST_SHAPES[kind], mark_unknown(properties))
    request = Request(
        kind=kind,
        body=body,
        label=name,
        shape=REQUEST_SHAPES[kind],
        origin=Origin(place),
        name_source="CloudFormation",
    )
    return ParsedRequests(
        (request,), tuple(f"{name}: {sentence}" for sentence in names.left_out or ())
    )


def _pipeline_requests(name: str, properties: Mapping[str, Any], place: Path) -> ParsedRequests:
    try:
        definition, origin = open_definition(properties, Origin(place))
    except MalformedData as error:
        return _unchecked(name, str(error))
    pipeline = text(properties.get("PipelineName")) or None
    return requests_in_definition(definition, name=pipeline, origin=origin, label=f"{name}, ")


def _state_machine_requests(
    name: str, properties: Mapping[str, Any], place: Path
) -> ParsedRequests:
    key = next((key for key in _STATE_MACHINE_KEYS if key in properties), None)
    if key is None:
        return _unchecked(name, "its definition is in another file or in S3: give that file")
    try:
        definition = parse_definition(properties[key])
    except MalformedData as error:
        return _unchecked(name, str(error))
    origin = Origin((*place, key), is_inline=definition is properties[key])
    return requests_in_state_machine(definition, origin=origin, label=f"{name}, ")


def _unchecked(name: str, reason: str) -> ParsedRequests:
    return ParsedRequests((), (f"{name} is not checked: {reason}",))
