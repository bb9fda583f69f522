from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.phases import from_transitions
from tests.fakes.jobs import training_answer, transition


def at(clock: str) -> datetime:
    """A moment of 2026-05-20."""
    return datetime.fromisoformat(f"2026-05-20T{clock}").replace(tzinfo=UTC)


def shape(
    transitions: list[dict[str, Any]], start: str | None, end: str | None
) -> list[tuple[str, int | None, bool]]:
    """Name, seconds and whether billed, in order."""
    cut = from_transitions(transitions, at(start) if start else None, at(end) if end else None)
    return [(p.name, None if p.seconds is None else int(p.seconds), p.billed) for p in cut]


def test_waiting_is_not_billed() -> None:
    """Starting and Pending end where the billed time begins."""
    assert shape(
        [
            transition("Pending", "09:00:00", "09:40:00"),
            transition("Starting", "09:40:00", "10:00:00"),
            transition("Downloading", "10:00:00", "10:01:40"),
            transition("Training", "10:01:40", "10:31:40"),
            transition("Uploading", "10:31:40", "10:32:00"),
            transition("Completed", "10:32:00", "10:32:00"),
        ],
        "10:00:00",
        "10:32:00",
    ) == [
        ("Pending", 2400, False),
        ("Starting", 1200, False),
        ("Downloading", 100, True),
        ("Training", 1800, True),
        ("Uploading", 20, True),
    ]


def test_an_interrupted_spot_run_keeps_each_occurrence() -> None:
    """Statuses repeat; Interrupted and the second Starting are waiting."""
    assert shape(
        [
            transition("Starting", "10:00:00", "10:02:00"),
            transition("Downloading", "10:02:00", "10:03:00"),
            transition("Training", "10:03:00", "10:33:00"),
            transition("Interrupted", "10:33:00", "10:34:00"),
            transition("Starting", "10:34:00", "11:15:00"),
            transition("Downloading", "11:15:00", "11:16:00"),
            transition("Training", "11:16:00", "11:46:00"),
            transition("Uploading", "11:46:00", "11:47:00"),
            transition("Completed", "11:47:00"),
        ],
        "10:02:00",
        "11:47:00",
    ) == [
        ("Starting", 120, False),
        ("Downloading", 60, True),
        ("Training", 1800, True),
        ("Interrupted", 60, False),
        ("Starting", 2460, False),
        ("Downloading", 60, True),
        ("Training", 1800, True),
        ("Uploading", 60, True),
    ]


def test_a_stop_before_the_start_bills_nothing() -> None:
    """Stopped while waiting for capacity: no start time, no billed phase."""
    assert shape(
        [
            transition("Starting", "10:00:00", "10:05:00"),
            transition("Stopping", "10:05:00", "10:05:10"),
            transition("Stopped", "10:05:10"),
        ],
        None,
        None,
    ) == [("Starting", 300, False), ("Stopping", 10, False)]


def test_stopping_inside_the_run_is_billed() -> None:
    """It lies between start and end, and so do its seconds."""
    cut = shape(
        [
            transition("Training", "10:00:00", "10:30:00"),
            transition("Stopping", "10:30:00", "10:32:00"),
            transition("MaxRuntimeExceeded", "10:32:00"),
        ],
        "10:00:00",
        "10:32:00",
    )
    assert cut == [("Training", 1800, True), ("Stopping", 120, True)]


def test_a_status_nobody_knows_is_billed_where_it_lies() -> None:
    """AWS adds statuses: inside start and end it is billed, before it is waiting."""
    cut = shape(
        [
            transition("Reticulating", "09:59:00", "10:00:00"),
            transition("Warming", "10:00:00", "10:05:00"),
            transition("Training", "10:05:00", "10:10:00"),
        ],
        "10:00:00",
        "10:10:00",
    )
    assert cut == [("Reticulating", 60, False), ("Warming", 300, True), ("Training", 300, True)]


def test_a_phase_without_end_lasts_to_the_next_one() -> None:
    """And the last one to the job's end."""
    assert shape(
        [transition("Downloading", "10:00:00"), transition("Training", "10:01:00")],
        "10:00:00",
        "10:11:00",
    ) == [("Downloading", 60, True), ("Training", 600, True)]


def test_a_running_phase_has_no_length_yet() -> None:
    """Unknown, not zero."""
    assert shape([transition("Training", "10:00:00")], "10:00:00", None) == [
        ("Training", None, True)
    ]


def test_phases_come_in_the_order_of_time() -> None:
    """Whatever order the answer lists them in."""
    cut = shape(
        [
            transition("Training", "10:01:00", "10:11:00"),
            transition("Downloading", "10:00:00", "10:01:00"),
        ],
        "10:00:00",
        "10:11:00",
    )
    assert [name for name, _, _ in cut] == ["Downloading", "Training"]


def test_a_phase_that_ends_before_it_begins_has_no_length() -> None:
    """A clock that went back makes the length unknown."""
    cut = shape([transition("Training", "10:05:00", "10:00:00")], "10:00:00", "10:10:00")
    assert cut == [("Training", None, True)]


def test_transitions_without_any_billed_phase_do_not_hide_a_run() -> None:
    """A started and ended job whose answer lists only Starting still ran in between."""
    job = parse(
        training_answer(SecondaryStatusTransitions=[transition("Starting", "09:58:00")]), {}
    )
    assert sum(p.seconds or 0 for p in job.phases if p.billed) == 3600
