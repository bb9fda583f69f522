from datetime import datetime, timezone
from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.job.job import Job, Phase, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.structs import replace
from tests.fakes.jobs import START, job, never_started, phased_job, phases
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "download-dominates"
LONG_AGO = datetime(2021, 2, 1, tzinfo=timezone.utc)  # noqa: UP017


def loads(download_s: int, train_s: int, **changes: Any) -> Job:
    """A job on ml.g5.2xlarge at $1.515 an hour that downloads and then trains."""
    return phased_job(("Downloading", download_s), ("Training", train_s), **changes)


verdict = partial(answer, RULE)


def test_a_long_download_is_found() -> None:
    """An hour of three; FastFile for the channel that copies."""
    assert verdict(loads(download_s=3600, train_s=7200)) == finds(
        "Downloading took 1 h of the 3 h billed (33%). This includes copying the data and "
        "pulling the image, "
        "before the code starts.",
        ways=[["Pipe"]],
        builder="possible",
        fix=[("InputDataConfig[train].InputMode", "File", "FastFile")],
    )


def test_a_part_of_the_copy_is_possible() -> None:
    # 40 and 60% of the hour of $1.515, less five minutes for the image.
    assert verdict(loads(download_s=3600, train_s=7200)) == finds(
        usd="0.555500", alone="0.555500", span=("0.555500", "0.833250"), severity="low"
    )


def test_before_2024_the_image_is_pulled_in_training() -> None:
    assert verdict(loads(download_s=3600, train_s=7200, started_at=LONG_AGO)) == finds(
        usd="0.606000"
    )


def test_2160_of_10800_billed_seconds_a_fifth_are_long_and_one_second_less_is_not() -> None:
    assert verdict(loads(download_s=2160, train_s=8640)) == FOUND
    assert verdict(loads(download_s=2159, train_s=8641)) == CLEAR


def test_a_download_of_300_s_is_not_long_and_of_301_s_it_is() -> None:
    """The image pull alone explains five minutes."""
    assert verdict(loads(download_s=300, train_s=300)) == CLEAR
    assert verdict(loads(download_s=301, train_s=300)) == FOUND


def test_waiting_is_no_billed_time() -> None:
    """Ten hours in Starting do not make the download's share smaller."""
    run = loads(download_s=400, train_s=1600)
    waiting, *billed = run.phases
    waited = replace(run, phases=(replace(waiting, seconds=Decimal(36_000)), *billed))
    assert verdict(waited) == FOUND


def test_every_download_of_an_interrupted_run_counts() -> None:
    """Two of 200 s are over 300 s together."""
    result = verdict(
        job(
            phases=phases(
                ("Downloading", 200), ("Training", 500), ("Downloading", 200), ("Training", 500)
            )
        )
    )
    assert result == finds(evidence={"downloading_s": 400})


def test_a_file_system_is_named_with_its_price() -> None:
    # It takes the download away and adds a bill of its own.
    assert verdict(loads(download_s=3600, train_s=7200)) == finds(
        caution="…FSx or EFS adds its own cost…"
    )


def test_only_the_data_channels_in_file_mode_are_changed() -> None:
    # Not the SDK's own, and not those that stream already.
    result = verdict(
        loads(
            download_s=3600,
            train_s=7200,
            channels=tuple(
                InputChannel(name, DataSource.S3, mode, None)
                for name, mode in (
                    ("train", "File"),
                    ("test", "FastFile"),
                    ("code", "File"),
                    ("sm_drivers", "File"),
                )
            ),
        )
    )
    assert result == finds(paths=["InputDataConfig[train].InputMode"])


def test_only_a_file_mode_copy_from_s3_is_blamed() -> None:
    # FSx and EFS jobs report File mode too, and copy nothing.
    for source, mode in (
        (DataSource.S3, "FastFile"),
        (DataSource.S3, "Pipe"),
        (DataSource.S3, None),
        (DataSource.FSX, "File"),
        (DataSource.EFS, "File"),
        (DataSource.OTHER, "File"),
    ):
        channel = InputChannel("train", source, mode, None)
        run = loads(download_s=3600, train_s=7200, channels=(channel,))
        assert verdict(run) == does_not_apply("…File mode…")
    assert verdict(loads(download_s=3600, train_s=7200, channels=())) == does_not_apply(
        "…File mode…"
    )


def test_an_answer_without_phases_is_unknown() -> None:
    """Of 2018: one run from start to end."""
    result = verdict(job(phases=(Phase("Running", START, Decimal(10800), billed=True),)))
    assert result == cannot_judge("phases_missing")
    result = verdict(job(phases=(Phase("Downloading", START, None, billed=True),)))
    assert result == cannot_judge("…")


def test_a_job_that_never_started_is_clear() -> None:
    """It downloaded nothing."""
    result = verdict(never_started())
    assert result == CLEAR


def test_a_download_of_more_than_10_dollars_is_found_whatever_its_share() -> None:
    # 95 minutes of 20 hours on ten hosts: 5700 / 3600 x 10 x $1.515 = $23.99; on one host $2.40.
    on_ten_hosts = loads(download_s=5700, train_s=66_300, instances=10)
    assert verdict(on_ten_hosts) == finds(
        "Downloading took 1 h 35 min of the 20 h billed (8%, or $23.99). This includes…"
    )
    assert verdict(loads(download_s=5700, train_s=66_300)) == CLEAR
    assert verdict(on_ten_hosts, limits={"min_expensive_usd": 24}) == CLEAR


def test_a_pull_that_the_message_names_gets_no_advice_about_data() -> None:
    # Up to 1,800 s image-pull-heavy says it instead. No image takes longer.
    result = verdict(loads(download_s=1800, train_s=3600, image_pull_in_download=True))
    assert result == does_not_apply("…names the image pull…")
    result = answer(
        "image-pull-heavy", loads(download_s=1800, train_s=3600, image_pull_in_download=True)
    )
    assert result == finds("…its message names the image pull…", fix=[])
    assert verdict(loads(download_s=1801, train_s=3600, image_pull_in_download=True)) == FOUND
    result = answer(
        "image-pull-heavy", loads(download_s=1801, train_s=3600, image_pull_in_download=True)
    )
    assert result == does_not_apply("…see download-dominates…")


def test_a_shard_for_each_host_is_no_advice_for_an_image_pull() -> None:
    """Every host needs the whole image."""
    on_four_hosts = loads(download_s=1500, train_s=3600, instances=4)
    assert answer("replicated-input", on_four_hosts) == FOUND
    result = answer("replicated-input", replace(on_four_hosts, image_pull_in_download=True))
    assert result == does_not_apply("…names the image pull…")


def test_the_image_pull_is_named_since_it_is_inside() -> None:
    # From 2024 on Downloading holds both; before, the pull was inside Training.
    assert verdict(loads(download_s=3600, train_s=7200)) == finds("…pulling the image…")
    assert verdict(loads(download_s=3600, train_s=7200, started_at=LONG_AGO)) == finds(
        without="pulling the image"
    )
    result = verdict(
        loads(download_s=3600, train_s=7200, started_at=LONG_AGO, image_pull_in_download=True)
    )
    assert result == finds("…copying the data and pulling the image…")


def test_the_advised_job_gets_no_advice_back() -> None:
    """On FastFile there is nothing to copy."""
    result = verdict(
        loads(
            download_s=3600, train_s=7200, channels=(replace(job().channels[0], mode="FastFile"),)
        )
    )
    assert result == does_not_apply("…File mode…")


def test_on_spot_the_range_is_of_billed_seconds() -> None:
    """The hour of download cost a third of $1.515."""
    result = verdict(
        loads(download_s=3600, train_s=7200, purchase=Purchase.SPOT, billable_s=Decimal(3600))
    )
    assert result == finds(span=("0.185167", "0.277750"))
