"""Replays computed by hand: needs, refusals, times, bills and break-evens."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.candidate import Candidate, Constraint
from sageaudit.domain.bill.resize import Resize, impossible, resize
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.gpu import GpuPeaks, GpuRatio, Precision
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from tests.fakes.jobs import FixedPrices, gpu_type, instance_type, job, phases, ran, series

SHEET = GpuPeaks(*(Decimal(1),) * 4, Decimal("8.6"), source="made up")
RATIOS = tuple(
    GpuRatio("S", "W", one, Decimal(2), Decimal(5), works=8)
    for one in (Precision.HALF, Precision.FP32)
)
"""S was measured to do 2 to 5 times what W does; nobody measured D and T."""


def gpu(name: str, vcpu: int, gpus: int, model: str) -> InstanceType:
    """16 GiB on each GPU, 4 GiB of memory for each vCPU."""
    return replace(gpu_type(name, vcpu, vcpu * 4, gpus, model), gpu_ratios=RATIOS)


TYPES = {
    kind.name: kind
    for kind in (
        replace(gpu("ml.big.xlarge", 8, 1, "S"), gpu_peaks=SHEET),
        gpu("ml.big.2xlarge", 16, 1, "S"),
        gpu("ml.big.12xlarge", 48, 4, "S"),
        gpu("ml.small.xlarge", 4, 1, "W"),
        gpu("ml.small.2xlarge", 8, 1, "W"),
        gpu("ml.small.12xlarge", 48, 4, "W"),
        gpu("ml.dark.2xlarge", 8, 1, "D"),
        replace(gpu("ml.tiny.2xlarge", 8, 2, "T"), gpu_memory_gib=Decimal(4)),
        replace(gpu("ml.huge.2xlarge", 8, 1, "S"), gpu_memory_gib=Decimal(32), gpu_peaks=SHEET),
        instance_type("ml.c.xlarge", 4, 16),
        instance_type("ml.c.2xlarge", 8, 32),
        instance_type("ml.c.4xlarge", 16, 64),
        instance_type("ml.other.2xlarge", 8, 32),
        instance_type("ml.c-flex.xlarge", 4, 16),
        instance_type("ml.t3.xlarge", 4, 16),
        instance_type("ml.trn.xlarge", 8, 32, accelerator="neuron"),
        instance_type("ml.unpriced.xlarge", 4, 16),
        instance_type("ml.training.xlarge", 4, 16, kinds=frozenset({JobKind.TRAINING})),
        instance_type("ml.odd.xlarge", 4, 16, ebs_billed=None),
    )
}
USD = dict.fromkeys(TYPES, "1.00") | {
    "ml.big.xlarge": "2.00",
    "ml.big.2xlarge": "2.50",
    "ml.big.12xlarge": "8.00",
    "ml.small.xlarge": "0.50",
    "ml.small.2xlarge": "0.80",
    "ml.small.12xlarge": "4.00",
    "ml.huge.2xlarge": "3.00",
    "ml.c.xlarge": "0.20",
    "ml.c.2xlarge": "0.40",
    "ml.c.4xlarge": "0.80",
    "ml.other.2xlarge": "0.30",
}
del USD["ml.unpriced.xlarge"]
MARKET = Market(TYPES, FixedPrices(hourly_usd=USD))
ONE_GPU = ran(3600, "ml.big.xlarge", volume_gb=0)
FOUR_GPUS = ran(3600, "ml.big.12xlarge", volume_gb=0)
CPU = ran(3600, "ml.c.4xlarge", volume_gb=0)


def used(run: Job, **percent: float) -> Measurements:
    """An hour of even use in percent of the host: `cpu`, `memory`, `gpu`, `gpu_memory`."""
    return recorded(run, percent)


def recorded(
    run: Job, percent: dict[str, float], *, minutes: int = 60, period_s: int = 60
) -> Measurements:
    """So many points of even use."""
    kind = TYPES[run.groups[0].instance_type]
    times = {"cpu": kind.vcpu, "gpu": kind.gpus, "gpu_memory": kind.gpus}
    raw = [
        series(Metric[word.upper()], [value * times.get(word, 1)] * minutes, period_s=period_s)
        for word, value in percent.items()
    ]
    return measure(run, raw, TYPES, absent=Missing("metric_missing", "no points")).active()


def tried(run: Job, usage: Measurements, **more: Any) -> Resize:
    """The run on every type of TYPES."""
    assert impossible(run, MARKET) is None
    return resize(run, usage, MARKET, **more)


def on(name: str, done: Resize) -> Candidate:
    """One of its candidates."""
    return next(one for one in done.candidates if one.type.name == name)


def why(name: str, done: Resize) -> tuple[Constraint, str]:
    """What refuses a type."""
    refused = on(name, done).refused
    assert refused is not None, f"{name} fits"
    return refused.constraint, refused.reason


ALMOST_NONE = {"cpu": 2.0, "memory": 2.0}
LITTLE = {"cpu": 10.0, "memory": 10.0, "gpu": 50.0, "gpu_memory": 25.0}


def test_needs_of_the_host_are_the_peak_plus_headroom_and_those_of_its_gpus_what_was_used() -> None:
    """10% of 8 vCPU and 32 GiB, each times 1.2; 50% of 1 GPU, 25% of 16 GiB."""
    need = tried(ONE_GPU, used(ONE_GPU, **LITTLE)).need
    amounts = (need.vcpu, need.memory_gib, need.gpus, need.gpu_memory_gib)
    assert [round(one.needed or 0, 6) for one in amounts] == [0.96, 3.84, 0.5, 4.0]
    assert need.gpu_busy == Decimal("0.5")


def test_the_headroom_is_a_setting() -> None:
    """41% of 16 vCPU need 7.9 of 8 with 20% and 8.5 with 30%."""
    usage = used(CPU, cpu=41, memory=2)
    assert on("ml.c.2xlarge", tried(CPU, usage)).refused is None
    done = tried(CPU, usage, headroom_percent=Decimal(30))
    assert why("ml.c.2xlarge", done) == (
        Constraint.VCPU,
        "vCPU: 8.5 needed with headroom, 8 offered",
    )


def test_gpus_are_needed_for_the_mean_work() -> None:
    """One GPU holds four at 25%, one after the other; at 26% it would take twice as long."""
    usage = used(FOUR_GPUS, cpu=2, memory=2, gpu=25, gpu_memory=2)
    assert on("ml.big.xlarge", tried(FOUR_GPUS, usage)).refused is None
    usage = used(FOUR_GPUS, cpu=2, memory=2, gpu=26, gpu_memory=2)
    says = "GPU count: 1.0 busy on average, 1 offered"
    assert why("ml.big.xlarge", tried(FOUR_GPUS, usage)) == (Constraint.GPUS, says)


@pytest.mark.parametrize(
    ("use", "constraint", "says"),
    [
        ({"cpu": 60, "memory": 2}, Constraint.VCPU, "vCPU: 11.5 needed with headroom, 8 offered"),
        (
            {"cpu": 2, "memory": 60},
            Constraint.MEMORY,
            "host memory: 46.1 GiB needed with headroom, 32 GiB offered",
        ),
        ({"cpu": 2}, Constraint.NOT_RECORDED, "the host memory used is not known (no points)"),
        ({"memory": 2}, Constraint.NOT_RECORDED, "the vCPU used is not known (no points)"),
        ({"cpu": 60}, Constraint.VCPU, "vCPU: 11.5 needed with headroom, 8 offered"),
    ],
)
def test_a_type_is_refused_by_what_binds(
    use: dict[str, float], constraint: Constraint, says: str
) -> None:
    """On ml.c.2xlarge; what certainly breaks comes before what nobody knows."""
    assert why("ml.c.2xlarge", tried(CPU, used(CPU, **use))) == (constraint, says)


@pytest.mark.parametrize(
    ("use", "name", "constraint"),
    [
        (LITTLE | {"gpu_memory": 30}, "ml.tiny.2xlarge", Constraint.GPU_MEMORY),
        (LITTLE, "ml.c.2xlarge", Constraint.GPUS),
        (LITTLE, "ml.dark.2xlarge", Constraint.GPU_MODEL),
        (LITTLE, "ml.small.2xlarge", Constraint.RUN_TIME),
        (LITTLE | {"gpu": 10, "cpu": 60}, "ml.small.xlarge", Constraint.VCPU),
        (LITTLE | {"gpu": 10, "memory": 60}, "ml.small.xlarge", Constraint.MEMORY),
        (LITTLE, "ml.trn.xlarge", Constraint.ACCELERATOR),
        (LITTLE, "ml.unpriced.xlarge", Constraint.BILL),
        ({"cpu": 10, "memory": 10, "gpu": 10}, "ml.tiny.2xlarge", Constraint.NOT_RECORDED),
        ({"cpu": 10, "memory": 10, "gpu_memory": 5}, "ml.small.2xlarge", Constraint.NOT_RECORDED),
        ({"cpu": 10, "gpu": 10, "gpu_memory": 5}, "ml.small.xlarge", Constraint.NOT_RECORDED),
        ({"memory": 10, "gpu": 10, "gpu_memory": 5}, "ml.small.xlarge", Constraint.NOT_RECORDED),
    ],
)
def test_a_gpu_run_is_refused_by_what_binds(
    use: dict[str, float], name: str, constraint: Constraint
) -> None:
    """GPU count and memory, an unsourced model, a run that gets too long, the unknown."""
    assert why(name, tried(ONE_GPU, used(ONE_GPU, **use)))[0] is constraint


@pytest.mark.parametrize("name", ["ml.small.2xlarge", "ml.big.2xlarge"])
def test_what_does_not_shrink_needs_no_record(name: str) -> None:
    """Neither host memory nor GPU memory was recorded; both types have as much of each."""
    assert on(name, tried(ONE_GPU, used(ONE_GPU, cpu=10, gpu=10))).refused is None


def test_gpu_memory_may_all_lie_on_one_gpu() -> None:
    """30% of 16 GiB need 5.8: two GPUs of 4 GiB have 8 together, and CloudWatch has no split."""
    done = tried(ONE_GPU, used(ONE_GPU, **LITTLE | {"gpu_memory": 30}))
    says = "GPU memory: 5.8 GiB needed, 4 GiB offered"
    assert why("ml.tiny.2xlarge", done)[1] == says


def test_a_full_resource_needs_no_more_than_it_had() -> None:
    """All 8 vCPU busy: 8 hold it as well as today, 4 do not."""
    run = ran(3600, "ml.c.2xlarge", volume_gb=0)
    done = tried(run, used(run, cpu=100, memory=50))
    assert on("ml.other.2xlarge", done).refused is None
    assert why("ml.c.xlarge", done)[0] is Constraint.VCPU


def test_unsteady_cpus_are_refused() -> None:
    """T3 and flex types have a baseline, and spare time only now and then."""
    done = tried(CPU, used(CPU, cpu=2, memory=2))
    assert {why(name, done)[0] for name in ("ml.t3.xlarge", "ml.c-flex.xlarge")} == {
        Constraint.VCPU
    }


def test_the_same_gpu_takes_as_long() -> None:
    """In a larger size: $2.50 for $2.00."""
    done = tried(ONE_GPU, used(ONE_GPU, **LITTLE))
    one = on("ml.big.2xlarge", done)
    assert one.takes is not None
    assert (one.takes.counted, one.usd, done.saves(one)) == (1, Decimal("2.50"), Decimal("-0.50"))
    assert (one.best, one.break_even) == (None, None)
    assert one.takes.because == "Assumes the same run time: the new type covers peak use plus 20%."


def test_gpus_that_share_one_take_up_to_their_work_longer() -> None:
    """4 GPUs at 20% on one of them: 1 + 0.2 x 3 times $2.00 of $8.00, or once."""
    done = tried(FOUR_GPUS, used(FOUR_GPUS, cpu=2, memory=2, gpu=20, gpu_memory=5))
    one = on("ml.big.xlarge", done)
    assert one.takes is not None
    assert (one.takes.counted, one.takes.best) == (Decimal("1.6"), 1)
    assert (one.usd, done.saves(one)) == (Decimal("3.20"), Decimal("4.80"))
    assert done.saves_at_best(one) == 6
    assert one.break_even == 4


def test_another_gpu_takes_up_to_its_share_of_the_time_longer() -> None:
    """Up to 5 times; busy for a fifth of the time: 1 + 0.2 x 4 times $0.80, or once."""
    done = tried(ONE_GPU, used(ONE_GPU, **LITTLE | {"gpu": 20}))
    one = on("ml.small.2xlarge", done)
    assert one.takes is not None
    assert (one.takes.counted, one.takes.best) == (Decimal("1.8"), 1)
    assert (one.usd, one.best_usd) == (Decimal("1.44"), Decimal("0.80"))
    assert (done.saves(one), done.saves_at_best(one)) == (Decimal("0.56"), Decimal("1.20"))
    # $2.00 today buys 2.5 hours at $0.80
    assert one.break_even == Decimal("2.5")
    assert one.takes.because == (
        "W took 2.00 to 5.00 times as long as S on 16 measured training workloads (the widest "
        "range of 16-bit and FP32, as the run's precision is not known); "
        "the GPU was busy for 20% of the time."
    )


def test_a_slow_end_that_costs_more_is_no_certain_saving() -> None:
    """1.8 times $1.20 are $2.16 of $2.00, however little the fast end costs."""
    dear = Market(TYPES, FixedPrices(hourly_usd=USD | {"ml.small.2xlarge": "1.20"}))
    done = resize(ONE_GPU, used(ONE_GPU, **LITTLE | {"gpu": 20}), dear)
    one = on("ml.small.2xlarge", done)
    assert (done.saves(one), done.saves_at_best(one)) == (Decimal("-0.16"), Decimal("0.80"))
    assert one not in list(done.certain)


def test_a_run_that_may_take_more_than_twice_as_long_is_refused_however_cheap() -> None:
    """Busy for half of the time: 1 + 0.5 x 4 = 3."""
    constraint, says = why("ml.small.2xlarge", tried(ONE_GPU, used(ONE_GPU, **LITTLE)))
    assert constraint is Constraint.RUN_TIME
    assert says == (
        "it may take 3.0 times as long: W took 2.00 to 5.00 times as long as S on 16 measured "
        "training workloads (the widest range of 16-bit and FP32, as the run's precision is not "
        "known); the GPU was busy for 50% of the time"
    )


def test_a_little_used_gpu_is_worth_a_weaker_one() -> None:
    """Busy for 10%: 1.4 times $0.80 are $1.12 of $2.00; half the vCPUs would not hold 60%."""
    done = tried(ONE_GPU, used(ONE_GPU, **LITTLE | {"cpu": 60, "gpu": 10}))
    one = next(done.certain)
    assert one.type.name == "ml.small.2xlarge"
    assert (one.usd, done.saves(one)) == (Decimal("1.12"), Decimal("0.88"))
    assert (one.change.instance_type, one.change.slower) == ("ml.small.2xlarge", Decimal("1.4"))


def test_another_gpu_needs_the_recorded_vcpus_and_not_todays() -> None:
    """10% of 8 vCPU are 1 with headroom: 4 hold it, for 1.4 times $0.50."""
    one = next(tried(ONE_GPU, used(ONE_GPU, **LITTLE | {"gpu": 10})).certain)
    assert (one.type.name, one.usd) == ("ml.small.xlarge", Decimal("0.70"))


def test_a_stronger_gpu_is_counted_as_no_faster() -> None:
    """The gain that is certain is half the time: the other end, and not what is counted."""
    run = ran(3600, "ml.small.2xlarge", volume_gb=0)
    one = on("ml.big.xlarge", tried(run, used(run, **LITTLE)))
    assert one.takes is not None
    # r = 0.5 at worst: 1 + 0.5 x (0.5 - 1)
    assert (one.takes.counted, one.takes.best) == (1, Decimal("0.75"))
    assert (one.usd, one.best_usd) == (Decimal("2.00"), Decimal("1.50"))
    # $0.80 today buys 0.4 of $2.00
    assert one.break_even == Decimal("0.4")


def test_four_gpus_may_be_one_at_work() -> None:
    """Copies at 10% each take 1 + 0.1 x 4; one GPU at 40% takes 1 + 0.4 x 4."""
    little = used(FOUR_GPUS, cpu=2, memory=2, gpu=10, gpu_memory=2)
    copies = replace(FOUR_GPUS, hints=Hints(distribution="horovod"))
    one = on("ml.small.12xlarge", tried(copies, little))
    assert one.takes is not None
    assert one.takes.counted == Decimal("1.4")
    alone = on("ml.small.12xlarge", tried(FOUR_GPUS, little))
    assert alone.refused is not None
    assert alone.refused.constraint is Constraint.RUN_TIME


def test_fewer_gpus_of_a_weaker_model_do_the_work_of_all() -> None:
    """Four at 4% on one that takes 5 times as long: 1 + 0.04 x (5 x 4 - 1)."""
    small = replace(TYPES["ml.small.12xlarge"], name="ml.small.one", gpus=1)
    market = Market(TYPES | {small.name: small}, FixedPrices(hourly_usd=USD | {small.name: "1"}))
    usage = used(FOUR_GPUS, cpu=2, memory=2, gpu=4, gpu_memory=2)
    one = on(small.name, resize(FOUR_GPUS, usage, market))
    assert one.takes is not None
    assert one.takes.counted == Decimal("1.76")


def test_a_type_without_a_price_that_would_hold_the_run_is_known_by_name() -> None:
    """It may be the cheaper one: nothing is the smallest or cheapest beside it."""
    done = tried(CPU, used(CPU, cpu=2, memory=2))
    assert [other.name for other in done.not_compared] == ["ml.unpriced.xlarge"]
    assert why("ml.unpriced.xlarge", done)[0] is Constraint.BILL
    busy = tried(CPU, used(CPU, cpu=60, memory=2))
    assert busy.not_compared == ()
    small = ran(3600, "ml.c.xlarge", volume_gb=0, kind=JobKind.PROCESSING)
    types = TYPES | {"ml.unpriced.xlarge": replace(TYPES["ml.unpriced.xlarge"], kinds=frozenset())}
    market = Market(types, FixedPrices(hourly_usd=USD))
    assert resize(small, used(small, cpu=2, memory=2), market).not_compared == ()


def test_several_instances_stay_with_their_gpu() -> None:
    """Nothing is known of the network between them."""
    run = ran(3600, "ml.big.xlarge", 2, volume_gb=0)
    raw = [
        series(Metric[word.upper()], [value * times] * 60, host=f"train/algo-{n}")
        for n in (1, 2)
        for word, value, times in (
            ("cpu", 10, 8), ("memory", 10, 1), ("gpu", 10, 1), ("gpu_memory", 10, 1),
        )
    ]  # fmt: skip
    usage = measure(run, raw, TYPES, absent=Missing("metric_missing", "no points"))
    constraint, says = why("ml.small.2xlarge", tried(run, usage))
    assert constraint is Constraint.GPU_MODEL
    assert "network" in says


def test_more_memory_on_the_same_gpu_is_no_other_model_by_speed() -> None:
    """The peaks are the same: it takes as long, at both ends."""
    one = on("ml.huge.2xlarge", tried(ONE_GPU, used(ONE_GPU, **LITTLE)))
    assert one.takes is not None
    assert (one.takes.counted, one.takes.best) == (1, 1)


def test_an_idle_gpu_goes_while_the_rest_stays() -> None:
    """Memory was not recorded: 32 GiB must stay, 16 may not."""
    done = tried(ONE_GPU, used(ONE_GPU, cpu=10, gpu=0))
    assert on("ml.c.2xlarge", done).refused is None
    assert why("ml.c.xlarge", done)[0] is Constraint.NOT_RECORDED
    one = on("ml.c.2xlarge", done)
    assert one.takes is not None
    assert "the GPU did nothing" in one.takes.because


def test_an_idle_gpu_leaves_a_smaller_type_where_all_is_recorded() -> None:
    """10% of 8 vCPU and 32 GiB fit 4 and 16."""
    done = tried(ONE_GPU, used(ONE_GPU, cpu=10, memory=10, gpu=0.5))
    assert on("ml.c.xlarge", done).refused is None


def test_candidates_come_by_their_bill_and_the_refused_after_them() -> None:
    """The cheapest that fits is first."""
    done = tried(CPU, used(CPU, cpu=2, memory=2))
    costs = [one.usd for one in done.fitting]
    assert costs == sorted(costs, key=lambda usd: usd or 0)
    assert done.candidates[: len(costs)] == done.fitting
    assert done.fitting[0].type.name == "ml.c.xlarge"
    assert all(one.refused for one in done.candidates[len(costs) :])


def test_another_family_says_what_it_assumes() -> None:
    """vCPUs of two families are not the same."""
    one = on("ml.other.2xlarge", tried(CPU, used(CPU, cpu=2, memory=2)))
    assert one.takes is not None
    assert "a vCPU of other counts as one of c" in one.takes.because


def test_a_type_that_the_kind_of_job_does_not_take_is_refused() -> None:
    """The enums of processing and transform jobs are shorter."""
    run = ran(3600, "ml.c.4xlarge", kind=JobKind.PROCESSING, phases=phases(("Processing", 3600)))
    done = tried(run, used(run, cpu=2, memory=2))
    assert why("ml.training.xlarge", done)[0] is Constraint.NOT_OFFERED


def test_a_transform_job_is_replayed_by_whatever_its_hosts_are_called() -> None:
    """Their names are instance ids."""
    run = ran(
        3600, "ml.c.4xlarge", kind=JobKind.TRANSFORM, phases=phases(("Transform", 3600)),
        billable_s=None,
    )  # fmt: skip
    raw = [
        series(Metric.CPU, [40] * 60, host="train/i-0abc"),
        series(Metric.MEMORY, [5] * 60, host="train/i-0abc"),
    ]
    usage = measure(run, raw, TYPES, absent=Missing("metric_missing", "no points"))
    done = tried(run, usage)
    one = on("ml.c.xlarge", done)
    assert done.saves(one) == Decimal("0.60")


def test_a_bill_that_would_miss_a_line_is_no_saving() -> None:
    """Whether ml.odd.xlarge has a volume is not known."""
    run = ran(3600, "ml.big.xlarge")
    done = tried(run, used(run, cpu=2, memory=2, gpu=0))
    constraint, says = why("ml.odd.xlarge", done)
    assert constraint is Constraint.BILL
    assert "EBS" in says


@pytest.mark.parametrize(
    ("ebs_billed", "says"),
    [
        (False, "c and odd keep data on different kinds of disk"),
        (None, "whether c and odd keep data alike is not known"),
    ],
)
def test_a_cpu_run_stays_on_its_kind_of_storage(ebs_billed: bool | None, says: str) -> None:
    """A local disk is faster than EBS, and gone with the instance."""
    odd = replace(TYPES["ml.odd.xlarge"], ebs_billed=ebs_billed)
    market = Market(TYPES | {odd.name: odd}, FixedPrices(hourly_usd=USD))
    done = resize(CPU, used(CPU, cpu=2, memory=2), market)
    assert why(odd.name, done) == (Constraint.STORAGE, says)


def test_an_old_generation_is_no_alternative_but_for_one_of_its_own_age() -> None:
    """However cheap it is by the hour."""
    old = replace(TYPES["ml.c.xlarge"], name="ml.old.xlarge", family="old", legacy=True)
    older = replace(TYPES["ml.c.4xlarge"], legacy=True)
    prices = FixedPrices(hourly_usd=USD | {old.name: "0.10"})
    usage = used(CPU, cpu=2, memory=2)
    done = resize(CPU, usage, Market(TYPES | {old.name: old}, prices))
    says = "old is an older generation than c"
    assert why(old.name, done) == (Constraint.GENERATION, says)
    both = Market(TYPES | {old.name: old, older.name: older}, prices)
    assert next(resize(CPU, usage, both).certain).type.name == old.name


def test_without_any_record_everything_is_refused() -> None:
    """Not recorded is not little."""
    done = tried(CPU, used(CPU))
    priced = [one for one in done.candidates if one.rate is not None and one.refused]
    assert not done.fitting
    assert {one.refused.constraint for one in priced if one.refused} == {
        Constraint.NOT_RECORDED, Constraint.ACCELERATOR, Constraint.VCPU, Constraint.STORAGE,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "says"),
    [
        (recorded(CPU, ALMOST_NONE, minutes=41), "68% of the points, 70% needed"),
        (recorded(CPU, ALMOST_NONE, minutes=6, period_s=600), "a point every 600 s hides peaks"),
        (
            recorded(ran(840, "ml.c.4xlarge"), ALMOST_NONE, minutes=14),
            "14 active minutes, 15 needed",
        ),
    ],
)
def test_too_few_or_too_coarse_points_are_no_record(usage: Measurements, says: str) -> None:
    """Minute means hide peaks as it is."""
    constraint, reason = why("ml.c.2xlarge", tried(CPU, usage))
    assert constraint is Constraint.NOT_RECORDED
    assert says in reason


def test_spot_runs_are_scaled_by_their_billable_seconds() -> None:
    """1,200 of 3,600 s billed: 1.8 times as long is 2,160 billed seconds at $0.80."""
    run = ran(3600, "ml.big.xlarge", volume_gb=0, purchase=Purchase.SPOT, billable_s=Decimal(1200))
    one = on("ml.small.2xlarge", tried(run, used(run, **LITTLE | {"gpu": 20})))
    assert one.usd == Decimal("0.48")


def test_a_training_plan_saves_no_cash() -> None:
    """Today is prepaid; another type is bought on demand beside it."""
    run = ran(3600, "ml.big.xlarge", volume_gb=0, purchase=Purchase.TRAINING_PLAN)
    done = tried(run, used(run, **LITTLE | {"gpu": 10}))
    one = on("ml.small.2xlarge", done)
    assert done.bill.total_usd == 0
    assert done.saves(one) == Decimal("-1.12")
    assert not list(done.certain)


def test_without_todays_price_the_candidates_have_costs_and_no_saving() -> None:
    """Nothing is known to be cheaper."""
    run = ran(3600, "ml.unpriced.xlarge", volume_gb=0)
    done = tried(run, used(run, cpu=2, memory=2))
    one = on("ml.c.xlarge", done)
    assert (one.usd, done.saves(one)) == (Decimal("0.20"), None)
    assert not list(done.certain)


def test_without_billed_seconds_the_hourly_prices_decide() -> None:
    """The advice stands, without dollars."""
    run = ran(3600, "ml.c.4xlarge", training_s=None, billable_s=None, started_at=None)
    done = tried(run, used(run, cpu=2, memory=2))
    best = next(done.certain)
    assert (best.type.name, best.usd) == ("ml.c.xlarge", None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"status": "InProgress"}, "has not ended"),
        ({"kind": JobKind.TUNING}, "tuning job"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        ({"region": None}, "region"),
        ({"groups": ()}, "instance type is not known"),
        (
            {"groups": (InstanceGroup("ml.c.xlarge", 1), InstanceGroup("ml.c.2xlarge", 1))},
            "which host is in which",
        ),
        ({"groups": (InstanceGroup("ml.new.xlarge", 1),)}, "not in the catalogue"),
        ({"groups": (InstanceGroup("ml.trn.xlarge", 1),)}, "accelerators"),
    ],
)
def test_what_cannot_be_replayed_says_why(changes: dict[str, Any], says: str) -> None:
    """One sentence each."""
    assert says in (impossible(job("ml.c.4xlarge", **changes), MARKET) or "")


def test_a_job_that_never_started_cannot_be_replayed() -> None:
    """It cost nothing."""
    run = job(status="Failed", started_at=None, training_s=None, billable_s=None, phases=())
    assert "never started" in (impossible(run, MARKET) or "")


def test_groups_of_one_type_are_replayed_together() -> None:
    """Two groups of one instance each: both change."""
    groups = (InstanceGroup("ml.c.4xlarge", 1, "a"), InstanceGroup("ml.c.4xlarge", 1, "b"))
    run = ran(3600, groups=groups, volume_gb=0)
    raw = [
        series(metric, [value] * 60, host=f"train/algo-{n}")
        for n in (1, 2)
        for metric, value in ((Metric.CPU, 16), (Metric.MEMORY, 2))
    ]
    done = tried(run, measure(run, raw, TYPES, absent=Missing("metric_missing", "no points")))
    assert done.saves(on("ml.c.xlarge", done)) == Decimal("1.20")


percents = st.floats(0.5, 100, allow_nan=False)


@given(cpu=percents, memory=percents, gpu=percents, gpu_memory=percents)
def test_whatever_fits_holds_the_peaks_or_all_that_there_was(
    cpu: float, memory: float, gpu: float, gpu_memory: float
) -> None:
    """And its two ends lie in order, with the counted one never above today's share of time."""
    done = tried(ONE_GPU, used(ONE_GPU, cpu=cpu, memory=memory, gpu=gpu, gpu_memory=gpu_memory))
    for one in done.fitting:
        assert one.takes is not None
        assert one.type.vcpu >= min(cpu / 100 * 8 * 1.2, 8) - 1e-9
        assert float(one.type.memory_gib) >= min(memory / 100 * 32 * 1.2, 32) - 1e-9
        assert one.takes.counted >= 1
        assert one.takes.best <= one.takes.counted


@given(keep=st.sets(st.integers(0, 59), max_size=30))
def test_half_of_the_points_make_nothing_fit(keep: set[int]) -> None:
    """A peak may be among the missing."""
    values = [160.0 if n in keep else None for n in range(60)]
    memory = [5.0 if n in keep else None for n in range(60)]
    raw = [series(Metric.CPU, values), series(Metric.MEMORY, memory)]
    usage = measure(CPU, raw, TYPES, absent=Missing("metric_missing", "no points")).active()
    assert not tried(CPU, usage).fitting
