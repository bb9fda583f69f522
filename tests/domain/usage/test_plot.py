from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import pytest

from sageaudit.domain.usage.measurements import Curve
from sageaudit.domain.usage.plot import MOST_POINTS, plot_curve
from tests.fakes.jobs import START


def curve(*minutes: int) -> Curve:
    """Points at these minutes, each with its minute as its value."""
    return Curve(tuple((START + timedelta(minutes=n), float(n)) for n in minutes))


@pytest.mark.parametrize(
    ("minutes", "period_s", "values"),
    [
        # four slots of 25 minutes; one holds two points, and one none
        ((0, 10, 30, 100), 1500, [Decimal(5), Decimal(30), None, Decimal(100)]),
        # a long curve has as many points as others: two of 96 in each slot
        (range(96), 119, [Decimal(2 * n) + Decimal("0.5") for n in range(MOST_POINTS)]),
        # a single point is a plot of no width
        ((7,), 1, [Decimal(7)]),
    ],
)
def test_points_go_to_slots_of_even_width(
    minutes: Sequence[int], period_s: int, values: list[Decimal | None]
) -> None:
    """Each holds the mean of its points."""
    plot = {"metric": "loss", "unit": None, "hosts": 1, "period_s": period_s, "values": values}
    assert plot_curve("loss", curve(*minutes)) == [plot]
