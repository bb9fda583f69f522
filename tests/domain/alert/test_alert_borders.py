"""Values at both sides of the thresholds for kept alerts and for what a message shows."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.alert.alert import ChannelHour, PastAlerts
from sageaudit.domain.alert.audit_figures import should_show_idle


@pytest.mark.parametrize(("known_steps", "forgotten"), [(49, False), (50, True)])
def test_the_newest_50_steps_of_a_pipeline_are_remembered(
    known_steps: int, forgotten: bool
) -> None:
    """The runs of each step are read for a decision. One more step drops the oldest."""
    steps = tuple(f"pipeline/nightly/{number}" for number in range(known_steps))
    past = PastAlerts("r", "pipeline/nightly", steps=steps).with_step("pipeline/nightly/new")
    assert past.steps[-1] == "pipeline/nightly/new"
    assert (steps[0] not in past.steps) is forgotten


def idle(unit: str, hours: str, paid: str, list_usd: str | None, counted_usd: str = "0") -> Any:
    """Returns the idle capacity of an audit."""
    usd = None if list_usd is None else Decimal(list_usd)
    return {
        "unit": unit,
        "idle": Decimal(hours),
        "paid": Decimal(paid),
        "list_usd": usd,
        "counted_usd": Decimal(counted_usd),
    }


@pytest.mark.parametrize(
    ("figure", "is_shown"),
    [
        # more than a fifth of the GPU hours, and more than half of the vCPU hours
        (idle("gpu_hours", "20.01", "100", "50"), True),
        (idle("gpu_hours", "20", "100", "50"), False),
        (idle("vcpu_hours", "50.01", "100", "50"), True),
        (idle("vcpu_hours", "50", "100", "50"), False),
        # $10 beside what is counted already
        (idle("gpu_hours", "50", "100", "12", "2"), True),
        (idle("gpu_hours", "50", "100", "11.99", "2"), False),
        # without a price, ten GPU hours, or 200 vCPU hours
        (idle("gpu_hours", "10", "12", None), True),
        (idle("gpu_hours", "9.99", "12", None), False),
        (idle("vcpu_hours", "200", "220", None), True),
        (idle("vcpu_hours", "199.9", "220", None), False),
    ],
)
def test_idle_hours_are_shown_if_they_are_a_large_share_and_come_to_ten_dollars(
    figure: Any, is_shown: bool
) -> None:
    """The second row of each pair is just too little."""
    assert should_show_idle(figure) is is_shown


def test_after_a_held_message_all_others_of_the_hour_are_held() -> None:
    """If the policy's limit is raised within the hour, a message that was counted as sent would
    have no notice. The notice of the first held message covers the whole hour.
    """
    hour = ChannelHour("slack", datetime(2026, 3, 1, 12, tzinfo=UTC))
    for max_per_hour in (1, 1, 5, 5):
        hour = hour.with_message("train-bert wasted $6.00", Decimal(6), max_per_hour)
    assert (hour.sent, hour.held, hour.needs_notice) == (1, 3, False)
