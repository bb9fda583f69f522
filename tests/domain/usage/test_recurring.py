"""Which standstills may be a phase of the program, at the limits of similar length."""

from collections.abc import Sequence

import pytest

from sageaudit.domain.usage.edges import recurring_standstills
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import ran, series, usage

Part = tuple[str, int]


def run(parts: Sequence[Part], period_s: int = 60, cores: float = 1.0) -> Measurements:
    """Returns parts of these periods: the GPU `works`, one core is busy in a `wait`, or a `gap`."""
    gpu, cpu = list[float | None](), list[float | None]()
    for what, periods in parts:
        gpu += [{"work": 90.0, "wait": 0.0, "sleep": 0.0, "gap": None}[what]] * periods
        busy = {"work": 300.0, "wait": 100 * cores, "sleep": 5.0, "gap": None}
        cpu += [busy[what]] * periods
    job = ran(len(gpu) * period_s, "ml.g4dn.2xlarge")
    lines = ((Metric.GPU, gpu), (Metric.CPU, cpu))
    return usage(job, *(series(metric, line, period_s=period_s) for metric, line in lines))


def turns(works: Sequence[int], waits: Sequence[int]) -> list[Part]:
    """Returns alternating work and waits, with work at the end."""
    pairs = zip(works, waits, strict=False)
    parts = [part for work, wait in pairs for part in (("work", work), ("wait", wait))]
    return [*parts, ("work", works[-1])]


def lengths(parts: Sequence[Part], **options: float) -> list[int]:
    """Returns the periods of the standstills that recur."""
    return [len(still) for still in recurring_standstills(run(parts, **options))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("waits", "recur"),
    [
        ((40, 40, 40), [40, 40, 40]),
        ((40, 40), [40, 40]),
        ((40,), []),
        # one and a half times as long, or as short, as the middle one
        ((40, 60, 40), [40, 60, 40]),
        ((40, 61, 40), [40, 40]),
        ((60, 40, 60), [60, 40, 60]),
        ((60, 39, 60), [60, 60]),
        # they vary, or grow
        ((31, 50, 38, 45), [31, 50, 38, 45]),
        ((32, 36, 40, 44), [32, 36, 40, 44]),
        # the first one also loads; a hang between them does not count
        ((60, 40, 40, 40), [60, 40, 40, 40]),
        ((35, 35, 150, 35), [35, 35, 35]),
        # two of which one hangs
        ((40, 150), []),
        # one that is too short for a standstill does not affect the others
        ((40, 29, 40, 40), [40, 40, 40]),
    ],
)
def test_waits_of_similar_length_may_be_a_phase(waits: tuple[int, ...], recur: list[int]) -> None:
    """In minutes, with any amount of work between them."""
    for works in ((120,) * 5, (50, 300, 20, 90, 60)):
        assert lengths(turns(works[: len(waits) + 1], waits)) == recur


def test_points_of_five_minutes_are_judged_alike() -> None:
    """8 and 12 periods are similar, 8 and 13 are not."""
    assert lengths(turns((12, 12, 12, 9), (8, 12, 8)), period_s=300) == [8, 12, 8]
    assert lengths(turns((12, 12, 12, 9), (8, 13, 8)), period_s=300) == [8, 8]


def test_the_last_one_may_be_cut_by_the_end_of_the_run() -> None:
    """However short it is. A longer one is a hang."""
    works = [("work", 120), ("wait", 60)] * 2 + [("work", 120)]
    assert lengths([*works, ("wait", 32)]) == [60, 60, 32]
    assert lengths([*works, ("wait", 91)]) == [60, 60]


def test_waits_without_a_busy_core_are_no_phase() -> None:
    """Nothing worked in them, or too little for a working process."""
    asleep = [("work", 120), ("sleep", 40)] * 4
    assert lengths([*asleep, ("work", 9)]) == []
    parts = turns((120, 120, 120, 9), (40, 40, 40))
    assert len(lengths(parts, cores=0.5)) == 3
    assert lengths(parts, cores=0.49) == []


def test_without_standstills_there_is_no_phase() -> None:
    """A CPU job has none."""
    quiet = usage(ran(7200), series(Metric.CPU, [100.0] * 120))
    assert recurring_standstills(quiet) == ()
