"""Calls SageMaker in each account: Describe*, ListTags, and its lists of jobs, newest first.

Lists are not filtered by LastModifiedTime: SageMaker would return many empty pages until it
throttles the caller (aws/aws-cli#7596, docs/decisions/0022-lists-are-read-by-creation-time.md).
They are not filtered by StatusEquals either, which leaves pages that are not full (reference of
ListTrainingJobs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any
from weakref import WeakSet

from botocore import xform_name
from botocore.exceptions import ClientError
from msgspec import Struct, field

from sageaudit.adapters.aws.clients import (
    aws_errors,
    error_code,
    error_message,
    is_throttle,
    parse_errors,
    read_text,
    require_key,
)
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import ChildList, JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import JobList, ListedJob, Period
from sageaudit.errors import JobNotFound, MalformedData, Unavailable

JOB_PERMISSIONS = (
    *(f"sagemaker:{kind.spec.describe_call}" for kind in JobKind),
    "sagemaker:ListTags",
)
"""Calls about one job. A policy can limit them to certain jobs."""
_ROLL_UPS = [rollup for kind in JobKind if (rollup := kind.spec.rollup)]
COUNT_PERMISSIONS = tuple(
    f"sagemaker:{rollup.child_list.action}" for rollup in _ROLL_UPS if not rollup.has_child_count
)
"""Calls that count a roll-up's jobs if Describe* does not. The count shows if audits are missing.
"""
AUDIT_PERMISSIONS = (*JOB_PERMISSIONS, *COUNT_PERMISSIONS)
"""All calls that an audit makes."""
CHILDREN_PERMISSIONS = tuple(f"sagemaker:{rollup.child_list.action}" for rollup in _ROLL_UPS)
"""Calls that list a roll-up's jobs. The Lambda reads these jobs from the history instead."""
LIST_PERMISSIONS = tuple(f"sagemaker:{kind.spec.list_call}" for kind in JobKind)
"""The calls of a sweep; only its role has them. A policy cannot limit them to certain jobs."""
PERMISSIONS = (*AUDIT_PERMISSIONS, *LIST_PERMISSIONS)
UNSCOPED_ACTIONS = tuple(
    f"sagemaker:{rollup.child_list.action}"
    for rollup in _ROLL_UPS
    if not rollup.child_list.is_resource_limited
)
"""Actions that no policy can limit to certain jobs: all List calls but ListTags.

Source: AWS's guide on SageMaker's API permissions.
"""
PAGE_SIZE = 100
"""The maximum number of rows per request; AWS's default is 10."""
_MAX_PAGES_WITHOUT_NEW_ROWS = 50
"""The maximum number of consecutive pages without a new row.

Lists by creation time have full pages, so a list with more such pages would never end.
"""
MIN_INTERVAL_S = 1.0
"""The seconds between two requests of a sweep for the same list of an account and region."""


class SageMakerJobs:
    """Implements Jobs. `client_of` returns the SageMaker client for an account and region."""

    def __init__(self, client_of: Callable[[str, str], Any]) -> None:
        self._client_of = client_of

    def describe(self, ref: JobRef) -> dict[str, Any]:
        """Returns Describe*'s answer without ResponseMetadata. Raises JobNotFound or AwsError."""
        method = ref.kind.spec.describe_method
        name = {ref.kind.spec.name_key: ref.name}
        with aws_errors("sagemaker"):
            client = self._client_of(ref.account, ref.region)
            try:
                answer: dict[str, Any] = getattr(client, method)(**name)
            except ClientError as error:
                if is_job_missing(error):
                    raise JobNotFound(f"there is no {ref.kind.value} job {ref.name}") from error
                raise
        answer.pop("ResponseMetadata", None)
        # The SDK reads a proxy's page as an empty answer, which is not a job.
        require_key(answer, ref.kind.spec.arn_key)
        return answer

    def tags(self, ref: JobRef) -> dict[str, str]:
        """Returns all tags of the job. Raises AwsError."""
        with aws_errors("sagemaker"), parse_errors("sagemaker"):
            pages = self._client_of(ref.account, ref.region).get_paginator("list_tags")
            return {
                read_text(tag, "Key"): read_text(tag, "Value")
                for page in pages.paginate(ResourceArn=ref.arn)
                for tag in require_key(page, "Tags")
            }

    def children(self, ref: JobRef) -> Iterator[JobRef]:
        """Yields the jobs that a roll-up launched, without duplicates. Raises AwsError."""
        rollup = ref.kind.spec.rollup
        if rollup is None:
            return
        child_list, seen_arns = rollup.child_list, set[str]()
        with aws_errors("sagemaker"), parse_errors("sagemaker"):
            client = self._client_of(ref.account, ref.region)
            pages = client.get_paginator(xform_name(child_list.action))
            for page in pages.paginate(**{ref.kind.spec.name_key: ref.name}):
                for row in _child_rows(page, child_list):
                    child = _child(row, child_list)
                    if child is not None and child.arn not in seen_arns:
                        seen_arns.add(child.arn)
                        yield child


def _child_rows(page: Mapping[str, Any], child_list: ChildList) -> Iterator[Mapping[str, Any]]:
    for row in require_key(page, child_list.rows_key):
        if child_list.steps_key is None:
            yield row
        else:
            yield from row.get(child_list.steps_key) or ()


def _child(row: Mapping[str, Any], child_list: ChildList) -> JobRef | None:
    """Returns the job of a row; None if the row or step has no job of an audited kind.

    A step's own name may differ from its job's name.
    """
    arn, name = row.get(child_list.arn_key), row.get(child_list.name_key)
    if not isinstance(arn, str):
        return None
    return (isinstance(name, str) and JobRef.from_arn(arn, name)) or JobRef.from_arn(arn)


def is_job_missing(error: ClientError) -> bool:
    """Returns True if the error says that the job does not exist."""
    if error_code(error) in {"ResourceNotFound", "ResourceNotFoundException"}:
        return True
    message = error_message(error).lower()
    return error_code(error) == "ValidationException" and (
        "not found" in message or "could not find" in message or "does not exist" in message
    )


class SageMakerJobLists:
    """Implements JobLists, and JobPageSource for one account.

    `client_of` returns the account's client for a region.
    """

    def __init__(self, client_of: Callable[[str], Any]) -> None:
        self._client_of = client_of

    def list_jobs(self, kind: JobKind, region: str, period: Period) -> Iterator[ListedJob]:
        """Yields jobs that were created in the period or at most 30 days before it."""
        pages = _pages(self._client_of, kind, region, period.created_after, period.created_before)
        return chain.from_iterable(pages)

    def pages(
        self, job_list: JobList, *, created_after: datetime, created_before: datetime
    ) -> Iterator[list[ListedJob]]:
        """Yields the pages of one of the account's job lists. Raises AwsError."""
        return _pages(
            self._client_of, job_list.kind, job_list.region, created_after, created_before
        )


def _pages(
    client_of: Callable[[str], Any],
    kind: JobKind,
    region: str,
    created_after: datetime,
    created_before: datetime,
) -> Iterator[list[ListedJob]]:
    """Yields the pages of a list of jobs. Calls `client_of` before each page.

    Raises Unavailable if a token repeats, or after too many pages without a new row. An incomplete
    list would move the watermark past jobs that no sweep has seen.
    """
    seen_jobs, pages_without_new_rows = set[ListedJob](), 0
    request: dict[str, Any] = {
        "CreationTimeAfter": created_after,
        "CreationTimeBefore": created_before,
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
        "MaxResults": PAGE_SIZE,
    }
    while True:
        with aws_errors("sagemaker", f"in {region}"):
            answer = getattr(client_of(region), kind.spec.list_method)(**request)
        page = list(_rows(kind, answer))
        pages_without_new_rows = 0 if not seen_jobs.issuperset(page) else pages_without_new_rows + 1
        seen_jobs.update(page)
        yield page
        token = answer.get("NextToken")
        if not token:
            return
        if (
            token == request.get("NextToken")
            or pages_without_new_rows >= _MAX_PAGES_WITHOUT_NEW_ROWS
        ):
            method = f"sagemaker:{kind.spec.list_call}"
            raise Unavailable(f"{method} in {region} returned no last page.")
        request["NextToken"] = token


def _rows(kind: JobKind, answer: Mapping[str, Any]) -> Iterator[ListedJob]:
    with parse_errors("sagemaker"):
        for row in require_key(answer, kind.spec.list_key):
            if row is not None and (job := _parse_row(kind, row)) is not None:
                yield job


def _parse_row(kind: JobKind, row: Mapping[str, Any]) -> ListedJob | None:
    """Returns the job of a row; None if the row lacks the name, ARN or time that a job needs."""
    spec = kind.spec
    try:
        name, arn = fields.text(row, spec.name_key), fields.text(row, spec.arn_key)
        created_at = fields.time(row, "CreationTime")
        ref = JobRef.from_arn(arn, name) if arn and name else None
        if ref is None or created_at is None:
            return None
        return ListedJob(
            ref,
            fields.text(row, spec.status_key) or "",
            created_at,
            fields.time(row, spec.end_key),
            fields.time(row, "LastModifiedTime"),
        )
    except MalformedData:
        return None


class PacedJobPages(Struct, frozen=True):
    """Implements JobPageSource, with a pause between two requests for one list.

    `client_of` returns the SageMaker client for an account and region. `clock` returns monotonic
    seconds. `paced` holds the clients that already have the pause.
    """

    client_of: Callable[[str, str], Any]
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    paced: WeakSet[Any] = field(default_factory=WeakSet)

    def pages(
        self, job_list: JobList, *, created_after: datetime, created_before: datetime
    ) -> Iterator[list[ListedJob]]:
        """Yields the pages of a job list. Raises AwsError."""
        lists = SageMakerJobLists(partial(self._client, job_list.account))
        return lists.pages(job_list, created_after=created_after, created_before=created_before)

    def _client(self, account: str, region: str) -> Any:
        with aws_errors("sts"):
            new_client = self.client_of(account, region)
        if new_client not in self.paced:
            self.paced.add(new_client)
            _add_pause(new_client, self.clock, self.sleep)
        return new_client


def _add_pause(client: Any, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
    # AWS counts requests by account and region, and its published quota is that of one list. Once
    # it throttles the client, it may count all lists together: they then share the pause.
    last_s_by_list: dict[str, float] = {}
    is_shared = False

    def take_turn(event_name: str, **_: Any) -> None:
        now_s = clock()
        last_times_s = (
            last_s_by_list.values()
            if is_shared
            else (last_s_by_list.get(event_name, float("-inf")),)
        )
        wait_s = max(max(last_times_s) + MIN_INTERVAL_S - now_s, 0.0)
        if wait_s:
            sleep(min(wait_s, MIN_INTERVAL_S))
        last_s_by_list[event_name] = now_s + wait_s

    def note_throttle(response: Any, **_: Any) -> None:
        nonlocal is_shared
        is_shared = is_shared or (response is not None and is_throttle(response[1]))

    client.meta.events.register_first("before-send.sagemaker", take_turn)
    client.meta.events.register_first("needs-retry.sagemaker", note_throttle)
