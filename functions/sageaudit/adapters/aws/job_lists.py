"""SageMaker's lists of jobs, newest first by creation time.

A filter by LastModifiedTime is not used: SageMaker then answers page after empty page until the
caller is throttled (aws/aws-cli#7596, docs/decisions/0022-lists-are-read-by-creation-time.md).
StatusEquals is not used either: it is applied after a page is cut (ListTrainingJobs' reference).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any
from weakref import WeakSet

from sageaudit.adapters.aws.clients import aws_errors, parsing, part_of
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import Listed, ListOfJobs, Period
from sageaudit.errors import Malformed, RejectedEvent, Unavailable

CLI_PERMISSIONS = tuple(f"sagemaker:{kind.row.list_call}" for kind in JobKind)
"""None of them can be limited to certain jobs."""
PAGE = 100
"""The most that one request returns; the default is 10."""
PERMISSIONS = CLI_PERMISSIONS
"""What a sweep calls; its role alone has them."""
_MOST_WITHOUT_NEWS = 50
"""A list by creation time has full pages, so this many in a row have no end."""


class SageMakerJobLists:
    """Implements JobLists and, page by page, JobPages: for one account.

    `client_of` returns its client for a region.
    """

    def __init__(self, client_of: Callable[[str], Any]) -> None:
        self._client_of = client_of

    def listed(self, kind: JobKind, region: str, period: Period) -> Iterator[Listed]:
        """The jobs that were created in the period or at most 30 days before it."""
        pages = self._pages(kind, region, period.created_after, period.created_before)
        return chain.from_iterable(pages)

    def pages(
        self, of: ListOfJobs, *, created_after: datetime, created_before: datetime
    ) -> Iterator[list[Listed]]:
        """Implements JobPages for its account."""
        return self._pages(of.kind, of.region, created_after, created_before)

    def _pages(
        self, kind: JobKind, region: str, after: datetime, before: datetime
    ) -> Iterator[list[Listed]]:
        """Raises Unavailable where the pages do not end.

        That is where a token repeats, and after _MOST_WITHOUT_NEWS pages without a new row: a list
        that seems to be whole and is not would move the watermark past jobs that nobody saw.
        """
        seen, without_news = set[Listed](), 0
        call = _by_creation(after, before)
        while True:
            answer = self._page(kind, region, call)
            page = list(_rows(kind, answer))
            without_news = 0 if not seen.issuperset(page) else without_news + 1
            seen.update(page)
            yield page
            token = answer.get("NextToken")
            if not token:
                return
            if token == call.get("NextToken") or without_news >= _MOST_WITHOUT_NEWS:
                method = f"sagemaker:{kind.row.list_call}"
                raise Unavailable(f"{method} in {region} returned no last page.")
            call["NextToken"] = token

    def _page(self, kind: JobKind, region: str, call: Mapping[str, Any]) -> Mapping[str, Any]:
        with aws_errors("sagemaker", f"in {region}"):
            method = kind.row.list_method
            answer: Mapping[str, Any] = getattr(self._client_of(region), method)(**call)
        return answer


def _by_creation(after: datetime, before: datetime) -> dict[str, Any]:
    return {
        "CreationTimeAfter": after,
        "CreationTimeBefore": before,
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
        "MaxResults": PAGE,
    }


def _rows(kind: JobKind, answer: Mapping[str, Any]) -> Iterator[Listed]:
    with parsing("sagemaker"):
        for row in part_of(answer, kind.row.list_rows):
            if row is not None and (job := _listed(kind, row)) is not None:
                yield job


def _listed(kind: JobKind, row: Mapping[str, Any]) -> Listed | None:
    """A row; None for one without a usable name, ARN or time, which cannot be described either."""
    keys = kind.row
    try:
        name, arn = fields.text(row, keys.name_key), fields.text(row, keys.arn_key)
        created_at = fields.time(row, "CreationTime")
        ref = JobRef.from_arn(arn, name) if arn and name else None
        if ref is None or created_at is None:
            return None
        return Listed(
            ref,
            fields.text(row, keys.status_key) or "",
            created_at,
            fields.time(row, keys.end_key),
            fields.time(row, "LastModifiedTime"),
        )
    except Malformed:
        return None


APART_S = 1.0


class SweptLists:
    """Implements JobPages. `client_of` returns SageMaker's client for an account and region.

    `clock` returns seconds that only grow; `sleep` waits for seconds.
    """

    def __init__(
        self,
        client_of: Callable[[str, str], Any],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._client_of = client_of
        self._clock = clock
        self._sleep = sleep
        self._paced: WeakSet[Any] = WeakSet()

    def pages(
        self, of: ListOfJobs, *, created_after: datetime, created_before: datetime
    ) -> Iterator[list[Listed]]:
        """The pages of a list. Raises AwsError."""
        lists = SageMakerJobLists(lambda region: self._client(of.account, region))
        return lists.pages(of, created_after=created_after, created_before=created_before)

    def _client(self, account: str, region: str) -> Any:
        try:
            with aws_errors("sts"):
                found = self._client_of(account, region)
        except RejectedEvent as error:  # a role of another account: its lists are not read
            raise Unavailable(f"{error}.") from error
        if found not in self._paced:
            self._paced.add(found)
            turns = _OneApart(self._clock, self._sleep)
            found.meta.events.register_first("before-send.sagemaker", turns.take)
        return found


class _OneApart:
    """Keeps the requests of one client apart: AWS counts them by account and region."""

    def __init__(self, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._clock = clock
        self._sleep = sleep
        self._last: float | None = None

    def take(self, **_: Any) -> None:
        """Waits where the request before it is not long ago."""
        now = self._clock()
        wait_s = 0.0 if self._last is None else max(self._last + APART_S - now, 0.0)
        if wait_s:
            self._sleep(min(wait_s, APART_S))
        self._last = now + wait_s
