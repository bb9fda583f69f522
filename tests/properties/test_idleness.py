"""Idle capacity grows with idleness."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sageaudit.structs import replace
from tests.properties.judged import (
    Document,
    judged,
    property_settings,
    with_series_changed,
    with_values,
)
from tests.properties.programs import Run, Spell, runs

WORK = {"CPUUtilization", "GPUUtilization"}


def idle_hours(job_recording: Document) -> Decimal | None:
    """Returns idle GPU-hours, or vCPU-hours of a CPU job; None: unknown."""
    audit: Any = judged(job_recording)
    capacity = audit["idle_capacity"]
    return None if capacity is None else capacity["idle"]


def no_fewer(before: Decimal | None, after: Decimal | None) -> bool:
    """Whether a known value stays known and does not fall by more than its rounding."""
    return before is None or (after is not None and after >= before - Decimal("0.000001"))


class Lull(Struct, frozen=True):
    """Minutes in which one host, or all hosts (0), do only a share of their work."""

    share_left: float = 0.0
    host: int = 0
    first: int = 0
    minutes: int = 600


def lulls() -> st.SearchStrategy[Lull]:
    """Returns a strategy for lulls of the whole run or a part, to nothing or to a share."""
    return st.builds(
        Lull,
        st.sampled_from((0.0, 0.3, 0.9)),
        st.integers(0, 8),
        st.sampled_from((0, 60)) | st.integers(0, 599),
        st.sampled_from((600, 30)) | st.integers(1, 600),
    )


@property_settings(80)
@given(runs(), lulls())
def test_devices_that_work_less_are_no_less_idle(run: Run, lull: Lull) -> None:
    """Reducing the work in some minutes of some hosts does not reduce the idle hours."""
    lasts = range(lull.first, lull.first + lull.minutes)

    def chosen(line: Document) -> bool:
        lulled = lull.host == 0 or line["host"].endswith(f"/algo-{lull.host}")
        return line["metric"] in WORK and lulled

    job_recording = run.recording()
    idler = with_values(
        job_recording,
        chosen,
        lambda minute, value: value * lull.share_left if minute in lasts else value,
    )
    before, after = idle_hours(job_recording), idle_hours(idler)
    assert no_fewer(before, after), f"{before} idle hours, then {after}"


def on_time(job_recording: Document) -> Document:
    """Returns the recording without late first points, whose number is random per recording."""

    def filled(line: Document) -> Document:
        known_values = [value for value in line["values"] if value is not None]
        late = next((n for n, value in enumerate(line["values"]) if value is not None), 0)
        line["values"] = known_values[:1] * late + line["values"][late:]
        return line

    return with_series_changed(job_recording, filled)


@property_settings(60)
@given(runs(), st.integers(1, 120), st.booleans())
def test_a_longer_pause_is_no_less_idle(run: Run, minutes: int, at_head: bool) -> None:
    """Waiting longer before or after the same work does not reduce the idle hours."""
    run = replace(run, jitter=0.0, missing_share=0.0)
    spells, pause = run.program.spells, Spell(minutes, 0.0)
    longer = (pause, *spells) if at_head else (*spells, pause)
    paused = replace(run, program=replace(run.program, spells=longer))
    before, after = idle_hours(on_time(run.recording())), idle_hours(on_time(paused.recording()))
    assert no_fewer(before, after), f"{before} idle hours, then {after}"
