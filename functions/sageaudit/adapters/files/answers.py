"""Finds the answers about jobs in a JSON document, inside whatever other tools put around them.

| form | what is done |
|---|---|
| Search, a list, placebo and botocore stubs, results of Step Functions | answers are unwrapped |
| keys in lower camel or snake case | read by AWS's service model |
| objects of Kubernetes (ACK, SageMaker Operators) | `spec` and `status` are read as one answer |
| EventBridge, CloudTrail, List*, Create*, requests | refused with the command to use instead |

Sources: botocore's sagemaker model (Search, List*); the recordings of placebo; AWS's pages on
events of SageMaker and CloudTrail; the CRDs of aws-controllers-k8s/sagemaker-controller and
aws/amazon-sagemaker-operator-for-k8s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.kinds import JobKind, kind_from_answer
from sageaudit.domain.job.ref import JOB_NAME, REGION, JobRef
from sageaudit.domain.request.aws_names import AwsNames, plain_name

TOP_LEVEL = "the top level"
FORMS = '"children", "describe", or a ...JobName with a ...JobStatus'
HINT = "`sageaudit record JOB -o job.json` writes one job to a file"
_MAX_DEPTH = 12
"""Answers are searched in this many nested objects and lists."""
_JSON_TEXT_KEYS = frozenset({"output", "Output", "body", "string"})
"""Keys whose text may be JSON: Step Functions' outputs, and recorded HTTP responses."""
_ACTION = re.compile(r"[A-Z][A-Za-z0-9]{2,60}\Z")
_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:([a-z-]{1,60})/")
_AUDITED = "training, processing, transform, tuning and AutoML jobs"
_KUBERNETES_KINDS = {
    **{f"{kind.spec.prefix}Job": kind for kind in JobKind},
    "BatchTransformJob": JobKind.TRANSFORM,
    "HyperparameterTuningJob": JobKind.TUNING,
}
_KUBERNETES_REGION = "services.k8s.aws/region"
_OTHER_FORMS = (
    ("resource_changes", "is a Terraform plan: `sageaudit check` checks its jobs"),
    ("Steps", "is a pipeline definition: `sageaudit check` checks its jobs"),
    ("States", "is a state machine: `sageaudit check` checks its jobs"),
    ("Resources", "is a template: `sageaudit check` checks its jobs"),
    (
        "PipelineExecutionSteps",
        "names jobs without their answers: `sageaudit audit NAME` audits one of them",
    ),
    (
        "MetricDataResults",
        "has metrics without their job: `sageaudit record JOB` writes both to a file",
    ),
)
"""Keys of documents that name no answer, and what to do with them."""


class FoundAnswer(Struct, frozen=True):
    """A recording or an answer in a document, and its place, which is empty for the document.

    `content` is a sentence for a form that is not an answer.
    """

    place: str
    content: Mapping[str, Any] | str


def find_answers(document: object) -> list[FoundAnswer]:
    """Returns the recordings and answers in a document, each once; without any, the reason.

    Raises RecursionError for an answer that is too deeply nested.
    """
    found = list(_find(document, "", _MAX_DEPTH))
    if len(found) <= 1:
        return found or [FoundAnswer("", _reason_for_none(document))]
    rows: dict[object, FoundAnswer] = {}
    for row in found:
        is_answer = isinstance(row.content, Mapping)
        key = json.dumps(row.content, sort_keys=True, default=str) if is_answer else row.place
        rows.setdefault(key, row)
    return [*rows.values()]


def _find(node: object, place: str, depth: int) -> Iterator[FoundAnswer]:
    if isinstance(node, list):
        for index, item in enumerate(node if depth else ()):
            yield from _find(item, f"{place}[{index}]", depth - 1)
    if not isinstance(node, Mapping):
        return
    if "." not in place and ("describe" in node or "children" in node):
        yield FoundAnswer(place, node)
    elif _is_answer(node, place):
        yield FoundAnswer(place, _with_plain_times(node))
    elif reason := _refusal(node):
        yield FoundAnswer(place, reason)
    elif (answer := _from_kubernetes(node) or _respelled(node)) is not None:
        yield FoundAnswer(place, answer)
    else:
        for key, item in node.items() if depth else ():
            inner = _parsed(item) if key in _JSON_TEXT_KEYS else item
            yield from _find(inner, f"{place}.{key}".lstrip("."), depth - 1)


def _is_answer(node: Mapping[str, Any], place: str) -> bool:
    """Returns whether an object is an answer. Inside others, a description of answers is none."""
    kind = kind_from_answer(node)
    return kind is not None and (not place or isinstance(node[kind.spec.name_key], str))


def _parsed(value: object) -> object:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (RecursionError, ValueError):
        return None


def _with_plain_times(value: Any) -> Any:
    """Returns an answer whose times are text; placebo writes the parts of a datetime."""
    if isinstance(value, list):
        return [_with_plain_times(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if value.get("__class__") != "datetime":
        return {key: _with_plain_times(item) for key, item in value.items()}
    try:
        parts = {key: part for key, part in value.items() if key != "__class__"}
        return datetime(**parts).isoformat()  # noqa: DTZ001 - placebo's times are in UTC
    except (TypeError, ValueError):
        return value


def _respelled(node: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns an answer with AWS's keys; None if the keys are not those of an answer."""
    names = {plain_name(key) for key in node}
    for kind in JobKind:
        keys = (kind.spec.name_key, kind.spec.status_key)
        if all(plain_name(key) in names for key in keys):
            answer = _by_service_model(kind, node)
            return answer if isinstance(answer.get(keys[0]), str) else None
    return None


def _by_service_model(kind: JobKind, values: Mapping[str, Any]) -> dict[str, Any]:
    from sageaudit.adapters.aws.service_model import api_model  # noqa: PLC0415 - it needs boto3

    return AwsNames(api_model()).structure(f"{kind.spec.describe_call}Response", values)


def _from_kubernetes(node: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the recording of an object of ACK or of the SageMaker Operators; None for others."""
    if (kind := _kubernetes_kind(node)) is None:
        return None
    spec, status = _mapping(node.get("spec")), _mapping(node.get("status"))
    arn = _mapping(status.get("ackResourceMetadata")).get("arn")
    name = next((status[key] for key in status if key.startswith("sageMaker")), None)
    own = {kind.spec.arn_key: arn, kind.spec.name_key: name}
    values = {**spec, **status, **{key: value for key, value in own.items() if value}}
    answer = _by_service_model(kind, values)
    metadata = _mapping(node.get("metadata"))
    answer.setdefault(kind.spec.name_key, metadata.get("name"))
    annotated = _mapping(metadata.get("annotations")).get(_KUBERNETES_REGION)
    region = spec.get("region") or annotated
    return {"describe": answer, "tags": answer.pop("Tags", []), "region": region}


def _kubernetes_kind(node: Mapping[str, Any]) -> JobKind | None:
    is_of_sagemaker = "sagemaker" in _text(node.get("apiVersion"))
    return _KUBERNETES_KINDS.get(_text(node.get("kind"))) if is_of_sagemaker else None


def _refusal(node: Mapping[str, Any]) -> str | None:
    """Returns what a document is that names a job without being its answer; None for others."""
    forms: tuple[Callable[[Mapping[str, Any]], str | None], ...] = (
        _kubernetes_reason,
        _cloudtrail_reason,
        _event_reason,
        _list_reason,
        _request_reason,
    )
    return next(filter(None, (form(node) for form in forms)), None)


def _kubernetes_reason(node: Mapping[str, Any]) -> str | None:
    kind = _kubernetes_kind(node)
    status = {plain_name(key) for key in _mapping(node.get("status"))}
    if kind is None or plain_name(kind.spec.status_key) in status:
        return None
    return f"is a Kubernetes object of {kind.spec.label_with_article} without its status: {HINT}"


def _event_reason(node: Mapping[str, Any]) -> str | None:
    detail = _mapping(node.get("detail"))
    if "detail-type" not in node or not detail:
        return None
    if reason := _cloudtrail_reason(detail):
        return reason
    return f"is an event of EventBridge, which lacks parts of the answer: {_audit_command(detail)}"


def _cloudtrail_reason(node: Mapping[str, Any]) -> str | None:
    names = {plain_name(key): key for key in node}
    if not {"eventname", "eventsource"} <= names.keys():
        return None
    action = _text(node[names["eventname"]])
    action_text = f" of {action}" if _ACTION.match(action) else ""
    command = _audit_command(_mapping(node.get("requestParameters")), node.get("awsRegion"))
    return f"is a record of CloudTrail{action_text}, which has no answer about a job: {command}"


def _list_reason(node: Mapping[str, Any]) -> str | None:
    names = {plain_name(key) for key in node}
    for kind in JobKind:
        if plain_name(kind.spec.list_key) in names:
            return (
                f"is a {kind.spec.list_call} answer, which names jobs without their instances:"
                " `sageaudit scan` audits an account's jobs, and `sageaudit audit NAME` one job"
            )
    return None


def _request_reason(node: Mapping[str, Any]) -> str | None:
    names = {plain_name(key) for key in node if key != "ResponseMetadata"}
    for kind in JobKind:
        spec = kind.spec
        if names == {plain_name(spec.arn_key)}:
            return f"names a job without its answer: {_audit_command(node)}"
        if {plain_name(spec.name_key), plain_name(spec.required_key)} <= names:
            if plain_name(spec.status_key) in names:
                return None
            return f"is a request of {spec.label_with_article}: `sageaudit check` checks it"
    return None


def _audit_command(node: Mapping[str, Any], region: object = None) -> str:
    """Returns what audits the job that a document names."""
    values = {plain_name(key): value for key, value in node.items() if isinstance(value, str)}
    for kind in JobKind:
        arn = values.get(plain_name(kind.spec.arn_key), "")
        name = values.get(plain_name(kind.spec.name_key), "")
        if JobRef.from_arn(arn) is not None:
            return f"`sageaudit audit {arn}` audits it"
        if JOB_NAME.match(name):
            is_region = isinstance(region, str) and REGION.fullmatch(region)
            return f"`sageaudit audit {name}{f' --region {region}' if is_region else ''}` audits it"
    return "`sageaudit audit NAME` audits a job"


def _reason_for_none(document: object) -> str:
    if isinstance(document, Mapping):
        reasons = (reason for key, reason in _OTHER_FORMS if key in document)
        resources = (
            f"is about a SageMaker {match[1].replace('-', ' ')}: only {_AUDITED} are audited"
            for match in map(_ARN.match, _texts(document, _MAX_DEPTH))
            if match
        )
        return next(chain(reasons, resources), f"{TOP_LEVEL} has none of {FORMS}")
    if isinstance(document, list):
        return f"is a list without an answer about a job: {HINT}"
    return f"is not an object with {FORMS}"


def _texts(node: object, depth: int) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    items = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    for item in items if depth else ():
        yield from _texts(item, depth - 1)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
