"""A job is found by its name or ARN, whatever its age."""

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
    """60 audits of other jobs."""
    with SqliteHistory() as file:
        fill(file, 60)
        yield file


def job(name: str, family: str, days_ago: int = 5, **changes: str) -> AuditEntry:
    """A job that ended then."""
    made = entry_ending_at(name, NOW - timedelta(days=days_ago), job={"family": family, **changes})
    return replace(made, key=key(name, NOW - timedelta(days=days_ago, hours=1)))


def found(history: History, name: str, **wanted: str | JobKind) -> AuditSummary:
    """The job with this name."""
    return find_job(history, JobQuery(name, **wanted))  # type: ignore[arg-type]


def test_a_job_is_found_whatever_its_age(history: History) -> None:
    """With no more reads than it has runs."""
    history.record(job("vgg-2026-11-14-10-00-00-123", "team-a", days_ago=900))
    assert found(history, "vgg-2026-11-14-10-00-00-123").family == "team-a"


def test_the_newest_run_of_a_job_is_found(history: History) -> None:
    """A deleted job's name can be used again."""
    for days_ago in (9, 3, 6):
        history.record(job("twice", "training/-/-/twice", days_ago))
    assert found(history, "twice").ended_at == NOW - timedelta(days=3)


def test_an_arn_is_found_whatever_its_case(history: History) -> None:
    """ARNs have names in lower case."""
    history.record(job("Loud", "training/-/-/loud"))
    assert found(history, key("Loud").arn.lower()).job == "Loud"


def test_a_name_of_several_jobs_is_refused(history: History) -> None:
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


def test_a_name_that_a_list_cut_is_found(history: History) -> None:
    """If it fits one job; of several their names are listed."""
    for number in (1, 2):
        history.record(job(f"tile-classifier-2026-11-1{number}-with-a-long-end", "team-a"))
    assert found(history, "tile-cl…11-with-a-long-end").job.startswith("tile-classifier-2026-11-11")
    with pytest.raises(AmbiguousName, match=r"is cut from tile-\S*11-11\S* and tile-\S*11-12"):
        found(history, "tile-cl…-long-end")
    with pytest.raises(JobNotFound):
        found(history, "tile-cl…-short-end")


def test_a_job_that_is_not_there_is_said(history: History) -> None:
    """With the nearest name of the newest jobs; with another case it is the job itself."""
    history.record(job("resnet-nightly", "team-a", days_ago=4))
    for name, near in (("nobody", "in this history$"), ("resnet-nihgtly", "mean resnet-nightly")):
        with pytest.raises(JobNotFound, match=f"no audit of {name} is in this history.*") as error:
            found(history, name)
        assert re.search(near, str(error.value))
    assert found(history, "ResNet-Nightly").job == "resnet-nightly"
