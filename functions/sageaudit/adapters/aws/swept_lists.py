"""The lists of jobs of several accounts, for a sweep: one request a second over all of them.

ListTrainingJobs has a quota of 2 requests a second and account, which the account's own tools share
(aws-solutions/deepracer-on-aws#87). Tries again of the SDK wait for their turn too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from weakref import WeakSet

from sageaudit.adapters.aws.clients import aws_errors
from sageaudit.adapters.aws.job_lists import SageMakerJobLists
from sageaudit.domain.job.listed import Listed
from sageaudit.domain.sweep import ListOfJobs
from sageaudit.errors import RejectedEvent, Unavailable

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
        self._last: float | None = None
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
            found.meta.events.register_first("before-send.sagemaker", self._take_turn)
        return found

    def _take_turn(self, **_: Any) -> None:
        now = self._clock()
        wait_s = 0.0 if self._last is None else max(self._last + APART_S - now, 0.0)
        if wait_s:
            self._sleep(min(wait_s, APART_S))
        self._last = now + wait_s
