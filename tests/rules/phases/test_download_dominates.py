from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.job.job import InstanceGroup, Job, Phase, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel
from tests.fakes.jobs import START, job, phases
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "download-dominates"


def loads(download_s: int, train_s: int, **changes: object) -> Job:
    """A job that downloads and then trains."""
    seconds = Decimal(download_s + train_s)
    return job(
        phases=phases(("Starting", -60), ("Downloading", download_s), ("Training", train_s)),
        **{"training_s": seconds, "billable_s": seconds, **changes},  # type: ignore[arg-type]
    )


def test_a_long_download_is_found() -> None:
    """An hour of three; FastFile for the channel that copies."""
    what = found(RULE, loads(3600, 7200))
    assert what.summary == (
        "Downloading took 1 h of 3 h billed (33%): data copy and image pull together, "
        "before the code starts."
    )
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == ("InputDataConfig[train].InputMode", "File", "FastFile")
    assert [way[0].new for way in what.alternatives] == ["Pipe"]
    assert (what.confidence, what.bucket) == (Confidence.DERIVED, Bucket.AVOIDABLE)


def test_nothing_is_counted_until_a_run_shows_it() -> None:
    """Between nothing and the whole hour of $1.515: the low end counts, the range is shown."""
    finding = priced(RULE, loads(3600, 7200))
    assert (finding.saving_usd, finding.alone_usd) == (0, 0)
    assert list(finding.range_usd or ()) == [0, Decimal("1.515")]
    assert finding.severity.value == "low"


def test_exactly_a_fifth_of_the_billed_time_is_long() -> None:
    """2160 of 10800 s; one second less is not."""
    assert isinstance(outcome(RULE, loads(2160, 8640)), Found)
    assert outcome(RULE, loads(2159, 8641)) == Clear()


def test_exactly_five_minutes_are_not_long() -> None:
    """The image pull alone explains them."""
    assert outcome(RULE, loads(300, 300)) == Clear()
    assert isinstance(outcome(RULE, loads(301, 300)), Found)


def test_waiting_is_no_billed_time() -> None:
    """An hour in Starting does not make the download's share smaller."""
    run = loads(400, 1600)
    waited = replace(run, phases=(replace(run.phases[0], seconds=Decimal(36000)), *run.phases[1:]))
    assert isinstance(outcome(RULE, waited), Found)


def test_every_download_of_an_interrupted_run_counts() -> None:
    """Two of 200 s are over five minutes together."""
    twice = job(
        phases=phases(("Downloading", 200), ("Training", 500), ("Downloading", 200),
                      ("Training", 500))
    )  # fmt: skip
    assert found(RULE, twice).evidence["downloading_s"] == 400


def test_the_image_pull_is_named_since_it_is_inside() -> None:
    """From 2024 on Downloading holds both; before, the pull was inside Training."""
    assert "image pull" in found(RULE, loads(3600, 7200)).summary
    old = loads(3600, 7200, started_at=datetime(2021, 2, 1, tzinfo=timezone.utc))  # noqa: UP017
    assert "image pull" not in found(RULE, old).summary
    says = replace(old, image_pull_in_download=True)
    assert "data copy and image pull together" in found(RULE, says).summary


def test_a_file_system_is_named_with_its_price() -> None:
    """It takes the download away and adds a bill of its own."""
    assert "FSx or EFS adds its own cost" in (found(RULE, loads(3600, 7200)).caution or "")


def test_only_the_data_channels_in_file_mode_are_changed() -> None:
    """Not the SDK's own, and not those that stream already."""
    channels = tuple(
        InputChannel(name, DataSource.S3, mode, None)
        for name, mode in (
            ("train", "File"), ("test", "FastFile"), ("code", "File"), ("sm_drivers", "File")
        )
    )  # fmt: skip
    what = found(RULE, loads(3600, 7200, channels=channels))
    assert [fix.path for fix in what.fix] == ["InputDataConfig[train].InputMode"]


def test_the_advised_job_gets_no_advice_back() -> None:
    """On FastFile there is nothing to copy."""
    [channel] = loads(3600, 7200).channels
    assert "File mode" in not_applicable(
        RULE, loads(3600, 7200, channels=(replace(channel, mode="FastFile"),))
    )


@pytest.mark.parametrize(
    "channel",
    [
        InputChannel("train", DataSource.S3, "FastFile", None),
        InputChannel("train", DataSource.S3, "Pipe", None),
        InputChannel("train", DataSource.S3, None, None),
        InputChannel("train", DataSource.FSX, "File", None),
        InputChannel("train", DataSource.EFS, "File", None),
        InputChannel("train", DataSource.OTHER, "File", None),
    ],
)
def test_only_a_file_mode_copy_from_s3_is_blamed(channel: InputChannel) -> None:
    """FSx and EFS jobs report File mode too, and copy nothing."""
    assert "File mode" in not_applicable(RULE, loads(3600, 7200, channels=(channel,)))
    assert "File mode" in not_applicable(RULE, loads(3600, 7200, channels=()))


def test_an_answer_without_phases_is_unknown() -> None:
    """Of 2018: one run from start to end."""
    whole = job(phases=(Phase("Running", START, Decimal(10800), billed=True),))
    assert unknown(RULE, whole) == "phases_missing"
    broken = job(phases=(Phase("Downloading", START, None, billed=True),))
    assert isinstance(outcome(RULE, broken), Unknown)


def test_a_job_that_never_started_is_clear() -> None:
    """It downloaded nothing."""
    never = job(status="Failed", started_at=None, ended_at=None, training_s=None,
                billable_s=None, phases=phases(("Starting", -600)))  # fmt: skip
    assert outcome(RULE, never) == Clear()


def test_on_spot_the_range_is_of_billed_seconds() -> None:
    """A third of the seconds billed: the hour of download cost a third of $1.515."""
    spot = loads(3600, 7200, purchase=Purchase.SPOT, billable_s=Decimal(3600))
    span = priced(RULE, spot).range_usd
    assert span is not None
    assert usd(span[1]) == "0.505000"


def test_a_dear_download_is_found_whatever_its_share() -> None:
    """95 minutes of 20 hours on ten hosts of $1.515: an eighth of the time, $23.99."""
    run = loads(5700, 66300, groups=(InstanceGroup("ml.g5.2xlarge", 10),))
    assert found(RULE, run).summary.startswith(
        "Downloading took 1 h 35 min of 20 h billed (8%, $23.99): data copy"
    )
    assert outcome(RULE, loads(5700, 66300)) == Clear()
    assert outcome(RULE, run, limits={"dear_from_usd": 24}) == Clear()


def test_a_pull_that_the_message_names_gets_no_advice_about_data() -> None:
    """Up to half an hour: image-pull-heavy says it instead. No image takes longer."""
    pulled = loads(1800, 3600, image_pull_in_download=True)
    assert "image was pulled" in not_applicable(RULE, pulled)
    said = found("image-pull-heavy", pulled)
    assert "its message names the image pull" in said.summary
    assert said.fix == ()
    longer = loads(1801, 3600, image_pull_in_download=True)
    assert isinstance(outcome(RULE, longer), Found)
    assert "see download-dominates" in not_applicable("image-pull-heavy", longer)


def test_a_shard_for_each_host_is_no_advice_for_an_image_pull() -> None:
    """Every host needs the whole image."""
    run = loads(1500, 3600, groups=(InstanceGroup("ml.g5.2xlarge", 4),))
    assert isinstance(outcome("replicated-input", run), Found)
    pulled = replace(run, image_pull_in_download=True)
    assert "image was pulled" in not_applicable("replicated-input", pulled)
