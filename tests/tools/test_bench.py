"""The bench runs, so that a changed function does not break it unnoticed, and compares fairly."""

from datetime import date
from pathlib import Path

import pytest

from tools.bench import results
from tools.bench.measure import ROOT, SAMPLES, Checkout, Row, sample_alternately
from tools.bench.parts import PARTS
from tools.bench.results import keep_row, load_results
from tools.bench.samples import PEER
from tools.pages.performance import steepest_exponent, tables


@pytest.mark.parametrize("part", PARTS)
def test_each_goal_and_each_peer_is_of_a_figure_that_its_part_measures(part: str) -> None:
    """A renamed label would otherwise lose its goal."""
    with Checkout(ROOT, SAMPLES / f"{part}.py") as checkout:
        labels = checkout.units.keys()
    goals = PARTS[part]
    peers = {f"{PEER}{name}" for goal in goals.values() for name in goal.peers}
    assert goals.keys() <= labels
    assert peers <= labels
    assert peers >= {label for label in labels if label.startswith(PEER)}


def test_a_sample_is_taken_in_another_process(tmp_path: Path) -> None:
    """What the sample prints is not taken for its figure."""
    sample = tmp_path / "sample.py"
    sample.write_text('MEASURED = {"a": ("ms", lambda: print("not a figure") or 12.34567)}')
    with Checkout(ROOT, sample) as checkout:
        assert checkout.units == {"a": "ms"}
        assert checkout.measure("a") == 12.35


def test_a_process_that_fails_is_an_error(tmp_path: Path) -> None:
    """A figure that was not measured is never a number."""
    sample = tmp_path / "sample.py"
    sample.write_text('MEASURED = {"a": ("ms", lambda: 1 / 0)}')
    with Checkout(ROOT, sample) as checkout, pytest.raises(RuntimeError, match="ended with 1"):
        checkout.measure("a")


def test_samples_of_a_round_follow_each_other_and_the_first_round_is_left_out() -> None:
    """So that a slow minute of the machine slows all of them."""
    taken: list[str] = []

    def call(name: str) -> float:
        taken.append(name)
        return len(taken)

    now, before = sample_alternately([lambda: call("now"), lambda: call("before")])
    assert taken == ["now", "before"] * (len(now) + 1)
    assert (now[0], before[0]) == (3, 4)


def test_quotients_are_those_of_one_round() -> None:
    """The medians of this and of the earlier version may be from different rounds."""
    row = Row("a", "ms", (1.0, 20.0, 3.0), (2.0, 40.0, 3.0), {"floor": (1.0, 10.0, 1.5)})
    assert [*row.times_better] == [2, 2, 1]
    assert [*row.times_peer("floor")] == [1, 2, 2]
    assert Row("a", "audits/s", (10.0,), (5.0,)).times_better == (2.0,)


def test_a_figure_that_is_measured_again_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other parts and labels stay."""
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.jsonl")
    first, second = (
        Row("a", "ms", (figure,), (4.0,), {"floor": (1.0,)}, "2 ms") for figure in (1.0, 2.0)
    )
    keep_row("one", first, ROOT)
    keep_row("two", first, None)
    keep_row("one", second, ROOT)
    assert [(result.part, result.row) for result in load_results()] == [
        ("one", second),
        ("two", first),
    ]


@pytest.mark.parametrize(
    ("points", "unit", "exponent"),
    [
        ([(10, 1.0), (100, 10.0)], "ms", 1),
        ([(10, 1.0), (100, 100.0), (1000, 1000.0)], "ms", 2),
        ([(10, 5.0), (100, 5.0)], "ms/job", 1),
        ([(10, 5.0), (100, 50.0)], "ms/job", 2),
    ],
)
def test_growth_is_the_steepest_step_of_a_curve(
    points: list[tuple[int, float]], unit: str, exponent: float
) -> None:
    """A figure for each job that does not grow is a sum that grows with the jobs."""
    assert steepest_exponent(points, unit) == pytest.approx(exponent)


def test_each_kept_part_has_a_table_with_its_peer() -> None:
    """Curves have their own."""
    rows = (
        Row("audit", "ms", (2.0,), (4.0,), {"floor": (1.0,)}, "2 ms"),
        Row("hosts, n=1", "ms", (1.0,)),
        Row("hosts, n=10", "ms", (100.0,)),
    )
    day = date(2026, 11, 30)
    kept = [results.Result("some_part", "now", "then", day, "a machine", row) for row in rows]
    parts = tables(kept)
    assert parts["some-part"].splitlines()[2] == "| audit | 4 | 2 ms | 2 | 2 x floor, 1 | 2 ms |"
    assert parts["some-part-curves"].splitlines()[2] == (
        "| hosts | ms | 1: 1, 10: 100 | 2.00 (more than linear) |"
    )
    assert (
        parts["measured"] == "- `some_part`: 2026-11-30, commit now, before: commit then; a machine"
    )
