"""Calls SageMaker in each account: Describe*, ListTags and the children of a tuning job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.aws.clients import (
    aws_errors,
    code_of,
    message_of,
    parsing,
    part_of,
    text_in,
)
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.errors import JobNotFound

PERMISSIONS = (*(f"sagemaker:{kind.row.describe_call}" for kind in JobKind), "sagemaker:ListTags")
CHILDREN_PERMISSIONS = tuple(
    f"sagemaker:{kind.row.rollup.list_children}" for kind in JobKind if kind.row.rollup
)
"""Only the command line lists a tuning job's children; the Lambda reads them from the history."""


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
        """The training jobs of a tuning job. Raises AwsError."""
        with aws_errors("sagemaker"), parsing("sagemaker"):
            client = self._client_of(ref.account, ref.region)
            pages = client.get_paginator("list_training_jobs_for_hyper_parameter_tuning_job")
            for page in pages.paginate(HyperParameterTuningJobName=ref.name):
                for row in part_of(page, "TrainingJobSummaries"):
                    child = JobRef.from_arn(
                        text_in(row, "TrainingJobArn"), text_in(row, "TrainingJobName")
                    )
                    if child is not None:
                        yield child


def is_gone(error: ClientError) -> bool:
    """True when the job does not exist: ResourceNotFound, or in practice ValidationException."""
    if code_of(error) in {"ResourceNotFound", "ResourceNotFoundException"}:
        return True
    message = message_of(error).lower()
    return code_of(error) == "ValidationException" and (
        "not found" in message or "could not find" in message or "does not exist" in message
    )
