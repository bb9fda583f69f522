from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest

from sageaudit.domain.job.job import InstanceGroup, Job, Phase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import (
    Measurements,
    Metric,
    Missing,
    RawSeries,
)
from tests.fakes.jobs import START, TYPES, Points, instance_type, job, phases, ran, series, usage

MINUTE = timedelta(minutes=1)
CPU, GPU, MEMORY = Metric.CPU, Metric.GPU, Metric.MEMORY


def values(of: Measurements, metric: Metric, host: str = "train/algo-1") -> list[float | None]:
    """One host's points, to a tenth of a percent."""
    points = of.series[metric][host].values
    return [None if value is None else round(value, 1) for value in points]


def test_a_sum_over_cores_becomes_a_share_of_all() -> None:
    """One busy core of a 4-vCPU g4dn.xlarge reads 100.8: that is 25.2 %."""
    of = usage(ran(180, "ml.g4dn.xlarge"), series(CPU, [100.8, 400, 0]))
    assert values(of, CPU) == [25.2, 100.0, 0.0]


def test_a_sum_over_gpus_becomes_a_share_of_all() -> None:
    """One busy GPU of four reads 100: that is 25 %; memory of the GPUs likewise."""
    of = usage(
        ran(120, "ml.g4dn.12xlarge"),
        series(GPU, [100, 400]),
        series(Metric.GPU_MEMORY, [40, 200]),
        series(MEMORY, [50, 100]),
        series(Metric.DISK, [1, 2]),
    )
    assert values(of, GPU) == [25.0, 100.0]
    assert values(of, Metric.GPU_MEMORY) == [10.0, 50.0]
    assert values(of, MEMORY) == [50.0, 100.0]
    assert values(of, Metric.DISK) == [1.0, 2.0]


def test_points_outside_training_do_not_count() -> None:
    """Downloading before and Uploading after would dilute it."""
    run = job("ml.m5.xlarge", phases=phases(("Downloading", 120), ("Training", 180),
                                            ("Uploading", 60)))  # fmt: skip
    of = usage(run, series(CPU, [4, 8, 100, 200, 300, 12, 16, 20]))
    assert values(of, CPU) == [25.0, 50.0, 75.0]
    assert (of.points, of.period_s, of.minutes) == (3, 60, 3)


def test_a_minute_that_is_partly_outside_does_not_count() -> None:
    """Training from 10:00:30 to 10:03:30 has two whole minutes."""
    begun = START + timedelta(seconds=30)
    run = job("ml.m5.xlarge", phases=(Phase("Training", begun, Decimal(180), billed=True),))
    of = usage(run, series(CPU, [40, 80, 120, 160]))
    assert values(of, CPU) == [20.0, 30.0]


def test_points_that_start_before_the_job_fall_in_their_own_minute() -> None:
    """The series may begin anywhere."""
    of = usage(ran(120), series(CPU, [1, 2, 40, 80], start=START - 2 * MINUTE))
    assert values(of, CPU) == [10.0, 20.0]


def test_a_missing_point_stays_missing() -> None:
    """Null in the series, and minutes before the first and after the last point: never 0."""
    of = usage(ran(360), series(CPU, [40, None, 80], start=START + MINUTE))
    assert values(of, CPU) == [None, 10.0, None, 20.0, None, None]
    assert of.share(CPU) == pytest.approx(2 / 6)


@pytest.mark.parametrize("broken", [nan, inf, -inf, -1.0, 421.0, 1e300])
def test_what_no_utilisation_can_be_is_missing(broken: float) -> None:
    """Not a number, negative, or more than 5 % above all four vCPUs."""
    of = usage(ran(120), series(CPU, [40, broken]))
    assert values(of, CPU) == [10.0, None]


def test_a_little_above_all_of_it_is_all_of_it() -> None:
    """Real busy cores read up to 100.8."""
    of = usage(ran(60), series(CPU, [403.2]))
    assert values(of, CPU) == [100.0]


def test_a_metric_without_series_is_missing_with_its_reason() -> None:
    """The adapter says why; it is not an empty series."""
    of = usage(ran(60, "ml.g4dn.xlarge"), series(CPU, [40]))
    assert of.missing[GPU].code == "metric_missing"
    assert GPU not in of.series
    assert of.share(GPU) is None


def test_a_series_with_no_point_in_the_phase_is_missing() -> None:
    """Clock offsets of whole hours happen in recordings."""
    of = usage(ran(60), series(CPU, [40], start=START + timedelta(hours=5)))
    assert of.missing[CPU].code == "metric_missing"
    assert "Training phase" in of.missing[CPU].reason


def test_a_type_without_gpu_has_no_gpu_metric() -> None:
    """Not unknown: there is none."""
    of = usage(ran(60), series(CPU, [40]))
    assert of.missing[GPU].code == "no_gpu"
    assert of.missing[Metric.GPU_MEMORY].code == "no_gpu"


def test_an_accelerator_without_a_metric_may_work_unseen() -> None:
    """Trainium: no GPU points is not no GPU, and a quiet CPU is no idle head."""
    neuron = instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron")
    run = ran(600, neuron.name)
    quiet = [series(CPU, [1] * 5 + [400] * 5)]
    of = measure(run, quiet, {neuron.name: neuron}, absent=Missing("metric_missing", "no points"))
    assert (of.gpus, of.missing[GPU].code) == (None, "accelerator_unseen")
    assert of.active().points == 10
    mixed = ran(600, groups=(InstanceGroup(neuron.name, 1), InstanceGroup("ml.m5.2xlarge", 1)))
    beside = measure(mixed, quiet, TYPES | {neuron.name: neuron}, absent=of.missing[GPU])
    assert beside.missing[GPU].code == "accelerator_unseen"
    assert beside.vcpu == 8


@pytest.mark.parametrize("unknown", [ran(60, "ml.new.xlarge"), ran(60, groups=())])
def test_an_unknown_type_cannot_be_normalised(unknown: Job) -> None:
    """Without the number of vCPUs a sum over cores says nothing."""
    of = usage(unknown, series(CPU, [40]))
    assert of.missing[CPU].code == "type_unknown"
    assert (of.vcpu, of.gpus) == (None, None)


def test_hosts_of_a_mixed_cluster_have_no_map() -> None:
    """Describe does not say which host is of which group; memory needs no map."""
    groups = (InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.m5.xlarge", 1))
    of = usage(ran(60, groups=groups), series(CPU, [40]), series(MEMORY, [30]))
    assert of.missing[CPU].code == "hosts_unmapped"
    assert of.missing[GPU].code == "hosts_unmapped"
    assert values(of, MEMORY) == [30.0]


def test_groups_of_the_same_size_need_no_map() -> None:
    """Two groups of 8 vCPUs and one GPU each: every host is alike."""
    groups = (InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.g4dn.2xlarge", 1))
    of = usage(ran(60, groups=groups), series(CPU, [400]), series(GPU, [50]))
    assert (values(of, CPU), values(of, GPU)) == ([50.0], [50.0])


@pytest.mark.parametrize("kind", [JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM])
def test_a_host_without_series_lowers_the_coverage(kind: JobKind) -> None:
    """One of four hosts was seen: a quarter of the points, for every kind of job."""
    work = {"training": "Training", "processing": "Processing", "transform": "Transform"}
    run = ran(120, instances=4, kind=kind, phases=phases((work[kind.value], 120)))
    of = usage(run, series(CPU, [40, 80]))
    assert of.share(CPU) == pytest.approx(0.25)
    assert of.hosts_expected == 4


def test_hosts_come_in_the_order_of_their_numbers() -> None:
    """algo-2 before algo-10."""
    names = [f"train/algo-{n}" for n in (10, 2, 1)]
    of = usage(ran(60, instances=10), *(series(CPU, [40], host=name) for name in names))
    assert of.hosts == ("train/algo-1", "train/algo-2", "train/algo-10")


def test_phases_that_repeat_are_one_grid() -> None:
    """An interrupted run trained twice; the waiting between is not in it."""
    twice = (
        Phase("Training", START, Decimal(120), billed=True),
        Phase("Interrupted", START + 2 * MINUTE, Decimal(120), billed=False),
        Phase("Training", START + 4 * MINUTE, Decimal(60), billed=True),
    )
    of = usage(ran(300, phases=twice), series(CPU, [40, 80, 1, 1, 120]))
    assert values(of, CPU) == [10.0, 20.0, 30.0]


def test_series_of_two_periods_share_the_coarser_grid() -> None:
    """A recording's series may carry their own period: minutes are averaged up to 5 minutes."""
    run = ran(600, "ml.g4dn.xlarge")
    of = usage(
        run,
        series(CPU, [40, 80, 120, 160, 200, 40, None, 40, 40, 40]),
        series(GPU, [10, 30], period_s=300),
    )
    assert of.period_s == 300
    assert values(of, GPU) == [10.0, 30.0]
    assert values(of, CPU) == [30.0, 10.0]


def test_other_metrics_are_left_alone() -> None:
    """Algorithm metrics stand under the job's own name."""
    loss = RawSeries("train", "validation:loss", START, 60, (0.5,))
    of = usage(ran(60), loss, series(CPU, [40]))
    assert of.hosts == ("train/algo-1",)


def test_a_broken_clock_takes_no_time() -> None:
    """A run of 200 years has no more points than the longest job."""
    run = ran(60, phases=(Phase("Training", START, Decimal(6_300_000_000), billed=True),))
    assert usage(run, series(CPU, [40])).points == 100_000


def cut(cpu: Points, gpu: Points | None = None) -> list[float | None]:
    """The CPU points of the active minutes of a g4dn.xlarge (m5.xlarge without `gpu`)."""
    minutes = 60 * len(cpu)
    if gpu is None:
        return values(usage(ran(minutes), series(CPU, cpu)).active(), CPU)
    run = ran(minutes, "ml.g4dn.xlarge")
    return values(usage(run, series(CPU, cpu), series(GPU, gpu)).active(), CPU)


def test_idle_head_and_tail_are_cut() -> None:
    """Under 0.2 cores is idle; what is idle in the middle stays."""
    assert cut([0, 19, 40, 0, 80, 4, 0]) == [10.0, 0.0, 20.0]


def test_exactly_a_fifth_of_a_core_is_work() -> None:
    """The limit is counted in cores: 20 of a 4-vCPU sum."""
    assert cut([19.9, 20, 19.9]) == [5.0]


def test_a_busy_gpu_makes_a_minute_active() -> None:
    """One core idle and the GPU at work is no idle head."""
    assert cut([0, 0, 40, 0], [0, 50, 50, 0]) == [0.0, 10.0]


def test_a_minute_without_data_is_not_idle() -> None:
    """A missing signal must count as active: nothing is cut that was not seen idle."""
    assert cut([None, 40, 0]) == [None, 10.0]
    assert cut([0, 40, 40], [None, 50, 50]) == [0.0, 10.0, 10.0]


def test_late_first_points_do_not_keep_an_idle_head() -> None:
    """What is idle when it is first seen, within six minutes, was so before; work was not."""
    assert cut([0] * 8 + [40] * 2, [None] * 6 + [0] * 2 + [50] * 2) == [10.0, 10.0]
    assert len(cut([None] * 7 + [0] * 2 + [40])) == 10
    assert len(cut([None] * 3 + [40] + [0] * 2 + [40])) == 7


def test_a_run_seen_late_and_idle_throughout_is_kept_whole() -> None:
    """Its first points are missing, not busy."""
    assert cut([None, 0, 0]) == [None, 0.0, 0.0]


def test_a_run_that_was_idle_throughout_is_kept_whole() -> None:
    """There is nothing else to judge."""
    assert cut([0, 0, 4]) == [0.0, 0.0, 1.0]


def test_one_busy_host_keeps_the_minute_of_all() -> None:
    """Every host must be idle for the head to be cut."""
    run = ran(180, instances=2)
    of = usage(run, series(CPU, [0, 40, 40]), series(CPU, [40, 40, 40], host="train/algo-2"))
    assert of.active().points == 3


def test_one_busy_core_of_many_is_work() -> None:
    """48 vCPUs: one core is 2 %, and no idle minute."""
    run = ran(120, "ml.g4dn.12xlarge")
    of = usage(run, series(CPU, [100, 100]), series(GPU, [0, 0])).active()
    assert of.points == 2


def algorithm(*points: float | None, host: str = "train", **changes: Any) -> RawSeries:
    """An algorithm metric: the job itself is its host."""
    plain: dict[str, Any] = {"metric": "validation:auc", "start": START, "period_s": 60}
    return RawSeries(host=host, values=points, **(plain | changes))


def curve(of: Measurements) -> list[tuple[float, float]]:
    """Its points as seconds from the job's start, and values."""
    points = of.curves["validation:auc"].points
    return [((moment - START).total_seconds(), value) for moment, value in points]


def test_an_algorithm_metric_is_a_curve() -> None:
    """Gaps, and what is not a number, leave no point."""
    of = usage(ran(600), algorithm(0.5, None, nan, 0.75, inf, -inf, -2.0))
    assert curve(of) == [(0, 0.5), (180, 0.75), (360, -2.0)]
    assert (of.series, of.period_s) == ({}, None)


def test_only_the_jobs_own_curves_count() -> None:
    """Neither another job's, nor one whose name begins alike, nor a host's."""
    others = [algorithm(1.0, host=host) for host in ("train-2", "other", "train/algo-1")]
    assert usage(ran(600), *others).curves == {}
    assert usage(ran(600), algorithm(None, nan)).curves == {}


def test_a_curve_holds_no_value_that_cloudwatch_would_not() -> None:
    """Sums of those would overflow."""
    assert usage(ran(600), algorithm(1.7e308, -(2.0**361))).curves == {}
    assert curve(usage(ran(600), algorithm(2.0**360)))[0][1] == 2.0**360


def test_a_curve_named_like_a_hosts_metric_stays_a_curve() -> None:
    """Code may print what it likes: it is nobody's utilisation."""
    of = usage(ran(600), algorithm(0.5, metric="GPUUtilization"))
    assert list(of.curves) == ["GPUUtilization"]
    assert (of.series, of.notes) == ({}, ())


def test_a_curves_points_lie_inside_the_work() -> None:
    """Training from 10:02:30 to 10:04:30 prints into the minutes 10:02, 10:03 and 10:04.

    The first of these began before the work: its point stands at the work's start.
    """
    begun = START + timedelta(seconds=150)
    run = job("ml.m5.xlarge", phases=(Phase("Training", begun, Decimal(120), billed=True),))
    of = usage(run, algorithm(*(float(n) for n in range(8))))
    assert curve(of) == [(150, 2.0), (180, 3.0), (240, 4.0)]


def test_a_curve_goes_on_after_an_interruption() -> None:
    """What lies between two Training phases was printed by neither."""
    parts = phases(("Training", 120), ("Interrupted", 120), ("Training", 120))
    of = usage(job("ml.m5.xlarge", phases=parts), algorithm(*(float(n) for n in range(8))))
    assert curve(of) == [(0, 0.0), (60, 1.0), (240, 4.0), (300, 5.0)]


def test_a_coarse_or_far_curve_does_not_raise() -> None:
    """An hour's point that covers the run is one; periods of a broken clock are none."""
    assert curve(usage(ran(600), algorithm(0.5, period_s=3600))) == [(0, 0.5)]
    far = algorithm(None, *([0.5] * 1000), period_s=10**9)
    assert usage(ran(600), far).curves == {}
    assert usage(ran(600, phases=()), algorithm(0.5)).curves == {}


def test_a_metric_without_points_when_active_is_missing() -> None:
    """Not a series of none; another host's points stay."""
    run = ran(600, "ml.m5.xlarge", 2)
    cpu = [series(CPU, [0] * 5 + [400] * 5, host=f"train/algo-{n}") for n in (1, 2)]
    early = [5, 5, *[None] * 8]
    memory = series(Metric.MEMORY, early)
    disk = [series(Metric.DISK, early), series(Metric.DISK, [5] * 10, host="train/algo-2")]
    of = usage(run, *cpu, memory, *disk).active()
    assert (of.points, of.missing[Metric.MEMORY].code) == (5, "metric_missing")
    assert set(of.series) == {CPU, Metric.DISK}
    assert list(of.series[Metric.DISK]) == ["train/algo-2"]


def test_curves_are_not_cut_with_the_idle_head() -> None:
    """A metric that comes while the hosts seem idle still counts."""
    of = usage(ran(300), series(CPU, [0, 0, 400, 400, 400]), algorithm(0.1, 0.2))
    assert of.active().points == 3
    assert curve(of.active()) == [(0, 0.1), (60, 0.2)]
