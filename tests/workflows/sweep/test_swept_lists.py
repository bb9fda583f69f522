"""The lists as a sweep reads them: page by page, a request a second, and never for ever."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.config import Config

from local.requests import RequestRouter, http_answer
from sageaudit.adapters.aws.sagemaker import PacedJobPages
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import JobList, ListedJob
from sageaudit.errors import AccessDenied, Throttled, Unavailable
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.sweeps import DAY, NOON

TRAINING = JobList(ACCOUNT, REGION, JobKind.TRAINING)
Answers = Callable[[int], tuple[int, dict[str, Any]]]


class Wire:
    """SageMaker behind the SDK: `answers` gives status and body of each request."""

    def __init__(self, answers: Answers) -> None:
        self.now = 0.0
        self.sent_at: list[float] = []
        session = boto3.Session("key", "secret", region_name=REGION)
        RequestRouter(session).interceptor = None
        requests = RequestRouter(session)

        def between(_operation: str, request: Any, _send: Any) -> Any:
            self.sent_at.append(self.now)
            status, body = answers(len(self.sent_at))
            return http_answer(request.url, status, body)

        requests.interceptor = between
        config = Config(retries={"mode": "standard", "total_max_attempts": 3})
        self._clients = {
            account: session.client("sagemaker", config=config)
            for account in (ACCOUNT, "444455556666")
        }
        self.lists = PacedJobPages(
            lambda account, _region: self._clients[account], lambda: self.now, self._sleep
        )

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def pages(self, job_list: JobList = TRAINING) -> list[list[ListedJob]]:
        """All pages of a list."""
        found = self.lists.pages(job_list, created_after=NOON - DAY, created_before=NOON + DAY)
        return list(found)

    @property
    def gaps(self) -> list[float]:
        """Seconds between two requests."""
        return [
            after - before for before, after in zip(self.sent_at, self.sent_at[1:], strict=False)
        ]


def body(*names: str, token: str | None = None, at: datetime = NOON) -> dict[str, Any]:
    """A page with these jobs."""
    rows = [
        {
            "TrainingJobName": name,
            "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}",
            "CreationTime": (at - timedelta(minutes=number)).timestamp(),
            "TrainingEndTime": at.timestamp(),
            "LastModifiedTime": at.timestamp(),
            "TrainingJobStatus": "Completed",
        }
        for number, name in enumerate(names)
    ]
    return {"TrainingJobSummaries": rows, **({"NextToken": token} if token else {})}


def test_requests_for_one_list_are_a_second_apart_in_each_account() -> None:
    """AWS counts the requests of each account, and of each list, separately."""
    wire = Wire(lambda n: (200, body("a", token=str(n)) if n % 3 else body("b")))
    wire.pages()
    wire.pages(JobList("444455556666", REGION, JobKind.TRAINING))
    assert wire.gaps == [1, 1, 0, 1, 1]


def test_the_five_lists_of_an_account_follow_each_other_without_a_pause() -> None:
    """Lambda would bill the pauses of each sweep."""
    wire = Wire(lambda _: (200, {kind.spec.list_key: [] for kind in JobKind}))
    for kind in JobKind:
        wire.pages(JobList(ACCOUNT, REGION, kind))
    assert wire.gaps == [0, 0, 0, 0]


def test_after_a_throttle_all_lists_of_the_account_share_the_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """AWS may count all lists together. Other accounts are not slowed down."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    throttled = {"__type": "ThrottlingException", "message": "Rate exceeded"}
    empty: dict[str, Any] = {kind.spec.list_key: [] for kind in JobKind}
    wire = Wire(lambda n: (400, throttled) if n == 1 else (200, empty))
    for account in (ACCOUNT, "444455556666"):
        for kind in JobKind:
            wire.pages(JobList(account, REGION, kind))
    assert wire.gaps == [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]


def test_the_sdks_tries_again_wait_for_their_turn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A throttled list is not asked faster than others."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    throttled = {"__type": "ThrottlingException", "message": "Rate exceeded"}
    wire = Wire(lambda n: (400, throttled) if n < 3 else (200, body("a")))
    assert [[row.ref.name for row in page] for page in wire.pages()] == [["a"]]
    assert wire.gaps == [1, 1]


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (400, {"__type": "ThrottlingException", "message": "Rate exceeded"}, Throttled),
        (400, {"__type": "AccessDeniedException", "message": "not authorized"}, AccessDenied),
        (500, {"message": "internal"}, Unavailable),
        (200, {"Something": "else"}, Unavailable),
    ],
)
def test_a_list_that_is_refused_is_an_error(
    monkeypatch: pytest.MonkeyPatch, status: int, answer: dict[str, Any], error: type[Exception]
) -> None:
    """Never an empty list."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(error):
        Wire(lambda _: (status, answer)).pages()


def test_a_role_of_another_account_fails_its_lists_alone() -> None:
    """As any list that cannot be read."""

    def disagrees(_account: str, _region: str) -> Any:
        raise AccessDenied("sts:AssumeRole", "the role is of another account")

    lists = PacedJobPages(disagrees, lambda: 0.0, lambda _: None)
    with pytest.raises(AccessDenied, match="the role is of another account"):
        list(lists.pages(TRAINING, created_after=NOON - DAY, created_before=NOON))


def test_a_token_that_repeats_is_an_error() -> None:
    """A list that seems whole would move the watermark past jobs that nobody saw."""
    wire = Wire(lambda n: (200, body(f"job-{n}", token="same")))
    with pytest.raises(Unavailable, match="ListTrainingJobs in us-east-1 returned no last page"):
        wire.pages()
    assert len(wire.sent_at) == 2


@pytest.mark.parametrize("names", [(), ("a", "b")], ids=["empty", "going round"])
def test_pages_without_news_do_not_go_on_for_ever(names: tuple[str, ...]) -> None:
    """Each with another token."""
    wire = Wire(lambda n: (200, body(*names, token=str(n))))
    with pytest.raises(Unavailable):
        wire.pages()
    assert len(wire.sent_at) <= 100


def test_empty_pages_before_a_full_one_are_read_past() -> None:
    """SageMaker may filter after it has cut a page."""
    wire = Wire(lambda n: (200, body(token=str(n)) if n < 40 else body("a")))
    assert [row.ref.name for page in wire.pages() for row in page] == ["a"]
