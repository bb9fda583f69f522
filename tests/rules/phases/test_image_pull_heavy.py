from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel
from tests.fakes.jobs import job, phases
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "image-pull-heavy"
IMAGE = "111122223333.dkr.ecr.{}.amazonaws.com/trainer:2.0"
LONG_AGO = datetime(2023, 5, 1, tzinfo=timezone.utc)  # noqa: UP017


def pulls(download_s: int, train_s: int, **changes: Any) -> Job:
    """A job in us-east-1 without channels that downloads and then trains."""
    seconds = Decimal(download_s + train_s)
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), ("Downloading", download_s), ("Training", train_s)),
        "training_s": seconds,
        "billable_s": seconds,
        "channels": (),
        "image": IMAGE.format("us-east-1"),
    }
    return job(**plain | changes)


def test_a_long_pull_is_found() -> None:
    """10 of 40 minutes and nothing to copy: the image."""
    what = found(RULE, pulls(600, 1800))
    assert what.summary == (
        "Downloading took 10 min of 40 min billed (25%) and no channel copies data: the image pull."
    )
    [fix] = what.fix
    assert fix.path == "AlgorithmSpecification.TrainingImage"
    assert (fix.old, fix.new) == (IMAGE.format("us-east-1"), "<a smaller image>")
    assert (what.confidence, what.bucket) == (Confidence.DERIVED, Bucket.AVOIDABLE)


def test_an_image_of_another_region_is_named_with_the_same_one_nearby() -> None:
    """The pull crosses regions."""
    what = found(RULE, pulls(600, 1800, image=IMAGE.format("eu-west-1")))
    assert what.summary.endswith("the image pull, from eu-west-1.")
    assert what.fix[0].new == IMAGE.format("us-east-1")


@pytest.mark.parametrize("image", [None, "arn:aws:sagemaker:us-east-1:1:algorithm/x", "host/x:1"])
def test_an_image_outside_ecr_has_no_parameter_to_change(image: str | None) -> None:
    """A marketplace algorithm, or a registry of one's own."""
    assert found(RULE, pulls(600, 1800, image=image)).fix == ()


def test_nothing_is_counted_until_a_run_shows_it() -> None:
    """Between nothing and a sixth of an hour of $1.515, $0.2525."""
    finding = priced(RULE, pulls(600, 1800))
    assert (finding.saving_usd, finding.alone_usd) == (0, 0)
    assert list(finding.range_usd or ()) == [0, Decimal("0.2525")]


def test_exactly_five_minutes_are_not_long() -> None:
    """One second more is."""
    assert outcome(RULE, pulls(300, 300)) == Clear()
    assert isinstance(outcome(RULE, pulls(301, 300)), Found)


def test_exactly_a_fifth_of_the_billed_time_is_long() -> None:
    """720 of 3600 s; one second less is not."""
    assert isinstance(outcome(RULE, pulls(720, 2880)), Found)
    assert outcome(RULE, pulls(719, 2881)) == Clear()


def test_a_phase_of_its_own_counts_too() -> None:
    """DownloadingTrainingImage of older answers, 200 s beside 200 s."""
    split = phases(("Downloading", 200), ("DownloadingTrainingImage", 200), ("Training", 600))
    assert found(RULE, pulls(0, 0, phases=split)).evidence["downloading_s"] == 400


@pytest.mark.parametrize(
    ("source", "mode", "data"),
    [
        (DataSource.S3, "File", True),
        (DataSource.S3, "FastFile", False),
        (DataSource.S3, "Pipe", False),
        (DataSource.FSX, "File", False),
        (DataSource.EFS, "File", False),
    ],
)
def test_either_this_rule_or_download_dominates_applies(
    source: DataSource, mode: str, data: bool
) -> None:
    """One finding for the phase: a copied channel decides which."""
    run = pulls(600, 1800, channels=(InputChannel("train", source, mode, None),))
    assert isinstance(outcome("download-dominates", run), Found) is data
    assert isinstance(outcome(RULE, run), Found) is not data


def test_channels_of_the_sdk_hold_no_data() -> None:
    """A script and drivers of some KB do not make a long copy."""
    own = tuple(InputChannel(name, DataSource.S3, "File", None) for name in ("code", "sm_drivers"))
    run = pulls(600, 1800, channels=own)
    assert isinstance(outcome(RULE, run), Found)
    assert "File mode" in not_applicable("download-dominates", run)


def test_before_2024_only_the_message_counts() -> None:
    """Before then the pull was inside Training."""
    assert "2024" in not_applicable(RULE, pulls(600, 1800, started_at=LONG_AGO))
    says = pulls(600, 1800, started_at=LONG_AGO, image_pull_in_download=True)
    assert found(RULE, says).evidence["message_says_image"] is True


def test_a_channel_of_unknown_mode_is_unknown() -> None:
    """It may have copied its data."""
    run = pulls(600, 1800, channels=(InputChannel("train", DataSource.S3, None, None),))
    assert unknown(RULE, run) == "input_mode_unknown"


def test_an_answer_without_phases_is_unknown() -> None:
    """Nothing says how long it downloaded."""
    assert unknown(RULE, pulls(600, 1800, phases=())) == "phases_missing"


def test_serverless_jobs_are_not_its_concern() -> None:
    """They have no instance that waits."""
    assert "serverless" in not_applicable(RULE, pulls(600, 1800, purchase=Purchase.SERVERLESS))
