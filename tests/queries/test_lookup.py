"""A job is found by its name with few reads, wherever its family, its name or nothing leads."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import Entry, Head
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import AmbiguousName, JobNotFound
from sageaudit.queries.lists import Lists
from sageaudit.queries.lookup import Wanted, find
from sageaudit.queries.window import window
from tests.adapters.history.entries import ended, key
from tests.fakes.asked import NOW, fill

TUNING = "arn:aws:sagemaker:us-east-1:111122223333:hyper-parameter-tuning-job"
DAYS = window("90d", None, NOW)


@pytest.fixture
def history() -> SqliteHistory:
    """60 audits of other jobs."""
    made = SqliteHistory()
    fill(made, 60)
    return made


def job(name: str, family: str, days_ago: int = 5, **changes: str) -> Entry:
    """A job that ended then."""
    made = ended(name, NOW - timedelta(days=days_ago), job={"family": family, **changes})
    return replace(made, key=key(name, NOW - timedelta(days=days_ago, hours=1)))


def found(history: SqliteHistory, name: str, **wanted: str | JobKind) -> Head:
    """The job with this name."""
    return find(Lists(history, DAYS), Wanted(name, **wanted))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("vgg-2026-11-14-10-00-00-123", "training/repo/train.py/vgg"),
        ("pipelines-abcdefgh1234-Train-AbCdEfGhIj", "my-pipeline/train"),
        ("tune-261114-1000-001-1a2b3c4d", f"{TUNING}/tune-261114-1000"),
        ("My-Job", "training/-/-/my-job"),
    ],
)  # fmt: skip
def test_a_job_is_found_in_the_family_of_its_name(
    history: SqliteHistory, name: str, family: str
) -> None:
    """The daily sums name the families; only such a family's runs are read."""
    history.record(job(name, family))
    other = job(f"{name}-other", family, days_ago=3)
    history.record(other)
    lists = Lists(history, DAYS)
    assert find(lists, Wanted(name)).name == name
    assert lists.read.rows == 2


def test_a_job_of_a_tagged_family_is_found_on_the_day_in_its_name(history: SqliteHistory) -> None:
    """The day before it and a day or two after are read."""
    history.record(job("vgg-2026-11-14-10-00-00-123", "team-a", days_ago=6))
    lists = Lists(history, DAYS)
    assert find(lists, Wanted("vgg-2026-11-14-10-00-00-123")).family == "team-a"
    assert lists.read.rows < 10


def test_else_everything_is_read_newest_first(history: SqliteHistory) -> None:
    """Up to the job."""
    history.record(job("odd", "team-a", days_ago=4))
    assert found(history, "odd").name == "odd"


def test_the_newest_run_of_a_job_is_found(history: SqliteHistory) -> None:
    """A deleted job's name can be used again."""
    for days_ago in (9, 3, 6):
        history.record(job("twice", "training/-/-/twice", days_ago))
    assert found(history, "twice").ended_at == NOW - timedelta(days=3)


def test_an_arn_is_found_whatever_its_case(history: SqliteHistory) -> None:
    """ARNs have names in lower case."""
    history.record(job("Loud", "training/-/-/loud"))
    assert found(history, key("Loud").arn.lower()).name == "Loud"


def test_a_name_of_several_jobs_is_refused(history: SqliteHistory) -> None:
    """With their ARNs; the account or region chooses one."""
    for account in ("111122223333", "444455556666"):
        made = job("both", "training/-/-/both", account=account)
        arn = made.key.arn.replace("111122223333", account)
        history.record(replace(made, key=replace(made.key, arn=arn)))
    with pytest.raises(
        AmbiguousName, match=r"both is several jobs, arn:.* and arn:.*: give the ARN"
    ):
        found(history, "both")
    assert found(history, "both", account="444455556666").account == "444455556666"


def test_a_job_that_is_not_there_is_said(history: SqliteHistory) -> None:
    """Also one that ended before, and one with an impossible day in its name."""
    history.record(job("old", "training/-/-/old", days_ago=100))
    for name in ("old", "nobody", "x-2026-99-99", "x-20991231"):
        with pytest.raises(JobNotFound, match=f"no audit of {name} since 2026-08-22"):
            found(history, name)


def test_a_mistyped_name_is_answered_with_the_nearest_one(history: SqliteHistory) -> None:
    """Of the jobs that are read anyway; with another case it is the job itself."""
    history.record(job("resnet-nightly", "team-a", days_ago=4))
    with pytest.raises(JobNotFound, match=r"did you mean resnet-nightly\? For one that ended earl"):
        found(history, "resnet-nihgtly")
    assert found(history, "ResNet-Nightly").name == "resnet-nightly"
