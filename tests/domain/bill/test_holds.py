"""Whether a type holds what a run used: GPUs by their mean work, GPU memory by where it may lie."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.candidate import Constraint, TypeRefusal
from sageaudit.domain.bill.moved_run import MovedRun
from sageaudit.domain.job.job import Hints
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.demand import Demand, demand
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Metric, Missing
from tests.fakes.jobs import Points, gpu_type, instance_type, ran, series

QUIET = {"gpu": 10.0, "gpu_memory": 10.0, "cpu": 5.0, "memory": 5.0}
"""Percent of all there is."""


def machine(gpus: int, gib: int = 16) -> InstanceType:
    """48 vCPUs, 192 GiB and so many GPUs of so much memory."""
    plain = gpu_type(f"ml.s{gib}.{gpus}xlarge", 48, 192, gpus, "S")
    return replace(plain, gpu_memory_gib=Decimal(gib))


def need_of(today: InstanceType, **percent: float) -> Demand:
    """Even use of an hour, less what is negative."""
    return need_by(today, {}, percent)


def need_by(today: InstanceType, points: dict[str, Points], percent: dict[str, float]) -> Demand:
    """`points` are sums, minute by minute."""
    times = {"cpu": today.vcpu, "gpu": today.gpus, "gpu_memory": today.gpus}
    given_points: dict[str, Points] = {
        word: [value * times.get(word, 1)] * 60
        for word, value in (QUIET | percent).items()
        if value >= 0
    }
    raw = [
        series(Metric[word.upper()], values)
        for word, values in (given_points | points).items()
        if Metric[word.upper()] in {Metric.CPU, Metric.MEMORY} or today.gpus
    ]
    absent = Missing("metric_missing", "no points")
    run = ran(3600, today.name)
    return demand(measure(run, raw, {today.name: today}, absent=absent), today, Decimal(20))


def first(
    today: InstanceType, other: InstanceType, need: Demand, distribution: str | None = None
) -> TypeRefusal | None:
    """What refuses the other type."""
    job = ran(3600, today.name, hints=Hints(distribution=distribution))
    return MovedRun(job, today, need, Decimal(20), other).not_held()


def broken(*args: Any, **more: Any) -> Constraint | None:
    """Only which constraint."""
    refused = first(*args, **more)
    return refused.constraint if refused else None


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


def test_certainly_broken_comes_before_not_recorded() -> None:
    """So that more data would not take the reason back."""
    today = instance_type("ml.m5.4xlarge", 16, 64)
    refused = first(today, instance_type("ml.m5.xlarge", 4, 16), need_of(today, memory=-1, cpu=90))
    assert refused is not None
    assert refused.constraint is Constraint.VCPU


@pytest.mark.parametrize(
    ("percent", "gpus", "holds"), [(25, 1, True), (25.3, 1, False), (50, 2, True), (50.1, 2, False)]
)
def test_gpus_hold_their_mean_work(percent: float, gpus: int, holds: bool) -> None:
    """Without headroom: GPUs that share work take longer and do not fail."""
    refused = broken(machine(4), machine(gpus), need_of(machine(4), gpu=percent))
    assert refused is (None if holds else Constraint.GPUS)


def test_a_peak_of_the_gpus_takes_time_and_is_no_refusal() -> None:
    """Half of the minutes at 200% of four GPUs' 400, the others at nothing: one GPU's work."""
    need = need_by(machine(4), {"gpu": [200.0, 0.0] * 30}, {})
    assert broken(machine(4), machine(1), need) is None


@pytest.mark.parametrize(
    ("today", "other", "percent", "says"),
    [
        # of 64 GiB: 16.0 lie on one of the same size, 16.6 do not
        (machine(4), machine(1), 25, None),
        (machine(4), machine(1), 26, "GPU memory: 20.0 GiB needed, 16 GiB offered"),
        # more than one holds is spread evenly, with headroom: 2 x 6.4 x 1.2, and 2 x 6.8 x 1.2
        (machine(4), machine(2), 40, None),
        (machine(4), machine(2), 42, "GPU memory: 16.1 GiB needed, 16 GiB offered"),
        # as many of the same or a larger size hold what they held
        (machine(4), machine(4, 24), 100, None),
        (machine(1), machine(1, 24), 100, None),
        # smaller ones: all of it may lie on one, with headroom: 6.4 x 1.2, and 13.0 x 1.2
        (machine(4), machine(4, 8), 10, None),
        (machine(4), machine(4, 8), 12, "GPU memory: 9.2 GiB needed, 8 GiB offered"),
        (machine(1), machine(1, 8), 41, None),
        (machine(1), machine(1, 8), 42, "GPU memory: 8.1 GiB needed, 8 GiB offered"),
        # never more than one had: 16 of 16
        (machine(4), machine(4, 15), 90, "GPU memory: 16.0 GiB needed, 15 GiB offered"),
    ],
)
def test_gpu_memory_may_all_lie_on_one_gpu(
    today: InstanceType, other: InstanceType, percent: float, says: str | None
) -> None:
    """CloudWatch has only the sum."""
    refused = first(today, other, need_of(today, gpu_memory=percent))
    assert (refused.reason if refused else None) == says


@pytest.mark.parametrize("distribution", ["horovod", "mirrored"])
def test_copies_of_data_parallel_work_do_not_add_up(distribution: str) -> None:
    """60% of each of four GPUs is one copy, and one GPU needs one; whatever else would need all."""
    four, need = machine(4), need_of(machine(4), gpu_memory=60)
    assert broken(four, machine(1), need, distribution) is None
    assert broken(four, machine(1), need) is Constraint.GPU_MEMORY
    for launched in ("ddp", "smddp", "fsdp", "smp"):
        assert broken(four, machine(1), need, launched) is Constraint.GPU_MEMORY


def test_copies_may_be_one_large_one_on_a_smaller_gpu() -> None:
    """A launcher's name does not say on how many GPUs there is one: all may lie on one of them."""
    four, need = machine(4), need_of(machine(4), gpu_memory=60)
    assert broken(four, machine(1, 15), need, "horovod") is Constraint.GPU_MEMORY
    full = need_of(four, gpu_memory=100)
    assert broken(four, machine(1), full, "horovod") is None


def test_copies_that_nobody_recorded_hold_on_as_large_a_gpu() -> None:
    """Each GPU held its own, however full it was."""
    need = need_of(machine(4), gpu_memory=-1)
    assert broken(machine(4), machine(1), need, "horovod") is None
    assert broken(machine(4), machine(1, 8), need, "horovod") is Constraint.NOT_RECORDED


def test_an_idle_gpu_holds_nothing() -> None:
    """Up to 1% of one GPU, of all four together: no GPU is needed, nor its memory."""
    four, cpu = machine(4), instance_type("ml.m5.12xlarge", 48, 192)
    assert broken(four, cpu, need_of(four, gpu=0.25, gpu_memory=90)) is None
    assert broken(four, cpu, need_of(four, gpu=0.26, gpu_memory=0)) is Constraint.GPUS


percents = st.floats(1.1, 100)
sizes = st.sampled_from((8, 12, 16, 24, 40))
counts = st.sampled_from((1, 2, 4, 8))


@given(gpus=counts, fewer=counts, gib=sizes, percent=percents)
def test_more_gpu_memory_in_use_never_holds_where_less_did_not(
    gpus: int, fewer: int, gib: int, percent: float
) -> None:
    """Monotone in what was used."""
    today, other = machine(gpus), machine(fewer, gib)
    if broken(today, other, need_of(today, gpu=1.1, gpu_memory=percent / 2)) is not None:
        assert broken(today, other, need_of(today, gpu=1.1, gpu_memory=percent)) is not None


@given(gpus=counts, fewer=counts, gib=sizes, percent=percents)
def test_whatever_holds_any_work_holds_copies_of_it(
    gpus: int, fewer: int, gib: int, percent: float
) -> None:
    """What does not add up is never more."""
    today, other = machine(gpus), machine(fewer, gib)
    need = need_of(today, gpu=1.1, gpu_memory=percent)
    if broken(today, other, need) is None:
        assert broken(today, other, need, "ddp") is None


@given(
    cpu=percents,
    memory=percents,
    gpu=percents,
    hidden=st.sets(st.sampled_from(sorted(QUIET))),
    other=st.builds(machine, counts, sizes),
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
