"""Whether another type holds a run and how long it takes there, computed by hand and as laws."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.hints import DISTRIBUTIONS
from sageaudit.domain.job.job import Hints
from sageaudit.domain.prices.market import GpuPeaks, GpuRatio, InstanceType, Precision
from sageaudit.domain.resize.candidate import (
    MAX_RUNTIME_FACTOR,
    Constraint,
    RuntimeFactor,
    TypeRefusal,
)
from sageaudit.domain.resize.fit import type_class_refusal
from sageaudit.domain.resize.moved_run import RuntimeOnType
from sageaudit.domain.usage.demand import Demand, demand
from sageaudit.domain.usage.measurements import Metric
from sageaudit.structs import replace
from tests.fakes.jobs import Points, gpu_type, instance_type, ran, series, usage

pytestmark = pytest.mark.money

QUIET = {"gpu": 10.0, "gpu_memory": 10.0, "cpu": 5.0, "memory": 5.0}
"""Percent of all there is."""


def half(times_high: str = "2", precision: Precision | None = None) -> tuple[GpuRatio, ...]:
    """S does half as much again to `times_high` times what W does, in both usual classes."""
    classes = (Precision.HALF, Precision.FP32) if precision is None else (precision,)
    return tuple(
        GpuRatio("S", "W", one, Decimal("1.5"), Decimal(times_high), works=3) for one in classes
    )


def machine(
    gpus: int, model: str = "S", *, gib: int = 16, ratios: tuple[GpuRatio, ...] | None = None
) -> InstanceType:
    """48 vCPUs, 192 GiB and so many GPUs; S and W were measured, unless said otherwise."""
    plain = gpu_type(f"ml.{model.lower()}{gib}.{gpus}xlarge", 48, 192, gpus, model)
    return replace(
        plain, gpu_memory_gib=Decimal(gib), gpu_ratios=half() if ratios is None else ratios
    )


def need_of(today: InstanceType, *gpus: Points, **percent: float) -> Demand:
    """An hour: the sum of each host's GPUs by minute, and even use; what is negative is unknown."""
    times = {"cpu": today.vcpu, "gpu": today.gpus, "gpu_memory": today.gpus}
    hosts = max(len(gpus), 1)
    raw = []
    for number in range(1, hosts + 1):
        use: dict[str, Points] = {
            word: [value * times.get(word, 1)] * 60
            for word, value in (QUIET | percent).items()
            if value >= 0 and (today.gpus or not word.startswith("gpu"))
        }
        if gpus:
            use["gpu"] = gpus[number - 1]
        raw += [
            series(Metric[word.upper()], values, host=f"train/algo-{number}")
            for word, values in use.items()
        ]
    measured = usage(ran(3600, today.name, hosts), *raw, types={today.name: today})
    return demand(measured, today, Decimal(20))


def moved(
    today: InstanceType, other: InstanceType, need: Demand, hosts: int = 1, **hints: Any
) -> RuntimeOnType:
    """The run on the other type."""
    job = ran(3600, today.name, hosts, volume_gb=0, hints=Hints(**hints))
    return RuntimeOnType(job, today, need, Decimal(20), other)


def broken(today: InstanceType, other: InstanceType, need: Demand, **hints: Any) -> Any:
    """Which constraint keeps the other type from holding the run; None where it holds it."""
    refused = not_held(moved(today, other, need, **hints))
    return refused.constraint if refused else None


def not_held(run: RuntimeOnType) -> TypeRefusal | None:
    """By what the types are, else by what the run needs."""
    return type_class_refusal(run.current_type, run.other_type) or run.size_refusal()


def times(today: InstanceType, other: InstanceType, *hosts: Points, **hints: Any) -> RuntimeFactor:
    """How long it takes; fails where it is refused."""
    found = moved(
        today, other, need_of(today, *hosts), len(hosts), **hints
    ).unchecked_runtime_factor()
    assert isinstance(found, RuntimeFactor), found
    assert found.best <= found.counted
    return found


def refused(today: InstanceType, other: InstanceType, percent: float, **hints: Any) -> TypeRefusal:
    """Why the run time is not bounded, where the GPU is busy for so much of the time."""
    found = moved(today, other, need_of(today, gpu=percent), **hints).unchecked_runtime_factor()
    assert isinstance(found, TypeRefusal)
    return found


@pytest.mark.parametrize(
    ("word", "constraint"),
    [
        ("cpu", Constraint.VCPU),
        ("memory", Constraint.MEMORY),
        ("gpu", Constraint.GPUS),
        ("gpu_memory", Constraint.GPU_MEMORY),
    ],
)
def test_what_does_not_shrink_holds_recorded_or_not(word: str, constraint: Constraint) -> None:
    """The run had no more of it; where it shrinks, what nobody recorded is refused."""
    four = machine(4)
    same = replace(four, name="ml.same.4xlarge")
    less = replace(four, name="ml.less", vcpu=8, memory_gib=Decimal(32), gpus=1)
    full, dark = need_of(four, **{word: 100.0}), need_of(four, **{word: -1.0})
    assert broken(four, same, full) is None
    assert broken(four, same, dark) is None
    assert broken(four, less, full) is constraint
    assert broken(four, less, dark) is Constraint.NOT_RECORDED


M5, SMALL_M5 = instance_type("ml.m5.4xlarge", 16, 64), instance_type("ml.m5.xlarge", 4, 16)


@pytest.mark.parametrize(
    ("today", "changes", "percent", "constraint", "says"),
    [
        pytest.param(
            M5,
            {},
            {"memory": -1, "cpu": 90},
            Constraint.VCPU,
            "vCPU: 17.3 needed with headroom, 4 offered",
            id="what is certainly broken comes before what was not recorded",
        ),
        pytest.param(
            M5,
            {},
            {"memory": 60},
            Constraint.MEMORY,
            "host memory: 46.1 GiB needed with headroom, 16 GiB offered",
            id="too little memory",
        ),
        pytest.param(
            M5,
            {},
            {"memory": -1},
            Constraint.NOT_RECORDED,
            "the host memory used is not known (no points)",
            id="memory that was not recorded",
        ),
        pytest.param(
            M5,
            {"accelerator": "neuron"},
            {},
            Constraint.ACCELERATOR,
            "ml.m5.xlarge has no GPU and needs other code",
            id="an accelerator needs other code",
        ),
        pytest.param(
            M5,
            {"is_legacy": True, "family": "old"},
            {},
            Constraint.GENERATION,
            "old is an older generation than m5",
            id="an older generation",
        ),
        pytest.param(
            replace(M5, is_legacy=True),
            {"is_legacy": True},
            {},
            None,
            "",
            id="from one old generation to another",
        ),
        pytest.param(
            M5,
            {"family": "m4"},
            {},
            Constraint.GENERATION,
            "a vCPU of m4 is older than one of m5, and may be slower",
            id="an older vcpu",
        ),
        pytest.param(
            replace(M5, family="c"),
            {"family": "t3"},
            {},
            Constraint.VCPU,
            "t3 is burstable or flexible: its full vCPU is not guaranteed",
            id="a burstable type",
        ),
        pytest.param(
            M5,
            {"family": "m7i-flex"},
            {},
            Constraint.VCPU,
            "m7i-flex is burstable or flexible: its full vCPU is not guaranteed",
            id="a flexible type",
        ),
        pytest.param(
            M5,
            {"is_ebs_billed": False, "family": "m5d"},
            {},
            Constraint.STORAGE,
            "m5 and m5d keep data on different kinds of disk",
            id="a local disk is faster than ebs and gone with the instance",
        ),
        pytest.param(
            M5,
            {"is_ebs_billed": None, "family": "m5d"},
            {},
            Constraint.STORAGE,
            "whether m5 and m5d keep data alike is not known",
            id="nobody knows on which disk the other type keeps data",
        ),
    ],
)
def test_a_cpu_run_is_refused_by_the_first_constraint_that_binds(
    today: InstanceType,
    changes: dict[str, Any],
    percent: dict[str, float],
    constraint: Constraint | None,
    says: str,
) -> None:
    """A CPU run is refused by the first constraint that binds, with its numbers."""
    other = replace(SMALL_M5, **changes)
    found = not_held(moved(today, other, need_of(today, **percent)))
    assert (found and found.constraint, found.reason if found else "") == (constraint, says)


NO_GPU = instance_type("ml.m5.12xlarge", 48, 192)


def test_a_smaller_disk_of_its_own_must_hold_what_was_on_the_larger_one() -> None:
    """80% of 900 GB with headroom are 864 GB; a volume is as large as the request says."""
    today, other = (replace(machine(1), local_gb=gb) for gb in (900, 600))
    refused = not_held(moved(today, other, need_of(today, disk=80)))
    assert refused
    assert refused.reason == "disk: 864 GB needed with headroom, 600 GB offered"
    assert broken(today, other, need_of(today, disk=55)) is None
    assert broken(today, other, need_of(today)) is None
    assert broken(today, replace(other, local_gb=None), need_of(today, disk=80)) is None


@pytest.mark.parametrize(
    ("distribution", "slow"), [(None, "1.0000"), *((word, "1.4850") for word in DISTRIBUTIONS)]
)
def test_a_job_that_is_distributed_shares_the_work(distribution: str | None, slow: str) -> None:
    """Two GPUs at 97% of one together: one did it all, but not where the job says otherwise.

    A parameter server may use one GPU of a host, or all of them.
    """
    two = [96.0, 98.0] * 30
    takes = times(machine(2), machine(1), two, distribution=distribution)
    assert takes.counted == Decimal(slow)
    assert takes.trial is (distribution not in {None, "parameter_server"})
    assert (f"does a part of the work ({distribution})" in takes.explanation) is takes.trial
    assert ("one of them did the work" in takes.explanation) is (distribution is None)


@pytest.mark.parametrize(
    ("other", "gpus", "percent", "constraint"),
    [
        # without headroom: GPUs that share work take longer and do not fail
        (machine(1), (), {"gpu": 25}, None),
        (machine(1), (), {"gpu": 25.3}, Constraint.GPUS),
        (machine(2), (), {"gpu": 50}, None),
        (machine(2), (), {"gpu": 50.1}, Constraint.GPUS),
        # a peak takes time: half of the minutes at 200% of 400, the others at nothing
        (machine(1), ([200.0, 0.0] * 30,), {}, None),
        # up to 1% of one GPU, of all four together: no GPU is needed, nor its memory
        (NO_GPU, (), {"gpu": 0.25, "gpu_memory": 90}, None),
        (NO_GPU, (), {"gpu": 0.26, "gpu_memory": 0}, Constraint.GPUS),
    ],
)
def test_gpus_hold_the_mean_work_of_four(
    other: InstanceType,
    gpus: tuple[Points, ...],
    percent: dict[str, float],
    constraint: Constraint | None,
) -> None:
    """An idle GPU holds nothing."""
    assert broken(machine(4), other, need_of(machine(4), *gpus, **percent)) is constraint


@pytest.mark.parametrize(
    ("today", "other", "percent", "says"),
    [
        # of 64 GiB: 14.1 lie on one of the same size, 14.7 do not, with a tenth above
        (machine(4), machine(1), 22, None),
        (machine(4), machine(1), 23, "GPU memory: 16.2 GiB needed, 16 GiB offered"),
        # more than one holds is spread evenly: 2 x 7.2 x 1.1, and 2 x 7.4 x 1.1
        (machine(4), machine(2), 45, None),
        (machine(4), machine(2), 46, "GPU memory: 16.2 GiB needed, 16 GiB offered"),
        # as many of the same or a larger size hold what they held
        (machine(4), machine(4, gib=24), 100, None),
        (machine(1), machine(1, gib=24), 100, None),
        # smaller ones: all of it may lie on one, with headroom: 6.4 x 1.1, and 7.7 x 1.1
        (machine(4), machine(4, gib=8), 10, None),
        (machine(4), machine(4, gib=8), 12, "GPU memory: 8.4 GiB needed, 8 GiB offered"),
        (machine(1), machine(1, gib=8), 45, None),
        (machine(1), machine(1, gib=8), 46, "GPU memory: 8.1 GiB needed, 8 GiB offered"),
        # never more than one had: 16 of 16
        (machine(4), machine(4, gib=15), 90, "GPU memory: 16.0 GiB needed, 15 GiB offered"),
    ],
)
def test_gpu_memory_may_all_lie_on_one_gpu(
    today: InstanceType, other: InstanceType, percent: float, says: str | None
) -> None:
    """CloudWatch has only the sum."""
    found = not_held(moved(today, other, need_of(today, gpu_memory=percent)))
    assert (found.reason if found else None) == says


@pytest.mark.parametrize(
    ("distribution", "percent", "gib", "constraint"),
    [
        # 60% of each of four GPUs is one copy, and one GPU needs one
        ("horovod", 60, 16, None),
        ("mirrored", 60, 16, None),
        *((word, 60, 16, Constraint.GPU_MEMORY) for word in (None, "ddp", "smddp", "fsdp", "smp")),
        # a launcher's name does not say on how many GPUs there is one: all may lie on one of them
        ("horovod", 60, 15, Constraint.GPU_MEMORY),
        ("horovod", 100, 16, None),
        # each GPU held its own, however full it was
        ("horovod", -1, 16, None),
        ("horovod", -1, 8, Constraint.NOT_RECORDED),
    ],
)
def test_copies_of_data_parallel_work_do_not_add_up(
    distribution: str | None, percent: float, gib: int, constraint: Constraint | None
) -> None:
    """Four GPUs become one; whatever is no copy would need all."""
    four, need = machine(4), need_of(machine(4), gpu_memory=percent)
    assert broken(four, machine(1, gib=gib), need, distribution=distribution) is constraint


TWICE = tuple(replace(row, times_low=Decimal(2)) for row in half())


@pytest.mark.parametrize(
    ("today", "other", "sums", "counted"),
    [
        # one at its limit: 95 of 400 is one GPU at work; 80 may be four at 20
        (machine(4), machine(1), [95], "1"),
        (machine(4), machine(1), [80], "1.6"),
        (machine(4), machine(2), [80], "1.2"),
        (machine(4), machine(1), [20], "1.15"),
        (machine(8), machine(1), [80], "1.7"),
        (machine(8), machine(4), [400], "1.5"),
        (machine(8), machine(2), [200], "1.75"),
        (machine(4), machine(1), [100], "1"),
        # as many, or more: nothing is shared
        (machine(4), machine(4), [380], "1"),
        (machine(1), machine(4), [95], "1"),
        # P95 of 90 and more, and no minute above 101: one minute more and several were at work
        (machine(4), machine(1), [90], "1"),
        (machine(4), machine(1), [89.9], "1.6744"),
        (machine(4), machine(1), [95] * 59 + [101], "1"),
        (machine(4), machine(1), [95] * 59 + [102], "1.7134"),
        # 95% of the time at half the strength, and not 1 + 0.2375 x (2 x 4 - 1)
        (machine(4), machine(1, "W"), [95], "1.95"),
        # four at 10% on one that is half as strong: 1 + 0.1 x (2 x 4 - 1)
        (machine(4), machine(1, "W"), [40], "1.7"),
        # four at 40% on two that do 1.5 times as much each at least: 1 + 0.4 x (2 / 1.5 - 1)
        (machine(4, "W"), machine(2), [160], "1.1334"),
        (machine(4, "W", ratios=TWICE), machine(2), [160], "1"),
        # one GPU at 100% that takes up to twice as long is just in
        (machine(1), machine(1, "W"), [100], "2"),
    ],
)
def test_gpus_that_are_fewer_or_weaker_take_up_to_their_work_longer(
    today: InstanceType, other: InstanceType, sums: list[float], counted: str
) -> None:
    """1 + u (r n / m - 1), u the mean of each of n on m; 1 where one of them did all the work."""
    found = times(today, other, [float(value) for value in sums] * (60 // len(sums)))
    assert found.counted == Decimal(counted)


def test_the_slowest_host_decides() -> None:
    """Two hosts at 10% and at 20% of four GPUs each."""
    assert times(machine(4), machine(1), [40.0] * 60, [80.0] * 60).counted == Decimal("1.6")


RANGE = "W took 1.50 to {} times as long as S on {} measured training workloads"
WIDEST = "(the widest range of 16-bit and FP32, as the run's precision is not known)"


def test_a_run_that_may_take_more_than_twice_as_long_is_refused() -> None:
    """A little more than twice; unrecorded GPUs count as busy all the time."""
    found = refused(machine(1, ratios=half("2.01")), machine(1, "W"), 100)
    assert found.constraint is Constraint.RUN_TIME
    assert found.reason.startswith(f"it may take 2.0 times as long: {RANGE.format('2.01', 6)}")
    dark = need_of(machine(1), gpu=-1)
    known = moved(machine(1), machine(1, "W"), dark).unchecked_runtime_factor()
    assert isinstance(known, RuntimeFactor)
    says = "how busy it was is not known, so it is counted as always busy."
    assert (known.counted, known.explanation) == (2, f"{RANGE.format('2.00', 6)} {WIDEST}; {says}")
    found = refused(machine(1, ratios=half("2.01")), machine(1, "W"), -1)
    assert found.constraint is Constraint.NOT_RECORDED


def sheet(fp32: int, fp16: int, gb_s: int) -> GpuPeaks:
    """A data sheet; TF32 is as good as 16 bits."""
    figures = (Decimal(fp32), Decimal(fp16), Decimal(fp16), Decimal(gb_s))
    return GpuPeaks(*figures, Decimal("8.6"), "made up")


def with_sheet(row: InstanceType, *figures: int) -> InstanceType:
    """The type with a data sheet."""
    return replace(row, gpu_peaks=sheet(*figures))


@pytest.mark.parametrize(
    ("today", "other", "hints", "says"),
    [
        pytest.param(
            machine(1, "A10G"),
            machine(1, "T4"),
            {"flash_attention": True},
            "the run uses FlashAttention: the T4 is too old for it",
            id="no throughput tells how long flashattention takes where it does not run",
        ),
        # data sheets stand beside the refusal; they are no ratio
        pytest.param(
            machine(1),
            machine(1, "D"),
            {},
            "no training work measured on both S and D in 16-bit or FP32 is known; "
            "the precision of the run is not known",
            id="without a measured ratio and without data sheets",
        ),
        pytest.param(
            with_sheet(machine(1), 20, 80, 600),
            with_sheet(machine(1, "D"), 10, 40, 300),
            {},
            "no training work measured on both S and D in 16-bit or FP32 is known; the "
            "precision of "
            "the run is not known (data sheets: 80 and 40 TFLOPS in 16 bits, 600 and 300 GB/s)",
            id="data sheets stand beside the refusal as they are no ratio",
        ),
        # each class that the run may be in must be measured
        pytest.param(
            machine(1, ratios=half(precision=Precision.HALF)),
            machine(1, "W"),
            {},
            "no training work measured on both S and W in FP32 is known; "
            "the precision of the run is not known",
            id="fp32 was not measured and the run may be in it",
        ),
        pytest.param(
            machine(1, ratios=half(precision=Precision.HALF)),
            machine(1, "W"),
            {"mixed_precision": True, "fp8": True},
            "no training work measured on both S and W in fp8 is known",
            id="fp8 was not measured and the run is in it",
        ),
        pytest.param(
            machine(1, ratios=tuple(replace(row, works=1) for row in half())),
            machine(1, "W"),
            {},
            "only one work was measured on both S and W in 16-bit or FP32, which is no range; "
            "the precision of the run is not known",
            id="nobody knows how far the next work lies from one",
        ),
        pytest.param(
            with_sheet(machine(1, gib=80), 20, 300, 2039),
            with_sheet(machine(1, gib=40), 20, 300, 1555),
            {},
            "no training work measured on both S with 40 and 80 GiB is known",
            id="an a100 of 40 gib has three quarters of the bandwidth of one of 80",
        ),
    ],
)
def test_a_gpu_that_nobody_measured_is_no_measure_of_another(
    today: InstanceType, other: InstanceType, hints: dict[str, bool], says: str
) -> None:
    """A GPU that nobody measured is no measure of another, however little the run uses it."""
    found = refused(today, other, 10, **hints)
    assert (found.constraint, found.reason) == (Constraint.GPU_MODEL, says)


OF_K80 = (GpuRatio("T4", "K80", Precision.FP32, Decimal(2), Decimal(3), works=14),)


def assert_run_time(
    *,
    today: InstanceType,
    other: InstanceType,
    busy: float,
    hints: dict[str, bool],
    counted: str,
    best: str,
    says: str,
) -> None:
    """The run time on the other type and its reason, as the owner reads it."""
    found = moved(today, other, need_of(today, gpu=busy), **hints).runtime_factor()
    assert isinstance(found, RuntimeFactor), found
    assert (found.counted, found.best) == (Decimal(counted), Decimal(best))
    assert found.explanation == says


def test_16_bits_alone_were_measured_enough_for_a_run_that_shows_signs_of_them() -> None:
    assert_run_time(
        today=machine(1, ratios=half(precision=Precision.HALF)),
        other=machine(1, "W"),
        busy=50,
        hints={"mixed_precision": True},
        counted="1.5",
        best="1",
        says=(f"{RANGE.format('2.00', 3)} (16-bit); the GPU was busy for 50% of the time."),
    )


def test_a_k80_computes_in_fp32_whatever_its_run_shows() -> None:
    assert_run_time(
        today=machine(1, "K80", ratios=OF_K80),
        other=machine(1, "T4"),
        busy=50,
        hints={},
        counted="1",
        best="0.75",
        says=(
            "T4 took 0.33 to 0.50 times as long as K80 on 14 measured training workloads "
            "(FP32); the "
            "GPU was busy for 50% of the time. A faster GPU is counted as no faster: what else the "
            "run waits for is not known."
        ),
    )


def test_data_sheets_of_60_against_10_tflops() -> None:
    """Data sheets of 60 against 10 TFLOPS, where at most twice was measured, are a doubt."""
    assert_run_time(
        today=with_sheet(machine(1), 60, 500, 600),
        other=with_sheet(machine(1, "W"), 10, 400, 500),
        busy=50,
        hints={},
        counted="1.5",
        best="1",
        says=(
            f"{RANGE.format('2.00', 6)} {WIDEST}; the GPU was busy for 50% of the time. In FP32 "
            "without TF32 nothing was measured, and it may take longer still: by data "
            "sheet S and W "
            "do 60 and 10 TFLOPS."
        ),
    )


def test_data_sheets_within_what_was_measured_raise_no_doubt() -> None:
    assert_run_time(
        today=with_sheet(machine(1), 60, 500, 600),
        other=with_sheet(machine(1, "W"), 40, 400, 500),
        busy=50,
        hints={},
        counted="1.5",
        best="1",
        says=(f"{RANGE.format('2.00', 6)} {WIDEST}; the GPU was busy for 50% of the time."),
    )


def test_the_same_gpu_with_twice_the_memory() -> None:
    assert_run_time(
        today=with_sheet(machine(1, gib=40), 20, 300, 1555),
        other=with_sheet(machine(1, gib=80), 20, 300, 2039),
        busy=10,
        hints={},
        counted="1",
        best="1",
        says=(
            "Its S has 80 GiB of memory, the current one has 40 GiB; the GPU was busy for 10% of the time."
        ),
    )


def test_the_work_of_four_gpus_on_one() -> None:
    assert_run_time(
        today=machine(4),
        other=machine(1),
        busy=20,
        hints={},
        counted="1.6",
        best="1",
        says=(
            "The work of 4 GPUs takes turns on one; the "
            "GPUs were busy for 20% of the time on average."
        ),
    )


def test_the_work_of_four_gpus_on_two() -> None:
    assert_run_time(
        today=machine(4),
        other=machine(2),
        busy=20,
        hints={},
        counted="1.2",
        best="1",
        says=(
            "The work of 4 GPUs takes turns on 2, spread "
            "evenly; the GPUs were busy for 20% of the time on average."
        ),
    )


def test_one_of_four_gpus_did_the_work() -> None:
    assert_run_time(
        today=machine(4),
        other=machine(1),
        busy=23.75,
        hints={},
        counted="1",
        best="1",
        says=(
            "The 4 GPUs together never did more than "
            "one GPU can, and often as much: one of them did the work; the GPUs were busy "
            "for 24% of "
            "the time on average."
        ),
    )


def test_as_many_gpus_of_the_same_model() -> None:
    assert_run_time(
        today=machine(4),
        other=machine(4),
        busy=20,
        hints={},
        counted="1",
        best="1",
        says="Assumes the same run time: the new type covers peak use plus 20%.",
    )


def test_a_cpu_type_for_a_gpu_that_did_nothing() -> None:
    assert_run_time(
        today=machine(1),
        other=instance_type("ml.c5.12xlarge", 48, 192),
        busy=0,
        hints={},
        counted="1",
        best="1",
        says=(
            "Assumes the same run time: the GPU did nothing, and the new type covers peak use plus "
            "20% (a vCPU of c5 counts as one of s16)."
        ),
    )


percents = st.floats(1.1, 100)
sizes = st.sampled_from((8, 12, 16, 24, 40))
counts = st.sampled_from((1, 2, 4, 8))
busy_shares = st.floats(0.02, 1)
"""Of each GPU; below is idle."""


@given(
    cpu=percents,
    memory=percents,
    gpu=percents,
    hidden=st.sets(st.sampled_from(sorted(QUIET))),
    other=st.builds(lambda gpus, gib: machine(gpus, gib=gib), counts, sizes),
)
def test_one_more_recorded_metric_never_breaks_what_held(
    cpu: float, memory: float, gpu: float, hidden: set[str], other: InstanceType
) -> None:
    """What holds in the dark holds whatever there is."""
    today = machine(4)
    use = {"cpu": cpu, "memory": memory, "gpu": gpu, "gpu_memory": gpu}
    dark = need_of(today, **use | dict.fromkeys(hidden, -1.0))
    if broken(today, other, dark) is None:
        assert broken(today, other, need_of(today, **use)) is None


def slow_end(today: int, other: int, share: float, spread: float = 0.0) -> Decimal:
    """As bounded, refused or not; half of the minutes are busier by `spread` and half less."""
    row = machine(today)
    return (
        moved(row, machine(other), need_of(row, unsteady(today, share, spread)))
        ._bounded_factor(None)
        .counted
    )


def unsteady(today: int, share: float, spread: float) -> Points:
    """An hour of so many GPUs that are now busier, now less busy than this share of the time."""
    low, high = (min(max(share + part, 0), 1) * 100 * today for part in (-spread, spread))
    return [low, high] * 30


@given(today=counts, other=counts, share=busy_shares, spread=st.floats(0, 0.3))
def test_no_run_is_counted_as_shorter(today: int, other: int, share: float, spread: float) -> None:
    """Whatever a stronger type promises; and work that fits by its mean takes less than twice."""
    counted = slow_end(today, other, share, spread)
    assert counted >= 1
    need = need_of(machine(today), unsteady(today, share, spread))
    if need.gpus.is_met_by(other) and other < today:
        assert counted < MAX_RUNTIME_FACTOR
