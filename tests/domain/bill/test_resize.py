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
from sageaudit.domain.resize.resize import Resize, impossible, resize
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import (
    FixedPrices,
    even_use,
    gpu_type,
    instance_type,
    job,
    known,
    phases,
    ran,
    series,
    usage,
)

pytestmark = pytest.mark.money

RATIOS = tuple(
    GpuRatio("S", "W", one, Decimal(2), Decimal(5), works=8)
    for one in (Precision.HALF, Precision.FP32)
)
"""S was measured to do 2 to 5 times what W does; nobody measured D and T."""


def gpu(name: str, vcpu: int, gpus: int, model: str, **changes: Any) -> InstanceType:
    """16 GiB on each GPU, 4 GiB of memory for each vCPU."""
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
    instance_type("ml.odd.xlarge", 4, 16, ebs_billed=None): "1.00",
}
TYPES = {kind.name: kind for kind in PRICED}
USD = {kind.name: usd for kind, usd in PRICED.items() if usd is not None}
MARKET = Market(TYPES, FixedPrices(hourly_usd=USD))
ONE_GPU = ran(3600, "ml.big.xlarge", volume_gb=0)
FOUR_GPUS = ran(3600, "ml.big.12xlarge", volume_gb=0)
CPU = ran(3600, "ml.c.4xlarge", volume_gb=0)


def used(run: Job, points: tuple[int, int] = (60, 60), /, **percent: float) -> Measurements:
    """So many points of so many seconds, in percent: `cpu`, `memory`, `gpu`, `gpu_memory`."""
    return even_use(run, points, run.instance_count or 0, percent, TYPES).active()


def tried(run: Job, measured: Measurements | None = None, /, **more: Any) -> Resize:
    """The run on every type, with even use in percent unless it is measured."""
    assert impossible(run, MARKET) is None
    options = {word: more.pop(word) for word in ("headroom_percent",) if word in more}
    return resize(run, measured or used(run, **more), MARKET, **options)


def on(name: str, done: Resize) -> Candidate:
    """One of its candidates."""
    return next(one for one in done.candidates if one.type.name == name)


def why(name: str, done: Resize) -> tuple[Constraint, str]:
    """What refuses a type."""
    refused = known(on(name, done).refused)
    return refused.constraint, refused.reason


ALMOST_NONE = {"cpu": 2.0, "memory": 2.0}
LITTLE = {"cpu": 10.0, "memory": 10.0, "gpu": 50.0, "gpu_memory": 25.0}


def test_needs_of_the_host_are_the_peak_plus_headroom_and_those_of_its_gpus_what_was_used() -> None:
    """10% of 8 vCPU and 32 GiB, each times 1.2; 50% of 1 GPU, 25% of 16 GiB."""
    need = tried(ONE_GPU, **LITTLE).need
    amounts = (need.vcpu, need.memory_gib, need.gpus, need.gpu_memory_gib)
    assert [round(one.needed or 0, 6) for one in amounts] == [0.96, 3.84, 0.5, 4.0]
    assert need.gpu_busy == Decimal("0.5")


def test_the_headroom_is_a_setting() -> None:
    """41% of 16 vCPUs need 7.9 of 8 with 20%, and 10.5 of 8, 1.31 times as many, with 60%."""
    assert on("ml.c.2xlarge", tried(CPU, cpu=41, memory=2)).refused is None
    done = tried(CPU, cpu=41, memory=2, headroom_percent=Decimal(60))
    says = "vCPU: 10.5 needed with headroom, 8 offered"
    assert why("ml.c.2xlarge", done) == (Constraint.VCPU, says)


def test_fewer_vcpus_take_longer_where_more_cores_were_busy() -> None:
    """43% of 16 vCPUs are 8.3 of 8 with a fifth above; without it they fit."""
    takes = known(on("ml.c.2xlarge", tried(CPU, cpu=43, memory=2)).takes)
    assert (takes.counted, takes.best) == (Decimal("1.0320"), 1)
    assert takes.because == ("At times more cores were busy than 8 vCPUs hold with headroom.")
    for percent, held in ((62.5, True), (62.6, False)):  # 10 of 8 vCPUs are 1.25 times as long
        done = tried(CPU, cpu=percent, memory=2, headroom_percent=Decimal(0))
        assert (on("ml.c.2xlarge", done).refused is None) is held


@pytest.mark.parametrize(
    ("run", "use", "name", "constraint"),
    [
        # what the run needs (test_moved_run has each resource), and what is sold
        (ONE_GPU, LITTLE | {"gpu_memory": 30}, "ml.tiny.2xlarge", Constraint.GPU_MEMORY),
        (ONE_GPU, LITTLE, "ml.dark.2xlarge", Constraint.GPU_MODEL),
        (ONE_GPU, LITTLE, "ml.trn.xlarge", Constraint.ACCELERATOR),
        (ONE_GPU, LITTLE, "ml.unpriced.xlarge", Constraint.BILL),
        # neither host memory nor GPU memory was recorded: types with as much of each hold them
        (ONE_GPU, {"cpu": 10, "gpu": 10}, "ml.small.2xlarge", None),
        (ONE_GPU, {"cpu": 10, "gpu": 10}, "ml.small.xlarge", Constraint.NOT_RECORDED),
        # one GPU holds four at 25%, one after the other; at 26% it would take twice as long
        (FOUR_GPUS, ALMOST_NONE | {"gpu": 25, "gpu_memory": 2}, "ml.big.xlarge", None),
        (FOUR_GPUS, ALMOST_NONE | {"gpu": 26, "gpu_memory": 2}, "ml.big.xlarge", Constraint.GPUS),
        # several instances that may exchange data stay with their GPU; a transform's never do
        (ran(3600, "ml.big.xlarge", 2, kind=JobKind.TRANSFORM, phases=phases(("Transform", 3600))),
         LITTLE | {"gpu": 10}, "ml.small.2xlarge", None),
        (ran(3600, "ml.big.xlarge", 2), LITTLE | {"gpu": 10}, "ml.small.2xlarge",
         Constraint.GPU_MODEL),
        (ran(3600, "ml.c.4xlarge", kind=JobKind.PROCESSING, phases=phases(("Processing", 3600))),
         ALMOST_NONE, "ml.training.xlarge", Constraint.NOT_OFFERED),
        # whether ml.odd.xlarge has a volume, and a line on the bill, is not known
        (ran(3600, "ml.big.xlarge"), ALMOST_NONE | {"gpu": 0}, "ml.odd.xlarge", Constraint.BILL),
        (CPU, ALMOST_NONE, "ml.odd.xlarge", Constraint.STORAGE),
        (CPU, ALMOST_NONE, "ml.c-flex.xlarge", Constraint.VCPU),
        # all 8 vCPU busy: 8 hold it as well as today, 4 do not
        (ran(3600, "ml.c.2xlarge"), {"cpu": 100, "memory": 50}, "ml.other.2xlarge", None),
        (ran(3600, "ml.c.2xlarge"), {"cpu": 100, "memory": 50}, "ml.c.xlarge", Constraint.VCPU),
    ],
)  # fmt: skip
def test_a_type_is_refused_by_what_binds(
    run: Job, use: dict[str, float], name: str, constraint: Constraint | None
) -> None:
    """What was used, what is sold, what a bill would lack, and what nobody knows."""
    refused = on(name, tried(run, **use)).refused
    assert (refused.constraint if refused else None) is constraint


@pytest.mark.parametrize(
    ("kind", "phase", "trial"),
    [(JobKind.TRAINING, "Training", True), (JobKind.PROCESSING, "Processing", False)],
)
def test_instances_that_train_on_parts_of_the_data_move_on_trial_only(
    kind: JobKind, phase: str, trial: bool
) -> None:
    """A script may join them without a sign; instances that process parts work apart."""
    parts = (InputChannel("data", DataSource.S3, "File", "ShardedByS3Key"),)
    run = ran(3600, "ml.big.xlarge", 2, kind=kind, phases=phases((phase, 3600)), channels=parts)
    found = on("ml.small.2xlarge", tried(run, **LITTLE | {"gpu": 10}))
    assert found.refused is None
    assert found.on_trial is trial


SPOT = ran(3600, "ml.big.xlarge", volume_gb=0, purchase=Purchase.SPOT, billable_s=Decimal(1200))
BOTH = (InstanceGroup("ml.c.4xlarge", 1, "a"), InstanceGroup("ml.c.4xlarge", 1, "b"))


@pytest.mark.parametrize(
    ("run", "use", "name", "counted", "best", "usd", "saves", "at_best", "break_even"),
    [
        # the same GPU takes as long
        (ONE_GPU, LITTLE, "ml.big.2xlarge", "1", "1", "2.50", "-0.50", None, None),
        # 4 GPUs at 20% on one of them: 1 + 0.2 x 3 times $2.00 of $8.00, or once
        (FOUR_GPUS, ALMOST_NONE | {"gpu": 20, "gpu_memory": 5}, "ml.big.xlarge",
         "1.6", "1", "3.20", "4.80", "6", "4"),
        # up to 5 times; busy for a fifth of the time: 1 + 0.2 x 4 times $0.80; $2.00 buys 2.5 hours
        (ONE_GPU, LITTLE | {"gpu": 20}, "ml.small.2xlarge",
         "1.8", "1", "1.44", "0.56", "1.20", "2.5"),
        # a stronger GPU is no faster: half the time at worst, 1 + 0.5 x (0.5 - 1), is the best end
        (ran(3600, "ml.small.2xlarge", volume_gb=0), LITTLE, "ml.big.xlarge",
         "1", "0.75", "2.00", "-1.20", "-0.70", "0.4"),
        # four copies at 10% each: 1 + 0.1 x 4
        (replace(FOUR_GPUS, hints=Hints(distribution="horovod")),
         ALMOST_NONE | {"gpu": 10, "gpu_memory": 2}, "ml.small.12xlarge",
         "1.4", "1", "5.60", "2.40", "4.00", "2"),
        # another GPU needs the recorded vCPUs and not today's: 10% of 8 are 1 with headroom
        (ONE_GPU, LITTLE | {"gpu": 10}, "ml.small.xlarge",
         "1.4", "1", "0.70", "1.30", "1.50", "4"),
        # on spot, 1,200 of 3,600 s billed: 1.8 times as long is 2,160 billed seconds
        (SPOT, LITTLE | {"gpu": 20}, "ml.small.2xlarge",
         "1.8", "1", "0.48", "0.1867", "0.40", "2.5"),
        # a training plan saves no cash: another type is bought on demand beside it
        (replace(ONE_GPU, purchase=Purchase.TRAINING_PLAN), LITTLE | {"gpu": 10},
         "ml.small.2xlarge", "1.4", "1", "1.12", "-1.12", "-0.80", "0"),
        # two groups of one type are changed together
        (ran(3600, groups=BOTH, volume_gb=0), {"cpu": 1, "memory": 2}, "ml.c.xlarge",
         "1", "1", "0.40", "1.20", None, None),
        # without today's price, or billed seconds, there is a cost or an advice and no saving
        (ran(3600, "ml.unpriced.xlarge", volume_gb=0), ALMOST_NONE, "ml.c.xlarge",
         "1", "1", "0.20", None, None, None),
        (ran(3600, "ml.c.4xlarge", training_s=None, billable_s=None, started_at=None),
         ALMOST_NONE, "ml.c.xlarge", "1", "1", None, None, None, None),
    ],
)  # fmt: skip
def test_the_slow_end_is_billed_and_the_fast_end_is_shown(
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
    """By hand, in USD; the break-even is the time that today's bill buys."""
    done = tried(run, **use)
    one = on(name, done)
    assert one.takes is not None
    assert (one.takes.counted, one.takes.best) == (Decimal(counted), Decimal(best))
    assert (one.change.instance_type, one.change.slower) == (name, Decimal(counted))
    found = (one.usd, done.saves(one), done.saves_at_best(one), one.break_even)
    expected = (usd, saves, at_best, break_even)
    assert [None if amount is None else round(amount, 4) for amount in found] == [
        None if amount is None else Decimal(amount) for amount in expected
    ]


@pytest.mark.parametrize(
    ("run", "use", "first"),
    [
        # busy for 10%: 1.4 times $0.80 are $1.12 of $2.00; half the vCPUs would not hold 60%
        (ONE_GPU, LITTLE | {"cpu": 60, "gpu": 10}, "ml.small.2xlarge"),
        (ONE_GPU, LITTLE | {"gpu": 10}, "ml.small.xlarge"),
        # without billed seconds the hourly prices decide
        (ran(3600, "ml.c.4xlarge", training_s=None, billable_s=None, started_at=None),
         ALMOST_NONE, "ml.c.xlarge"),
        (replace(ONE_GPU, purchase=Purchase.TRAINING_PLAN), LITTLE | {"gpu": 10}, None),
        (ran(3600, "ml.unpriced.xlarge", volume_gb=0), ALMOST_NONE, None),
    ],
)  # fmt: skip
def test_what_certainly_saves_comes_first(
    run: Job, use: dict[str, float], first: str | None
) -> None:
    """Cheaper by the hour and by the bill as counted."""
    assert next((one.type.name for one in tried(run, **use).certain), None) == first


def test_a_slow_end_that_costs_more_is_no_certain_saving() -> None:
    """1.8 times $1.20 are $2.16 of $2.00, however little the fast end costs."""
    dear = Market(TYPES, FixedPrices(hourly_usd=USD | {"ml.small.2xlarge": "1.20"}))
    done = resize(ONE_GPU, used(ONE_GPU, **LITTLE | {"gpu": 20}), dear)
    one = on("ml.small.2xlarge", done)
    assert (done.saves(one), done.saves_at_best(one)) == (Decimal("-0.16"), Decimal("0.80"))
    assert one not in list(done.certain)


def test_a_type_without_a_price_that_would_hold_the_run_is_known_by_name() -> None:
    """It may be the cheaper one: nothing is the smallest or cheapest beside it."""
    done = tried(CPU, **ALMOST_NONE)
    assert [other.name for other in done.not_compared] == ["ml.unpriced.xlarge"]
    assert tried(CPU, cpu=60, memory=2).not_compared == ()
    none = {"ml.unpriced.xlarge": replace(TYPES["ml.unpriced.xlarge"], kinds=frozenset())}
    market = Market(TYPES | none, FixedPrices(hourly_usd=USD))
    assert resize(CPU, used(CPU, **ALMOST_NONE), market).not_compared == ()


def test_candidates_come_by_their_bill_and_the_refused_after_them() -> None:
    """The cheapest that fits is first."""
    done = tried(CPU, **ALMOST_NONE)
    costs = [one.usd for one in done.fitting]
    assert costs == sorted(costs, key=lambda usd: usd or 0)
    assert done.candidates[: len(costs)] == done.fitting
    assert done.fitting[0].type.name == "ml.c.xlarge"
    assert all(one.refused for one in done.candidates[len(costs) :])


def test_a_transform_job_is_resized_by_whatever_its_hosts_are_called() -> None:
    """Their names are instance ids."""
    run = ran(3600, "ml.c.4xlarge", kind=JobKind.TRANSFORM, phases=phases(("Transform", 3600)),
              billable_s=None)  # fmt: skip
    raw = (series(metric, [value] * 60, host="train/i-0abc")
           for metric, value in ((Metric.CPU, 40), (Metric.MEMORY, 5)))  # fmt: skip
    done = tried(run, usage(run, *raw, types=TYPES))
    assert done.saves(on("ml.c.xlarge", done)) == Decimal("0.60")


def test_an_old_generation_is_advised_only_for_one_of_its_own_age() -> None:
    """However cheap it is by the hour."""
    old = replace(TYPES["ml.c.xlarge"], name="ml.old.xlarge", family="old", legacy=True)
    older = replace(TYPES["ml.c.4xlarge"], legacy=True)
    prices = FixedPrices(hourly_usd=USD | {old.name: "0.10"})
    measured = used(CPU, **ALMOST_NONE)
    done = resize(CPU, measured, Market(TYPES | {old.name: old}, prices))
    assert why(old.name, done)[0] is Constraint.GENERATION
    both = Market(TYPES | {old.name: old, older.name: older}, prices)
    assert next(resize(CPU, measured, both).certain).type.name == old.name


def test_without_any_record_everything_is_refused() -> None:
    """Not recorded is not little."""
    done = tried(CPU)
    refused = {one.refused.constraint for one in done.candidates if one.rate and one.refused}
    kinds = (Constraint.NOT_RECORDED, Constraint.ACCELERATOR, Constraint.VCPU, Constraint.STORAGE)
    assert (done.fitting, refused) == ((), {*kinds})


@pytest.mark.parametrize(
    ("seconds", "points", "says"),
    [
        (3600, (41, 60), "68% of the points, 70% needed"),
        (3600, (6, 600), "a point every 600 s hides peaks"),
        (840, (14, 60), "14 active minutes, 15 needed"),
    ],
)
def test_too_few_or_too_coarse_points_are_no_record(
    seconds: int, points: tuple[int, int], says: str
) -> None:
    """Minute means hide peaks as it is."""
    run = ran(seconds, "ml.c.4xlarge", volume_gb=0)
    constraint, reason = why("ml.c.2xlarge", tried(run, used(run, points, cpu=2, memory=2)))
    assert constraint is Constraint.NOT_RECORDED
    assert says in reason


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"status": "InProgress"}, "has not ended"),
        ({"kind": JobKind.TUNING}, "a tuning job has no instances of its own: ask about one"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        ({"region": None}, "region"),
        ({"groups": ()}, "instance type is not known"),
        ({"groups": (InstanceGroup("ml.c.xlarge", 1), InstanceGroup("ml.c.2xlarge", 1))},
         "its instances are of several types"),
        ({"groups": (InstanceGroup("ml.new.xlarge", 1),)}, "not in the catalogue"),
        ({"groups": (InstanceGroup("ml.trn.xlarge", 1),)}, "accelerators"),
        ({"status": "Failed", "started_at": None, "training_s": None, "billable_s": None,
         "phases": ()}, "never started"),
    ],
)  # fmt: skip
def test_what_cannot_be_resized_says_why(changes: dict[str, Any], says: str) -> None:
    """One sentence each."""
    assert says in (impossible(job("ml.c.4xlarge", **changes), MARKET) or "")


percents = st.floats(0.5, 100, allow_nan=False)


@given(cpu=percents, memory=percents, gpu=percents, gpu_memory=percents)
def test_whatever_fits_holds_the_peaks_or_all_that_there_was(
    cpu: float, memory: float, gpu: float, gpu_memory: float
) -> None:
    """And its two ends lie in order, with the counted one never above today's share of time."""
    done = tried(ONE_GPU, cpu=cpu, memory=memory, gpu=gpu, gpu_memory=gpu_memory)
    for one in done.fitting:
        assert one.takes is not None
        longer = cpu / 100 * 8 * 1.2 / one.type.vcpu if one.type.vcpu < 8 else 1
        assert longer <= min(1.25, float(one.takes.counted)) + 1e-4
        assert float(one.type.memory_gib) >= min(memory / 100 * 32 * 1.2, 32) - 1e-9
        assert one.takes.counted >= 1
        assert one.takes.best <= one.takes.counted
