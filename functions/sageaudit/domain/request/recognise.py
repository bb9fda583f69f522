"""Recognises a file: a job's request, or a document of another tool that contains requests."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.kinds import JobKind, kind_from_answer
from sageaudit.domain.request.aws_names import AwsNames, plain_name
from sageaudit.domain.request.cloudformation import is_template, requests_in_template
from sageaudit.domain.request.pipeline import (
    has_definition,
    open_definition,
    requests_in_definition,
)
from sageaudit.domain.request.placeholders import mark_unknown
from sageaudit.domain.request.request import (
    MAX_REQUESTS,
    REQUEST_SHAPES,
    TRIAL_SHAPE,
    Origin,
    ParsedRequests,
    Request,
    UnknownValue,
    text,
)
from sageaudit.domain.request.state_machine import is_job_state, requests_in_state_machine
from sageaudit.domain.request.terraform import requests_in_plan
from sageaudit.domain.request.unwrapped import unwrap
from sageaudit.domain.request.validity import ApiModel
from sageaudit.errors import MalformedData


class FileFormat(enum.StrEnum):
    """The formats of a file. The values are the words that `--as` takes."""

    TRAINING = "training"
    PROCESSING = "processing"
    TRANSFORM = "transform"
    TUNING = "tuning"
    PIPELINE = "pipeline"
    TERRAFORM = "terraform"
    CLOUDFORMATION = "cloudformation"
    STATE_MACHINE = "state-machine"

    @property
    def label(self) -> str:
        """The name of the format, for people."""
        return _LABELS.get(self) or f"Create{JobKind(self.value).spec.prefix}Job request"


_LABELS = {
    FileFormat.PIPELINE: "SageMaker pipeline definition",
    FileFormat.TERRAFORM: "Terraform plan",
    FileFormat.CLOUDFORMATION: "CloudFormation template",
    FileFormat.STATE_MACHINE: "Step Functions state machine",
}
_CHECKED_KINDS = [kind for kind in JobKind if kind.value in {form.value for form in FileFormat}]
_NOT_CHECKED_MESSAGE = ", which is not checked: it names no instances"
_TOP_LEVEL = "the top level"
_MIN_REQUEST_PARAMETERS = 2
"""A file without a job's name counts as a request if it has at least this many of a request's
parameters."""
_ARN_REGION_INDEX = 3
"""The index of the region among the parts of an ARN."""
_FORMS = "a request of a SageMaker job, a pipeline, a state machine, a template or a Terraform plan"
_ONE_PER_FILE_MESSAGE = ": give one request, pipeline definition or plan per file"
_STATE_MESSAGE = "is a Terraform state: give a plan (terraform show -json PLANFILE)"
_TERRAFORM_CODE_MESSAGE = "is Terraform code: plan it, and give `terraform show -json PLANFILE`"
_CDK_MESSAGE = "is a manifest of the AWS CDK: give cdk.out/STACK.template.json"
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
    form_option: str = "--as",
    pipeline: str | None = None,
) -> ParsedFile:
    """Returns the requests in a parsed file.

    `model` is AWS's service model. `form` is the file's format; if it is None, the content decides.
    `form_option` is how errors name the option for it. `pipeline` is the name of the pipeline in
    the file. Raises MalformedData, with a message that says what to give instead.
    """
    unwrapped = unwrap(document)
    if not isinstance(unwrapped.document, Mapping):
        reject_non_request(unwrapped.document)
        raise MalformedData(_TOP_LEVEL, f"is not an object{_ONE_PER_FILE_MESSAGE}")
    form = form or _detect_format(unwrapped.document, model, form_option)
    parsed = _parse(unwrapped.document, form, model, pipeline)
    requests, unchecked = parsed.requests, parsed.unchecked_sentences
    if len(requests) > MAX_REQUESTS:
        unchecked = (*unchecked, f"only the first {MAX_REQUESTS:,} of its jobs are checked")
    finished = tuple(unwrapped.finish(request) for request in requests[:MAX_REQUESTS])
    return ParsedFile(form, with_trials(finished), unchecked)


def _parse(
    document: Mapping[str, Any], form: FileFormat, model: ApiModel, pipeline: str | None
) -> ParsedRequests:
    if form is FileFormat.TERRAFORM:
        return requests_in_plan(document, model)
    if form is FileFormat.CLOUDFORMATION:
        return requests_in_template(document, model)
    if form is FileFormat.STATE_MACHINE:
        return _parse_state_machine(document)
    if form is FileFormat.PIPELINE:
        return _parse_pipeline(document, pipeline)
    return _parse_request(document, JobKind(form.value), model)


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
        if "artifacts" in document and "version" in document:
            raise MalformedData(_TOP_LEVEL, _CDK_MESSAGE)


def _detect_format(document: Mapping[str, Any], model: ApiModel, form_option: str) -> FileFormat:
    """Returns the format that the keys of the top level show.

    Raises MalformedData if they do not show it, or for a format that is not checked.
    """
    reject_non_request(document)
    if (form := _container_format(document)) is not None:
        return form
    names = {plain_name(key) for key in document}
    for kind in JobKind:
        if plain_name(kind.spec.name_key) in names:
            if kind not in _CHECKED_KINDS:
                raise MalformedData(
                    _TOP_LEVEL,
                    f"is a request of {kind.spec.label_with_article}{_NOT_CHECKED_MESSAGE}",
                )
            return FileFormat(kind.value)
    counts = {
        kind: len(names.intersection(map(plain_name, model.members(REQUEST_SHAPES[kind]))))
        for kind in _CHECKED_KINDS
    }
    kind = max(counts, key=lambda kind: counts[kind])
    if counts[kind] < _MIN_REQUEST_PARAMETERS or list(counts.values()).count(counts[kind]) > 1:
        raise MalformedData(
            _TOP_LEVEL,
            "has no ...JobName, Steps, States, Resources or resource_changes: it is not recognised"
            f" as {_FORMS} ({form_option} names the format)",
        )
    return FileFormat(kind.value)


def _container_format(document: Mapping[str, Any]) -> FileFormat | None:
    """Returns the format of a document that contains requests; None for any other document.

    Raises MalformedData for Terraform's other files.
    """
    if "resource_changes" in document:
        return FileFormat.TERRAFORM
    if "terraform_version" in document:
        raise MalformedData(_TOP_LEVEL, _STATE_MESSAGE)
    if isinstance(document.get("resource"), Mapping):
        raise MalformedData(_TOP_LEVEL, _TERRAFORM_CODE_MESSAGE)
    if "AWSTemplateFormatVersion" in document or is_template(document):
        return FileFormat.CLOUDFORMATION
    if isinstance(document.get("States"), Mapping) or any(
        map(is_job_state, (document, *document.values()))
    ):
        return FileFormat.STATE_MACHINE
    is_pipeline = isinstance(document.get("Steps"), list) or has_definition(document)
    return FileFormat.PIPELINE if is_pipeline else None


def _reject_describe_answer(document: Mapping[str, Any]) -> None:
    if "describe" in document or "children" in document:
        raise MalformedData(_TOP_LEVEL, f"is a recording of a job that ran: {_USE_AUDIT_MESSAGE}")
    if (kind := kind_from_answer(document)) is not None:
        call = kind.spec.describe_call
        raise MalformedData(
            _TOP_LEVEL, f"is a {call} answer of a job that ran: {_USE_AUDIT_MESSAGE}"
        )


def _parse_request(document: Mapping[str, Any], kind: JobKind, model: ApiModel) -> ParsedRequests:
    """Reads a request. If no key of its top level is AWS's name, the names are another tool's."""
    shape = REQUEST_SHAPES[kind]
    body, origin, names = mark_unknown(document), Origin(), AwsNames(model, left_out=[])
    if model.members(shape).keys().isdisjoint(body):
        body, origin = names.structure(shape, body), Origin(is_inline=False)
    request = Request(kind, body, f"{kind.value} job", shape, origin)
    return ParsedRequests((request,), tuple(names.left_out or ()))


def _parse_state_machine(document: Mapping[str, Any]) -> ParsedRequests:
    """Reads a state machine, one of its states, or a map of states."""
    definition = document
    if is_job_state(document):
        definition = {"States": {"Task": document}}
    elif "States" not in document:
        definition = {"States": document}
    return requests_in_state_machine(definition)


def _parse_pipeline(document: Mapping[str, Any], name: str | None) -> ParsedRequests:
    """Returns the requests of a pipeline's steps.

    `document`: the definition, or a request or Describe answer that contains it, also as text.
    `name`: the pipeline's name, if known.
    """
    given_names = (text(document[key]) for key in document if plain_name(key) == "pipelinename")
    name = name or next(given_names, "") or None
    definition, origin = open_definition(document)
    if not isinstance(definition.get("Steps"), list):
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
            origin=tuning.origin.of_part(place),
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
