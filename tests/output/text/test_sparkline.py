"""Series as a line of text."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.output.text.sparkline import sparklines


def row(
    *values: str | None, unit: str | None = "percent", period_s: int = 300
) -> dict[str, object]:
    """One metric's series as evidence holds it."""
    return {
        "metric": "GPUUtilization",
        "unit": unit,
        "hosts": 1,
        "period_s": period_s,
        "values": [None if value is None else Decimal(value) for value in values],
    }


def test_percent_fill_the_height_from_0_to_100() -> None:
    """A gap is a dot, not a zero."""
    [line] = sparklines({"series": [row("0", "12.5", None, "50", "93.2", "100")]})
    assert line == "GPUUtilization  ▁▂·▅██  0 to 100%, 5 min each"


def test_a_metric_without_unit_fills_its_own_range() -> None:
    """A loss from 2 to 0.5; short periods are said in seconds."""
    [line] = sparklines({"series": [row("2", "1", "0.5", unit=None, period_s=30)]})
    assert line == "GPUUtilization  █▃▁  0.5 to 2, 30 s each"


def test_an_even_line_is_drawn_low() -> None:
    """Nothing is divided by nothing."""
    [line] = sparklines({"series": [row("3", "3", unit=None)]})
    assert "▁▁" in line


def test_what_has_no_points_is_not_drawn() -> None:
    """Nor is anything that is no series."""
    assert list(sparklines({"series": [row(None, None)]})) == []
    assert list(sparklines({"series": None})) == list(sparklines({})) == []


def test_a_line_that_does_not_fit_is_two() -> None:
    """The end of a run is what often matters: nothing is cut."""
    evidence = {"series": [row(*["50"] * 48)]}
    [whole] = sparklines(evidence, 90)
    assert list(sparklines(evidence, len(whole))) == [whole]
    said, marks = sparklines(evidence, len(whole) - 1)
    assert said == "GPUUtilization  50%, 5 min each"
    assert marks == "▅" * 48


def test_ascii_has_marks_of_its_own() -> None:
    """For a terminal without UTF-8."""
    [line] = sparklines({"series": [row("0", None, "50", "100")]}, ascii_only=True)
    assert line == "GPUUtilization  _?=#  0 to 100%, 5 min each"
