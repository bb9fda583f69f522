from datetime import datetime, timezone
from functools import partial
from typing import Any

import pytest

from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel
from tests.fakes.jobs import phased_job
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "image-pull-heavy"
IMAGE = "111122223333.dkr.ecr.{}.amazonaws.com/trainer:2.0"
LONG_AGO = datetime(2023, 5, 1, tzinfo=timezone.utc)  # noqa: UP017


def in_phases(*parts: tuple[str, int], **changes: Any) -> Job:
    """A job in us-east-1 without channels, at $1.515 an hour, in these phases."""
    plain: dict[str, Any] = {"channels": (), "image": IMAGE.format("us-east-1")}
    return phased_job(*parts, **plain | changes)


def pulls(download_s: int, train_s: int, **changes: Any) -> Job:
    """The same, which downloads and then trains."""
    return in_phases(("Downloading", download_s), ("Training", train_s), **changes)


def mounted(source: DataSource) -> InputChannel:
    """A channel of a file system, which is mounted and not copied."""
    return InputChannel("train", source, "File", None)


verdict = partial(answer, RULE)


def test_a_long_pull_is_found() -> None:
    """10 of 40 minutes and nothing to copy: the image."""
    assert verdict(pulls(download_s=600, train_s=1800)) == finds(
        "Downloading took 10 min of the 40 min billed (25%) and no channel copies data: the "
        "image pull.",
        builder="derived",
        fix=[
            ("AlgorithmSpecification.TrainingImage", IMAGE.format("us-east-1"), "<a smaller image>")
        ],
    )


def test_an_image_of_another_region_is_named_with_the_same_one_nearby() -> None:
    """The pull crosses regions."""
    result = verdict(pulls(download_s=600, train_s=1800, image=IMAGE.format("eu-west-1")))
    assert result == finds("…the image pull, from eu-west-1.", fix=[IMAGE.format("us-east-1")])


def test_what_takes_longer_than_any_image_pull_is_a_mount_or_a_fetch() -> None:
    # 50 minutes with one EFS channel; 30 minutes, six times the longest known pull, still are one.
    result = verdict(pulls(download_s=3000, train_s=3600, channels=(mounted(DataSource.EFS),)))
    assert result == finds(
        "Downloading took 50 min of the 1 h 50 min billed (45%). No channel copies data, and no "
        "image pull takes over 30 min: it mounted EFS or fetched from there.",
        fix=[],
        ways=[],
        first_step="…NFS (port 2049)…",
        usd="0.000000",
        span=("0.000000", "1.262500"),
        without="smaller image",
    )
    result = verdict(pulls(download_s=1800, train_s=3600, channels=(mounted(DataSource.EFS),)))
    assert result == finds(
        "…no channel copies data: the image pull, or mounting EFS.",
        first_step="Check the mount of EFS…",
    )
    result = verdict(pulls(download_s=1801, train_s=3600, channels=(mounted(DataSource.FSX),)))
    assert result == finds("…mounted FSx for Lustre or fetched…", first_step="…988…")
    result = verdict(
        pulls(
            download_s=1801,
            train_s=3600,
            channels=(mounted(DataSource.EFS), InputChannel("s", DataSource.S3, "FastFile", None)),
        )
    )
    assert result == finds("…mounted EFS and S3 channels or fetched…")
    assert verdict(pulls(download_s=1801, train_s=3600)) == finds(
        "…the cause is not recorded.", fix=[], first_step="…what was fetched before…"
    )
    result = verdict(
        pulls(
            download_s=1801,
            train_s=3600,
            channels=(InputChannel("code", DataSource.S3, "File", None),),
        )
    )
    assert result == finds("…the cause is not recorded.")


def test_a_run_that_restarts_pulls_its_image_again_twice_20_minutes_are_no_mount() -> None:
    result = verdict(
        in_phases(
            ("Downloading", 1200),
            ("Training", 1800),
            ("Interrupted", -600),
            ("Downloading", 1200),
            ("Training", 1800),
        )
    )
    assert result == finds(
        "Downloading took 40 min of the 1 h 40 min billed (40%) and no channel copies data: 2 "
        "image pulls."
    )
    result = verdict(
        in_phases(
            ("Downloading", 1801),
            ("Training", 1800),
            ("Interrupted", -600),
            ("Downloading", 599),
            ("Training", 1800),
        )
    )
    assert result == finds("…the cause is not recorded.")


def test_half_an_hour_that_the_policy_calls_an_image_pull_is_one() -> None:
    result = verdict(
        pulls(download_s=3000, train_s=3600, channels=(mounted(DataSource.EFS),)),
        limits={"max_pull_s": 3000},
    )
    assert result == finds("…the image pull, or…")


def test_an_image_outside_ecr_has_no_parameter_to_change() -> None:
    # A marketplace algorithm, or a registry of one's own.
    assert verdict(pulls(download_s=600, train_s=1800, image=None)) == finds(fix=[])
    result = verdict(
        pulls(download_s=600, train_s=1800, image="arn:aws:sagemaker:us-east-1:1:algorithm/x")
    )
    assert result == finds(fix=[])
    assert verdict(pulls(download_s=600, train_s=1800, image="host/x:1")) == finds(fix=[])


def test_nothing_is_counted_until_a_run_shows_it() -> None:
    # Between nothing and a sixth of an hour of $1.515, $0.2525.
    assert verdict(pulls(download_s=600, train_s=1800)) == finds(
        usd="0.000000", alone="0.000000", span=("0.000000", "0.252500")
    )


def test_a_download_of_300_s_is_not_long_and_of_301_s_it_is() -> None:
    assert verdict(pulls(download_s=300, train_s=300)) == CLEAR
    assert verdict(pulls(download_s=301, train_s=300)) == FOUND


def test_720_of_3600_billed_seconds_a_fifth_are_long_and_one_second_less_is_not() -> None:
    assert verdict(pulls(download_s=720, train_s=2880)) == FOUND
    assert verdict(pulls(download_s=719, train_s=2881)) == CLEAR


def test_a_phase_of_its_own_counts_too() -> None:
    # DownloadingTrainingImage of older answers, 200 s beside 200 s.
    result = verdict(
        in_phases(("Downloading", 200), ("DownloadingTrainingImage", 200), ("Training", 600))
    )
    assert result == finds(evidence={"downloading_s": 400})


def test_channels_of_the_sdk_hold_no_data() -> None:
    """A script and drivers of some KB do not make a long copy."""
    names = ("code", "sm_drivers")
    channels = tuple(InputChannel(name, DataSource.S3, "File", None) for name in names)
    run = pulls(download_s=600, train_s=1800, channels=channels)
    assert verdict(run) == FOUND
    result = answer("download-dominates", run)
    assert result == does_not_apply("…File mode…")


def test_before_2024_only_the_message_counts() -> None:
    """Before then the pull was inside Training."""
    assert verdict(pulls(download_s=600, train_s=1800, started_at=LONG_AGO)) == does_not_apply(
        "…2024…"
    )
    result = verdict(
        pulls(download_s=600, train_s=1800, started_at=LONG_AGO, image_pull_in_download=True)
    )
    assert result == finds(evidence={"message_says_image": True})


def test_a_channel_of_unknown_mode_is_unknown() -> None:
    """It may have copied its data."""
    result = verdict(
        pulls(
            download_s=600,
            train_s=1800,
            channels=(InputChannel("train", DataSource.S3, None, None),),
        )
    )
    assert result == cannot_judge("input_mode_unknown")


def test_an_answer_without_phases_is_unknown() -> None:
    """Nothing says how long it downloaded."""
    assert verdict(pulls(download_s=600, train_s=1800, phases=())) == cannot_judge("phases_missing")


def test_serverless_jobs_are_not_judged() -> None:
    """They have no instance that waits."""
    assert verdict(
        pulls(download_s=600, train_s=1800, purchase=Purchase.SERVERLESS)
    ) == does_not_apply("…serverless…")


@pytest.mark.parametrize(
    ("source", "mode", "copies"),
    [
        (DataSource.S3, "File", True),
        (DataSource.S3, "FastFile", False),
        (DataSource.S3, "Pipe", False),
        (DataSource.FSX, "File", False),
        (DataSource.EFS, "File", False),
    ],
)
def test_download_dominates_applies_if_the_channel_copies_and_else_this_rule(
    source: DataSource, mode: str, copies: bool
) -> None:
    run = pulls(download_s=600, train_s=1800, channels=(InputChannel("train", source, mode, None),))
    assert answer("download-dominates", run) == (FOUND if copies else does_not_apply("…"))
    assert verdict(run) == (does_not_apply("…") if copies else FOUND)
