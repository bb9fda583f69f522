from datetime import timedelta
from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest

from sageaudit.domain.job.job import InstanceGroup, Job, Phase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, MissingMetrics, RawSeries
from tests.fakes.jobs import START, TYPES, Points, instance_type, job, phases, ran, series, usage

MINUTE = timedelta(minutes=1)
CPU = Metric.CPU
MEMORY = Metric.MEMORY
GPU = Metric.GPU
GPU_MEMORY = Metric.GPU_MEMORY
DISK = Metric.DISK


def values(usage: Measurements, metric: Metric, host: str = "train/algo-1") -> list[float | None]:
    """Returns one host's points, to a tenth of a percent."""
    points = usage.series[metric][host].values
    return [None if value is None else round(value, 1) for value in points]


TRAINED = phases(("Downloading", 120), ("Training", 180), ("Uploading", 60))
HALF_PAST = (Phase("Training", START + timedelta(seconds=30), Decimal(180), billed=True),)
TWICE = phases(("Training", 120), ("Interrupted", 120), ("Training", 60))
MIXED = (InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.m5.xlarge", 1))
ALIKE = (InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.g4dn.2xlarge", 1))


@pytest.mark.parametrize(
    ("run", "read", "metric", "expected"),
    [
        pytest.param(
            ran(180, "ml.g4dn.xlarge"),
            series(CPU, [100.8, 400, 0]),
            CPU,
            [25.2, 100.0, 0.0],
            id="one busy core of a 4-vCPU g4dn.xlarge reads 100.8: that is 25.2 %",
        ),
        # sums over four GPUs and their memory; memory and disk are the host's own
        pytest.param(
            ran(120, "ml.g4dn.12xlarge"),
            series(GPU, [100, 400]),
            GPU,
            [25.0, 100.0],
            id="a sum over four GPUs",
        ),
        pytest.param(
            ran(120, "ml.g4dn.12xlarge"),
            series(GPU_MEMORY, [40, 200]),
            GPU_MEMORY,
            [10.0, 50.0],
            id="a sum over the memory of four GPUs",
        ),
        pytest.param(
            ran(120, "ml.g4dn.12xlarge"),
            series(MEMORY, [50, 100]),
            MEMORY,
            [50.0, 100.0],
            id="memory is the host's own",
        ),
        pytest.param(
            ran(120, "ml.g4dn.12xlarge"),
            series(DISK, [1, 2]),
            DISK,
            [1.0, 2.0],
            id="disk is the host's own",
        ),
        # Downloading before and Uploading after would dilute it
        pytest.param(
            job("ml.m5.xlarge", phases=TRAINED),
            series(CPU, [4, 8, 100, 200, 300, 12, 16, 20]),
            CPU,
            [25.0, 50.0, 75.0],
            id="Downloading before and Uploading after would dilute Training",
        ),
        pytest.param(
            job("ml.m5.xlarge", phases=HALF_PAST),
            series(CPU, [40, 80, 120, 160]),
            CPU,
            [20.0, 30.0],
            id="Training from 10:00:30 to 10:03:30 has two whole minutes",
        ),
        pytest.param(
            ran(300, phases=TWICE),
            series(CPU, [40, 80, 1, 1, 120]),
            CPU,
            [10.0, 20.0, 30.0],
            id="an interrupted run trained twice; the waiting between is not in it",
        ),
        pytest.param(
            ran(120),
            series(CPU, [1, 2, 40, 80], start=START - 2 * MINUTE),
            CPU,
            [10.0, 20.0],
            id="the series may begin anywhere",
        ),
        # what no utilisation can be is missing; real busy cores read up to 100.8
        *(
            (ran(120), series(CPU, [40, broken]), CPU, [10.0, None])
            for broken in (nan, inf, -inf, -1.0, 421.0, 1e300)
        ),
        pytest.param(
            ran(60), series(CPU, [403.2]), CPU, [100.0], id="a real busy core reads up to 100.8"
        ),
        # null in the series, and minutes before the first and after the last point: never 0
        pytest.param(
            ran(360),
            series(CPU, [40, None, 80], start=START + MINUTE),
            CPU,
            [None, 10.0, None, 20.0, None, None],
            id=(
                "null in the series, and minutes before the first and after the last point, "
                "are never 0"
            ),
        ),
        pytest.param(
            ran(60, groups=MIXED),
            series(MEMORY, [30]),
            MEMORY,
            [30.0],
            id="memory is a share already, so that a mixed cluster needs no map",
        ),
        # two groups of 8 vCPUs and one GPU each: every host is alike
        pytest.param(
            ran(60, groups=ALIKE),
            series(CPU, [400]),
            CPU,
            [50.0],
            id="the CPUs of two groups with 8 vCPUs each",
        ),
        pytest.param(
            ran(60, groups=ALIKE),
            series(GPU, [50]),
            GPU,
            [50.0],
            id="the GPUs of two groups with one GPU each",
        ),
    ],
)
def test_points_become_percentages_of_a_host(
    run: Job, read: RawSeries, metric: Metric, expected: list[float | None]
) -> None:
    """0..100 of all vCPUs, GPUs or memory, in whole periods of the Training phase."""
    measurements = usage(run, read)
    assert values(measurements, metric) == expected
    assert (measurements.points, measurements.period_s, measurements.minutes) == (
        len(expected),
        60,
        len(expected),
    )
    present = [value for value in expected if value is not None]
    assert measurements.share(metric) == pytest.approx(
        len(present) / len(expected) / (run.instance_count or 1)
    )


@pytest.mark.parametrize(
    ("run", "cpu", "metric", "code"),
    [
        pytest.param(
            ran(60, "ml.g4dn.xlarge"),
            series(CPU, [40]),
            GPU,
            "metric_missing",
            id="the adapter says why a metric has no series",
        ),
        pytest.param(
            ran(60),
            series(CPU, [40], start=START + timedelta(hours=5)),
            CPU,
            "metric_missing",
            id="clock offsets of whole hours happen in recordings",
        ),
        pytest.param(ran(60), series(CPU, [None]), CPU, "metric_missing", id="a series of nulls"),
        # not unknown: there is no GPU
        pytest.param(ran(60), series(CPU, [40]), GPU, "no_gpu", id="a host without GPUs"),
        pytest.param(
            ran(60),
            series(CPU, [40]),
            GPU_MEMORY,
            "no_gpu",
            id="a host without GPUs has no GPU memory",
        ),
        pytest.param(
            ran(60, "ml.new.xlarge"),
            series(CPU, [40]),
            CPU,
            "type_unknown",
            id="without the number of vCPUs a sum over cores says nothing",
        ),
        pytest.param(
            ran(60, groups=()),
            series(CPU, [40]),
            CPU,
            "type_unknown",
            id="without an instance type a sum over cores says nothing",
        ),
        pytest.param(
            ran(60, groups=MIXED),
            series(CPU, [40]),
            CPU,
            "hosts_unmapped",
            id="Describe does not say which host is of which group",
        ),
        pytest.param(
            ran(60, groups=MIXED),
            series(CPU, [40]),
            GPU,
            "hosts_unmapped",
            id="nor whose GPUs a series has",
        ),
        # series of another job's hosts, whose name may begin alike
        pytest.param(
            ran(60),
            series(CPU, [40], host="train-2/algo-1"),
            CPU,
            "metric_missing",
            id="another job's hosts may have names that begin alike",
        ),
        pytest.param(
            ran(60),
            series(DISK, [40], period_s=3600),
            CPU,
            "metric_missing",
            id="hourly points of a disk blur neither CPU nor GPU",
        ),
    ],
)
def test_an_unknown_metric_is_missing_with_its_reason(
    run: Job, cpu: RawSeries, metric: Metric, code: str
) -> None:
    """It is never an empty series, nor 0."""
    measurements = usage(run, cpu)
    assert (
        measurements.missing[metric].code,
        metric in measurements.series,
        measurements.share(metric),
    ) == (code, False, None)


def test_a_coarse_series_does_not_change_the_grid_of_cpu_and_gpu() -> None:
    """With hourly points the disk is missing. Other jobs' hosts are left out with a note."""
    measurements = usage(
        ran(7200),
        series(CPU, [40] * 120),
        series(CPU, [80] * 120, host="train-2/algo-1"),
        series(DISK, [1, 2], period_s=3600),
    )
    assert (measurements.period_s, measurements.hosts, measurements.missing[DISK].code) == (
        60,
        ("train/algo-1",),
        "period_too_coarse",
    )
    assert measurements.notes == ("1 series are not of this job's hosts",)


def test_an_accelerator_without_a_metric_may_be_working() -> None:
    """Trainium has no GPU points, but a quiet CPU is not an idle head."""
    neuron = instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron")
    run = ran(600, neuron.name)
    quiet = [series(CPU, [1] * 5 + [400] * 5)]
    usage = measure(
        run,
        quiet,
        {neuron.name: neuron},
        missing_reason=MissingMetrics("metric_missing", "no points"),
    )
    assert (usage.gpus, usage.missing[GPU].code) == (None, "accelerator_unseen")
    assert usage.active_part().points == 10
    mixed = ran(600, groups=(InstanceGroup(neuron.name, 1), InstanceGroup("ml.m5.2xlarge", 1)))
    beside = measure(mixed, quiet, TYPES | {neuron.name: neuron}, missing_reason=usage.missing[GPU])
    assert beside.missing[GPU].code == "accelerator_unseen"
    assert beside.vcpu == 8


@pytest.mark.parametrize(
    ("kind", "work"),
    [
        (JobKind.TRAINING, "Training"),
        (JobKind.PROCESSING, "Processing"),
        (JobKind.TRANSFORM, "Transform"),
    ],
)
def test_a_host_without_series_lowers_the_coverage(kind: JobKind, work: str) -> None:
    """One of four hosts has points: a quarter of the points, for every kind of job."""
    run = ran(120, instances=4, kind=kind, phases=phases((work, 120)))
    measurements = usage(run, series(CPU, [40, 80]))
    assert (measurements.share(CPU), measurements.hosts_expected) == (pytest.approx(0.25), 4)


def test_hosts_come_in_the_order_of_their_numbers() -> None:
    """algo-2 before algo-10."""
    names = [f"train/algo-{n}" for n in (10, 2, 1)]
    measurements = usage(ran(60, instances=10), *(series(CPU, [40], host=name) for name in names))
    assert measurements.hosts == ("train/algo-1", "train/algo-2", "train/algo-10")


def test_series_of_two_periods_share_the_coarser_grid() -> None:
    """The series of a recording may have their own period. Minutes are averaged to 5 minutes."""
    run = ran(600, "ml.g4dn.xlarge")
    measurements = usage(
        run,
        series(CPU, [40, 80, 120, 160, 200, 40, None, 40, 40, 40]),
        series(GPU, [10, 30], period_s=300),
    )
    assert measurements.period_s == 300
    assert values(measurements, GPU) == [10.0, 30.0]
    assert values(measurements, CPU) == [30.0, 10.0]


def test_a_broken_clock_is_read_quickly() -> None:
    """A run of 200 years has no more points than the longest job."""
    run = ran(60, phases=(Phase("Training", START, Decimal(6_300_000_000), billed=True),))
    assert usage(run, series(CPU, [40])).points == 100_000


def active_cpu(cpu: Points, gpu: Points | None = None) -> list[float | None]:
    """Returns the CPU points of the active minutes of a g4dn.xlarge (m5.xlarge without `gpu`)."""
    minutes = 60 * len(cpu)
    if gpu is None:
        return values(usage(ran(minutes), series(CPU, cpu)).active_part(), CPU)
    run = ran(minutes, "ml.g4dn.xlarge")
    return values(usage(run, series(CPU, cpu), series(GPU, gpu)).active_part(), CPU)


@pytest.mark.parametrize(
    ("cpu", "gpu", "active"),
    [
        # under 0.2 of 4 cores is idle; what is idle in the middle stays
        ([0, 19, 40, 0, 80, 4, 0], None, [10.0, 0.0, 20.0]),
        ([19.9, 20, 19.9], None, [5.0]),
        # an idle core is not an idle head while the GPU works
        ([0, 0, 40, 0], [0, 50, 50, 0], [0.0, 10.0]),
        # a missing signal counts as active: nothing is cut that was not seen idle
        ([None, 40, 0], None, [None, 10.0]),
        ([0, 40, 40], [None, 50, 50], [0.0, 10.0, 10.0]),
        # what is idle when it is first seen, within six minutes, was so before; work was not
        ([0] * 8 + [40] * 2, [None] * 6 + [0] * 2 + [50] * 2, [10.0, 10.0]),
        ([None] * 7 + [0] * 2 + [40], None, [None] * 7 + [0.0] * 2 + [10.0]),
        ([None] * 3 + [40] + [0] * 2 + [40], None, [None] * 3 + [10.0] + [0.0] * 2 + [10.0]),
        # a run that was idle in all its points is not cut
        ([None, 0, 0], None, [None, 0.0, 0.0]),
        ([0, 0, 4], None, [0.0, 0.0, 1.0]),
    ],
)
def test_the_idle_head_and_tail_are_not_active_minutes(
    cpu: Points, gpu: Points | None, active: list[float | None]
) -> None:
    """One point a minute of the CPU, and of the GPU if there is one."""
    assert active_cpu(cpu, gpu) == active


def test_one_busy_host_or_core_makes_a_minute_active() -> None:
    """The head is cut only if every host is idle. One core of 48 vCPUs is 2%."""
    run = ran(180, instances=2)
    measurements = usage(
        run, series(CPU, [0, 40, 40]), series(CPU, [40, 40, 40], host="train/algo-2")
    )
    assert measurements.active_part().points == 3
    large = ran(120, "ml.g4dn.12xlarge")
    assert usage(large, series(CPU, [100, 100]), series(GPU, [0, 0])).active_part().points == 2


def algorithm(*points: float | None, host: str = "train", **changes: Any) -> RawSeries:
    """Returns an algorithm metric, whose host is the job itself."""
    plain: dict[str, Any] = {"metric": "validation:auc", "start": START, "period_s": 60}
    return RawSeries(host=host, values=points, **(plain | changes))


def curve(usage: Measurements, name: str = "validation:auc") -> list[tuple[float, float]]:
    """Returns its points as seconds from the job's start, and values; None without a curve."""
    points = usage.curves[name].points if name in usage.curves else ()
    return [((moment - START).total_seconds(), value) for moment, value in points]


EIGHT = algorithm(*(float(n) for n in range(8)))
LATE = (Phase("Training", START + timedelta(seconds=150), Decimal(120), billed=True),)
AGAIN = phases(("Training", 120), ("Interrupted", 120), ("Training", 120))


@pytest.mark.parametrize(
    ("run", "read", "expected"),
    [
        pytest.param(
            ran(600),
            algorithm(0.5, None, nan, 0.75, inf, -inf, -2.0),
            [(0, 0.5), (180, 0.75), (360, -2.0)],
            id="gaps, and what is not a number, leave no point",
        ),
        # neither another job's, nor a host's, nor values that CloudWatch does not accept
        *(
            (ran(600), algorithm(1.0, host=host), [])
            for host in ("train-2", "other", "train/algo-1")
        ),
        pytest.param(ran(600), algorithm(None, nan), [], id="nothing but gaps"),
        pytest.param(
            ran(600),
            algorithm(1.7e308, -(2.0**361)),
            [],
            id="values that CloudWatch would not take",
        ),
        pytest.param(
            ran(600),
            algorithm(2.0**360),
            [(0, 2.0**360)],
            id="the largest value that CloudWatch takes",
        ),
        # Training from 10:02:30 to 10:04:30 prints into the minutes 10:02, 10:03 and 10:04; the
        # first of these began before the work: its point moves to the work's start
        pytest.param(
            job("ml.m5.xlarge", phases=LATE),
            EIGHT,
            [(150, 2.0), (180, 3.0), (240, 4.0)],
            id="Training that begins inside a minute has that minute's point at its start",
        ),
        pytest.param(
            job("ml.m5.xlarge", phases=AGAIN),
            EIGHT,
            [(0, 0.0), (60, 1.0), (240, 4.0), (300, 5.0)],
            id="what lies between two Training phases was printed by neither",
        ),
        # an hour's point that covers the run is one; periods of a broken clock are none
        pytest.param(
            ran(600),
            algorithm(0.5, period_s=3600),
            [(0, 0.5)],
            id="a point of an hour that covers the run",
        ),
        pytest.param(
            ran(600),
            algorithm(None, *([0.5] * 1000), period_s=10**9),
            [],
            id="a period of a broken clock",
        ),
        pytest.param(ran(600, phases=()), algorithm(0.5), [], id="a run without phases"),
    ],
)
def test_an_algorithm_metric_is_a_curve_inside_the_jobs_work(
    run: Job, read: RawSeries, expected: list[tuple[float, float]]
) -> None:
    """It has the job's own name, and is not a host's."""
    measurements = usage(run, read, series(CPU, [40]))
    assert (curve(measurements), measurements.hosts) == (
        expected,
        usage(run, series(CPU, [40])).hosts,
    )


def test_a_curve_named_like_a_hosts_metric_stays_a_curve() -> None:
    """Code may report any name. The curve is not a utilisation, and does not make a grid."""
    measurements = usage(ran(600), algorithm(0.5, metric="GPUUtilization"))
    assert list(measurements.curves) == ["GPUUtilization"]
    assert (measurements.series, measurements.notes, measurements.period_s) == ({}, (), None)


def test_a_metric_without_points_when_active_is_missing() -> None:
    """It is not an empty series. Another host's points stay."""
    run = ran(600, "ml.m5.xlarge", 2)
    cpu = [series(CPU, [0] * 5 + [400] * 5, host=f"train/algo-{n}") for n in (1, 2)]
    early = [5, 5, *[None] * 8]
    memory = series(MEMORY, early)
    disk = [series(DISK, early), series(DISK, [5] * 10, host="train/algo-2")]
    measurements = usage(run, *cpu, memory, *disk).active_part()
    assert (measurements.points, measurements.missing[MEMORY].code) == (5, "metric_missing")
    assert set(measurements.series) == {CPU, DISK}
    assert list(measurements.series[DISK]) == ["train/algo-2"]
    # a curve's points come while the hosts seem idle too, and are not cut
    measurements = usage(ran(300), series(CPU, [0, 0, 400, 400, 400]), algorithm(0.1, 0.2))
    assert (measurements.active_part().points, curve(measurements.active_part())) == (
        3,
        [(0, 0.1), (60, 0.2)],
    )


def late_usage(kind: JobKind, minutes: int, *other_series: RawSeries) -> Measurements:
    """Returns an hour of one CPU whose points begin this many minutes late."""
    run = ran(3600, kind=kind, phases=phases((PHASES_OF[kind], 3600)))
    return usage(run, series(Metric.CPU, [None] * minutes + [50.0] * (60 - minutes)), *other_series)


PHASES_OF = {JobKind.TRAINING: "Training", JobKind.PROCESSING: "Processing"}


def test_processing_starts_at_its_first_point_and_training_with_its_phase() -> None:
    """A processing job has no phase for its download, and a download is never most of a run."""
    assert late_usage(JobKind.TRAINING, 20).points == 60
    processing = late_usage(JobKind.PROCESSING, 20)
    assert (processing.points, processing.begins_at) == (40, START + timedelta(minutes=20))
    assert late_usage(JobKind.PROCESSING, 31).points == 60
    disk = series(Metric.DISK, [1.0] * 60)
    assert late_usage(JobKind.PROCESSING, 20, disk).points == 40
