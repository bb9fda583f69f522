from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import TYPES, flat, market, phases, ran, series, usage
from tests.fakes.judging import found, not_applicable, outcome, priced, usd

RULE = "gpu-underused"
FOUR = ran(3600, "ml.g4dn.12xlarge")
ONE = ran(3600, "ml.g4dn.xlarge")


def spiky(run: Job, *percent: float) -> Measurements:
    """A GPU series of its own; one core of four is busy."""
    return usage(run, series(Metric.GPU, percent), series(Metric.CPU, [100] * len(percent)))


def test_a_little_used_gpu_is_found() -> None:
    """10% for an hour: the sentence says it with its numbers."""
    what = found(RULE, ONE, flat(ONE, 60, gpu=10, cpu=50))
    assert "The GPU averaged 10% (P95 10%) over 1 h" in what.summary
    assert what.evidence["gpu_mean_percent"] == 10.0
    assert what.evidence["cpu_mean_cores"] == 2.0
    assert what.evidence["active_minutes"] == 60


def test_a_busy_gpu_is_clear() -> None:
    """80% and more."""
    assert outcome(RULE, ONE, flat(ONE, 60, gpu=80, cpu=50)) == Clear()


def test_a_mean_of_exactly_25_is_not_low() -> None:
    """Bursts at 100% for a quarter of the time: P95 is high, only the mean decides."""
    waits = [0] * 22
    assert outcome(RULE, ONE, spiky(ONE, *[100] * 7, *waits, *[100] * 8, *waits, 0)) == Clear()
    less = spiky(ONE, *[100] * 7, *waits, *[100] * 7, 99, *waits, 0)
    assert isinstance(outcome(RULE, ONE, less), Found)


def test_a_p95_of_exactly_70_is_not_low() -> None:
    """Half at 20%, half at 70%: the mean of 45% is under the target, the P95 is not under 70."""
    assert outcome(RULE, ONE, spiky(ONE, *[20] * 30, *[70] * 30)) == Clear()
    assert isinstance(outcome(RULE, ONE, spiky(ONE, *[20] * 30, *[69.9] * 30)), Found)


def test_a_mean_at_the_target_is_busy_enough() -> None:
    """An even 50% is clear, 49% is not."""
    assert outcome(RULE, ONE, flat(ONE, 60, gpu=50, cpu=50)) == Clear()
    assert isinstance(outcome(RULE, ONE, flat(ONE, 60, gpu=49, cpu=50)), Found)


def test_the_busiest_host_speaks_for_the_p95() -> None:
    """One of two hosts at 80%, the other at 10%: 45% on average, and no flat run."""
    run = ran(3600, "ml.g4dn.xlarge", 2)
    of = usage(
        run,
        series(Metric.GPU, [10] * 60),
        series(Metric.GPU, [80] * 60, host="train/algo-2"),
        series(Metric.CPU, [100] * 60),
        series(Metric.CPU, [100] * 60, host="train/algo-2"),
    )
    assert outcome(RULE, run, of) == Clear()


def test_idle_head_and_tail_are_not_held_against_it() -> None:
    """Ten idle minutes at each end of 40 at 60%: judged on the 40."""
    of = usage(
        ONE,
        series(Metric.GPU, [0] * 10 + [60] * 40 + [0] * 10),
        series(Metric.CPU, [0] * 10 + [100] * 40 + [0] * 10),
    )
    assert outcome(RULE, ONE, of) == Clear()


def test_a_gpu_that_never_worked_is_left_to_gpu_idle() -> None:
    """One story, told once; so is one that did almost nothing. A GPU at 5% is told here."""
    assert "gpu-idle" in not_applicable(RULE, ONE, flat(ONE, 60, gpu=0, cpu=50))
    assert "gpu-idle" in not_applicable(RULE, ONE, spiky(ONE, *[0] * 59, 1))
    assert "gpu-idle" in not_applicable(RULE, ONE, flat(ONE, 60, gpu=4.9, cpu=50))
    assert isinstance(outcome(RULE, ONE, flat(ONE, 60, gpu=5, cpu=50)), Found)


def test_the_whole_sentence() -> None:
    """As the owner reads it."""
    what = found(RULE, ONE, flat(ONE, 60, gpu=10, cpu=50))
    assert what.summary == ("The GPU averaged 10% (P95 10%) over 1 h on 1 x ml.g4dn.xlarge.")


@pytest.mark.parametrize(
    ("percent", "line"), [(15, "red"), (15.1, "amber"), (24.9, "amber"), (25, "below target")]
)
def test_the_lines_of_jobstats_are_named(percent: float, line: str | None) -> None:
    """Red at 15% or less, amber under 25%."""
    assert found(RULE, ONE, flat(ONE, 60, gpu=percent, cpu=50)).evidence["jobstats"] == line


def test_a_larger_batch_is_named_where_gpu_memory_is_known_to_be_free() -> None:
    """20% is; 70% is not, and not recorded is not known."""
    free = found(RULE, ONE, flat(ONE, 60, gpu=30, gpu_memory=20, cpu=50))
    assert "A larger batch may help: the P95 of GPU memory was 20%" in (free.caution or "")
    for of in (flat(ONE, 60, gpu=30, cpu=50, gpu_memory=70), flat(ONE, 60, gpu=30, cpu=50)):
        full = found(RULE, ONE, of)
        assert "larger batch" not in (full.caution or "")
        assert "feed the GPU faster" in (full.caution or "")


def test_a_larger_batch_needs_cpus_that_could_feed_it() -> None:
    """BatchSize asks for all three under 70%."""
    busy = found(RULE, ONE, flat(ONE, 60, gpu=30, gpu_memory=20, cpu=70))
    assert "larger batch" not in (busy.caution or "")


def test_a_gpu_over_the_target_is_healthy() -> None:
    """50 to 70% on average, in a saw-tooth or even, whatever a larger batch might add."""
    for percent in (50, 60, 70):
        assert outcome(RULE, ONE, flat(ONE, 60, gpu=percent, gpu_memory=20, cpu=50)) == Clear()
    teeth = spiky(ONE, *([90, 85, 30, 15] * 15))
    assert outcome(RULE, ONE, teeth) == Clear()


def test_one_gpu_of_four_is_enough() -> None:
    """20% of 4 T4 and 5% of the rest fit one: 4.89 less 1 + 0.2 x 3 times 0.736, for an hour."""
    finding = priced(RULE, FOUR, flat(FOUR, 60, gpu=20, gpu_memory=5, cpu=5, memory=5))
    assert [fix.new for fix in finding.found.fix] == ["ml.g4dn.xlarge"]
    assert usd(finding.saving_usd) == "3.712400"
    assert usd(finding.alone_usd) == "3.712400"
    assert finding.found.best == SetType("ml.g4dn.xlarge", Decimal(1))


def test_one_gpu_of_four_that_is_busy_all_the_time_takes_no_longer_alone() -> None:
    """The sum sits at 95% of one and never goes above it: 4.89 - 0.736."""
    finding = priced(RULE, FOUR, flat(FOUR, 60, gpu=95 / 4, gpu_memory=5, cpu=5, memory=5))
    assert usd(finding.saving_usd) == "4.154000"


@pytest.mark.parametrize(
    ("use", "to"),
    [
        # vCPU: 5% of 48 x 1.2 = 2.9, 10% = 5.8, 20% = 11.5
        ({"gpu": 20, "gpu_memory": 5, "cpu": 5, "memory": 5}, "ml.g4dn.xlarge"),
        ({"gpu": 20, "gpu_memory": 5, "cpu": 10, "memory": 5}, "ml.g4dn.2xlarge"),
        ({"gpu": 20, "gpu_memory": 5, "cpu": 20, "memory": 5}, "ml.g4dn.4xlarge"),
        # host memory: 10% of 192 x 1.2 = 23 GiB
        ({"gpu": 20, "gpu_memory": 5, "cpu": 5, "memory": 10}, "ml.g4dn.2xlarge"),
    ],
)
def test_the_cheapest_type_that_holds_everything_is_advised(use: dict[str, float], to: str) -> None:
    """P99.5 with 20% headroom of vCPU and memory must fit."""
    what = found(RULE, FOUR, flat(FOUR, 60, hosts=1, **use))
    assert [fix.new for fix in what.fix] == [to]


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ({"gpu": 28, "gpu_memory": 5, "cpu": 5, "memory": 5}, "1.1 busy on average, 1"),
        ({"gpu": 20, "gpu_memory": 26, "cpu": 5, "memory": 5}, "GPU memory: 20.0 GiB needed"),
        ({"gpu": 20, "gpu_memory": 5, "cpu": 30, "memory": 5}, "vCPU: 17.3 needed"),
        ({"gpu": 20, "gpu_memory": 5, "cpu": 5, "memory": 30}, "host memory: 69.1 GiB needed"),
        ({"gpu": 20, "cpu": 5, "memory": 5}, "the GPU memory used is not known"),
        ({"gpu": 20, "gpu_memory": 5, "cpu": 5}, "the host memory used is not known"),
    ],
)
def test_a_type_is_refused_with_the_constraint_that_binds(use: dict[str, float], why: str) -> None:
    """No figure then, and no fix: an advice whose reason is shown."""
    what = found(RULE, FOUR, flat(FOUR, 60, hosts=1, **use))
    assert (what.bucket, what.change, what.fix) == (Bucket.NONE, None, ())
    assert what.confidence is Confidence.HEURISTIC
    assert what.caution is not None
    assert why in what.caution


def test_the_smallest_type_has_no_figure() -> None:
    """(1 - utilisation) x cost is never a saving: no cheaper GPU can be bought."""
    finding = priced(RULE, ONE, flat(ONE, 60, gpu=10, cpu=50))
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)
    assert "no GPU type with a known price is cheaper by the hour" in (finding.found.caution or "")
    assert finding.severity.value == "info"


def test_another_gpu_model_without_a_sourced_throughput_is_not_advised() -> None:
    """A T4 is cheaper than an A10G, and nobody says how much slower."""
    run = ran(3600, "ml.g5.2xlarge")
    what = found(RULE, run, flat(run, 60, gpu=10, gpu_memory=5, cpu=10, memory=5))
    assert what.fix == ()


def sourced() -> Market:
    """The same types with the packaged ratios of T4 and A10G."""
    known = {kind.gpu_model: kind.gpu_ratios for kind in packaged.types().values()}
    types = {name: replace(kind, gpu_ratios=known[kind.gpu_model]) for name, kind in TYPES.items()}
    return replace(market(), types=types)


def test_another_gpu_model_with_one_is_a_range_whose_slow_end_counts() -> None:
    """A T4 takes up to 5.53 times: busy for 5%, at most 1.23 times as long at $0.736 of $1.515."""
    run = ran(3600, "ml.g5.2xlarge")
    what = found(RULE, run, flat(run, 60, gpu=5, gpu_memory=5, cpu=10, memory=5), on=sourced())
    [fix] = what.fix
    assert fix.new == "ml.g4dn.xlarge"
    assert what.change == SetType("ml.g4dn.xlarge", Decimal("1.2265"))
    assert what.best == SetType("ml.g4dn.xlarge", Decimal(1))
    assert [[one.new for one in other] for other in what.alternatives] == [["ml.g4dn.2xlarge"]]
    assert what.caution is not None
    assert "T4 took 1.55 to 5.53 times as long as A10G" in what.caution
    # 1.515 / 0.736
    assert "up to 2.06 times" in what.caution


@pytest.mark.parametrize(
    "use",
    [
        {"gpu": 23, "gpu_memory": 5, "cpu": 10, "memory": 5},
        {"gpu": 14, "gpu_memory": 5, "cpu": 60, "memory": 5},
        {"gpu": 5, "cpu": 10, "memory": 5},
    ],
)
def test_another_gpu_model_is_not_advised_at_a_loss_or_in_the_dark(use: dict[str, float]) -> None:
    """Over twice as long at 23% busy; dearer at 14% on 8 vCPUs; GPU memory that nobody recorded."""
    run, there = ran(3600, "ml.g5.2xlarge"), sourced()
    real = replace(there.types["ml.g5.2xlarge"], gpu_memory_gib=Decimal(24))
    market = replace(there, types={**there.types, real.name: real})
    assert found(RULE, run, flat(run, 60, hosts=1, **use), on=market).fix == ()


def test_what_was_not_recorded_must_not_shrink() -> None:
    """Host memory is unknown: 32 GiB hold it, 16 may not, however much cheaper."""
    run = ran(3600, "ml.g5.2xlarge")
    what = found(RULE, run, flat(run, 60, gpu=5, gpu_memory=5, cpu=10), on=sourced())
    assert [fix.new for fix in what.fix] == ["ml.g4dn.2xlarge"]
    assert what.alternatives == ()


def test_the_policys_headroom_decides_what_holds() -> None:
    """6.8% of 48 vCPUs need 3.9 of four with 20% and 4.2 with 30%."""
    of = flat(FOUR, 60, gpu=20, gpu_memory=5, cpu=6.8, memory=5)
    assert [fix.new for fix in found(RULE, FOUR, of).fix] == ["ml.g4dn.xlarge"]
    more = found(RULE, FOUR, of, limits={"headroom_percent": 30})
    assert [fix.new for fix in more.fix] == ["ml.g4dn.2xlarge"]


def test_a_training_plan_gets_no_other_type() -> None:
    """It is prepaid for this one."""
    run = ran(3600, "ml.g4dn.12xlarge", purchase=Purchase.TRAINING_PLAN)
    what = found(RULE, run, flat(run, 60, gpu=20, gpu_memory=5, cpu=5, memory=5))
    assert (what.fix, what.bucket) == ((), Bucket.NONE)
    assert "prepaid" in (what.caution or "")


@pytest.mark.parametrize(
    ("kind", "phase", "path"),
    [
        (JobKind.PROCESSING, "Processing", "ProcessingResources.ClusterConfig.InstanceType"),
        (JobKind.TRANSFORM, "Transform", "TransformResources.InstanceType"),
    ],
)
def test_processing_and_transform_jobs_are_judged_too(kind: JobKind, phase: str, path: str) -> None:
    """The path is that of their own Create request."""
    run = ran(3600, "ml.g4dn.12xlarge", kind=kind, phases=phases((phase, 3600)), billable_s=None)
    raw = [
        series(metric, [value] * 60)
        for metric, value in (
            (Metric.GPU, 80), (Metric.GPU_MEMORY, 20), (Metric.CPU, 240), (Metric.MEMORY, 5),
        )
    ]  # fmt: skip
    assert [fix.path for fix in found(RULE, run, usage(run, *raw)).fix] == [path]


def test_coarse_points_refuse_every_smaller_type() -> None:
    """Hourly means hide every peak: no size is derived from them."""
    run = ran(4 * 3600, "ml.g4dn.12xlarge")
    raw = [
        series(metric, [value] * 4, period_s=3600)
        for metric, value in (
            (Metric.GPU, 80), (Metric.GPU_MEMORY, 20), (Metric.CPU, 240), (Metric.MEMORY, 5),
        )
    ]  # fmt: skip
    assert found(RULE, run, usage(run, *raw)).fix == ()
