"""A job's phases from its transitions, and the phases in which its own code ran."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from sageaudit.domain.job.course import phases_from_transitions, work_phase_name
from tests.fakes.jobs import job, phases, transition

Step = tuple[str, str] | tuple[str, str, str]


def time_at(clock: str | None) -> datetime | None:
    """Returns a time on 2026-05-20."""
    return (
        None if clock is None else datetime.fromisoformat(f"2026-05-20T{clock}:00Z").astimezone(UTC)
    )


@pytest.mark.parametrize(
    ("steps", "run", "expected"),
    [
        pytest.param(
            [
                ("Pending", "09:00", "09:40"),
                ("Starting", "09:40", "10:00"),
                ("Downloading", "10:00", "10:02"),
                ("Training", "10:02", "10:32"),
                ("Uploading", "10:32", "10:33"),
                ("Completed", "10:33", "10:33"),
            ],
            ("10:00", "10:33"),
            [
                ("Pending", 40, False),
                ("Starting", 20, False),
                ("Downloading", 2, True),
                ("Training", 30, True),
                ("Uploading", 1, True),
            ],
            id="Starting and Pending end where the billed time begins",
        ),
        pytest.param(
            [
                ("Starting", "10:00", "10:02"),
                ("Downloading", "10:02", "10:03"),
                ("Training", "10:03", "10:33"),
                ("Interrupted", "10:33", "10:34"),
                ("Starting", "10:34", "11:15"),
                ("Downloading", "11:15", "11:16"),
                ("Training", "11:16", "11:46"),
                ("Completed", "11:46"),
            ],
            ("10:02", "11:46"),
            [
                ("Starting", 2, False),
                ("Downloading", 1, True),
                ("Training", 30, True),
                ("Interrupted", 1, False),
                ("Starting", 41, False),
                ("Downloading", 1, False),
                ("Training", 30, True),
            ],
            id=(
                "an interrupted spot run: the second Starting is waiting, the second download "
                "not charged"
            ),
        ),
        # a stop before the start bills nothing; inside the run it is billed
        pytest.param(
            [("Starting", "10:00", "10:05"), ("Stopping", "10:05", "10:06"), ("Stopped", "10:06")],
            (None, None),
            [("Starting", 5, False), ("Stopping", 1, False)],
            id="a stop before the start bills nothing",
        ),
        pytest.param(
            [
                ("Training", "10:00", "10:30"),
                ("Stopping", "10:30", "10:32"),
                ("MaxRuntimeExceeded", "10:32"),
            ],
            ("10:00", "10:32"),
            [("Training", 30, True), ("Stopping", 2, True)],
            id="a stop inside the run is billed",
        ),
        # AWS adds statuses: inside start and end one is billed, before it is waiting
        pytest.param(
            [
                ("Reticulating", "09:59", "10:00"),
                ("Warming", "10:00", "10:05"),
                ("Training", "10:05", "10:10"),
            ],
            ("10:00", "10:10"),
            [("Reticulating", 1, False), ("Warming", 5, True), ("Training", 5, True)],
            id="a status that AWS adds is billed inside the run, and is waiting before it",
        ),
        pytest.param(
            [("Downloading", "10:00"), ("Training", "10:01")],
            ("10:00", "10:11"),
            [("Downloading", 1, True), ("Training", 10, True)],
            id="a phase without end lasts to the next one, the last one to the job's end",
        ),
        # what still runs, and what ends before it begins, has no known length
        pytest.param(
            [("Training", "10:00")],
            ("10:00", None),
            [("Training", None, True)],
            id="what still runs has no known length",
        ),
        pytest.param(
            [("Training", "10:05", "10:00")],
            ("10:00", "10:10"),
            [("Training", None, True)],
            id="what ends before it begins has no known length",
        ),
        pytest.param(
            [("Training", "10:01", "10:11"), ("Downloading", "10:00", "10:01")],
            ("10:00", "10:11"),
            [("Downloading", 1, True), ("Training", 10, True)],
            id="in the order of time, whatever order the answer lists them in",
        ),
    ],
)
def test_phases_are_read_from_transitions(
    steps: list[Step],
    run: tuple[str | None, str | None],
    expected: list[tuple[str, int | None, bool]],
) -> None:
    """Name, minutes and whether they are billed, in order."""
    transitions = [
        transition(name, *(f"{clock}:00" for clock in clocks)) for name, *clocks in steps
    ]
    result = phases_from_transitions(transitions, time_at(run[0]), time_at(run[1]))
    assert [
        (p.name, None if p.seconds is None else int(p.seconds) // 60, p.billed) for p in result
    ] == expected


@pytest.mark.parametrize(
    ("statuses", "charged"),
    [
        # AWS, managed spot training lifecycle: interrupted once, then enough instances
        pytest.param(
            "Starting Downloading Training Interrupted Starting Downloading Training Uploading",
            [True, False],
            id=(
                "interrupted once, and then enough instances, as AWS describes managed spot "
                "training"
            ),
        ),
        # interrupted twice; no second Starting
        pytest.param(
            "Downloading Training Interrupted Downloading Training Interrupted Downloading "
            "Stopping",
            [True, False, False],
            id="interrupted twice, without a second Starting",
        ),
        # taken during the download: the data is charged one time
        pytest.param(
            "Starting Downloading Interrupted Downloading Training Completed",
            [True, False],
            id="interrupted during the download, the data is charged once",
        ),
        # taken before anything was downloaded: nothing is repeated
        pytest.param(
            "Starting Interrupted Starting Downloading Training Completed",
            [True],
            id="interrupted before anything was downloaded, nothing is repeated",
        ),
        pytest.param(
            "DownloadingTrainingImage Downloading Interrupted DownloadingTrainingImage Downloading",
            [True, True, False, False],
            id="a status that AWS no longer uses is a part of the download",
        ),
        # not repeated for an interruption
        pytest.param(
            "Downloading Training Restarting Downloading Training Completed",
            [True, True],
            id="a restart is not an interruption",
        ),
    ],
)
def test_repeated_downloads_after_an_interruption_are_not_charged(
    statuses: str, charged: list[bool]
) -> None:
    """AWS's blog on analysing SageMaker spend, part 4: "any repeated Downloading phases that
    occurred due to interruption are not charged". Training is charged in every attempt.
    """
    names = statuses.split()
    steps = [transition(name, f"10:{minute:02}:00") for minute, name in enumerate(names)]
    started = next(step for step in steps if step["Status"] not in {"Starting", "Interrupted"})
    result = phases_from_transitions(
        steps, time_at(started["StartTime"][11:16]), time_at(f"10:{len(names):02}")
    )
    downloads = [phase for phase in result if phase.name.startswith("Downloading")]
    assert [phase.billed for phase in downloads] == charged
    assert [phase.is_repeated for phase in downloads] == [not item for item in charged]
    assert all(phase.billed for phase in result if phase.name == "Training")


def test_a_repeated_download_in_the_billable_time_was_charged() -> None:
    """BillableTimeInSeconds is what AWS bills: 20 minutes of download and 10 of training, or 30."""
    steps = [
        transition(name, f"10:{minute:02}:00")
        for name, minute in (
            ("Downloading", 0),
            ("Interrupted", 10),
            ("Downloading", 15),
            ("Training", 25),
            ("Completed", 35),
        )
    ]
    for billable_s, charged in ((1200, False), (1210, False), (1211, True), (1800, True)):
        result = phases_from_transitions(steps, time_at("10:00"), time_at("10:35"), billable_s)
        downloads = [phase for phase in result if phase.name == "Downloading"]
        assert [phase.billed for phase in downloads] == [True, charged], billable_s
        assert [phase.is_repeated for phase in downloads] == [False, not charged]


def test_the_work_phase_is_the_first_in_which_the_code_ran() -> None:
    """If no phase is known, it is called Training."""
    assert work_phase_name(job()) == "Training"
    assert work_phase_name(job(phases=phases(("Running", 60)))) == "Running"
    assert (
        work_phase_name(job(phases=phases(("Starting", -60), ("Processing", 60)))) == "Processing"
    )
    assert work_phase_name(job(phases=(), training_s=Decimal(0))) == "Training"
