"""How long a run takes at most where GPUs are fewer or weaker, computed by hand and as laws."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.candidate import Constraint, Duration, TypeRefusal
from sageaudit.domain.bill.moved_run import MOST_TIMES_AS_LONG, MovedRun
from sageaudit.domain.job.job import Hints, Job
from sageaudit.domain.prices.gpu import GpuPeaks, GpuRatio, Precision
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.demand import Demand, demand
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from tests.fakes.jobs import Points, gpu_type, ran, series


def half(times_high: str = "2", precision: Precision | None = None) -> tuple[GpuRatio, ...]:
    """S does half as much again to `times_high` times what W does, in both usual classes."""
    classes = (Precision.HALF, Precision.FP32) if precision is None else (precision,)
    return tuple(
        GpuRatio("S", "W", one, Decimal("1.5"), Decimal(times_high), works=3) for one in classes
    )


HEADROOM = Decimal(20)


def machine(
    gpus: int, model: str = "S", ratios: tuple[GpuRatio, ...] | None = None
) -> InstanceType:
    """A made-up type with so many GPUs of 16 GiB; S and W were measured, unless said otherwise."""
    plain = gpu_type(f"ml.{model.lower()}.{gpus}xlarge", 48, 192, gpus, model)
    return replace(plain, gpu_ratios=half() if ratios is None else ratios)


def need_of(today: InstanceType, *hosts: Points) -> Demand:
    """The demand of a run by the sum of each host's GPUs, minute by minute; none recorded: ()."""
    return demand(recorded(today, *hosts), today, HEADROOM)


def recorded(today: InstanceType, *hosts: Points) -> Measurements:
    """Even and little use of all but the GPUs."""
    raw = [
        series(metric, values, host=f"train/algo-{number}")
        for number, sums in enumerate(hosts or ((),), start=1)
        for metric, values in ((Metric.GPU, sums), (Metric.CPU, [480.0] * 60))
        if values
    ]
    absent = Missing("metric_missing", "no points")
    return measure(run_on(today, max(len(hosts), 1)), raw, {today.name: today}, absent=absent)


def run_on(today: InstanceType, hosts: int = 1) -> Job:
    """An hour."""
    return ran(3600, today.name, hosts, volume_gb=0)


def moved(today: InstanceType, other: InstanceType, *hosts: Points) -> Duration | TypeRefusal:
    """How long a run with these sums takes on the other type."""
    job = run_on(today, max(len(hosts), 1))
    return MovedRun(job, today, need_of(today, *hosts), HEADROOM, other).run_time()


def times(today: InstanceType, other: InstanceType, *hosts: Points) -> Decimal:
    """As counted; fails where it is refused."""
    found = moved(today, other, *hosts)
    assert isinstance(found, Duration), found
    assert found.best <= found.counted
    return found.counted


@pytest.mark.parametrize(
    ("today", "other", "busy", "counted"),
    [
        # one at its limit: 95 of 400 is one GPU at work; 80 may be four at 20
        (4, 1, 95, "1"),
        (4, 1, 80, "1.6"),
        (4, 2, 80, "1.2"),
        (4, 1, 20, "1.15"),
        (8, 1, 80, "1.7"),
        (8, 4, 400, "1.5"),
        (8, 2, 200, "1.75"),
        (4, 1, 100, "1"),
        # as many, or more: nothing is shared
        (4, 4, 380, "1"),
        (1, 4, 95, "1"),
    ],
)
def test_gpus_that_share_one_take_up_to_their_work_longer(
    today: int, other: int, busy: float, counted: str
) -> None:
    """1 + u (n / m - 1), u the mean of each of n on m; 1 where one of them did all the work."""
    assert times(machine(today), machine(other), [busy] * 60) == Decimal(counted)


def test_one_gpu_at_work_is_seen_by_its_ceiling_alone() -> None:
    """P95 of 90 and more, and no minute above 101: one minute more and several were at work."""
    four, one = machine(4), machine(1)
    assert times(four, one, [90.0] * 60) == 1
    assert times(four, one, [89.9] * 60) == Decimal("1.6744")
    assert times(four, one, [95.0] * 59 + [101.0]) == 1
    assert times(four, one, [95.0] * 59 + [102.0]) > Decimal("1.7")


def test_one_gpu_at_work_on_a_weaker_one_is_as_busy_as_it_was() -> None:
    """95% of the time at half the strength: 1.95 times, and not 1 + 0.2375 x (2 x 4 - 1)."""
    assert times(machine(4), machine(1, "W"), [95.0] * 60) == Decimal("1.95")


def test_fewer_and_weaker_gpus_take_both_times() -> None:
    """Four at 10% on one that is half as strong: 1 + 0.1 x (2 x 4 - 1)."""
    assert times(machine(4), machine(1, "W"), [40.0] * 60) == Decimal("1.7")


def test_stronger_gpus_make_up_for_being_fewer() -> None:
    """Four at 40% on two that do at least 1.5 times as much each: 1 + 0.4 x (2 / 1.5 - 1)."""
    assert times(machine(4, "W"), machine(2), [160.0] * 60) == Decimal("1.1334")
    twice = (replace(half()[0], times_low=Decimal(2)), replace(half()[1], times_low=Decimal(2)))
    assert times(machine(4, "W", twice), machine(2), [160.0] * 60) == 1


def test_the_slowest_host_decides() -> None:
    """Two hosts at 10% and at 20% of four GPUs each."""
    assert times(machine(4), machine(1), [40.0] * 60, [80.0] * 60) == Decimal("1.6")


def test_a_run_that_may_take_more_than_twice_as_long_is_refused() -> None:
    """One GPU at 100% that takes up to twice as long is just in; a little more is refused."""
    assert times(machine(1), machine(1, "W"), [100.0] * 60) == MOST_TIMES_AS_LONG
    refused = moved(machine(1, ratios=half("2.01")), machine(1, "W"), [100.0] * 60)
    assert isinstance(refused, TypeRefusal)
    assert refused.constraint is Constraint.RUN_TIME
    assert refused.reason.startswith(
        "it may take 2.0 times as long: W took 1.50 to 2.01 times as long as S "
        "on 6 measured training workloads"
    )


def test_unrecorded_gpus_count_as_busy_all_the_time_and_are_not_said_to_be() -> None:
    """Up to twice the time is then twice as long; a little more is refused as not recorded."""
    found = moved(machine(1), machine(1, "W"))
    assert isinstance(found, Duration)
    assert found.counted == 2
    assert found.because == (
        "W took 1.50 to 2.00 times as long as S on 6 measured training workloads "
        "(the widest range of 16-bit and FP32, as the run's precision is not known); "
        "how busy it was is not known, so it is counted as always busy."
    )
    refused = moved(machine(1, ratios=half("2.01")), machine(1, "W"))
    assert isinstance(refused, TypeRefusal)
    assert refused.constraint is Constraint.NOT_RECORDED


def test_signs_of_what_the_other_gpu_lacks_refuse_it() -> None:
    """No throughput tells how long FlashAttention takes where it does not run."""
    today, other = machine(1, "A10G"), machine(1, "T4")
    job = replace(run_on(today), hints=Hints(flash_attention=True))
    refused = MovedRun(job, today, need_of(today, [10.0] * 60), HEADROOM, other).run_time()
    assert isinstance(refused, TypeRefusal)
    assert refused.constraint is Constraint.GPU_MODEL


def sheet(fp32: int, fp16: int, gb_s: int, capability: str = "8.6") -> GpuPeaks:
    """A data sheet; TF32 is as good as 16 bits."""
    figures = (Decimal(fp32), Decimal(fp16), Decimal(fp16), Decimal(gb_s))
    return GpuPeaks(*figures, Decimal(capability), "made up")


def test_a_gpu_that_nobody_measured_is_no_measure_of_another() -> None:
    """Data sheets stand beside the refusal; they are no ratio."""
    refused = moved(machine(1), machine(1, "D"), [10.0] * 60)
    assert isinstance(refused, TypeRefusal)
    assert refused.reason == (
        "no training work measured on both S and D in 16-bit or FP32 is known; "
        "the precision of the run is not known"
    )
    today = replace(machine(1), gpu_peaks=sheet(20, 80, 600))
    other = replace(machine(1, "D"), gpu_peaks=sheet(10, 40, 300))
    there = moved(today, other, [10.0] * 60)
    assert isinstance(there, TypeRefusal)
    assert there.reason.endswith("(data sheets: 80 and 40 TFLOPS in 16 bits, 600 and 300 GB/s)")


def test_a_class_that_the_run_may_be_in_must_be_measured() -> None:
    """In 16 bits alone: unknown for any run, and enough for one that shows signs of them."""
    today, other = machine(1, ratios=half(precision=Precision.HALF)), machine(1, "W")
    need = need_of(today, [50.0] * 60)
    refused = MovedRun(run_on(today), today, need, HEADROOM, other).run_time()
    assert isinstance(refused, TypeRefusal)
    assert refused.reason.startswith("no training work measured on both S and W in FP32 is known")
    signed = replace(run_on(today), hints=Hints(mixed_precision=True))
    found = MovedRun(signed, today, need, HEADROOM, other).run_time()
    assert isinstance(found, Duration)
    assert found.counted == Decimal("1.5")
    assert found.because == (
        "W took 1.50 to 2.00 times as long as S on 3 measured training workloads (16-bit); "
        "the GPU was busy for 50% of the time."
    )
    eight = replace(run_on(today), hints=Hints(mixed_precision=True, fp8=True))
    assert isinstance(MovedRun(eight, today, need, HEADROOM, other).run_time(), TypeRefusal)


def test_one_work_is_no_range() -> None:
    """Nobody knows how far the next work lies from it."""
    one = tuple(replace(row, works=1) for row in half())
    refused = moved(machine(1, ratios=one), machine(1, "W"), [10.0] * 60)
    assert isinstance(refused, TypeRefusal)
    assert refused.reason.startswith("only one work was measured on both S and W in 16-bit or FP32")


def test_a_gpu_without_tensor_cores_has_one_class() -> None:
    """A K80 computes in FP32, whatever its run shows."""
    of_k80 = (GpuRatio("T4", "K80", Precision.FP32, Decimal(2), Decimal(3), works=14),)
    today, other = machine(1, "K80", of_k80), machine(1, "T4")
    found = moved(today, other, [50.0] * 60)
    assert isinstance(found, Duration)
    assert (found.counted, found.best) == (1, Decimal("0.75"))


def test_without_tf32_a_weak_gpu_may_take_longer_and_that_is_said() -> None:
    """Of data sheets 60 against 10 TFLOPS, where at most twice was measured."""
    today = replace(machine(1), gpu_peaks=sheet(60, 500, 600))
    other = replace(machine(1, "W"), gpu_peaks=sheet(10, 400, 500))
    found = moved(today, other, [50.0] * 60)
    assert isinstance(found, Duration)
    assert found.because.endswith("by data sheet S and W do 60 and 10 TFLOPS.")
    like = moved(today, replace(other, gpu_peaks=sheet(40, 400, 500)), [50.0] * 60)
    assert isinstance(like, Duration)
    assert "data sheet" not in like.because


def test_less_bandwidth_of_the_same_model_is_another_gpu() -> None:
    """An A100 of 40 GiB has three quarters of the bandwidth of one of 80, and nobody compared."""
    wide = replace(machine(1), gpu_memory_gib=Decimal(80), gpu_peaks=sheet(20, 300, 2039))
    narrow = replace(machine(1), gpu_memory_gib=Decimal(40), gpu_peaks=sheet(20, 300, 1555))
    use = [10.0] * 60
    refused = MovedRun(run_on(wide), wide, need_of(wide, use), HEADROOM, narrow).run_time()
    assert isinstance(refused, TypeRefusal)
    assert refused.reason == "no training work measured on both S with 40 and 80 GiB is known"
    found = MovedRun(run_on(narrow), narrow, need_of(narrow, use), HEADROOM, wide).run_time()
    assert isinstance(found, Duration)
    assert found.counted == 1
    assert found.because.startswith("Its S has 80 GiB of memory, today's has 40 GiB")


def test_what_is_shared_is_said_with_how_busy_it_was() -> None:
    """As the owner reads it."""
    found = moved(machine(4), machine(1), [80.0] * 60)
    assert isinstance(found, Duration)
    assert found.because == (
        "The work of 4 GPUs takes turns on one; the GPUs were busy for 20% of the time on average."
    )
    alone = moved(machine(4), machine(1), [95.0] * 60)
    assert isinstance(alone, Duration)
    assert "one of them did the work" in alone.because


busy_shares = st.floats(0.02, 1)
"""Of each GPU; below is idle."""
counts = st.sampled_from((1, 2, 4, 8))
few = st.integers(1, 200).map(lambda tenths: Decimal(tenths) / 10)


def slow_end(today: int, other: int, share: float, spread: float = 0.0) -> Decimal:
    """As bounded, refused or not; half of the minutes are busier by `spread` and half less."""
    row, there = machine(today), machine(other)
    low, high = (min(max(share + part, 0), 1) * 100 * today for part in (-spread, spread))
    need = need_of(row, [low, high] * 30)
    return MovedRun(run_on(row), row, need, HEADROOM, there)._bounded(None).counted


@given(today=counts, other=counts, share=busy_shares, spread=st.floats(0, 0.3))
def test_no_run_is_counted_as_shorter(today: int, other: int, share: float, spread: float) -> None:
    """Whatever a stronger type promises."""
    assert slow_end(today, other, share, spread) >= 1


@given(today=counts, other=counts, one=busy_shares, two=busy_shares)
def test_busier_gpus_never_share_one_in_less_time(
    today: int, other: int, one: float, two: float
) -> None:
    """But for the ceiling of one GPU, which is another physics."""
    low, high = sorted((one, two))
    if not any(0.9 <= share * today <= 1.01 for share in (low, high)):
        assert slow_end(today, other, low) <= slow_end(today, other, high)


@given(today=counts, one=counts, two=counts, share=busy_shares)
def test_fewer_gpus_never_take_less_time(today: int, one: int, two: int, share: float) -> None:
    """The more share one, the longer."""
    fewer, more = sorted((one, two))
    assert slow_end(today, fewer, share) >= slow_end(today, more, share)


@given(today=counts, other=counts, share=busy_shares, spread=st.floats(0, 0.3))
def test_work_that_fits_by_its_mean_takes_less_than_twice_as_long(
    today: int, other: int, share: float, spread: float
) -> None:
    """The mean work of m GPUs or less, on m: the cap refuses no sharing that holds."""
    row = machine(today)
    need = need_of(row, [share * 100 * today] * 60)
    if need.gpus.held_by(other) and other < today:
        assert slow_end(today, other, share) < MOST_TIMES_AS_LONG


@given(first=few, second=few, share=busy_shares)
def test_weaker_gpus_never_take_less_time(first: Decimal, second: Decimal, share: float) -> None:
    """Monotone in r too."""
    row = machine(1)
    need = need_of(row, [share * 100] * 60)
    [host] = need.hosts
    move = MovedRun(run_on(row), row, need, HEADROOM, machine(1, "W"))
    low, high = sorted((first, second))
    assert move._slow_end(host, low) <= move._slow_end(host, high)
