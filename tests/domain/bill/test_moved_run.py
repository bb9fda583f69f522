"""Whether another type fits a run and how long it takes there, computed by hand and as
properties.
"""

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
"""Percent of what the type has."""


def measured_ratios(
    times_high: str = "2", precision: Precision | None = None
) -> tuple[GpuRatio, ...]:
    """Returns ratios: S does 1.5 to `times_high` times what W does, in both usual classes."""
    classes = (Precision.HALF, Precision.FP32) if precision is None else (precision,)
    return tuple(
        GpuRatio("S", "W", precision_class, Decimal("1.5"), Decimal(times_high), works=3)
        for precision_class in classes
    )


def machine(
    gpus: int, model: str = "S", *, gib: int = 16, ratios: tuple[GpuRatio, ...] | None = None
) -> InstanceType:
    """Returns a type with 48 vCPUs, 192 GiB and this many GPUs. By default S and W were
    measured.
    """
    plain = gpu_type(f"ml.{model.lower()}{gib}.{gpus}xlarge", 48, 192, gpus, model)
    return replace(
        plain,
        gpu_memory_gib=Decimal(gib),
        gpu_ratios=measured_ratios() if ratios is None else ratios,
    )


def need_of(current_type: InstanceType, *gpus: Points, **percent: float) -> Demand:
    """Returns the demand of an hour: each host's GPUs by minute, and even use; negative is
    unknown.
    """
    device_counts = {
        "cpu": current_type.vcpu,
        "gpu": current_type.gpus,
        "gpu_memory": current_type.gpus,
    }
    hosts = max(len(gpus), 1)
    raw = []
    for number in range(1, hosts + 1):
        use: dict[str, Points] = {
            word: [value * device_counts.get(word, 1)] * 60
            for word, value in (QUIET | percent).items()
            if value >= 0 and (current_type.gpus or not word.startswith("gpu"))
        }
        if gpus:
            use["gpu"] = gpus[number - 1]
        raw += [
            series(Metric[word.upper()], values, host=f"train/algo-{number}")
            for word, values in use.items()
        ]
    measurements = usage(
        ran(3600, current_type.name, hosts), *raw, types={current_type.name: current_type}
    )
    return demand(measurements, current_type, Decimal(20))


def run_on(
    current_type: InstanceType, other_type: InstanceType, need: Demand, hosts: int = 1, **hints: Any
) -> RuntimeOnType:
    """Returns the run on the other type."""
    job = ran(3600, current_type.name, hosts, volume_gb=0, hints=Hints(**hints))
    return RuntimeOnType(job, current_type, need, Decimal(20), other_type)


def broken_constraint(
    current_type: InstanceType, other_type: InstanceType, need: Demand, **hints: Any
) -> Any:
    """Returns the constraint by which the other type does not fit the run; None if it fits."""
    refusal = size_refusal(run_on(current_type, other_type, need, **hints))
    return refusal.constraint if refusal else None


def size_refusal(run: RuntimeOnType) -> TypeRefusal | None:
    """Returns why the type does not fit, by what it is or else by what the run needs."""
    return type_class_refusal(run.current_type, run.other_type) or run.size_refusal()


def runtime_factor(
    current_type: InstanceType, other_type: InstanceType, *hosts: Points, **hints: Any
) -> RuntimeFactor:
    """Returns how long the run takes; fails if it is refused."""
    result = run_on(
        current_type, other_type, need_of(current_type, *hosts), len(hosts), **hints
    ).unchecked_runtime_factor()
    assert isinstance(result, RuntimeFactor), result
    assert result.best <= result.counted
    return result


def runtime_refusal(
    current_type: InstanceType, other_type: InstanceType, percent: float, **hints: Any
) -> TypeRefusal:
    """Returns why the run time is not bounded, if the GPU is busy for this share of the time."""
    result = run_on(
        current_type, other_type, need_of(current_type, gpu=percent), **hints
    ).unchecked_runtime_factor()
    assert isinstance(result, TypeRefusal)
    return result


@pytest.mark.parametrize(
    ("word", "constraint"),
    [
        ("cpu", Constraint.VCPU),
        ("memory", Constraint.MEMORY),
        ("gpu", Constraint.GPUS),
        ("gpu_memory", Constraint.GPU_MEMORY),
    ],
)
def test_a_resource_that_does_not_shrink_is_enough(word: str, constraint: Constraint) -> None:
    """A resource that stays as large is enough. A smaller one needs recorded use."""
    four = machine(4)
    same = replace(four, name="ml.same.4xlarge")
    less = replace(four, name="ml.less", vcpu=8, memory_gib=Decimal(32), gpus=1)
    full, dark = need_of(four, **{word: 100.0}), need_of(four, **{word: -1.0})
    assert broken_constraint(four, same, full) is None
    assert broken_constraint(four, same, dark) is None
    assert broken_constraint(four, less, full) is constraint
    assert broken_constraint(four, less, dark) is Constraint.NOT_RECORDED


M5 = instance_type("ml.m5.4xlarge", 16, 64)
SMALL_M5 = instance_type("ml.m5.xlarge", 4, 16)


@pytest.mark.parametrize(
    ("current_type", "changes", "percent", "constraint", "expected_text"),
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
            id="on which disk the other type keeps data is unknown",
        ),
    ],
)
def test_a_cpu_run_is_refused_by_the_first_broken_constraint(
    current_type: InstanceType,
    changes: dict[str, Any],
    percent: dict[str, float],
    constraint: Constraint | None,
    expected_text: str,
) -> None:
    """The reason has the numbers of the first broken constraint."""
    other = replace(SMALL_M5, **changes)
    result = size_refusal(run_on(current_type, other, need_of(current_type, **percent)))
    assert (result and result.constraint, result.reason if result else "") == (
        constraint,
        expected_text,
    )


NO_GPU = instance_type("ml.m5.12xlarge", 48, 192)


def test_a_smaller_own_disk_must_fit_the_use_of_the_larger_one() -> None:
    """80% of 900 GB with headroom are 864 GB. A volume is as large as the request says."""
    today, other = (replace(machine(1), local_gb=gb) for gb in (900, 600))
    runtime_refusal = size_refusal(run_on(today, other, need_of(today, disk=80)))
    assert runtime_refusal
    assert runtime_refusal.reason == "disk: 864 GB needed with headroom, 600 GB offered"
    assert broken_constraint(today, other, need_of(today, disk=55)) is None
    assert broken_constraint(today, other, need_of(today)) is None
    assert broken_constraint(today, replace(other, local_gb=None), need_of(today, disk=80)) is None


@pytest.mark.parametrize(
    ("distribution", "slow"), [(None, "1.0000"), *((word, "1.4850") for word in DISTRIBUTIONS)]
)
def test_a_job_that_is_distributed_shares_the_work(distribution: str | None, slow: str) -> None:
    """Two GPUs together at 97% of one: one did all the work, unless the job is distributed.

    A parameter server may use one GPU of a host, or all of them.
    """
    two = [96.0, 98.0] * 30
    takes = runtime_factor(machine(2), machine(1), two, distribution=distribution)
    assert takes.counted == Decimal(slow)
    assert takes.needs_trial is (distribution not in {None, "parameter_server"})
    assert (f"does a part of the work ({distribution})" in takes.explanation) is takes.needs_trial
    assert ("one of them did the work" in takes.explanation) is (distribution is None)


@pytest.mark.parametrize(
    ("other_type", "gpus", "percent", "constraint"),
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
def test_fewer_gpus_fit_the_mean_work_of_four(
    other_type: InstanceType,
    gpus: tuple[Points, ...],
    percent: dict[str, float],
    constraint: Constraint | None,
) -> None:
    """An idle GPU needs none."""
    assert (
        broken_constraint(machine(4), other_type, need_of(machine(4), *gpus, **percent))
        is constraint
    )


@pytest.mark.parametrize(
    ("current_type", "other_type", "percent", "expected_text"),
    [
        # of 64 GiB: 14.1 lie on one of the same size, 14.7 do not, with a tenth above
        (machine(4), machine(1), 22, None),
        (machine(4), machine(1), 23, "GPU memory: 16.2 GiB needed, 16 GiB offered"),
        # more than fits on one is spread evenly: 2 x 7.2 x 1.1, and 2 x 7.4 x 1.1
        (machine(4), machine(2), 45, None),
        (machine(4), machine(2), 46, "GPU memory: 16.2 GiB needed, 16 GiB offered"),
        # as many of the same or a larger size fit
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
def test_all_gpu_memory_may_be_on_one_gpu(
    current_type: InstanceType, other_type: InstanceType, percent: float, expected_text: str | None
) -> None:
    """CloudWatch has only the sum."""
    result = size_refusal(
        run_on(current_type, other_type, need_of(current_type, gpu_memory=percent))
    )
    assert (result.reason if result else None) == expected_text


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
    """Four GPUs become one. Work that is not copied would need the sum."""
    four, need = machine(4), need_of(machine(4), gpu_memory=percent)
    assert (
        broken_constraint(four, machine(1, gib=gib), need, distribution=distribution) is constraint
    )


TWICE = tuple(replace(row, times_low=Decimal(2)) for row in measured_ratios())


@pytest.mark.parametrize(
    ("current_type", "other_type", "sums", "counted"),
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
def test_fewer_or_weaker_gpus_take_longer_by_their_work(
    current_type: InstanceType, other_type: InstanceType, sums: list[float], counted: str
) -> None:
    """1 + u (r n / m - 1), u being the mean of each of n GPUs, on m GPUs; 1 if one of them did all
    the work.
    """
    result = runtime_factor(
        current_type, other_type, [float(value) for value in sums] * (60 // len(sums))
    )
    assert result.counted == Decimal(counted)


def test_the_slowest_host_decides() -> None:
    """Two hosts at 10% and at 20% of four GPUs each."""
    assert runtime_factor(machine(4), machine(1), [40.0] * 60, [80.0] * 60).counted == Decimal(
        "1.6"
    )


RANGE = "The W took 1.50 to {} times as long as the S on {} measured training workloads"
HALF_BUSY = "The GPU was busy 50% of its active time."
WIDEST = "The range covers 16-bit and FP32, because the run's precision is not known"


def test_a_run_that_may_take_more_than_twice_as_long_is_refused() -> None:
    """A little more than twice. Unrecorded GPUs count as always busy."""
    result = runtime_refusal(machine(1, ratios=measured_ratios("2.01")), machine(1, "W"), 100)
    assert result.constraint is Constraint.RUN_TIME
    assert result.reason.startswith(f"it may take 2.0 times as long: {RANGE.format('2.01', 6)}")
    dark = need_of(machine(1), gpu=-1)
    known = run_on(machine(1), machine(1, "W"), dark).unchecked_runtime_factor()
    assert isinstance(known, RuntimeFactor)
    expected_text = "How busy the GPU was is not known, so it is counted as always busy."
    assert (known.counted, known.explanation) == (
        2,
        f"{RANGE.format('2.00', 6)}. {WIDEST}. {expected_text}",
    )
    result = runtime_refusal(machine(1, ratios=measured_ratios("2.01")), machine(1, "W"), -1)
    assert result.constraint is Constraint.NOT_RECORDED


def sheet(fp32: int, fp16: int, gb_s: int) -> GpuPeaks:
    """Returns a data sheet on which TF32 is as fast as 16 bits."""
    figures = (Decimal(fp32), Decimal(fp16), Decimal(fp16), Decimal(gb_s))
    return GpuPeaks(*figures, Decimal("8.6"), "made up")


def with_sheet(row: InstanceType, *figures: int) -> InstanceType:
    """Returns the type with a data sheet."""
    return replace(row, gpu_peaks=sheet(*figures))


@pytest.mark.parametrize(
    ("current_type", "other_type", "hints", "expected_text"),
    [
        pytest.param(
            machine(1, "A10G"),
            machine(1, "T4"),
            {"flash_attention": True},
            "the run uses FlashAttention: the T4 is too old for it",
            id="no throughput shows how long flashattention takes on a GPU that cannot run it",
        ),
        # data sheets are named in the refusal; they are not a ratio
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
            id="data sheets are named in the refusal as they are not a ratio",
        ),
        # each class that the run may be in must be measured
        pytest.param(
            machine(1, ratios=measured_ratios(precision=Precision.HALF)),
            machine(1, "W"),
            {},
            "no training work measured on both S and W in FP32 is known; "
            "the precision of the run is not known",
            id="fp32 was not measured and the run may be in it",
        ),
        pytest.param(
            machine(1, ratios=measured_ratios(precision=Precision.HALF)),
            machine(1, "W"),
            {"mixed_precision": True, "fp8": True},
            "no training work measured on both S and W in fp8 is known",
            id="fp8 was not measured and the run is in it",
        ),
        pytest.param(
            machine(1, ratios=tuple(replace(row, works=1) for row in measured_ratios())),
            machine(1, "W"),
            {},
            "only one work was measured on both S and W in 16-bit or FP32, which is no range; "
            "the precision of the run is not known",
            id="how far the next workload is from one is unknown",
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
def test_an_unmeasured_gpu_is_refused(
    current_type: InstanceType, other_type: InstanceType, hints: dict[str, bool], expected_text: str
) -> None:
    """Without measurements the run time is unknown, however little the run uses the GPU."""
    result = runtime_refusal(current_type, other_type, 10, **hints)
    assert (result.constraint, result.reason) == (Constraint.GPU_MODEL, expected_text)


OF_K80 = (GpuRatio("T4", "K80", Precision.FP32, Decimal(2), Decimal(3), works=14),)


def assert_run_time(
    *,
    current_type: InstanceType,
    other_type: InstanceType,
    busy: float,
    hints: dict[str, bool],
    counted: str,
    best: str,
    expected_text: str,
) -> None:
    """Compares the run time on the other type and its explanation."""
    result = run_on(
        current_type, other_type, need_of(current_type, gpu=busy), **hints
    ).runtime_factor()
    assert isinstance(result, RuntimeFactor), result
    assert (result.counted, result.best) == (Decimal(counted), Decimal(best))
    assert result.explanation == expected_text


def test_16_bits_alone_were_measured_enough_for_a_run_that_shows_signs_of_them() -> None:
    assert_run_time(
        current_type=machine(1, ratios=measured_ratios(precision=Precision.HALF)),
        other_type=machine(1, "W"),
        busy=50,
        hints={"mixed_precision": True},
        counted="1.5",
        best="1",
        expected_text=(
            f"{RANGE.format('2.00', 3)} (16-bit). The GPU was busy 50% of its active time."
        ),
    )


def test_a_k80_computes_in_fp32_whatever_its_run_shows() -> None:
    assert_run_time(
        current_type=machine(1, "K80", ratios=OF_K80),
        other_type=machine(1, "T4"),
        busy=50,
        hints={},
        counted="1",
        best="0.75",
        expected_text=(
            "The T4 took 0.33 to 0.50 times as long as the K80 on 14 measured training workloads "
            f"(FP32). {HALF_BUSY} A faster GPU is counted as no faster: what else the run waits "
            "for is not known."
        ),
    )


def test_data_sheets_of_60_against_10_tflops() -> None:
    """At most twice was measured, so data sheets of 60 and 10 TFLOPS are a reason to check."""
    assert_run_time(
        current_type=with_sheet(machine(1), 60, 500, 600),
        other_type=with_sheet(machine(1, "W"), 10, 400, 500),
        busy=50,
        hints={},
        counted="1.5",
        best="1",
        expected_text=(
            f"{RANGE.format('2.00', 6)}. {WIDEST}. {HALF_BUSY} In FP32 "
            "without TF32 nothing was measured, and it may take longer still: by data "
            "sheet S and W "
            "do 60 and 10 TFLOPS."
        ),
    )


def test_data_sheets_within_what_was_measured_raise_no_doubt() -> None:
    assert_run_time(
        current_type=with_sheet(machine(1), 60, 500, 600),
        other_type=with_sheet(machine(1, "W"), 40, 400, 500),
        busy=50,
        hints={},
        counted="1.5",
        best="1",
        expected_text=(
            f"{RANGE.format('2.00', 6)}. {WIDEST}. The GPU was busy 50% of its active time."
        ),
    )


def test_the_same_gpu_with_twice_the_memory() -> None:
    assert_run_time(
        current_type=with_sheet(machine(1, gib=40), 20, 300, 1555),
        other_type=with_sheet(machine(1, gib=80), 20, 300, 2039),
        busy=10,
        hints={},
        counted="1",
        best="1",
        expected_text=(
            "Its S has 80 GiB of memory, the current one has 40 GiB. The GPU was busy 10% of"
            " its active time."
        ),
    )


def test_the_work_of_four_gpus_on_one() -> None:
    assert_run_time(
        current_type=machine(4),
        other_type=machine(1),
        busy=20,
        hints={},
        counted="1.6",
        best="1",
        expected_text=(
            "This assumes that one GPU does the work of 4 in turn. The "
            "GPUs were busy 20% of their active time on average."
        ),
    )


def test_the_work_of_four_gpus_on_two() -> None:
    assert_run_time(
        current_type=machine(4),
        other_type=machine(2),
        busy=20,
        hints={},
        counted="1.2",
        best="1",
        expected_text=(
            "This assumes that 2 GPUs share the work of 4 "
            "evenly. The GPUs were busy 20% of their active time on average."
        ),
    )


def test_one_of_four_gpus_did_the_work() -> None:
    assert_run_time(
        current_type=machine(4),
        other_type=machine(1),
        busy=23.75,
        hints={},
        counted="1",
        best="1",
        expected_text=(
            "The 4 GPUs together never did more than "
            "one GPU can, and often as much: one of them did the work. The GPUs were busy "
            "24% of their active time on average."
        ),
    )


def test_as_many_gpus_of_the_same_model() -> None:
    assert_run_time(
        current_type=machine(4),
        other_type=machine(4),
        busy=20,
        hints={},
        counted="1",
        best="1",
        expected_text="Assumes the same run time: the new type covers peak use plus 20%.",
    )


def test_a_cpu_type_for_a_gpu_that_did_nothing() -> None:
    assert_run_time(
        current_type=machine(1),
        other_type=instance_type("ml.c5.12xlarge", 48, 192),
        busy=0,
        hints={},
        counted="1",
        best="1",
        expected_text=(
            "Assumes the same run time: the GPU did nothing, and the new type covers peak use plus "
            "20% (a vCPU of c5 counts as one of s16)."
        ),
    )


percents = st.floats(1.1, 100)
sizes = st.sampled_from((8, 12, 16, 24, 40))
counts = st.sampled_from((1, 2, 4, 8))
busy_shares = st.floats(0.02, 1)
"""The least share of each GPU that counts as work."""


@given(
    cpu=percents,
    memory=percents,
    gpu=percents,
    hidden=st.sets(st.sampled_from(sorted(QUIET))),
    other_type=st.builds(lambda gpus, gib: machine(gpus, gib=gib), counts, sizes),
)
def test_a_type_that_fits_without_a_metric_fits_with_it(
    cpu: float, memory: float, gpu: float, hidden: set[str], other_type: InstanceType
) -> None:
    """A type that fits without a metric fits with any use of it."""
    today = machine(4)
    use = {"cpu": cpu, "memory": memory, "gpu": gpu, "gpu_memory": gpu}
    dark = need_of(today, **use | dict.fromkeys(hidden, -1.0))
    if broken_constraint(today, other_type, dark) is None:
        assert broken_constraint(today, other_type, need_of(today, **use)) is None


def slow_end(today: int, other: int, share: float, spread: float = 0.0) -> Decimal:
    """Returns the slow end; half of the minutes are busier by `spread`, the others less busy."""
    row = machine(today)
    return (
        run_on(row, machine(other), need_of(row, unsteady(today, share, spread)))
        ._bounded_factor(None)
        .counted
    )


def unsteady(today: int, share: float, spread: float) -> Points:
    """Returns an hour of GPUs that are alternately busier and less busy than this share of the
    time.
    """
    low, high = (min(max(share + part, 0), 1) * 100 * today for part in (-spread, spread))
    return [low, high] * 30


@given(today=counts, other=counts, share=busy_shares, spread=st.floats(0, 0.3))
def test_no_run_is_counted_as_shorter(today: int, other: int, share: float, spread: float) -> None:
    """Not even on a faster type. Work that fits by its mean takes less than twice as long."""
    counted = slow_end(today, other, share, spread)
    assert counted >= 1
    need = need_of(machine(today), unsteady(today, share, spread))
    if need.gpus.is_met_by(other) and other < today:
        assert counted < MAX_RUNTIME_FACTOR
