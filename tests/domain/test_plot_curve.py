from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from sageaudit.domain.usage.measurements import Curve
from sageaudit.domain.usage.plot import MOST_POINTS, plot_curve
from tests.fakes.jobs import START


def curve(*minutes: int) -> Curve:
    """Points at these minutes, each with its minute as its value."""
    return Curve(tuple((START + timedelta(minutes=n), float(n)) for n in minutes))


def test_points_go_to_slots_of_even_width() -> None:
    """Four slots of 25 minutes; one holds two points, and one none."""
    [line] = plot_curve("loss", curve(0, 10, 30, 100))
    assert line["period_s"] == 1500
    assert line["values"] == [Decimal(5), Decimal(30), None, Decimal(100)]
    assert line["metric"] == "loss"


def test_a_long_curve_has_as_many_points_as_others() -> None:
    """Two of 96 in each slot."""
    [line] = plot_curve("loss", curve(*range(96)))
    values = line["values"]
    assert isinstance(values, list)
    assert len(values) == MOST_POINTS
    assert values[0] == Decimal("0.5")


def test_a_single_point_is_a_plot() -> None:
    """Of no width."""
    [line] = plot_curve("loss", curve(7))
    assert line["values"] == [Decimal(7)]
