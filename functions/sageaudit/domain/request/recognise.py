"""Recognises a file: a job's request, a pipeline definition or a Terraform plan."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.kinds import JobKind, kind_from_answer
from sageaudit.domain.request.request import (
    REQUEST_SHAPES,
    TRIAL_SHAPE,
    Origin,
    ParsedRequests,
    Request,
    UnknownValue,
)
from sageaudit.domain.request.sources import requests_in_definition, requests_in_plan
from sageaudit.domain.request.validity import ApiModel
from sageaudit.errors import MalformedData
from sageaudit.structs import replace


class FileFormat(enum.StrEnum):
    """The formats of a file. The values are the words that `--as` takes."""

    TRAINING = "training"
    PROCESSING = "processing"
    TRANSFORM = "transform"
    TUNING = "tuning"
    PIPELINE = "pipeline"
    TERRAFORM = "terraform"

    @property
    def label(self) -> str:
        """The name of the format, for people."""
        if self is FileFormat.PIPELINE:
            return "SageMaker pipeline definition"
        if self is FileFormat.TERRAFORM:
            return "Terraform plan"
        return f"Create{JobKind(self.value).spec.prefix}Job request"


_CHECKED_KINDS = [kind for kind in JobKind if kind.value in {form.value for form in FileFormat}]
_NOT_CHECKED_MESSAGE = ", which is not checked: it names no instances"
_TOP_LEVEL = "the top level"
_MIN_REQUEST_PARAMETERS = 2
"""A file without a job's name counts as a request if it has at least this many of a request's
parameters."""
_ARN_REGION_INDEX = 3
"""The index of the region among the parts of an ARN."""
_ONE_PER_FILE_MESSAGE = ": give one request, pipeline definition or plan per file"
_STATE_MESSAGE = "is a Terraform state: give a plan (terraform show -json PLANFILE)"
_USE_AUDIT_MESSAGE = "audit it with `sageaudit audit --recording` instead"


class ParsedFile(Struct, frozen=True):
    """A file's format and its requests.

    A tuning request is followed by the requests of its training jobs. `unchecked_sentences` has one
    sentence for each part of the file that was not checked.
    """

    format: FileFormat
    requests: tuple[Request, ...]
    unchecked_sentences: tuple[str, ...] = ()


def recognise(
    document: object,
    model: ApiModel,
    *,
    form: FileFormat | None = None,
    pipeline: str | None = None,
) -> ParsedFile:
    """Returns the requests in a parsed file.

    `model` is AWS's service model. `form` is the file's format; if it is None, the content decides.
    `pipeline` is the name of the pipeline in the file. Raises MalformedData, with a message that
    says what to give instead.
    """
    if not isinstance(document, Mapping):
        reject_non_request(document)
        raise MalformedData(_TOP_LEVEL, f"is not an object{_ONE_PER_FILE_MESSAGE}")
    form = form or _detect_format(document, model)
    if form is FileFormat.TERRAFORM:
        parsed = requests_in_plan(document, model)
    elif form is FileFormat.PIPELINE:
        parsed = _parse_pipeline(document, pipeline)
    else:
        kind = JobKind(form.value)
        parsed = ParsedRequests(
            (Request(kind, document, f"{kind.value} job", REQUEST_SHAPES[kind]),)
        )
    return ParsedFile(form, with_trials(parsed.requests), parsed.unchecked_sentences)


def reject_non_request(document: object) -> None:
    """Raises MalformedData if the top level shows that the document cannot be a request."""
    if isinstance(document, list):
        raise MalformedData(
            _TOP_LEVEL,
            f"is a list{_ONE_PER_FILE_MESSAGE}; `jq '.[0]' FILE > one.json` takes out the first",
        )
    if isinstance(document, Mapping):
        _reject_describe_answer(document)
        if "lineage" in document and "terraform_version" in document:
            raise MalformedData(_TOP_LEVEL, _STATE_MESSAGE)


def _detect_format(document: Mapping[str, Any], model: ApiModel) -> FileFormat:
    """Returns the format that the keys of the top level show.

    Raises MalformedData if they do not show it, or for a format that is not checked.
    """
    reject_non_request(document)
    if "resource_changes" in document:
        return FileFormat.TERRAFORM
    if "terraform_version" in document:
        raise MalformedData(_TOP_LEVEL, _STATE_MESSAGE)
    if "Resources" in document and "AWSTemplateFormatVersion" in document:
        raise MalformedData(
            _TOP_LEVEL, "is a CloudFormation template, which is not checked: give the request"
        )
    if isinstance(document.get("Steps"), list) or "PipelineDefinition" in document:
        return FileFormat.PIPELINE
    for kind in JobKind:
        if kind.spec.name_key in document:
            if kind not in _CHECKED_KINDS:
                raise MalformedData(
                    _TOP_LEVEL,
                    f"is a request of {kind.spec.label_with_article}{_NOT_CHECKED_MESSAGE}",
                )
            return FileFormat(kind.value)
    counts = {
        kind: sum(_is_similar_key(key, model.members(REQUEST_SHAPES[kind])) for key in document)
        for kind in _CHECKED_KINDS
    }
    kind = max(counts, key=lambda kind: counts[kind])
    if counts[kind] < _MIN_REQUEST_PARAMETERS or list(counts.values()).count(counts[kind]) > 1:
        raise MalformedData(
            _TOP_LEVEL,
            "has no ...JobName, Steps or resource_changes: it is not recognised as a request of a"
            " SageMaker job, pipeline definition or Terraform plan (--as names the format)",
        )
    return FileFormat(kind.value)


def _is_similar_key(key: object, members: Mapping[str, Any]) -> bool:
    return isinstance(key, str) and (key in members or key.lower() in map(str.lower, members))


def _reject_describe_answer(document: Mapping[str, Any]) -> None:
    if "describe" in document or "children" in document:
        raise MalformedData(_TOP_LEVEL, f"is a recording of a job that ran: {_USE_AUDIT_MESSAGE}")
    if (kind := kind_from_answer(document)) is not None:
        call = kind.spec.describe_call
        raise MalformedData(
            _TOP_LEVEL, f"is a {call} answer of a job that ran: {_USE_AUDIT_MESSAGE}"
        )


def _parse_pipeline(document: Mapping[str, Any], name: str | None) -> ParsedRequests:
    """Returns the requests of a pipeline's steps.

    `document`: the definition, or a request or Describe answer with the definition as text. `name`:
    the pipeline's name, if known.
    """
    origin = Origin()
    definition: object = document
    if "PipelineDefinition" in document:
        body, given_name = document["PipelineDefinition"], document.get("PipelineName")
        name = name or (given_name if isinstance(given_name, str) else None)
        origin = Origin(("PipelineDefinition",), is_inline=False)
        try:
            definition = json.loads(body) if isinstance(body, str) else body
        except (ValueError, RecursionError) as error:
            raise MalformedData("PipelineDefinition", "is not JSON") from error
        if definition is body:
            origin = Origin(("PipelineDefinition",))
    if not isinstance(definition, Mapping) or not isinstance(definition.get("Steps"), list):
        raise MalformedData("Steps", "is not a list of steps: this is not a pipeline definition")
    arn = document.get("PipelineArn")
    region = (
        arn.split(":")[3] if isinstance(arn, str) and arn.count(":") > _ARN_REGION_INDEX else None
    )
    return requests_in_definition(definition, name=name, region=region or None, origin=origin)


def with_trials(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """Returns the requests, each tuning request followed by the requests of its training jobs."""
    requests_with_trials: list[Request] = []
    for request in requests:
        requests_with_trials.append(request)
        rollup = request.kind.spec.rollup
        if rollup and rollup.child_kind and rollup.definition_key:
            requests_with_trials += _trial_requests(
                request, rollup.child_kind, rollup.definition_key
            )
    return tuple(requests_with_trials)


def _trial_requests(tuning: Request, kind: JobKind, definition: str) -> list[Request]:
    definition_body, definition_list = (
        tuning.body.get(f"{definition}{plural}") for plural in ("", "s")
    )
    places: list[tuple[tuple[str | int, ...], Any]] = [((definition,), definition_body)]
    if isinstance(definition_list, list):
        places += [((f"{definition}s", n), item) for n, item in enumerate(definition_list)]
    return [
        Request(
            kind=kind,
            body=body,
            label=f"{tuning.label}, {tuning.path_text(place)}",
            shape=TRIAL_SHAPE,
            origin=replace(tuning.origin, base_path=tuning.origin.path_in_file(place)),
            name_source=f"the {tuning.kind.spec.label}",
            region=tuning.region,
            note=tuning.note,
            tuning_request=tuning,
            prefix=place,
            parameters={
                path[len(place) :]: name
                for path, name in tuning.parameters.items()
                if path[: len(place)] == place
            },
        )
        for place, body in places
        if isinstance(body, Mapping) and not isinstance(body, UnknownValue)
    ]
