from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.usage.measurements import Metric
from tests.fakes.batch_jobs import batch_job
from tests.fakes.jobs import ran, series, usage
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "volume-oversized"
COPIED = InputChannel("train", DataSource.S3, "File", "FullyReplicated")


def trains(volume_gb: int | None, **changes: Any) -> Job:
    """Two hours without a copied channel; 744 hours of May 2026 make a month."""
    return ran(7200, **{"volume_gb": volume_gb, "channels": (), **changes})


def filled(on: Job, percent: float, minutes: int = 120) -> Any:
    """The volume's use, the same all the time."""
    return usage(on, series(Metric.DISK, [percent] * minutes))


def test_a_volume_far_larger_than_its_use_is_found() -> None:
    """10% of 400 GB are 40: twice that holds it."""
    run = trains(400)
    what = found(RULE, run, filled(run, 10))
    assert what.summary == "At most 10.0% of each 400 GB volume was used on 1 x ml.m5.xlarge."
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == ("ResourceConfig.VolumeSizeInGB", 400, 80)
    assert (what.confidence, what.bucket) == (Confidence.HEURISTIC, Bucket.POSSIBLE)
    assert "near 0" in (what.caution or "")


def test_the_saving_is_the_difference_of_two_volumes() -> None:
    """320 GB x 2 h / 744 h x $0.14."""
    run = trains(400)
    finding = priced(RULE, run, filled(run, 10))
    assert usd(finding.alone_usd) == "0.120430"
    assert usd(Decimal(320) * 2 / 744 * Decimal("0.14")) == "0.120430"
    assert finding.severity.value == "low"


def test_copied_data_may_need_the_room() -> None:
    """Nothing is counted, the range is shown, and the fix leaves the size to its owner."""
    run = trains(400, channels=(COPIED,))
    finding = priced(RULE, run, filled(run, 10))
    assert finding.alone_usd == 0
    assert finding.range_usd is not None
    assert usd(finding.range_usd[1]) == "0.120430"
    assert finding.found.fix[0].new == "<80 + GB of the input>"
    assert "must fit too" in (finding.found.caution or "")


@pytest.mark.parametrize("mode", ["FastFile", "Pipe"])
def test_streamed_data_need_no_room(mode: str) -> None:
    """They never lie on the volume."""
    run = trains(400, channels=(InputChannel("train", DataSource.S3, mode, None),))
    assert found(RULE, run, filled(run, 10)).fix[0].new == 80


def test_no_volume_under_30_gb_is_advised() -> None:
    """The metric is near 0 in real data; the advised size is then not a large one."""
    run = trains(400)
    assert found(RULE, run, filled(run, 0.01)).fix[0].new == 30


def test_exactly_30_gb_are_not_large() -> None:
    """31 GB are, by a little."""
    run = trains(30)
    assert "30 GB" in not_applicable(RULE, run, filled(run, 1))
    run = trains(31)
    assert isinstance(outcome(RULE, run, filled(run, 1), limits={"from_usd": 0}), Found)


def test_a_few_cents_are_not_spoken_of() -> None:
    """Two hours of 370 GB too many are 370 x 2 / 744 x $0.14 = $0.14; of 200 GB, 8 cents."""
    run = trains(400)
    assert isinstance(outcome(RULE, run, filled(run, 1)), Found)
    run = trains(230)
    assert outcome(RULE, run, filled(run, 1)) == Clear()


def test_exactly_35_percent_is_little_and_more_is_not() -> None:
    """35% of 400 GB: twice 140 are 280."""
    run = trains(400)
    few_gb = {"from_usd": 0.0}
    assert found(RULE, run, filled(run, 35), limits=few_gb).fix[0].new == 280
    assert outcome(RULE, run, filled(run, 35.1)) == Clear()


def test_the_advised_volume_is_large_no_more() -> None:
    """Its use is half of it then."""
    run = trains(80)
    assert outcome(RULE, run, filled(run, 50)) == Clear()


def test_a_size_that_saves_nothing_is_not_advised() -> None:
    """When the policy asks for much headroom."""
    run = trains(100)
    of = filled(run, 30)
    assert outcome(RULE, run, of, limits={"times_the_peak": 4}) == Clear()


def test_the_fullest_host_decides() -> None:
    """All hosts get the same size."""
    run = trains(400, groups=(InstanceGroup("ml.m5.xlarge", 2),))
    of = usage(
        run,
        series(Metric.DISK, [1] * 120, host="train/algo-1"),
        series(Metric.DISK, [1] * 119 + [50], host="train/algo-2"),
    )
    assert outcome(RULE, run, of) == Clear()


def test_a_processing_job_has_its_own_path() -> None:
    """And a copied input without a mode."""
    inputs = (InputChannel("in", DataSource.S3, None, None),)
    run = batch_job(JobKind.PROCESSING, 60)
    run = ran(3600, kind=run.kind, phases=run.phases, volume_gb=400, channels=inputs)
    [fix] = found(RULE, run, filled(run, 10, 60), limits={"from_usd": 0}).fix
    assert fix.path == "ProcessingResources.ClusterConfig.VolumeSizeInGB"
    assert fix.new == "<80 + GB of the input>"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"groups": (InstanceGroup("ml.g5.2xlarge", 1),)}, "NVMe"),
        ({"free": "built-in Debugger rule"}, "built-in Debugger rule"),
        ({"purchase": Purchase.TRAINING_PLAN}, "prepaid"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
    ],
)
def test_volumes_that_nobody_pays_are_not_its_concern(changes: dict[str, Any], why: str) -> None:
    """No saving there."""
    run = trains(400, **changes)
    assert why in not_applicable(RULE, run, filled(run, 10))


@pytest.mark.parametrize(
    "changes",
    [
        {"volume_gb": None},
        {"groups": (InstanceGroup("ml.odd.xlarge", 1),)},
        {"groups": (InstanceGroup("ml.new.xlarge", 1),)},
        {"groups": (InstanceGroup("ml.m5.xlarge", 1), InstanceGroup("ml.g5.2xlarge", 1))},
        {"groups": ()},
    ],
)
def test_what_is_not_known_of_the_volume_is_unknown(changes: dict[str, Any]) -> None:
    """Its size, or whether there is one on each host."""
    run = trains(**{"volume_gb": 400, **changes})
    hosts = sum(one.count for one in run.groups) or 1
    of = usage(
        run, *(series(Metric.DISK, [10] * 120, host=f"train/algo-{n + 1}") for n in range(hosts))
    )
    assert unknown(RULE, run, of) == "storage_unknown"
