from decimal import Decimal

import pytest

from sageaudit.domain.job.job import Job, Phase, Purchase
from sageaudit.rules.phases.phase_share import PhaseShare, phase_seconds_by_attempt, phase_share
from sageaudit.structs import replace
from tests.fakes.jobs import START, job, not_none, phases


def test_all_occurrences_of_all_names_count() -> None:
    """Of an interrupted run, and of a phase that had another name."""
    run = job(
        phases=phases(
            ("Downloading", 100),
            ("Training", 500),
            ("Downloading", 50),
            ("DownloadingTrainingImage", 50),
            ("Training", 100),
        )
    )
    share = phase_share(run, "Downloading", "DownloadingTrainingImage")
    assert share == PhaseShare(Decimal(200), Decimal(800), Decimal(800))
    assert share.percent == 25


def test_the_seconds_of_each_attempt_are_apart() -> None:
    """A phase that had another name belongs to its attempt; what is not billed does not count."""
    first, image, train, second_download, rest = phases(
        ("Downloading", 100),
        ("DownloadingTrainingImage", 50),
        ("Training", 500),
        ("Downloading", 70),
        ("Training", 100),
    )
    names = ("Downloading", "DownloadingTrainingImage")
    run = job(phases=(first, image, train, second_download, rest))
    assert phase_seconds_by_attempt(run, *names) == [150, 70]
    lasts = replace(run, phases=(first, train, replace(second_download, seconds=None)))
    assert phase_seconds_by_attempt(lasts, *names) == [100, None]
    free = replace(run, phases=(first, train, replace(second_download, billed=False), rest))
    assert phase_seconds_by_attempt(free, *names) == [100]


def test_waiting_is_no_part_of_it() -> None:
    """It is not billed."""
    run = job(phases=phases(("Starting", -900), ("Training", 100)))
    assert phase_share(run, "Starting") == PhaseShare(Decimal(0), Decimal(100), Decimal(100))


SPOT = job(
    purchase=Purchase.SPOT,
    phases=phases(("Downloading", 1800), ("Training", 1800)),
    training_s=Decimal(3600),
    billable_s=Decimal(1200),
)


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (replace(SPOT, purchase=Purchase.ON_DEMAND), "30 min of the 1 h billed (50%)"),
        (SPOT, "30 min, billed as 10 min of 20 min (50%)"),
        (replace(SPOT, billable_s=None), "30 min of up to 1 h billed (50%)"),
    ],
)
def test_a_sentence_that_speaks_of_billed_time_means_the_billable_seconds(
    run: Job, text: str
) -> None:
    """On spot fewer than by the clock; if it is not known how many, at most the clock's."""
    assert not_none(phase_share(run, "Downloading")).text == text


def test_a_repeated_download_has_no_share_of_the_bill() -> None:
    """Half of what is billed, not two thirds."""
    first, train, second_download, rest = phases(
        ("Downloading", 600), ("Training", 300), ("Downloading", 600), ("Training", 300)
    )
    run = replace(
        SPOT, phases=(first, train, replace(second_download, billed=False, is_repeated=True), rest)
    )
    share = not_none(phase_share(run, "Downloading"))
    assert (share.seconds, share.phases_s, share.phase_billed_s) == (600, 1200, 600)


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
