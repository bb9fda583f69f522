"""The sweep's function: what it counts and logs, and what it answers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import pytest

from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.listed import Listed
from sageaudit.domain.sweep import ListOfJobs
from sageaudit.errors import AwsError, Throttled, Unavailable
from sageaudit.workflows.sweep.run import SweepDependencies
from sweep import handler
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.sweeps import DAY, HOUR, NOON, MemoryNotes, Office, key_of, row

ENVIRON = {"POWERTOOLS_SERVICE_NAME": "sweep", "POWERTOOLS_METRICS_NAMESPACE": "sageaudit"}


@dataclass
class Context:
    """One invocation, with so much time left."""

    aws_request_id: str = "one"
    left_ms: int = 600_000

    def get_remaining_time_in_millis(self) -> int:
        """What is left of the function's timeout."""
        return self.left_ms


def an_office(*jobs: Listed) -> Office:
    """One where a sweep ran an hour ago."""
    office = Office(NOON - DAY)
    office.sweep()
    office.now = NOON - HOUR
    office.sweep()
    office.now = NOON
    office.pages.rows += jobs
    return office


def sweeper(office: Office) -> handler.Sweeper:
    """The function in an office."""

    def deps(out_of_time: Any) -> SweepDependencies:
        return SweepDependencies(
            pages=office.pages,
            history=cast("Any", office.history),
            notes=office.notes,
            queue=office.queue,
            accounts=office.accounts,
            region=REGION,
            clock=lambda: office.now,
            out_of_time=out_of_time,
        )

    return handler.Sweeper(deps, office.notes, lambda: office.now, Report(ENVIRON))


def counted(capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    """The metrics that were printed; those that are 0 are there too."""
    found: Counter[str] = Counter()
    for line in capsys.readouterr().out.splitlines():
        record = json.loads(line)
        for metrics in record.get("_aws", {}).get("CloudWatchMetrics", ()):
            for metric in metrics["Metrics"]:
                found[metric["Name"]] += int(record[metric["Name"]][0])
    return found


def test_a_sweep_without_jobs_counts_zeros(capsys: pytest.CaptureFixture[str]) -> None:
    """No value at all would be silence."""
    assert sweeper(an_office())({}, Context()) == {"failed": 0}
    assert dict(counted(capsys)) == {"JobsEnded": 0, "JobsMissing": 0}


def test_what_is_found_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Two jobs without an audit."""
    office = an_office(row("a", NOON - HOUR), row("b", NOON - HOUR, kind=JobKind.PROCESSING))
    sweeper(office)({}, Context())
    assert counted(capsys) == {"JobsEnded": 2, "JobsMissing": 2, "ReconcilerFound": 2}


def test_a_list_that_fails_is_counted_and_named(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The others are swept."""
    office = an_office(row("b", NOON - HOUR, kind=JobKind.PROCESSING))

    def throttled(of: ListOfJobs, _number: int, page: list[Listed]) -> list[Listed]:
        if of.kind is JobKind.TRAINING:
            raise Throttled("sagemaker:ListTrainingJobs is throttled: try again later.")
        return page

    office.pages.spoils = throttled
    assert sweeper(office)({}, Context()) == {"failed": 1}
    found = counted(capsys)
    assert (found["SweepFailed"], found["ReconcilerFound"]) == (1, 1)
    assert "list failed" in caplog.text


def test_what_is_missing_is_counted_although_the_list_then_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It was seen, on the page before."""
    office = an_office(row("a", NOON - HOUR), row("b", NOON - HOUR))
    office.pages.size = 1

    def fails_at_its_end(of: ListOfJobs, number: int, page: list[Listed]) -> list[Listed]:
        if of.kind is JobKind.TRAINING and number > 1:
            raise Throttled("sagemaker:ListTrainingJobs is throttled: try again later.")
        return page

    office.pages.spoils = fails_at_its_end
    sweeper(office)({}, Context())
    found = counted(capsys)
    assert (found["SweepFailed"], found["JobsMissing"]) == (1, 1)


def test_audits_that_cannot_be_read_are_failures_and_no_defects(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Each is counted, and the log says which it is."""
    old, new = row("old", NOON - DAY), row("new", NOON - HOUR)
    office = an_office(new, row("lost", NOON - HOUR))
    office.history.audited(old, due_at=NOON - HOUR)
    office.history.unreadable = {key_of(old), key_of(new)}
    assert sweeper(office)({}, Context()) == {"failed": 2}
    found = counted(capsys)
    assert (found["SweepFailed"], found["Defects"], found["ReconcilerFound"]) == (2, 0, 1)
    reasons = [vars(record).get("reason") for record in caplog.records]
    assert [f"{one.ref.arn} cannot be read" in reasons for one in (old, new)] == [True, True]


@pytest.mark.parametrize("error", [Throttled("busy"), Unavailable("no answer")])
def test_a_table_that_does_not_answer_is_a_failure_without_an_error(
    capsys: pytest.CaptureFixture[str], error: AwsError
) -> None:
    """The next sweep is in a quarter of an hour; the alarm is about failures in a row."""
    office = an_office()

    class Away(MemoryNotes):
        """A table that does not answer."""

        def take_turn(self, *_: object) -> bool:
            raise error

    office.notes = Away()
    assert sweeper(office)({}, Context()) == {"failed": 1}
    assert counted(capsys) == {"SweepFailed": 1}


def test_a_defect_is_counted_raised_and_leaves_no_turn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Lambda keeps the invocation among the schedule's dead letters."""
    office = an_office()

    def broken(_of: ListOfJobs, _number: int, _page: list[Listed]) -> list[Listed]:
        raise ZeroDivisionError

    office.pages.spoils = broken
    with pytest.raises(ZeroDivisionError):
        sweeper(office)({}, Context())
    found = counted(capsys)
    assert (found["SweepFailed"], found["Defects"]) == (1, 1)
    assert office.notes.take_turn("another", NOON, 1)


def test_a_second_sweep_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The first one still has its turn."""
    office = an_office(row("a", NOON - HOUR))
    office.notes.take_turn("first", office.now, handler.LEASE_S)
    asked = len(office.pages.asked)
    assert sweeper(office)({}, Context("second")) == {"failed": 0}
    assert len(office.pages.asked) == asked
    assert not counted(capsys)


def test_a_sweep_without_time_leaves_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    """It reads no list, and says nothing of any."""
    office = an_office(row("a", NOON - HOUR))
    asked = len(office.pages.asked)
    assert sweeper(office)({}, Context(left_ms=1_000)) == {"failed": 0}
    assert len(office.pages.asked) == asked
    assert not counted(capsys)
    assert office.notes.state(ListOfJobs(ACCOUNT, REGION, JobKind.TRAINING)) is not None
