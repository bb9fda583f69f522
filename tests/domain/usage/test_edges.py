from collections import Counter
from typing import Any

import pytest

from sageaudit.domain.usage import measurements
from sageaudit.domain.usage.edges import (
    HostActivity,
    activity_by_host,
    host_activities,
    idle_head,
    idle_tail,
    periods_before_gpu,
)
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.series import ACTIVE, IDLE, UNKNOWN, cpu_states, gpu_states, standstills
from sageaudit.structs import replace
from tests.fakes.jobs import Points, ran, series, usage


def measurements_of(cpu: Points, gpu: Points | None = None) -> Measurements:
    """Returns sums of the CPU over 4 vCPUs; with `gpu`, also of a GPU."""
    seconds = 60 * len(cpu)
    if gpu is None:
        return usage(ran(seconds), series(Metric.CPU, cpu))
    run = ran(seconds, "ml.g4dn.xlarge")
    return usage(run, series(Metric.CPU, cpu), series(Metric.GPU, gpu))


def test_a_fifth_of_a_core_is_work_on_any_size() -> None:
    """20 of 100 of one vCPU, 5 of 4, and no answer if their number is unknown."""
    assert cpu_states((19.9, 20), 1) == bytes([IDLE, ACTIVE])
    assert cpu_states((4.9, 5), 4) == bytes([IDLE, ACTIVE])
    assert cpu_states((90,), None) == bytes([UNKNOWN])
    assert gpu_states((1, 1.1), 1) == bytes([IDLE, ACTIVE])
    assert gpu_states((0.1, 0.2), 8) == bytes([IDLE, ACTIVE])


@pytest.mark.parametrize(
    ("cpu", "gpu", "works"),
    [
        pytest.param(
            [0, 100, 0, 100, None, None],
            [0, 0, None, None, 50, 0],
            [IDLE, ACTIVE, UNKNOWN, ACTIVE, ACTIVE, UNKNOWN],
            id="a missing point leaves it open, unless the other one works",
        ),
        pytest.param(
            [0, 100],
            [None, None],
            [UNKNOWN, ACTIVE],
            id="without GPU points a GPU host is never known to be idle: its GPU may work",
        ),
    ],
)
def test_a_host_works_if_either_works_and_is_idle_if_both_are(
    cpu: Points, gpu: Points, works: list[int]
) -> None:
    """CPU and GPU."""
    assert activity_by_host(measurements_of(cpu, gpu)) == {"train/algo-1": bytes(works)}


def test_each_host_has_its_own_end_and_part() -> None:
    """A host that works only in its first six minutes takes no part. Work that begins later
    counts.
    """
    run = ran(1200, instances=3)
    measurements = usage(
        run,
        series(Metric.CPU, [100] * 20),
        series(Metric.CPU, [100] * 6 + [0] * 14, host="train/algo-2"),
        series(Metric.CPU, [0] * 7 + [100] + [0] * 12, host="train/algo-3"),
    )
    assert host_activities(measurements) == [
        HostActivity("train/algo-1", 0, 0, has_worked=True),
        HostActivity("train/algo-2", 0, 14, has_worked=False),
        HostActivity("train/algo-3", 7, 12, has_worked=True),
    ]


@pytest.mark.parametrize(
    ("cpu", "gpu", "head"),
    [
        ([0] * 5 + [100] * 5, None, range(5)),
        ([None] * 3 + [0] * 5 + [100] * 5, None, range(3, 8)),
        ([100] * 6 + [0] * 5 + [100] * 5, None, range(6, 11)),
        ([100] * 7 + [0] * 5 + [100] * 5, None, range(0)),
        ([0, 100, 0, 0, 0, 100], None, range(2, 5)),
        ([0] * 5 + [None] * 3 + [0] * 5 + [100], None, range(13)),
        ([0] * 5 + [None] * 4 + [0] * 5 + [100], None, range(5)),
        ([100] * 3 + [0] * 9, None, range(0)),
        ([0] * 9, None, range(0)),
        ([], None, range(0)),
        # GPU work ends the start: what is idle after it is a pause
        ([100, 0, 0, 100], [50, 0, 0, 50], range(0)),
        ([100, 0, 0, 100], [0, 0, 0, 50], range(1, 3)),
    ],
)
def test_the_head_is_the_longest_known_idle_stretch_at_the_start(
    cpu: Points, gpu: Points | None, head: range
) -> None:
    """It begins within six minutes and is followed by work."""
    assert idle_head(measurements_of(cpu, gpu)) == head


@pytest.mark.parametrize(
    ("gpu", "wait"),
    [
        ([0, 0, 50, 0], range(2)),
        ([None, None, 0, 0, 50], range(2, 4)),
        ([None] * 7 + [0, 50], range(0)),
        ([0, None, 0, 50], range(3)),
        ([0, None, None, None, None, 0, 50], range(0)),
        ([0, 0, 0], range(0)),
        ([50, 0], range(0)),
        (None, range(0)),
    ],
)
def test_the_wait_for_the_gpu_is_known_throughout(gpu: Points | None, wait: range) -> None:
    """From its first point to its first work. A CPU job has none."""
    assert [*periods_before_gpu(measurements_of([100] * len(gpu or (0, 100)), gpu))] == [*wait]


@pytest.mark.parametrize(
    ("cpu", "period_s", "tail"),
    [
        # up to three lost points between idle ones or at the end; next to work they are unknown
        ([100, 0, 0], 60, range(1, 3)),
        ([100, 0, None, None, None], 60, range(1, 5)),
        ([100, 0, *[None] * 4], 60, range(6, 6)),
        ([100, None, 0], 60, range(2, 3)),
        ([0, 0], 60, range(2)),
        # one lost point of five minutes is not a short gap
        ([100, 0, None, 0], 300, range(3, 4)),
    ],
)
def test_a_short_gap_in_idleness_is_idle(cpu: Points, period_s: int, tail: range) -> None:
    """The limit is in seconds."""
    assert idle_tail(replace(measurements_of(cpu), period_s=period_s)) == tail


def test_a_standstill_is_searched_only_in_hosts_whose_gpus_pause_longer_than_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of eight hosts, seven idle at their end; the GPUs of one wait for a process of its own."""
    searches = Counter[str]()

    def search(*arguments: Any) -> tuple[range, ...]:
        searches["in all"] += 1
        return standstills(*arguments)

    monkeypatch.setattr(measurements, "standstills", search)
    run = ran(100 * 60, "ml.g4dn.xlarge", 8)
    lines = [
        series(metric, [100.0] * 60 + [value] * 40, host=f"train/algo-{number}")
        for number, cores in enumerate([100.0] + [0.0] * 7, 1)
        for metric, value in ((Metric.CPU, cores), (Metric.GPU, 0.0))
    ]
    ends = host_activities(usage(run, *lines))
    assert [end.idle_tail_periods for end in ends] == [40] * 8
    assert searches.total() == 1
