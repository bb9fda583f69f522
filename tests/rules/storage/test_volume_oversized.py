from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from sageaudit.domain.job.job import InstanceGroup, Job, Phase, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Metric
from sageaudit.structs import replace
from tests.fakes.jobs import (
    START,
    TYPES,
    FixedPrices,
    batch_job,
    not_none,
    phases,
    ran,
    series,
    usage,
)
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    finds,
    given_job,
    hosts,
    one_host,
)

RULE = "volume-oversized"
COPIED = InputChannel("train", DataSource.S3, "File", "FullyReplicated")
STREAMED = InputChannel("train", DataSource.S3, "FastFile", "FullyReplicated")


def trains(volume_gb: int | None, **changes: Any) -> Job:
    """Two hours on streamed data; 744 hours of May 2026 make a month."""
    return ran(7200, **{"volume_gb": volume_gb, "channels": (STREAMED,), **changes})


def copies(volume_gb: int, download_s: int, train_s: int = 7200, **changes: Any) -> Job:
    """A job in File mode, with its download."""
    parts = phases(("Downloading", download_s), ("Training", train_s))
    plain: dict[str, Any] = {"volume_gb": volume_gb, "channels": (COPIED,), "phases": parts}
    return ran(download_s + train_s, **plain | changes)


@given_job
def filled(run: Job, percent: float, minutes: int = 120) -> Any:
    """The volume's use, the same all the time."""
    begun = next(phase.started_at for phase in run.phases if phase.name != "Downloading")
    return usage(run, series(Metric.DISK, [percent] * minutes, start=not_none(begun)))


verdict = partial(answer, RULE)


def test_a_volume_far_larger_than_its_use_is_found() -> None:
    """10% of 400 GB are 40: twice that holds it."""
    assert verdict(trains(volume_gb=400), filled(percent=10)) == finds(
        "At most 10.0% of each 400 GB volume was used on 1 x ml.m5.xlarge.",
        builder="possible",
        caution="Its data is streamed…",
        fix=[("ResourceConfig.VolumeSizeInGB", 400, 80)],
    )


def test_streamed_data_need_no_room() -> None:
    """They are never on the volume."""
    result = verdict(
        trains(volume_gb=400, channels=(InputChannel("train", DataSource.S3, "Pipe", None),)),
        filled(percent=10),
    )
    assert result == finds(fix=[80])


def test_a_download_cannot_bring_more_than_the_network_carries() -> None:
    # A minute at 10 Gbit/s are 75 GB, and twice 2% of 1,000 GB are 40: 115 GB are surely enough.
    # 1,000 GB cost 2 h 1 min / 744 h x $0.14 = $0.3795 of $0.8434.
    assert verdict(copies(volume_gb=1000, download_s=60), filled(percent=2)) == finds(
        "At most 2.0% of each 1000 GB volume was used on 1 x ml.m5.xlarge.",
        fix=[("ResourceConfig.VolumeSizeInGB", 1000, 115)],
        usd="0.335840",
        builder="possible",
        span=("0.335840", "0.364301"),
        evidence={"copied_at_most_gb": 75},
        caution="The download can have copied 75 GB at most…Under 334 GB a gp2 volume reads…",
    )
    assert verdict(
        copies(volume_gb=1000, download_s=60, channels=(STREAMED, COPIED)), filled(percent=2)
    ) == finds(fix=[115])


def test_16_tb_for_ten_hours_of_a_large_instance() -> None:
    # 16,384 GB x 10.5 h / 744 h x $0.14 = $32.37; half an hour at 10 Gbit/s are 2,250 GB at most.
    result = verdict(
        copies(volume_gb=16384, download_s=1800, train_s=36000), filled(percent=0.5, minutes=600)
    )
    assert result == finds(fix=[2414], usd="27.602016")


def test_what_its_download_may_have_filled_is_not_called_unused() -> None:
    # 13 minutes at 10 Gbit/s are 975 GB.
    assert verdict(copies(volume_gb=1000, download_s=780), filled(percent=2)) == does_not_apply(
        "its download may have copied up to 975 GB"
    )
    assert verdict(copies(volume_gb=1000, download_s=60), filled(percent=35.1)) == CLEAR


def test_each_attempt_has_a_volume_of_its_own() -> None:
    """The longest download decides, charged or not."""
    result = verdict(
        copies(
            volume_gb=1000,
            download_s=60,
            phases=(
                *phases(("Downloading", 60)),
                Phase("Downloading", START, Decimal(120), billed=False, is_repeated=True),
                *phases(("Training", 7200)),
            ),
        ),
        filled(percent=2),
    )
    assert result == finds(fix=[190])


def test_copied_data_are_looked_at_where_the_volumes_are_a_fifth_of_the_bill() -> None:
    # 300 GB are 19.7% and 310 GB are 20.2% of what is paid.
    assert verdict(copies(volume_gb=300, download_s=60), filled(percent=1)) == does_not_apply(
        "its data is copied to its volumes, which are 19.7% of the bill"
    )
    assert (
        verdict(
            copies(volume_gb=310, download_s=60), filled(percent=1), limits={"min_saving_usd": 0}
        )
        == FOUND
    )


def test_what_a_download_can_have_brought_is_not_always_known() -> None:
    result = verdict(
        copies(volume_gb=1000, download_s=60, phases=phases(("Training", 7260))), filled(percent=2)
    )
    assert result == cannot_judge("copy_unknown")
    result = verdict(
        copies(
            volume_gb=1000,
            download_s=60,
            phases=(Phase("Downloading", START, None, billed=True), *phases(("Training", 7200))),
        ),
        filled(percent=2),
    )
    assert result == cannot_judge("copy_unknown")
    result = verdict(
        copies(volume_gb=1000, download_s=60),
        filled(percent=2),
        market=Market(
            {"ml.m5.xlarge": replace(TYPES["ml.m5.xlarge"], network_gbps=None)}, FixedPrices()
        ),
    )
    assert result == cannot_judge("copy_unknown")


def test_without_a_metric_it_is_not_known() -> None:
    result = verdict(copies(volume_gb=1000, download_s=60), one_host(cores=[2.0] * 120))
    assert result == cannot_judge("metric_missing")


def test_what_the_code_fetches_itself_or_a_processing_job_copies_has_no_bound_silent() -> None:
    assert verdict(trains(volume_gb=400, channels=()), filled(percent=10)) == does_not_apply(
        "how much data its volume holds…"
    )
    result = verdict(
        batch_job(
            JobKind.PROCESSING,
            3600,
            volume_gb=400,
            channels=(InputChannel("in", DataSource.S3, None, None),),
        ),
        filled(percent=10, minutes=60),
    )
    assert result == does_not_apply("how much data its volume holds…")


def test_no_volume_under_30_gb_is_advised() -> None:
    # The metric is near 0 in real data; the advised size is then not a large one.
    assert verdict(trains(volume_gb=400), filled(percent=0.01)) == finds(fix=[30])


def test_a_volume_of_30_gb_is_not_large_and_of_31_gb_it_is() -> None:
    assert verdict(trains(volume_gb=30), filled(percent=1)) == does_not_apply("…30 GB…")
    assert verdict(trains(volume_gb=31), filled(percent=1), limits={"min_saving_usd": 0}) == FOUND


def test_14_cents_too_many_are_found_and_8_cents_are_clear() -> None:
    # Two hours of 370 GB too many are 370 x 2 / 744 x $0.14 = $0.14; of 200 GB, $0.08.
    assert verdict(trains(volume_gb=400), filled(percent=1)) == FOUND
    assert verdict(trains(volume_gb=230), filled(percent=1)) == CLEAR


def test_a_peak_of_35_percent_is_little_and_of_35_1_percent_is_not() -> None:
    """35% of 400 GB are 140: twice that are 280."""
    assert verdict(
        trains(volume_gb=400), filled(percent=35), limits={"min_saving_usd": 0.0}
    ) == finds(fix=[280])
    assert verdict(trains(volume_gb=400), filled(percent=35.1)) == CLEAR


def test_the_advised_volume_is_large_no_more() -> None:
    """Its use is half of it then."""
    assert verdict(trains(volume_gb=80), filled(percent=50)) == CLEAR


def test_a_size_that_saves_nothing_is_not_advised() -> None:
    """When the policy asks for much headroom."""
    assert (
        verdict(trains(volume_gb=100), filled(percent=30), limits={"size_to_peak_ratio": 4})
        == CLEAR
    )


def test_the_fullest_host_decides() -> None:
    """All hosts get the same size."""
    result = verdict(
        trains(volume_gb=400, groups=(InstanceGroup("ml.m5.xlarge", 2),)),
        hosts({"disk": [1] * 120}, {"disk": [1] * 119 + [50]}),
    )
    assert result == CLEAR


def test_volumes_that_nobody_pays_are_not_judged() -> None:
    """No saving there."""
    result = verdict(
        trains(volume_gb=400, groups=(InstanceGroup("ml.g5.2xlarge", 1),)), filled(percent=10)
    )
    assert result == does_not_apply("…NVMe…")
    result = verdict(trains(volume_gb=400, free="built-in Debugger rule"), filled(percent=10))
    assert result == does_not_apply("…built-in Debugger rule…")
    result = verdict(trains(volume_gb=400, purchase=Purchase.TRAINING_PLAN), filled(percent=10))
    assert result == does_not_apply("…prepaid…")
    result = verdict(trains(volume_gb=400, purchase=Purchase.SERVERLESS), filled(percent=10))
    assert result == does_not_apply("…serverless…")


def test_the_saving_is_the_difference_of_two_volumes() -> None:
    """320 GB x 2 h / 744 h x $0.14."""
    assert verdict(trains(volume_gb=400), filled(percent=10)) == finds(
        alone="0.120430", severity="low"
    )


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
    count = sum(group.count for group in run.groups) or 1
    assert verdict(run, hosts(*[{"disk": [10] * 120}] * count)) == cannot_judge("storage_unknown")
