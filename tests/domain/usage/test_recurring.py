"""Which standstills are a phase of the program, at the bounds of equal and evenly spaced."""

from collections.abc import Sequence

import pytest

from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.recurring import recurring_standstills
from tests.fakes.jobs import ran, series, usage

Part = tuple[str, int]


def run(parts: Sequence[Part], period_s: int = 60, cores: float = 1.0) -> Measurements:
    """Parts of so many periods: the GPU `works`, one core is at work in a `wait`, or `gap`."""
    gpu, cpu = list[float | None](), list[float | None]()
    for what, periods in parts:
        gpu += [{"work": 90.0, "wait": 0.0, "sleep": 0.0, "gap": None}[what]] * periods
        busy = {"work": 300.0, "wait": 100 * cores, "sleep": 5.0, "gap": None}
        cpu += [busy[what]] * periods
    job = ran(len(gpu) * period_s, "ml.g4dn.2xlarge")
    lines = ((Metric.GPU, gpu), (Metric.CPU, cpu))
    return usage(job, *(series(metric, line, period_s=period_s) for metric, line in lines))


def turns(works: Sequence[int], waits: Sequence[int]) -> list[Part]:
    """Work and waits in turns, and work at the end."""
    pairs = zip(works, waits, strict=False)
    parts = [part for work, wait in pairs for part in (("work", work), ("wait", wait))]
    return [*parts, ("work", works[-1])]


def lengths(parts: Sequence[Part], **options: float) -> list[int]:
    """The periods of the standstills that recur."""
    return [len(still) for still in recurring_standstills(run(parts, **options))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("works", "waits", "recurs"),
    [
        # three of one length at one beat; of two there is one distance, which says nothing
        ((120, 120, 120, 50), (40, 40, 40), 3),
        ((120, 120, 50), (40, 40), 0),
        # the first comes when the first epoch is over, or at once after a warm-up
        ((3, 120, 120, 50), (40, 40, 40), 3),
        ((400, 120, 120, 50), (40, 40, 40), 3),
        # a length may differ by a fifth: 8 minutes of 40
        ((120, 120, 120, 50), (40, 48, 32), 3),
        ((120, 120, 120, 50), (40, 49, 40), 0),
        ((120, 120, 120, 50), (40, 31, 40), 0),
        # a distance by a tenth of itself: 160 minutes, and 177 or 178
        ((120, 120, 137, 50), (40, 40, 40), 3),
        ((120, 120, 138, 50), (40, 40, 40), 0),
        # one that was too short for a standstill leaves two or three beats between its neighbours
        ((120, 120, 120, 120, 50), (40, 29, 40, 40), 3),
        ((120, 120, 120, 120, 120, 50), (40, 29, 29, 40, 40), 3),
        ((120, 120, 120, 120, 120, 120, 50), (40, 29, 29, 29, 40, 40), 0),
        # a hang between two of them is not of their beat
        ((120, 60, 60, 120, 50), (40, 200, 40, 40), 3),
        # nor are hangs that come when they like
        ((50, 300, 20, 90), (35, 35, 35), 0),
    ],
)
def test_three_equal_evenly_spaced_waits_are_a_phase(
    works: tuple[int, ...], waits: tuple[int, ...], recurs: int
) -> None:
    """In minutes."""
    assert len(lengths(turns(works, waits))) == recurs


def test_a_period_of_five_minutes_cuts_a_period_at_each_end() -> None:
    """8, 6 and 10 periods are equal; 5 are not. A beat of 20 periods may be 22, not 23."""
    assert len(lengths(turns((12, 12, 14, 9), (8, 8, 8)), period_s=300)) == 3
    assert len(lengths(turns((12, 12, 14, 9), (8, 6, 10)), period_s=300)) == 3
    assert lengths(turns((12, 12, 14, 9), (8, 6, 11)), period_s=300) == []
    assert lengths(turns((12, 12, 15, 9), (8, 8, 8)), period_s=300) == []


def test_the_last_one_may_be_cut_by_the_end_of_the_run() -> None:
    """Shorter, or as long; a longer one hangs."""
    works = [("work", 120), ("wait", 45)] * 2 + [("work", 120)]
    assert lengths([*works, ("wait", 32)]) == [45, 45, 32]
    assert lengths([*works, ("wait", 54)]) == [45, 45, 54]
    assert lengths([*works, ("wait", 55)]) == []


def test_lost_points_hide_one_and_not_the_beat() -> None:
    """A gap in a wait makes two short ones of it; a missing minute makes no difference."""
    torn = [("wait", 20), ("gap", 5), ("wait", 15)]
    whole = [("wait", 20), ("gap", 1), ("wait", 19)]
    parts = [("work", 120), ("wait", 40), ("work", 120), *torn, ("work", 120), *whole]
    parts += [("work", 120), ("wait", 40), ("work", 9)]
    assert lengths(parts) == [40, 40, 40]


def test_waits_without_a_busy_core_are_no_phase() -> None:
    """Nothing worked in them, or too little for a process at work."""
    asleep = [("work", 120), ("sleep", 40)] * 4
    assert lengths([*asleep, ("work", 9)]) == []
    parts = turns((120, 120, 120, 9), (40, 40, 40))
    assert len(lengths(parts, cores=0.5)) == 3
    assert lengths(parts, cores=0.49) == []


def test_without_standstills_there_is_no_phase() -> None:
    """A job on CPUs has none."""
    quiet = usage(ran(7200), series(Metric.CPU, [100.0] * 120))
    assert recurring_standstills(quiet) == ()
