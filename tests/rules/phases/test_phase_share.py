from decimal import Decimal

import pytest

from sageaudit.domain.job.job import Phase
from sageaudit.rules.phases.phase_share import PhaseShare, phase_share
from tests.fakes.jobs import START, job, phases


def test_all_occurrences_of_all_names_count() -> None:
    """Of an interrupted run, and of a phase that had another name."""
    run = job(
        phases=phases(("Downloading", 100), ("Training", 500), ("Downloading", 50),
                      ("DownloadingTrainingImage", 50), ("Training", 100))
    )  # fmt: skip
    share = phase_share(run, "Downloading", "DownloadingTrainingImage")
    assert share == PhaseShare(Decimal(200), Decimal(800))
    assert share.percent == 25


def test_waiting_is_no_part_of_it() -> None:
    """It is not billed."""
    run = job(phases=phases(("Starting", -900), ("Training", 100)))
    assert phase_share(run, "Starting") == PhaseShare(Decimal(0), Decimal(100))


@pytest.mark.parametrize(
    "parts",
    [
        (),
        phases(("Starting", -60)),
        (Phase("Running", START, Decimal(100), billed=True),),
        (Phase("Training", START, None, billed=True),),
    ],
)
def test_a_run_that_is_not_split_has_no_share(parts: tuple[Phase, ...]) -> None:
    """None, never 0."""
    assert phase_share(job(phases=parts), "Training") is None


def test_nothing_of_nothing_is_zero_percent() -> None:
    """A job that never started, and a run of no seconds."""
    never = job(status="Failed", started_at=None, training_s=None, billable_s=None, phases=())
    for run in (never, job(phases=phases(("Training", 0)))):
        share = phase_share(run, "Training")
        assert share is not None
        assert share.percent == 0
