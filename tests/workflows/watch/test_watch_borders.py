"""Just inside and just outside of what is said of a job that runs."""

import pytest

from tests.workflows.watch.test_watch import BUSY, HANGS, HUNG, MINUTE, Run, Use, Watch, earlier

DAY_MIN = 24 * 60


@pytest.mark.parametrize(("late_min", "said"), [(15, ["idle"]), (16, [])])
def test_points_that_are_15_minutes_late_still_say_that_it_does_nothing(
    late_min: int, said: list[str]
) -> None:
    """45 minutes without work are known then; of later points nobody knows why they are late."""
    watch = Watch(Run(uses=HANGS, late=late_min * MINUTE))
    assert watch.said(30 + 45 + late_min) == said


@pytest.mark.parametrize(
    ("since", "said"),
    [
        (((5, BUSY),), ["at-work"]),
        (((4, BUSY),), []),
        (((5, BUSY), (4, HUNG)), ["at-work"]),
        (((5, BUSY), (5, HUNG)), []),
        (((2, BUSY), (10, HUNG), (3, BUSY)), ["at-work"]),
        (((2, BUSY), (11, HUNG), (3, BUSY)), []),
    ],
    ids=["5 min", "4 min", "idle 4 min since", "idle 5 min since", "in 15 min", "in 16 min"],
)
def test_it_is_at_work_again_after_5_of_its_last_15_minutes(
    since: tuple[Use, ...], said: list[str]
) -> None:
    """And not idle for five minutes since then."""
    watch = Watch(Run(uses=((30, BUSY), (60, HUNG), *since)))
    assert watch.said(90) == ["idle"]
    assert watch.said(90 + sum(minutes for minutes, _ in since) + 3) == said


@pytest.mark.parametrize(("minute", "said"), [(4.5 * DAY_MIN, ["limit"]), (4.5 * DAY_MIN - 1, [])])
def test_a_limit_of_five_days_is_near_in_its_last_tenth(minute: float, said: list[str]) -> None:
    """12 hours are left, or a minute more."""
    assert Watch(Run(uses=((600, BUSY),), limit_s=432_000)).said(int(minute)) == said


@pytest.mark.parametrize(("longer", "shorter", "said"), [(7, 3, []), (8, 3, ["limit"])])
def test_the_last_ten_completed_runs_forecast_a_limit(
    longer: int, shorter: int, said: list[str]
) -> None:
    """Three of four needed longer: eight of ten, though the eleventh did not."""
    heads = [earlier(20_000 + number) for number in range(longer)]
    heads += [earlier(9_000 + number) for number in range(shorter)]
    watch = Watch(Run(uses=((600, BUSY),), limit_s=14_400), heads=tuple(heads))
    assert watch.said(5) == said
