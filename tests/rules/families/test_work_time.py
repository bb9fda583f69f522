from datetime import timedelta

from sageaudit.domain.usage.measurements import Metric
from sageaudit.rules.families.metric_plateau import work_end, work_seconds
from tests.fakes.jobs import START, ran, series, usage

HOUR = timedelta(hours=1)
TWICE = [(START, START + HOUR), (START + 3 * HOUR, START + 4 * HOUR)]
RUN = ran(3600, "ml.m5.xlarge")


def test_only_work_is_counted() -> None:
    """Half of each of two hours, not the two between them."""
    half = HOUR / 2
    assert work_seconds(TWICE, START + half, START + 3 * HOUR + half) == 3600
    assert work_seconds(TWICE, START + HOUR, START + 3 * HOUR) == 0
    assert work_seconds(TWICE, START + 2 * HOUR, START) == 0
    assert work_seconds([], START, START + HOUR) == 0


def test_an_idle_tail_ends_the_work() -> None:
    """20 of 60 minutes; busy to the end, and without metrics, it is the window's own end."""
    window = [(START, START + HOUR)]
    tail = usage(RUN, series(Metric.CPU, [200] * 40 + [0] * 20))
    assert work_end(window, tail) == START + timedelta(minutes=40)
    busy = usage(RUN, series(Metric.CPU, [0] * 20 + [200] * 40))
    assert work_end(window, busy) == START + HOUR
    assert work_end(window, usage(RUN)) == START + HOUR


def test_a_run_that_never_worked_has_no_busy_time() -> None:
    """All of it is tail."""
    idle = usage(RUN, series(Metric.CPU, [0] * 60))
    assert work_end([(START, START + HOUR)], idle) == START
