"""A job's phases from its transitions, and the phases in which its own code ran."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from sageaudit.domain.job.course import from_transitions, work_phase
from tests.fakes.jobs import job, phases, transition

Step = tuple[str, str] | tuple[str, str, str]


def at(clock: str | None) -> datetime | None:
    """A moment of 2026-05-20."""
    return (
        None if clock is None else datetime.fromisoformat(f"2026-05-20T{clock}:00Z").astimezone(UTC)
    )


@pytest.mark.parametrize(
    ("steps", "run", "expected"),
    [
        # Starting and Pending end where the billed time begins
        (
            [("Pending", "09:00", "09:40"), ("Starting", "09:40", "10:00"),
             ("Downloading", "10:00", "10:02"), ("Training", "10:02", "10:32"),
             ("Uploading", "10:32", "10:33"), ("Completed", "10:33", "10:33")],
            ("10:00", "10:33"),
            [("Pending", 40, False), ("Starting", 20, False), ("Downloading", 2, True),
             ("Training", 30, True), ("Uploading", 1, True)],
        ),
        # an interrupted spot run: the second Starting is waiting, the second download not charged
        (
            [("Starting", "10:00", "10:02"), ("Downloading", "10:02", "10:03"),
             ("Training", "10:03", "10:33"), ("Interrupted", "10:33", "10:34"),
             ("Starting", "10:34", "11:15"), ("Downloading", "11:15", "11:16"),
             ("Training", "11:16", "11:46"), ("Completed", "11:46")],
            ("10:02", "11:46"),
            [("Starting", 2, False), ("Downloading", 1, True), ("Training", 30, True),
             ("Interrupted", 1, False), ("Starting", 41, False), ("Downloading", 1, False),
             ("Training", 30, True)],
        ),
        # a stop before the start bills nothing; inside the run it is billed
        (
            [("Starting", "10:00", "10:05"), ("Stopping", "10:05", "10:06"), ("Stopped", "10:06")],
            (None, None),
            [("Starting", 5, False), ("Stopping", 1, False)],
        ),
        (
            [("Training", "10:00", "10:30"), ("Stopping", "10:30", "10:32"),
             ("MaxRuntimeExceeded", "10:32")],
            ("10:00", "10:32"),
            [("Training", 30, True), ("Stopping", 2, True)],
        ),
        # AWS adds statuses: inside start and end one is billed, before it is waiting
        (
            [("Reticulating", "09:59", "10:00"), ("Warming", "10:00", "10:05"),
             ("Training", "10:05", "10:10")],
            ("10:00", "10:10"),
            [("Reticulating", 1, False), ("Warming", 5, True), ("Training", 5, True)],
        ),
        # a phase without end lasts to the next one, the last one to the job's end
        (
            [("Downloading", "10:00"), ("Training", "10:01")],
            ("10:00", "10:11"),
            [("Downloading", 1, True), ("Training", 10, True)],
        ),
        # what still runs, and what ends before it begins, has no known length
        ([("Training", "10:00")], ("10:00", None), [("Training", None, True)]),
        ([("Training", "10:05", "10:00")], ("10:00", "10:10"), [("Training", None, True)]),
        # in the order of time, whatever order the answer lists them in
        (
            [("Training", "10:01", "10:11"), ("Downloading", "10:00", "10:01")],
            ("10:00", "10:11"),
            [("Downloading", 1, True), ("Training", 10, True)],
        ),
    ],
)  # fmt: skip
def test_phases_are_read_from_transitions(
    steps: list[Step],
    run: tuple[str | None, str | None],
    expected: list[tuple[str, int | None, bool]],
) -> None:
    """Name, minutes and whether billed, in order."""
    transitions = [
        transition(name, *(f"{clock}:00" for clock in clocks)) for name, *clocks in steps
    ]
    found = from_transitions(transitions, at(run[0]), at(run[1]))
    assert [
        (p.name, None if p.seconds is None else int(p.seconds) // 60, p.billed) for p in found
    ] == expected


@pytest.mark.parametrize(
    ("statuses", "charged"),
    [
        # AWS, managed spot training lifecycle: interrupted once, then enough instances
        ("Starting Downloading Training Interrupted Starting Downloading Training Uploading",
         [True, False]),
        # interrupted twice; no second Starting
        ("Downloading Training Interrupted Downloading Training Interrupted Downloading Stopping",
         [True, False, False]),
        # taken during the download: the data is charged one time
        ("Starting Downloading Interrupted Downloading Training Completed", [True, False]),
        # taken before anything was downloaded: nothing is repeated
        ("Starting Interrupted Starting Downloading Training Completed", [True]),
        # a status that AWS no longer uses is a part of the download
        ("DownloadingTrainingImage Downloading Interrupted DownloadingTrainingImage Downloading",
         [True, True, False, False]),
        # not repeated for an interruption
        ("Downloading Training Restarting Downloading Training Completed", [True, True]),
    ],
)  # fmt: skip
def test_repeated_downloads_after_an_interruption_are_not_charged(
    statuses: str, charged: list[bool]
) -> None:
    """AWS's blog on analysing SageMaker spend, part 4: "any repeated Downloading phases that
    occurred due to interruption are not charged". Training is charged in every attempt.
    """
    names = statuses.split()
    steps = [transition(name, f"10:{minute:02}:00") for minute, name in enumerate(names)]
    started = next(step for step in steps if step["Status"] not in {"Starting", "Interrupted"})
    found = from_transitions(steps, at(started["StartTime"][11:16]), at(f"10:{len(names):02}"))
    downloads = [phase for phase in found if phase.name.startswith("Downloading")]
    assert [phase.billed for phase in downloads] == charged
    assert [phase.repeated for phase in downloads] == [not one for one in charged]
    assert all(phase.billed for phase in found if phase.name == "Training")


def test_a_billable_time_that_holds_the_repeated_download_was_charged_for_it() -> None:
    """BillableTimeInSeconds is what AWS bills: 20 minutes of download and 10 of training, or 30."""
    steps = [
        transition(name, f"10:{minute:02}:00")
        for name, minute in (("Downloading", 0), ("Interrupted", 10), ("Downloading", 15),
                             ("Training", 25), ("Completed", 35))
    ]  # fmt: skip
    for billable_s, charged in ((1200, False), (1210, False), (1211, True), (1800, True)):
        found = from_transitions(steps, at("10:00"), at("10:35"), billable_s)
        downloads = [phase for phase in found if phase.name == "Downloading"]
        assert [phase.billed for phase in downloads] == [True, charged], billable_s
        assert [phase.repeated for phase in downloads] == [False, not charged]


def test_the_work_phase_is_the_first_in_which_the_code_ran() -> None:
    """Where no phase is known, it is called Training."""
    assert work_phase(job()) == "Training"
    assert work_phase(job(phases=phases(("Running", 60)))) == "Running"
    assert work_phase(job(phases=phases(("Starting", -60), ("Processing", 60)))) == "Processing"
    assert work_phase(job(phases=(), training_s=Decimal(0))) == "Training"
