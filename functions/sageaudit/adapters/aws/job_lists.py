"""SageMaker's lists of jobs, newest first by creation time.

A filter by LastModifiedTime is not used: SageMaker then answers page after empty page until the
caller is throttled (aws/aws-cli#7596). StatusEquals is not used either: it is applied after a page
is cut (API reference, ListTrainingJobs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sageaudit.adapters.aws.clients import aws_errors, part_of
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.listed import Listed, Period
from sageaudit.domain.job.ref import JobRef
from sageaudit.errors import Malformed, Unavailable

CLI_PERMISSIONS = tuple(f"sagemaker:{kind.row.list_call}" for kind in JobKind)
"""None of them can be limited to certain jobs."""
PAGE = 100
"""The most that one request returns; the default is 10."""
_MOST_PAGES = 10_000
"""A million jobs: a cap on a list whose pages do not end."""


class SageMakerJobLists:
    """Implements JobLists for one account. `client_of` returns its client for a region."""

    def __init__(self, client_of: Callable[[str], Any]) -> None:
        self._client_of = client_of

    def listed(self, kind: JobKind, region: str, period: Period) -> Iterator[Listed]:
        """The jobs that were created in the period or at most 30 days before it."""
        call: dict[str, Any] = {
            "CreationTimeAfter": period.created_after,
            "CreationTimeBefore": period.created_before,
            "SortBy": "CreationTime",
            "SortOrder": "Descending",
            "MaxResults": PAGE,
        }
        for _ in range(_MOST_PAGES):
            answer = self._page(kind, region, call)
            for row in part_of(answer, f"{kind.row.prefix}JobSummaries"):
                if (job := _listed(kind, row)) is not None:
                    yield job
            token = answer.get("NextToken")
            if not token or token == call.get("NextToken"):
                return
            call["NextToken"] = token
        raise Unavailable(f"sagemaker:{kind.row.list_call} in {region} returned no last page.")

    def _page(self, kind: JobKind, region: str, call: Mapping[str, Any]) -> Mapping[str, Any]:
        with aws_errors("sagemaker", f"in {region}"):
            method = f"list_{kind.row.sdk_noun}s"
            answer: Mapping[str, Any] = getattr(self._client_of(region), method)(**call)
        return answer


def _listed(kind: JobKind, row: Mapping[str, Any]) -> Listed | None:
    """A row; None for one without a usable name, ARN or time, which cannot be described either."""
    prefix = kind.row.prefix
    try:
        name, arn = fields.text(row, f"{prefix}JobName"), fields.text(row, f"{prefix}JobArn")
        created_at = fields.time(row, "CreationTime")
        ref = JobRef.from_arn(arn, name) if arn and name else None
        if ref is None or created_at is None:
            return None
        return Listed(
            ref,
            fields.text(row, f"{prefix}JobStatus") or "",
            created_at,
            fields.time(row, f"{prefix}EndTime"),
            fields.time(row, "LastModifiedTime"),
        )
    except Malformed:
        return None
