"""The active minutes of a family's last runs, one run after the other."""

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.usage.judged_use import (
    ENOUGH_MINUTES,
    pool_runs,
    short_run_usage,
    usage_digest,
)
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import flat, job, ran, series, usage


def gpu_run(gpu: Sequence[float | None], cpu: float = 100.0) -> Measurements:
    """Returns a minute for each point of the GPU, with some work of the CPU."""
    cpu_points = [None if value is None else cpu for value in gpu]
    run = ran(60 * len(gpu), "ml.g5.2xlarge")
    return usage(run, series(Metric.CPU, cpu_points), series(Metric.GPU, list(gpu)))


def own_minutes(recorded: Measurements) -> Measurements:
    """Returns the active minutes of a short run."""
    active = short_run_usage(recorded)
    assert active is not None
    return active


def gpu_points(recorded: Measurements) -> list[float | None]:
    """Returns the GPU points of the only host."""
    [line] = recorded.series[Metric.GPU].values()
    return list(line.values)


def test_the_oldest_run_comes_first_and_the_own_last() -> None:
    """The hosts are the run's own, so that the pool reads as one run."""
    newest, oldest = gpu_run([2.0] * 5), gpu_run([1.0] * 4)
    pool = pool_runs(own_minutes(gpu_run([3.0] * 6)), [("newest", newest), ("oldest", oldest)])
    assert pool.names == ("newest", "oldest")
    assert (pool.runs, pool.usage.points, pool.own_usage.points) == (3, 15, 6)
    assert gpu_points(pool.usage) == [1.0] * 4 + [2.0] * 5 + [3.0] * 6
    assert pool.has_enough_minutes
    assert pool.usage.hosts == pool.own_usage.hosts


def test_no_more_is_read_than_is_needed() -> None:
    """Each earlier run is a read of the table."""
    read: list[str] = []

    def runs() -> Iterator[tuple[str, Measurements]]:
        for number in range(9):
            read.append(f"run-{number}")
            yield read[-1], gpu_run([1.0] * 14)

    pool = pool_runs(own_minutes(gpu_run([1.0] * 14)), runs())
    assert read == list(pool.names) == ["run-0", "run-1", "run-2"]
    assert pool.usage.minutes == 56 >= ENOUGH_MINUTES


def test_runs_of_other_shape_are_left_out() -> None:
    """With other hosts or fewer metrics, or so long that they are judged alone.

    The run alone has too few minutes.
    """
    hosts = flat(job("ml.g5.2xlarge", instances=2), 10, hosts=2, cpu=50, gpu=1)
    bare = usage(ran(600, "ml.g5.2xlarge"), series(Metric.CPU, [100.0] * 10))
    long = gpu_run([1.0] * 30)
    pool = pool_runs(
        own_minutes(gpu_run([1.0] * 14)), [("two", hosts), ("bare", bare), ("long", long)]
    )
    assert (pool.names, pool.has_enough_minutes) == ((), False)


def test_minutes_before_the_first_point_count_for_peaks_only() -> None:
    """A third of a short run may lack its GPU points, which come late."""
    run = ran(360, "ml.g5.2xlarge")
    late = usage(
        run,
        series(Metric.CPU, [700.0, 100.0, 100.0, 100.0, 100.0, 100.0]),
        series(Metric.GPU, [None, None, None, 40.0, 50.0, 60.0]),
    )
    pool = pool_runs(own_minutes(late), [("before", late)])
    assert gpu_points(pool.usage) == [40.0, 50.0, 60.0] * 2
    assert pool.own_usage.minutes == 3
    of_all, of_own = pool.usage_for_peaks
    assert (of_all.minutes, of_own.minutes) == (12, 6)
    [cpu] = of_own.series[Metric.CPU].values()
    assert max(cpu.present) == 87.5


def test_a_run_is_short_with_less_than_15_active_minutes() -> None:
    """A long run with fewer active minutes is short, too. A run that never worked adds nothing."""
    assert short_run_usage(gpu_run([1.0] * 15)) is None
    assert short_run_usage(gpu_run([1.0] * 14)) is not None
    cpu, idle = [0.0] * 40 + [100.0] * 14 + [0.0] * 6, series(Metric.GPU, [0.0] * 60)
    run = ran(3600, "ml.g5.2xlarge")
    assert own_minutes(usage(run, series(Metric.CPU, cpu), idle)).minutes == 14
    hung = usage(run, series(Metric.CPU, [0.0] * 60), idle)
    assert short_run_usage(hung) is usage_digest(hung) is None


percents = st.lists(st.floats(2, 100), min_size=1, max_size=14)


@given(percents, st.lists(percents, max_size=5))
def test_a_pool_has_all_minutes_of_its_runs_and_no_others(
    mine: list[float], others: list[list[float]]
) -> None:
    """None is counted twice, none is invented, and the run's own are always included."""
    runs = [(f"run-{number}", gpu_run(values)) for number, values in enumerate(others)]
    pool = pool_runs(own_minutes(gpu_run(mine)), runs)
    used = [gpu_points(run) for name, run in reversed(runs) if name in pool.names]
    expected = [value for values in used for value in values] + gpu_points(pool.own_usage)
    assert gpu_points(pool.usage) == expected
    assert pool.usage.points == len(expected)


@given(percents, percents)
def test_the_digest_tells_whether_the_minutes_are_the_same(
    first_points: list[float], second_points: list[float]
) -> None:
    """To a tenth of a percent, as they are stored."""
    same = [round(value * 10) for value in first_points] == [
        round(value * 10) for value in second_points
    ]
    assert (usage_digest(gpu_run(first_points)) == usage_digest(gpu_run(second_points))) is same
