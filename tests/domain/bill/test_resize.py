"""A run on other types, computed by hand: refusals, bills, break-evens and their order."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.prices.market import GpuRatio, InstanceType, Market, Precision
from sageaudit.domain.resize.candidate import Candidate, Constraint
from sageaudit.domain.resize.resize import Resize, resize, resize_refusal
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import (
    FixedPrices,
    batch_job,
    by_point,
    even,
    gpu_type,
    instance_type,
    job,
    not_none,
    phases,
    ran,
    series,
    usage,
)

pytestmark = pytest.mark.money

RATIOS = tuple(
    GpuRatio("S", "W", precision, Decimal(2), Decimal(5), works=8)
    for precision in (Precision.HALF, Precision.FP32)
)
"""S was measured to do 2 to 5 times what W does; D and T were not measured."""


def gpu(name: str, vcpu: int, gpus: int, model: str, **changes: Any) -> InstanceType:
    """Returns a type with 16 GiB on each GPU, and 4 GiB of memory for each vCPU."""
    plain = gpu_type(name, vcpu, vcpu * 4, gpus, model)
    return replace(plain, gpu_ratios=RATIOS, **changes)


PRICED = {
    gpu("ml.big.xlarge", 8, 1, "S"): "2.00",
    gpu("ml.big.2xlarge", 16, 1, "S"): "2.50",
    gpu("ml.big.12xlarge", 48, 4, "S"): "8.00",
    gpu("ml.small.xlarge", 4, 1, "W"): "0.50",
    gpu("ml.small.2xlarge", 8, 1, "W"): "0.80",
    gpu("ml.small.12xlarge", 48, 4, "W"): "4.00",
    gpu("ml.dark.2xlarge", 8, 1, "D"): "1.00",
    gpu("ml.tiny.2xlarge", 8, 2, "T", gpu_memory_gib=Decimal(4)): "1.00",
    instance_type("ml.c.xlarge", 4, 16): "0.20",
    instance_type("ml.c.2xlarge", 8, 32): "0.40",
    instance_type("ml.c.4xlarge", 16, 64): "0.80",
    instance_type("ml.other.2xlarge", 8, 32): "0.30",
    instance_type("ml.c-flex.xlarge", 4, 16): "1.00",
    instance_type("ml.trn.xlarge", 8, 32, accelerator="neuron"): "1.00",
    instance_type("ml.unpriced.xlarge", 4, 16): None,
    instance_type("ml.training.xlarge", 4, 16, kinds=frozenset({JobKind.TRAINING})): "1.00",
    instance_type("ml.odd.xlarge", 4, 16, is_ebs_billed=None): "1.00",
}
TYPES = {kind.name: kind for kind in PRICED}
USD = {kind.name: usd for kind, usd in PRICED.items() if usd is not None}
MARKET = Market(TYPES, FixedPrices(hourly_usd=USD))
ONE_GPU = ran(3600, "ml.big.xlarge", volume_gb=0)
FOUR_GPUS = ran(3600, "ml.big.12xlarge", volume_gb=0)
CPU = ran(3600, "ml.c.4xlarge", volume_gb=0)


def usage_of(run: Job, points: tuple[int, int] = (60, 60), /, **percent: float) -> Measurements:
    """Returns `points` (their number, and the seconds of each) in percent: `cpu`, `memory`, `gpu`,
    `gpu_memory`.
    """
    number, period_s = points
    hosts = run.instance_count or 0
    return by_point(run, hosts, even(number, percent), period_s=period_s, types=TYPES).active_part()


def resized(run: Job, usage: Measurements | None = None, /, **percent: Any) -> Resize:
    """Returns the run on every type, with even use in percent unless `usage` is passed."""
    assert resize_refusal(run, MARKET) is None
    options = {word: percent.pop(word) for word in ("headroom_percent",) if word in percent}
    return resize(run, usage or usage_of(run, **percent), MARKET, **options)


def candidate_on(name: str, result: Resize) -> Candidate:
    """Returns the candidate with this type."""
    return next(candidate for candidate in result.candidates if candidate.type.name == name)


def refusal_of(name: str, result: Resize) -> tuple[Constraint, str]:
    """Returns why a type is refused."""
    refusal = not_none(candidate_on(name, result).refusal)
    return refusal.constraint, refusal.reason


ALMOST_NONE = {"cpu": 2.0, "memory": 2.0}
LITTLE = {"cpu": 10.0, "memory": 10.0, "gpu": 50.0, "gpu_memory": 25.0}


def test_the_demand_is_the_peak_plus_headroom_or_the_work_of_gpus() -> None:
    """10% of 8 vCPU and 32 GiB, each times 1.2; 50% of 1 GPU, 25% of 16 GiB."""
    need = resized(ONE_GPU, **LITTLE).demand
    amounts = (need.vcpu, need.memory_gib, need.gpus, need.gpu_memory_gib)
    assert [round(amount.needed or 0, 6) for amount in amounts] == [0.96, 3.84, 0.5, 4.0]
    assert need.busiest_gpu_share == Decimal("0.5")


def test_the_headroom_is_a_setting() -> None:
    """41% of 16 vCPUs need 7.9 of 8 with 20%. With 60% they need 10.5 of 8, 1.31 times as many."""
    assert candidate_on("ml.c.2xlarge", resized(CPU, cpu=41, memory=2)).refusal is None
    result = resized(CPU, cpu=41, memory=2, headroom_percent=Decimal(60))
    expected_text = "vCPU: 10.5 needed with headroom, 8 offered"
    assert refusal_of("ml.c.2xlarge", result) == (Constraint.VCPU, expected_text)


def test_fewer_vcpus_take_longer_while_more_cores_are_busy() -> None:
    """43% of 16 vCPUs plus a fifth are 8.3 of 8. Without the fifth they fit."""
    takes = not_none(candidate_on("ml.c.2xlarge", resized(CPU, cpu=43, memory=2)).runtime_factor)
    assert (takes.counted, takes.best) == (Decimal("1.0320"), 1)
    assert takes.explanation == (
        "At times the run used more CPU than 8 vCPUs can give with some reserve."
    )
    for percent, held in ((62.5, True), (62.6, False)):  # 10 of 8 vCPUs are 1.25 times as long
        result = resized(CPU, cpu=percent, memory=2, headroom_percent=Decimal(0))
        assert (candidate_on("ml.c.2xlarge", result).refusal is None) is held


@pytest.mark.parametrize(
    ("run", "use", "name", "constraint"),
    [
        # what the run needs (test_moved_run has each resource), and what is sold
        pytest.param(
            ONE_GPU,
            LITTLE | {"gpu_memory": 30},
            "ml.tiny.2xlarge",
            Constraint.GPU_MEMORY,
            id="too little GPU memory",
        ),
        pytest.param(
            ONE_GPU,
            LITTLE,
            "ml.dark.2xlarge",
            Constraint.GPU_MODEL,
            id="a GPU of unknown speed",
        ),
        pytest.param(
            ONE_GPU,
            LITTLE,
            "ml.trn.xlarge",
            Constraint.ACCELERATOR,
            id="another kind of accelerator",
        ),
        pytest.param(
            ONE_GPU, LITTLE, "ml.unpriced.xlarge", Constraint.BILL, id="a type without a price"
        ),
        # neither host memory nor GPU memory was recorded: types with as much of each fit
        pytest.param(
            ONE_GPU,
            {"cpu": 10, "gpu": 10},
            "ml.small.2xlarge",
            None,
            id="neither memory was recorded, and the other type has as much of each",
        ),
        pytest.param(
            ONE_GPU,
            {"cpu": 10, "gpu": 10},
            "ml.small.xlarge",
            Constraint.NOT_RECORDED,
            id="neither memory was recorded, and the other type has less",
        ),
        # one GPU does the work of four at 25% in turn; at 26% it would take twice as long
        pytest.param(
            FOUR_GPUS,
            ALMOST_NONE | {"gpu": 25, "gpu_memory": 2},
            "ml.big.xlarge",
            None,
            id="one GPU does the work of four at 25%, one after the other",
        ),
        pytest.param(
            FOUR_GPUS,
            ALMOST_NONE | {"gpu": 26, "gpu_memory": 2},
            "ml.big.xlarge",
            Constraint.GPUS,
            id="at 26% one GPU would take twice as long",
        ),
        # several instances that may exchange data stay with their GPU; a transform's never do
        pytest.param(
            batch_job(JobKind.TRANSFORM, 3600, "ml.big.xlarge", 2),
            LITTLE | {"gpu": 10},
            "ml.small.2xlarge",
            None,
            id="a transform's instances exchange no data",
        ),
        pytest.param(
            ran(3600, "ml.big.xlarge", 2),
            LITTLE | {"gpu": 10},
            "ml.small.2xlarge",
            Constraint.GPU_MODEL,
            id="several instances that may exchange data stay with their GPU",
        ),
        pytest.param(
            batch_job(JobKind.PROCESSING, 3600, "ml.c.4xlarge"),
            ALMOST_NONE,
            "ml.training.xlarge",
            Constraint.NOT_OFFERED,
            id="a type that is not offered for processing",
        ),
        # whether ml.odd.xlarge has a volume, and a line on the bill, is not known
        pytest.param(
            ran(3600, "ml.big.xlarge"),
            ALMOST_NONE | {"gpu": 0},
            "ml.odd.xlarge",
            Constraint.BILL,
            id="whether a GPU type has a volume on the bill is not known",
        ),
        pytest.param(
            CPU,
            ALMOST_NONE,
            "ml.odd.xlarge",
            Constraint.STORAGE,
            id="whether a CPU type has a volume is not known",
        ),
        pytest.param(
            CPU,
            ALMOST_NONE,
            "ml.c-flex.xlarge",
            Constraint.VCPU,
            id="a flexible type promises no full vCPU",
        ),
        # all 8 vCPU busy: 8 are enough, 4 are not
        pytest.param(
            ran(3600, "ml.c.2xlarge"),
            {"cpu": 100, "memory": 50},
            "ml.other.2xlarge",
            None,
            id="all 8 vCPUs busy, and as many on the other type",
        ),
        pytest.param(
            ran(3600, "ml.c.2xlarge"),
            {"cpu": 100, "memory": 50},
            "ml.c.xlarge",
            Constraint.VCPU,
            id="all 8 vCPUs busy, and 4 on the other type",
        ),
    ],
)
def test_a_type_is_refused_by_its_broken_constraint(
    run: Job, use: dict[str, float], name: str, constraint: Constraint | None
) -> None:
    """By what was used, what is sold, what a bill would lack, and what is unknown."""
    refused = candidate_on(name, resized(run, **use)).refusal
    assert (refused.constraint if refused else None) is constraint


@pytest.mark.parametrize(
    ("kind", "phase", "trial"),
    [(JobKind.TRAINING, "Training", True), (JobKind.PROCESSING, "Processing", False)],
)
def test_instances_that_train_on_parts_of_the_data_move_on_trial_only(
    kind: JobKind, phase: str, trial: bool
) -> None:
    """A script may join them without a sign. Instances that process parts of the data work
    alone.
    """
    parts = (InputChannel("data", DataSource.S3, "File", "ShardedByS3Key"),)
    run = ran(3600, "ml.big.xlarge", 2, kind=kind, phases=phases((phase, 3600)), channels=parts)
    result = candidate_on("ml.small.2xlarge", resized(run, **LITTLE | {"gpu": 10}))
    assert result.refusal is None
    assert result.needs_trial is trial


SPOT = ran(3600, "ml.big.xlarge", volume_gb=0, purchase=Purchase.SPOT, billable_s=Decimal(1200))
BOTH = (InstanceGroup("ml.c.4xlarge", 1, "a"), InstanceGroup("ml.c.4xlarge", 1, "b"))


def assert_bill_on_type(
    *,
    run: Job,
    use: dict[str, float],
    name: str,
    counted: str,
    best: str,
    usd: str | None,
    saves: str | None,
    at_best: str | None,
    break_even: str | None,
) -> None:
    """The slow end of the run time is billed, and the fast end is shown."""
    result = resized(run, **use)
    one = candidate_on(name, result)
    assert one.runtime_factor is not None
    assert (one.runtime_factor.counted, one.runtime_factor.best) == (
        Decimal(counted),
        Decimal(best),
    )
    assert (one.change.instance_type, one.change.time_factor) == (name, Decimal(counted))
    found_result = (
        one.usd,
        result.saving_usd(one),
        result.best_saving_usd(one),
        one.break_even_factor,
    )
    expected = (usd, saves, at_best, break_even)
    assert [None if amount is None else round(amount, 4) for amount in found_result] == [
        None if amount is None else Decimal(amount) for amount in expected
    ]


def test_the_same_gpu_takes_as_long() -> None:
    assert_bill_on_type(
        run=ONE_GPU,
        use=LITTLE,
        name="ml.big.2xlarge",
        counted="1",
        best="1",
        usd="2.50",
        saves="-0.50",
        at_best=None,
        break_even=None,
    )


def test_one_gpu_takes_the_work_of_four_at_20_percent_one_after_the_other() -> None:
    """4 GPUs at 20% on one of them: 1 + 0.2 x 3 times $2.00 of $8.00, or once."""
    assert_bill_on_type(
        run=FOUR_GPUS,
        use=ALMOST_NONE | {"gpu": 20, "gpu_memory": 5},
        name="ml.big.xlarge",
        counted="1.6",
        best="1",
        usd="3.20",
        saves="4.80",
        at_best="6",
        break_even="4",
    )


def test_a_gpu_of_a_fifth_of_the_speed_slows_the_busy_fifth_of_the_time() -> None:
    """Up to 5 times as long: 1 + 0.2 x 4 times $0.80; $2.00 buys 2.5 hours."""
    assert_bill_on_type(
        run=ONE_GPU,
        use=LITTLE | {"gpu": 20},
        name="ml.small.2xlarge",
        counted="1.8",
        best="1",
        usd="1.44",
        saves="0.56",
        at_best="1.20",
        break_even="2.5",
    )


def test_a_stronger_gpu_is_no_faster() -> None:
    """Half the time, 1 + 0.5 x (0.5 - 1), is only the best end."""
    assert_bill_on_type(
        run=ran(3600, "ml.small.2xlarge", volume_gb=0),
        use=LITTLE,
        name="ml.big.xlarge",
        counted="1",
        best="0.75",
        usd="2.00",
        saves="-1.20",
        at_best="-0.70",
        break_even="0.4",
    )


def test_four_copies_slow_down_by_their_busy_share() -> None:
    """Four copies at 10% each: 1 + 0.1 x 4."""
    assert_bill_on_type(
        run=replace(FOUR_GPUS, hints=Hints(distribution="horovod")),
        use=ALMOST_NONE | {"gpu": 10, "gpu_memory": 2},
        name="ml.small.12xlarge",
        counted="1.4",
        best="1",
        usd="5.60",
        saves="2.40",
        at_best="4.00",
        break_even="2",
    )


def test_another_gpu_needs_the_recorded_vcpus_and_not_todays() -> None:
    """10% of 8 are 1 with headroom."""
    assert_bill_on_type(
        run=ONE_GPU,
        use=LITTLE | {"gpu": 10},
        name="ml.small.xlarge",
        counted="1.4",
        best="1",
        usd="0.70",
        saves="1.30",
        at_best="1.50",
        break_even="4",
    )


def test_on_spot_the_billed_seconds_grow_with_the_run_time() -> None:
    """On spot, 1,200 of 3,600 s are billed. 1.8 times as long is 2,160 billed seconds."""
    assert_bill_on_type(
        run=SPOT,
        use=LITTLE | {"gpu": 20},
        name="ml.small.2xlarge",
        counted="1.8",
        best="1",
        usd="0.48",
        saves="0.1867",
        at_best="0.40",
        break_even="2.5",
    )


def test_a_training_plan_saves_no_cash_another_type_is_bought_on_demand_beside_it() -> None:
    assert_bill_on_type(
        run=replace(ONE_GPU, purchase=Purchase.TRAINING_PLAN),
        use=LITTLE | {"gpu": 10},
        name="ml.small.2xlarge",
        counted="1.4",
        best="1",
        usd="1.12",
        saves="-1.12",
        at_best="-0.80",
        break_even="0",
    )


def test_two_groups_of_one_type_are_changed_together() -> None:
    assert_bill_on_type(
        run=ran(3600, groups=BOTH, volume_gb=0),
        use={"cpu": 1, "memory": 2},
        name="ml.c.xlarge",
        counted="1",
        best="1",
        usd="0.40",
        saves="1.20",
        at_best=None,
        break_even=None,
    )


def test_without_todays_price_there_is_a_cost_and_no_saving() -> None:
    # without the current price, or billed seconds, there is no saving
    assert_bill_on_type(
        run=ran(3600, "ml.unpriced.xlarge", volume_gb=0),
        use=ALMOST_NONE,
        name="ml.c.xlarge",
        counted="1",
        best="1",
        usd="0.20",
        saves=None,
        at_best=None,
        break_even=None,
    )


def test_without_billed_seconds_there_is_an_advice_and_no_saving() -> None:
    assert_bill_on_type(
        run=ran(3600, "ml.c.4xlarge", training_s=None, billable_s=None, started_at=None),
        use=ALMOST_NONE,
        name="ml.c.xlarge",
        counted="1",
        best="1",
        usd=None,
        saves=None,
        at_best=None,
        break_even=None,
    )


@pytest.mark.parametrize(
    ("run", "use", "first"),
    [
        # busy for 10%: 1.4 times $0.80 are $1.12 of $2.00; half the vCPUs do not fit 60%
        pytest.param(
            ONE_GPU,
            LITTLE | {"cpu": 60, "gpu": 10},
            "ml.small.2xlarge",
            id=(
                "with half the vCPUs in use the next smaller type comes first, at 1.4 times "
                "$0.80 of $2.00"
            ),
        ),
        pytest.param(
            ONE_GPU,
            LITTLE | {"gpu": 10},
            "ml.small.xlarge",
            id="with few vCPUs in use the smallest type comes first",
        ),
        pytest.param(
            ran(3600, "ml.c.4xlarge", training_s=None, billable_s=None, started_at=None),
            ALMOST_NONE,
            "ml.c.xlarge",
            id="without billed seconds the hourly prices decide",
        ),
        pytest.param(
            replace(ONE_GPU, purchase=Purchase.TRAINING_PLAN),
            LITTLE | {"gpu": 10},
            None,
            id="a training plan saves no cash",
        ),
        pytest.param(
            ran(3600, "ml.unpriced.xlarge", volume_gb=0),
            ALMOST_NONE,
            None,
            id="without today's price nothing is known to save",
        ),
    ],
)
def test_what_certainly_saves_comes_first(
    run: Job, use: dict[str, float], first: str | None
) -> None:
    """It is cheaper per hour, and by the bill as counted."""
    assert (
        next(
            (certain_saving.type.name for certain_saving in resized(run, **use).certain_savings),
            None,
        )
        == first
    )


def test_a_slow_end_that_costs_more_is_no_certain_saving() -> None:
    """1.8 times $1.20 are $2.16 of $2.00, although the fast end is cheaper."""
    dear = Market(TYPES, FixedPrices(hourly_usd=USD | {"ml.small.2xlarge": "1.20"}))
    result = resize(ONE_GPU, usage_of(ONE_GPU, **LITTLE | {"gpu": 20}), dear)
    one = candidate_on("ml.small.2xlarge", result)
    assert (result.saving_usd(one), result.best_saving_usd(one)) == (
        Decimal("-0.16"),
        Decimal("0.80"),
    )
    assert one not in list(result.certain_savings)


def test_a_fitting_type_without_a_price_is_named() -> None:
    """It may be the cheaper one, so no other type is called the cheapest."""
    result = resized(CPU, **ALMOST_NONE)
    assert [item.name for item in result.feasible_unpriced_by_size] == ["ml.unpriced.xlarge"]
    assert resized(CPU, cpu=60, memory=2).feasible_unpriced_by_size == ()
    none = {"ml.unpriced.xlarge": replace(TYPES["ml.unpriced.xlarge"], kinds=frozenset())}
    market = Market(TYPES | none, FixedPrices(hourly_usd=USD))
    assert resize(CPU, usage_of(CPU, **ALMOST_NONE), market).feasible_unpriced_by_size == ()


def test_candidates_are_sorted_by_bill_and_refused_ones_come_last() -> None:
    """The cheapest one that fits is first."""
    result = resized(CPU, **ALMOST_NONE)
    costs = [item.usd for item in result.fitting]
    assert costs == sorted(costs, key=lambda usd: usd or 0)
    assert result.candidates[: len(costs)] == result.fitting
    assert result.fitting[0].type.name == "ml.c.xlarge"
    assert all(item.refusal for item in result.candidates[len(costs) :])


def test_a_transform_job_is_resized_whatever_its_hosts_are_called() -> None:
    """The names of its hosts are instance ids."""
    run = batch_job(JobKind.TRANSFORM, 3600, "ml.c.4xlarge")
    raw = (
        series(metric, [value] * 60, host="train/i-0abc")
        for metric, value in ((Metric.CPU, 40), (Metric.MEMORY, 5))
    )
    result = resized(run, usage(run, *raw, types=TYPES))
    assert result.saving_usd(candidate_on("ml.c.xlarge", result)) == Decimal("0.60")


def test_an_old_generation_is_recommended_only_for_an_old_type() -> None:
    """However cheap it is per hour."""
    old = replace(TYPES["ml.c.xlarge"], name="ml.old.xlarge", family="old", is_legacy=True)
    older = replace(TYPES["ml.c.4xlarge"], is_legacy=True)
    prices = FixedPrices(hourly_usd=USD | {old.name: "0.10"})
    usage = usage_of(CPU, **ALMOST_NONE)
    result = resize(CPU, usage, Market(TYPES | {old.name: old}, prices))
    assert refusal_of(old.name, result)[0] is Constraint.GENERATION
    both = Market(TYPES | {old.name: old, older.name: older}, prices)
    assert next(resize(CPU, usage, both).certain_savings).type.name == old.name


def test_without_any_record_everything_is_refused() -> None:
    """Unrecorded use may be large."""
    result = resized(CPU)
    refused = {
        candidate.refusal.constraint
        for candidate in result.candidates
        if candidate.rate and candidate.refusal
    }
    kinds = (Constraint.NOT_RECORDED, Constraint.ACCELERATOR, Constraint.VCPU, Constraint.STORAGE)
    assert (result.fitting, refused) == ((), {*kinds})


@pytest.mark.parametrize(
    ("seconds", "points", "expected_text"),
    [
        (3600, (41, 60), "68% of the points, 70% needed"),
        (3600, (6, 600), "a point every 600 s hides peaks"),
        (840, (14, 60), "14 active minutes, 15 needed"),
    ],
)
def test_too_few_or_too_coarse_points_do_not_count_as_recorded(
    seconds: int, points: tuple[int, int], expected_text: str
) -> None:
    """Even means of a minute hide peaks."""
    run = ran(seconds, "ml.c.4xlarge", volume_gb=0)
    constraint, reason = refusal_of(
        "ml.c.2xlarge", resized(run, usage_of(run, points, cpu=2, memory=2))
    )
    assert constraint is Constraint.NOT_RECORDED
    assert expected_text in reason


@pytest.mark.parametrize(
    ("changes", "expected_text"),
    [
        ({"status": "InProgress"}, "has not ended"),
        ({"kind": JobKind.TUNING}, "a tuning job has no instances of its own: ask about one"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        ({"region": None}, "region"),
        ({"groups": ()}, "instance type is not known"),
        (
            {"groups": (InstanceGroup("ml.c.xlarge", 1), InstanceGroup("ml.c.2xlarge", 1))},
            "its instances are of several types",
        ),
        ({"groups": (InstanceGroup("ml.new.xlarge", 1),)}, "not in the catalogue"),
        ({"groups": (InstanceGroup("ml.trn.xlarge", 1),)}, "accelerators"),
        (
            {
                "status": "Failed",
                "started_at": None,
                "training_s": None,
                "billable_s": None,
                "phases": (),
            },
            "never started",
        ),
    ],
)
def test_what_cannot_be_resized_says_why(changes: dict[str, Any], expected_text: str) -> None:
    """The reason is one sentence."""
    assert expected_text in (resize_refusal(job("ml.c.4xlarge", **changes), MARKET) or "")


percents = st.floats(0.5, 100, allow_nan=False)


@given(cpu=percents, memory=percents, gpu=percents, gpu_memory=percents)
def test_a_fitting_type_has_enough_for_the_peaks(
    cpu: float, memory: float, gpu: float, gpu_memory: float
) -> None:
    """Both ends are in order, and the counted one is never below the current run time."""
    result = resized(ONE_GPU, cpu=cpu, memory=memory, gpu=gpu, gpu_memory=gpu_memory)
    for item in result.fitting:
        assert item.runtime_factor is not None
        longer = cpu / 100 * 8 * 1.2 / item.type.vcpu if item.type.vcpu < 8 else 1
        assert longer <= min(1.25, float(item.runtime_factor.counted)) + 1e-4
        assert float(item.type.memory_gib) >= min(memory / 100 * 32 * 1.2, 32) - 1e-9
        assert item.runtime_factor.counted >= 1
        assert item.runtime_factor.best <= item.runtime_factor.counted
