"""Event fixtures as the queue delivers them."""

import json
from datetime import UTC, datetime

import pytest

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion, JobEndEvent, parse_job_end_event
from sageaudit.domain.members import AuditScope
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.errors import RejectedEvent
from tests.fakes.recorded import DATA


def read(name: str) -> JobEndEvent:
    """Returns the parsed event of a fixture."""
    body = (DATA / "events" / f"{name}.json").read_text(encoding="utf-8")
    return parse_job_end_event(
        body, AuditScope(AccountRegion("123456789012", "us-east-1"), MemberAccounts())
    )


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("training-completed", JobKind.TRAINING, "Completed"),
        ("training-failed-before-start", JobKind.TRAINING, "Failed"),
        ("training-stopped-maxruntime", JobKind.TRAINING, "Stopped"),
        ("training-string-millis", JobKind.TRAINING, "Completed"),
        ("training-minimal", JobKind.TRAINING, "Completed"),
        ("processing-completed", JobKind.PROCESSING, "Completed"),
        ("transform-completed", JobKind.TRANSFORM, "Completed"),
        ("hpo-completed", JobKind.TUNING, "Completed"),
    ],
)
def test_a_terminal_event_names_its_job(name: str, kind: JobKind, status: str) -> None:
    """Events of each kind name their job, also with nulls, digit strings or only three fields."""
    ended = read(name)
    assert (ended.ref.kind, ended.status) == (kind, status)
    assert ended.ref.name.startswith("synthetic-")
    assert (ended.ref.account, ended.ref.region) == ("123456789012", "us-east-1")


def test_an_event_in_progress_is_refused() -> None:
    """An event of a running job is refused by the parser; the rule's pattern excludes it too."""
    with pytest.raises(RejectedEvent) as caught:
        read("training-inprogress")
    assert caught.value.code == "not_terminal"


def test_a_duplicate_names_the_same_run() -> None:
    """A duplicate has another id and time, but the same ARN, creation time and status."""
    first, second = read("training-completed"), read("training-completed-duplicate")
    assert first.ref == second.ref
    assert (first.created_at, first.status) == (second.created_at, second.status)
    assert first.ended_at != second.ended_at


def test_milliseconds_are_the_same_moment_as_text_and_number() -> None:
    """Milliseconds mean the same time as text and as number."""
    nine = datetime(2025, 11, 20, 9, 0, tzinfo=UTC)
    assert read("training-string-millis").created_at == nine
    assert read("training-completed").created_at == nine


def test_a_minimal_event_has_no_creation_time() -> None:
    """A minimal event has no creation time; Describe has it."""
    assert read("training-minimal").created_at is None


def test_the_events_that_are_made_for_tests_say_so() -> None:
    """All fixtures are marked as synthetic and have no real account."""
    for path in (DATA / "events").glob("*.json"):
        event = json.loads(path.read_text(encoding="utf-8"))
        assert event["account"] == "123456789012"
        assert "synthetic" in event["resources"][0]
