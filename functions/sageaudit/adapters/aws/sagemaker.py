"""Calls SageMaker in each account: Describe*, ListTags and the jobs that a roll-up launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError

from sageaudit.adapters.aws.clients import (
    aws_errors,
    code_of,
    message_of,
    parsing,
    part_of,
    text_in,
)
from sageaudit.domain.job.kinds import ChildList, JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.errors import JobNotFound

JOB_PERMISSIONS = (
    *(f"sagemaker:{kind.row.describe_call}" for kind in JobKind),
    "sagemaker:ListTags",
)
"""What is asked of one job, to which IAM may limit it."""
_ROLL_UPS = [rollup for kind in JobKind if (rollup := kind.row.rollup)]
COUNT_PERMISSIONS = tuple(
    f"sagemaker:{rollup.child_list.action}" for rollup in _ROLL_UPS if not rollup.is_counted
)
"""An audit lists the jobs of a roll-up that Describe does not count, to know which are missing."""
PERMISSIONS = (*JOB_PERMISSIONS, *COUNT_PERMISSIONS)
CHILDREN_PERMISSIONS = tuple(f"sagemaker:{rollup.child_list.action}" for rollup in _ROLL_UPS)
"""Only the command line lists every roll-up's jobs; the Lambda reads them from the history."""
NOT_LIMITED = tuple(
    f"sagemaker:{rollup.child_list.action}" for rollup in _ROLL_UPS if not rollup.child_list.limited
)
"""Those that no policy limits to certain jobs: AWS's guide on SageMaker's API permissions says so
of all List calls but ListTags."""


class SageMakerJobs:
    """Implements Jobs. `client_of` returns the SageMaker client for an account and region."""

    def __init__(self, client_of: Callable[[str, str], Any]) -> None:
        self._client_of = client_of

    def describe(self, ref: JobRef) -> dict[str, Any]:
        """The Describe* response without ResponseMetadata. Raises JobNotFound or AwsError."""
        method = ref.kind.row.describe_method
        name = {ref.kind.row.name_key: ref.name}
        with aws_errors("sagemaker"):
            client = self._client_of(ref.account, ref.region)
            try:
                answer: dict[str, Any] = getattr(client, method)(**name)
            except ClientError as error:
                if is_gone(error):
                    raise JobNotFound(f"there is no {ref.kind.value} job {ref.name}") from error
                raise
        answer.pop("ResponseMetadata", None)
        # A page of a proxy is an empty answer to the SDK, and must not pass for a job's.
        part_of(answer, ref.kind.row.arn_key)
        return answer

    def tags(self, ref: JobRef) -> dict[str, str]:
        """All tags of the job. Raises AwsError."""
        with aws_errors("sagemaker"), parsing("sagemaker"):
            pages = self._client_of(ref.account, ref.region).get_paginator("list_tags")
            return {
                text_in(tag, "Key"): text_in(tag, "Value")
                for page in pages.paginate(ResourceArn=ref.arn)
                for tag in part_of(page, "Tags")
            }

    def children(self, ref: JobRef) -> Iterator[JobRef]:
        """The jobs that a roll-up launched, each once. Raises AwsError."""
        rollup = ref.kind.row.rollup
        if rollup is None:
            return
        listed, seen = rollup.child_list, set[str]()
        with aws_errors("sagemaker"), parsing("sagemaker"):
            client = self._client_of(ref.account, ref.region)
            pages = client.get_paginator(xform_name(listed.action))
            for page in pages.paginate(**{ref.kind.row.name_key: ref.name}):
                for row in _child_rows(page, listed):
                    child = _child(row, listed)
                    if child is not None and child.arn not in seen:
                        seen.add(child.arn)
                        yield child


def _child_rows(page: Mapping[str, Any], listed: ChildList) -> Iterator[Mapping[str, Any]]:
    for row in part_of(page, listed.rows):
        if listed.steps is None:
            yield row
        else:
            yield from row.get(listed.steps) or ()


def _child(row: Mapping[str, Any], listed: ChildList) -> JobRef | None:
    """A launched job; None for a row or step without a job, or with one of no audited kind.

    A step may have a name of its own.
    """
    arn, name = row.get(listed.arn_key), row.get(listed.name_key)
    if not isinstance(arn, str):
        return None
    return (isinstance(name, str) and JobRef.from_arn(arn, name)) or JobRef.from_arn(arn)


def is_gone(error: ClientError) -> bool:
    """True when the job does not exist: ResourceNotFound, or in practice ValidationException."""
    if code_of(error) in {"ResourceNotFound", "ResourceNotFoundException"}:
        return True
    message = message_of(error).lower()
    return code_of(error) == "ValidationException" and (
        "not found" in message or "could not find" in message or "does not exist" in message
    )
