from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.job.job import InstanceGroup, Job, Phase, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Metric
from sageaudit.structs import replace
from tests.fakes.batch_jobs import batch_job
from tests.fakes.jobs import START, TYPES, FixedPrices, known, phases, ran, series, usage
from tests.fakes.judging import unknown
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, later, lines, row

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


@later
def filled(on: Job, percent: float, minutes: int = 120) -> Any:
    """The volume's use, the same all the time."""
    begun = next(phase.started_at for phase in on.phases if phase.name != "Downloading")
    return usage(on, series(Metric.DISK, [percent] * minutes, start=known(begun)))


test_cases = cases(
    RULE,
    "A volume far larger than its use is found. 10% of 400 GB are 40: twice that holds it.",
    row(finds("At most 10.0% of each 400 GB volume was used on 1 x ml.m5.xlarge.",
        builder="possible", caution="Its data is streamed…",
        fix=[("ResourceConfig.VolumeSizeInGB", 400, 80)]), trains(400), filled(10)),
    "Streamed data need no room. They never lie on the volume.",
    row(finds(fix=[80]), trains(400, channels=(InputChannel("train", DataSource.S3, "Pipe", None),
        )), filled(10)),
    "A download cannot bring more than the network carries.",
    # A minute at 10 Gbit/s are 75 GB, and twice 2% of 1,000 GB are 40: 115 GB are surely enough.
    # 1,000 GB cost 2 h 1 min / 744 h x $0.14 = $0.3795 of $0.8434.
    row(finds("At most 2.0% of each 1000 GB volume was used on 1 x ml.m5.xlarge.",
        fix=[("ResourceConfig.VolumeSizeInGB", 1000, 115)], usd="0.335840", builder="possible",
        span=("0.335840", "0.364301"), evidence={"copied_at_most_gb": 75},
        caution="The download can have brought 75 GB at most…Under 334 GB a gp2 volume reads…"),
        copies(1000, 60), filled(2)),
    row(finds(fix=[115]), copies(1000, 60, channels=(STREAMED, COPIED)), filled(2)),
    "16 TB for ten hours of a large instance.",
    # 16,384 GB x 10.5 h / 744 h x $0.14 = $32.37; half an hour at 10 Gbit/s are 2,250 GB at most.
    row(finds(fix=[2414], usd="27.602016"), copies(16384, 1800, 36000), filled(0.5, 600)),
    "What its download may have filled is not called unused.",
    # 13 minutes at 10 Gbit/s are 975 GB.
    row("not applicable: its download may have brought up to 975 GB", copies(1000, 780), filled(2)),
    row(CLEAR, copies(1000, 60), filled(35.1)),
    "Each attempt has a volume of its own. The longest download decides, charged or not.",
    row(finds(fix=[190]), copies(1000, 60, phases=(*phases(("Downloading", 60)),
        Phase("Downloading", START, Decimal(120), billed=False, repeated=True),
        *phases(("Training", 7200)))), filled(2)),
    "Copied data are looked at where the volumes are a fifth of the bill.",
    # 300 GB are 19.7% and 310 GB are 20.2% of what is paid.
    row("not applicable: its data is copied to its volumes, which are 19.7% of the bill",
        copies(300, 60), filled(1)),
    row(FOUND, copies(310, 60), filled(1), limits={"from_usd": 0}),
    "What a download can have brought is not always known.",
    row("unknown: copy_unknown", copies(1000, 60, phases=phases(("Training", 7260))), filled(2)),
    row("unknown: copy_unknown", copies(1000, 60, phases=(Phase("Downloading", START, None,
        billed=True), *phases(("Training", 7200)))), filled(2)),
    row("unknown: copy_unknown", copies(1000, 60), filled(2), on=Market({"ml.m5.xlarge":
        replace(TYPES["ml.m5.xlarge"], network_gbps=None)}, FixedPrices())),
    "Without a metric it is not known.",
    row("unknown: metric_missing", copies(1000, 60), lines(series(Metric.CPU, [200] * 120))),
    "What the code fetches itself, or a processing job copies, has no bound: silent.",
    row("not applicable: how much data is on its volume…", trains(400, channels=()), filled(10)),
    row("not applicable: how much data is on its volume…", ran(3600, kind=JobKind.PROCESSING,
        phases=batch_job(JobKind.PROCESSING, 60).phases, volume_gb=400,
        channels=(InputChannel("in", DataSource.S3, None, None),)), filled(10, 60)),
    "No volume under 30 GB is advised.",
    # The metric is near 0 in real data; the advised size is then not a large one.
    row(finds(fix=[30]), trains(400), filled(0.01)),
    "Exactly 30 GB are not large. 31 GB are, by a little.",
    row("not applicable: …30 GB…", trains(30), filled(1)),
    row(FOUND, trains(31), filled(1), limits={"from_usd": 0}),
    "A few cents are not spoken of.",
    # Two hours of 370 GB too many are 370 x 2 / 744 x $0.14 = $0.14; of 200 GB, 8 cents.
    row(FOUND, trains(400), filled(1)),
    row(CLEAR, trains(230), filled(1)),
    "Exactly 35 percent is little and more is not. 35% of 400 GB: twice 140 are 280.",
    row(finds(fix=[280]), trains(400), filled(35), limits={"from_usd": 0.0}),
    row(CLEAR, trains(400), filled(35.1)),
    "The advised volume is large no more. Its use is half of it then.",
    row(CLEAR, trains(80), filled(50)),
    "A size that saves nothing is not advised. When the policy asks for much headroom.",
    row(CLEAR, trains(100), filled(30), limits={"times_the_peak": 4}),
    "The fullest host decides. All hosts get the same size.",
    row(CLEAR, trains(400, groups=(InstanceGroup("ml.m5.xlarge", 2),)), lines(series(Metric.DISK,
        [1] * 120, host="train/algo-1"), series(Metric.DISK, [1] * 119 + [50],
        host="train/algo-2"))),
    "Volumes that nobody pays are not its concern. No saving there.",
    row("not applicable: …NVMe…", trains(400, groups=(InstanceGroup("ml.g5.2xlarge", 1),)),
        filled(10)),
    row("not applicable: …built-in Debugger rule…", trains(400, free="built-in Debugger rule"),
        filled(10)),
    row("not applicable: …prepaid…", trains(400, purchase=Purchase.TRAINING_PLAN), filled(10)),
    row("not applicable: …serverless…", trains(400, purchase=Purchase.SERVERLESS), filled(10)),
    "The saving is the difference of two volumes. 320 GB x 2 h / 744 h x $0.14.",
    row(finds(alone="0.120430", severity="low"), trains(400), filled(10)),
)  # fmt: skip


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
