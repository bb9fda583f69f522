"""Names of the handlers' AWS calls: the operation and its resource."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest
from msgspec import Struct

PAGED = frozenset(
    {
        "cloudwatch.GetMetricData",
        "cloudwatch.ListMetrics",
        "dynamodb.Query",
        "pricing.GetProducts",
        "sagemaker.ListTags",
        "sagemaker.ListTrainingJobs",
        "sagemaker.ListProcessingJobs",
        "sagemaker.ListTransformJobs",
        "sagemaker.ListHyperParameterTuningJobs",
    }
)
_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"})
_READS = re.compile(r"\.(Get|Describe|List|Query|Head)")
_GENERATED = re.compile(r"[0-9A-F]{8}-[0-9A-Z]{12}$")
_ATTEMPT = re.compile(r"attempt=([0-9]+)")


class Call(Struct, frozen=True):
    """The `number`th call (from 1) of a function with this name."""

    function: str
    name: str
    number: int

    @property
    def operation(self) -> str:
        """Service and operation, for example dynamodb.PutItem."""
        return self.name.split(" ")[0]

    @property
    def reads(self) -> bool:
        """Whether it only reads."""
        return _READS.search(self.operation) is not None

    @property
    def paged(self) -> bool:
        """Whether its answer may have a next page."""
        return self.operation in PAGED

    def __str__(self) -> str:
        return f"{self.function}/{self.name}#{self.number}"


def call_name(operation: str, request: AWSPreparedRequest) -> str:
    """Returns operation and resource: "dynamodb.PutItem NOTICE", "sqs.SendMessage Decisions".

    A name has no part that differs between runs.
    """
    about = _about(operation, request)
    return f"{operation} {about}" if about else operation


def item_actions(operation: str, request: AWSPreparedRequest) -> Iterator[tuple[str, str]]:
    """Yields IAM action and partition key of each item that a request writes or checks."""
    service, _, name = operation.partition(".")
    if service != "dynamodb" or name not in _WRITES:
        return
    body_json = json.loads(request.body or "{}")
    parts = [{name.removesuffix("Item"): body_json}]
    if name == "TransactWriteItems":
        parts = body_json["TransactItems"]
    for part in parts:
        for verb, arguments in part.items():
            yield f"dynamodb:{verb}Item", (arguments.get("Key") or arguments["Item"])["pk"]["S"]


def attempt_of(request: AWSPreparedRequest) -> int:
    """Returns which attempt of the SDK this request is, from 1."""
    attempt_header = request.headers.get("amz-sdk-request", b"attempt=1")
    matched = _ATTEMPT.search(
        attempt_header.decode() if isinstance(attempt_header, bytes) else attempt_header
    )
    return int(matched[1]) if matched else 1


def _about(operation: str, request: AWSPreparedRequest) -> str:
    service = operation.split(".", maxsplit=1)[0]
    body = request.body.decode() if isinstance(request.body, bytes) else str(request.body or "")
    try:
        body_json: dict[str, Any] = json.loads(body)
    except ValueError:
        return ""
    if service == "sqs":
        return queue_name(urlsplit(body_json["QueueUrl"]).path.rpartition("/")[2])
    if service == "secrets-manager":
        return str(body_json["SecretId"]).rpartition(":")[2]
    return _item(body_json) if service == "dynamodb" else ""


def queue_name(physical: str) -> str:
    """Returns a queue's name in the stack, without the parts that CloudFormation adds."""
    return _GENERATED.sub("", physical).removeprefix("sageaudit-")


def _item(body_json: dict[str, Any]) -> str:
    """Returns the kind of an item by its keys, or the index that a query uses."""
    key = body_json.get("Key") or body_json.get("Item")
    if key is not None and "pk" in key:
        return f"{_kind(key['pk']['S'])} {_kind(key['sk']['S'])}".strip()
    if "TransactItems" in body_json:
        items = [
            part
            for operation_input in body_json["TransactItems"]
            for part in operation_input.values()
        ]
        keys = [
            operation_input.get("Key") or operation_input.get("Item") for operation_input in items
        ]
        return "+".join(sorted({_kind(key["pk"]["S"]) for key in keys if key}))
    if "IndexName" in body_json:
        return str(body_json["IndexName"])
    values = body_json.get("ExpressionAttributeValues", {})
    texts = sorted(value["S"] for value in values.values() if "S" in value)
    return min(filter(None, map(_kind, texts)), default="")


def _kind(text: str) -> str:
    """Returns JOB for JOB#arn...; "" for a key that does not begin with a word."""
    kind = text.split("#", maxsplit=1)[0]
    return kind if re.fullmatch(r"[A-Z]+", kind) else ""
