"""Calls SageMaker in each account: Describe*, ListTags, and its lists of jobs, newest first.

A filter by LastModifiedTime is not used: SageMaker then answers page after empty page until the
caller is throttled (aws/aws-cli#7596, docs/decisions/0022-lists-are-read-by-creation-time.md).
StatusEquals is not used either: it is applied after a page is cut (ListTrainingJobs' reference).
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
    parse_errors,
    read_text,
    require_key,
)
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import ChildList, JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import JobList, ListedJob, Period
from sageaudit.errors import JobNotFound, MalformedData, RejectedEvent, Unavailable

JOB_PERMISSIONS = (
    *(f"sagemaker:{kind.spec.describe_call}" for kind in JobKind),
    "sagemaker:ListTags",
)
"""Calls about one job, to which IAM can limit them."""
_ROLL_UPS = [rollup for kind in JobKind if (rollup := kind.spec.rollup)]
COUNT_PERMISSIONS = tuple(
    f"sagemaker:{rollup.child_list.action}" for rollup in _ROLL_UPS if not rollup.has_child_count
)
"""An audit lists the jobs of a roll-up that Describe does not count, to find missing ones."""
AUDIT_PERMISSIONS = (*JOB_PERMISSIONS, *COUNT_PERMISSIONS)
"""What an audit calls."""
CHILDREN_PERMISSIONS = tuple(f"sagemaker:{rollup.child_list.action}" for rollup in _ROLL_UPS)
"""Only the command line lists every roll-up's jobs; the Lambda reads them from the history."""
LIST_PERMISSIONS = tuple(f"sagemaker:{kind.spec.list_call}" for kind in JobKind)
"""What a sweep calls, whose role alone may; none can be limited to certain jobs."""
PERMISSIONS = (*AUDIT_PERMISSIONS, *LIST_PERMISSIONS)
UNSCOPED_ACTIONS = tuple(
    f"sagemaker:{rollup.child_list.action}"
    for rollup in _ROLL_UPS
    if not rollup.child_list.is_resource_limited
)
"""Actions that no policy limits to certain jobs: AWS's guide on SageMaker's API permissions says so
of all List calls but ListTags."""
PAGE_SIZE = 100
"""The most rows that one request returns; the default is 10."""
_MAX_PAGES_WITHOUT_NEW_ROWS = 50
"""A list by creation time has full pages: this many pages without a new row have no end."""
MIN_INTERVAL_S = 1.0


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
        # A page of a proxy is an empty answer to the SDK, and must not pass for a job's.
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
        """Returns the jobs that a roll-up launched, each once. Raises AwsError."""
        rollup = ref.kind.spec.rollup
        if rollup is None:
            return
        child_list, seen = rollup.child_list, set[str]()
        with aws_errors("sagemaker"), parse_errors("sagemaker"):
            client = self._client_of(ref.account, ref.region)
            pages = client.get_paginator(xform_name(child_list.action))
            for page in pages.paginate(**{ref.kind.spec.name_key: ref.name}):
                for row in _child_rows(page, child_list):
                    child = _child(row, child_list)
                    if child is not None and child.arn not in seen:
                        seen.add(child.arn)
                        yield child


def _child_rows(page: Mapping[str, Any], child_list: ChildList) -> Iterator[Mapping[str, Any]]:
    for row in require_key(page, child_list.rows_key):
        if child_list.steps_key is None:
            yield row
        else:
            yield from row.get(child_list.steps_key) or ()


def _child(row: Mapping[str, Any], child_list: ChildList) -> JobRef | None:
    """Reads a launched job; None for a row or step without a job of an audited kind.

    A step may have a name of its own.
    """
    arn, name = row.get(child_list.arn_key), row.get(child_list.name_key)
    if not isinstance(arn, str):
        return None
    return (isinstance(name, str) and JobRef.from_arn(arn, name)) or JobRef.from_arn(arn)


def is_job_missing(error: ClientError) -> bool:
    """Whether the job does not exist: ResourceNotFound, or in practice ValidationException."""
    if error_code(error) in {"ResourceNotFound", "ResourceNotFoundException"}:
        return True
    message = error_message(error).lower()
    return error_code(error) == "ValidationException" and (
        "not found" in message or "could not find" in message or "does not exist" in message
    )


class SageMakerJobLists:
    """Implements JobLists and, page by page, JobPageSource for one account.

    `client_of` returns its client for a region.
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
        """Implements JobPageSource for one account."""
        return _pages(
            self._client_of, job_list.kind, job_list.region, created_after, created_before
        )


def _pages(
    client_of: Callable[[str], Any], kind: JobKind, region: str, after: datetime, before: datetime
) -> Iterator[list[ListedJob]]:
    """Yields the pages of a list; `client_of` is asked for a client before each page.

    Raises Unavailable if a token repeats, or after too many pages without a new row. An incomplete
    list that seems complete would move the watermark past jobs that nobody saw.
    """
    seen, without_news = set[ListedJob](), 0
    call: dict[str, Any] = {
        "CreationTimeAfter": after,
        "CreationTimeBefore": before,
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
        "MaxResults": PAGE_SIZE,
    }
    while True:
        with aws_errors("sagemaker", f"in {region}"):
            answer = getattr(client_of(region), kind.spec.list_method)(**call)
        page = list(_rows(kind, answer))
        without_news = 0 if not seen.issuperset(page) else without_news + 1
        seen.update(page)
        yield page
        token = answer.get("NextToken")
        if not token:
            return
        if token == call.get("NextToken") or without_news >= _MAX_PAGES_WITHOUT_NEW_ROWS:
            method = f"sagemaker:{kind.spec.list_call}"
            raise Unavailable(f"{method} in {region} returned no last page.")
        call["NextToken"] = token


def _rows(kind: JobKind, answer: Mapping[str, Any]) -> Iterator[ListedJob]:
    with parse_errors("sagemaker"):
        for row in require_key(answer, kind.spec.list_key):
            if row is not None and (job := _parse_row(kind, row)) is not None:
                yield job


def _parse_row(kind: JobKind, row: Mapping[str, Any]) -> ListedJob | None:
    """Reads a row; None without a usable name, ARN or time, as such a job cannot be described."""
    keys = kind.spec
    try:
        name, arn = fields.text(row, keys.name_key), fields.text(row, keys.arn_key)
        created_at = fields.time(row, "CreationTime")
        ref = JobRef.from_arn(arn, name) if arn and name else None
        if ref is None or created_at is None:
            return None
        return ListedJob(
            ref,
            fields.text(row, keys.status_key) or "",
            created_at,
            fields.time(row, keys.end_key),
            fields.time(row, "LastModifiedTime"),
        )
    except MalformedData:
        return None


class PacedJobPages(Struct, frozen=True):
    """Implements JobPageSource. `client_of` returns SageMaker's client for an account and region.

    `clock` returns seconds that only grow; `sleep` waits for seconds.
    """

    client_of: Callable[[str, str], Any]
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    paced: WeakSet[Any] = field(default_factory=WeakSet)

    def pages(
        self, job_list: JobList, *, created_after: datetime, created_before: datetime
    ) -> Iterator[list[ListedJob]]:
        """Yields the pages of a list. Raises AwsError."""
        lists = SageMakerJobLists(partial(self._client, job_list.account))
        return lists.pages(job_list, created_after=created_after, created_before=created_before)

    def _client(self, account: str, region: str) -> Any:
        try:
            with aws_errors("sts"):
                new_client = self.client_of(account, region)
        except RejectedEvent as error:  # a role of another account: its lists are not read
            raise Unavailable(f"{error}.") from error
        if new_client not in self.paced:
            self.paced.add(new_client)
            _keep_apart(new_client, self.clock, self.sleep)
        return new_client


def _keep_apart(client: Any, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
    """Keeps the requests of one client apart: AWS counts them by account and region."""
    last_s = float("-inf")

    def take_turn(**_: Any) -> None:
        nonlocal last_s
        now_s = clock()
        wait_s = max(last_s + MIN_INTERVAL_S - now_s, 0.0)
        if wait_s:
            sleep(min(wait_s, MIN_INTERVAL_S))
        last_s = now_s + wait_s

    client.meta.events.register_first("before-send.sagemaker", take_turn)
