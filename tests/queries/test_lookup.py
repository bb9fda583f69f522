"""A job of any age is found by its name or ARN."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import AuditEntry
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import AmbiguousName, JobNotFound
from sageaudit.ports import History
from sageaudit.queries.names import JobQuery, find_job
from sageaudit.structs import replace
from tests.fakes.entries import entry_ending_at, key
from tests.fakes.random_history import NOW, fill


@pytest.fixture
def history() -> Iterator[History]:
    """Yields 60 audits of other jobs."""
    with SqliteHistory() as file:
        fill(file, 60)
        yield file


def job(name: str, family: str, days_ago: int = 5, **changes: str) -> AuditEntry:
    """Returns a job that ended at this time."""
    stored = entry_ending_at(
        name, NOW - timedelta(days=days_ago), job={"family": family, **changes}
    )
    return replace(stored, key=key(name, NOW - timedelta(days=days_ago, hours=1)))


def find(history: History, name: str, **query: str | JobKind) -> AuditSummary:
    """Returns the job with this name."""
    return find_job(history, JobQuery(name, **query))  # type: ignore[arg-type]


def test_a_job_of_any_age_is_found(history: History) -> None:
    """It needs no more reads than the job has runs."""
    history.record(job("vgg-2026-11-14-10-00-00-123", "team-a", days_ago=900))
    assert find(history, "vgg-2026-11-14-10-00-00-123").family == "team-a"


def test_the_newest_run_of_a_job_is_found(history: History) -> None:
    """A deleted job's name can be used again."""
    for days_ago in (9, 3, 6):
        history.record(job("twice", "training/-/-/twice", days_ago))
    assert find(history, "twice").ended_at == NOW - timedelta(days=3)


def test_an_arn_in_any_case_is_found(history: History) -> None:
    """ARNs have names in lower case."""
    history.record(job("Loud", "training/-/-/loud"))
    assert find(history, key("Loud").arn.lower()).job == "Loud"


def test_a_name_of_several_jobs_is_refused(history: History) -> None:
    """The error has their ARNs; the account or region chooses one."""
    for account in ("111122223333", "444455556666"):
        stored = job("both", "training/-/-/both", account=account)
        arn = stored.key.arn.replace("111122223333", account)
        history.record(replace(stored, key=replace(stored.key, arn=arn)))
    with pytest.raises(
        AmbiguousName, match=r"both is several jobs, arn:.* and arn:.*: give the ARN"
    ):
        find(history, "both")
    assert find(history, "both", account="444455556666").account == "444455556666"


def test_a_shortened_name_is_found(history: History) -> None:
    """It must match one job; for several, their names are listed."""
    for number in (1, 2):
        history.record(job(f"tile-classifier-2026-11-1{number}-with-a-long-end", "team-a"))
    assert find(history, "tile-cl…11-with-a-long-end").job.startswith("tile-classifier-2026-11-11")
    with pytest.raises(AmbiguousName, match=r"is cut from tile-\S*11-11\S* and tile-\S*11-12"):
        find(history, "tile-cl…-long-end")
    with pytest.raises(JobNotFound):
        find(history, "tile-cl…-short-end")


def test_a_missing_job_is_reported(history: History) -> None:
    """The error has the nearest name of the newest jobs; a name in another case finds the job."""
    history.record(job("resnet-nightly", "team-a", days_ago=4))
    for name, near in (("nobody", "in this history$"), ("resnet-nihgtly", "mean resnet-nightly")):
        with pytest.raises(JobNotFound, match=f"no audit of {name} is in this history.*") as error:
            find(history, name)
        assert re.search(near, str(error.value))
    assert find(history, "ResNet-Nightly").job == "resnet-nightly"
