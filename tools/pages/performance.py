"""Writes the tables of docs/performance.md from the samples that `make bench` kept: `make docs`."""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter

from tools.bench.measure import Row, figure_text, spread_text
from tools.bench.results import Result, load_results
from tools.pages import DOCS, replace_parts

PAGE = DOCS / "performance.md"
MORE_THAN_LINEAR = 1.1
"""A curve whose steepest step has a higher exponent is marked."""
_POINT = re.compile(r"(?P<curve>.+), n=(?P<size>\d+)")
_HEADER = ("measured", "before", "now", "times better", "beside, in the same run", "goal")
_CURVE_HEADER = ("curve", "unit", "figure at each size", "exponent of the steepest step")


def tables(results: Sequence[Result]) -> dict[str, str]:
    """Returns the tables by the name of the page's part.

    Each part of the bench has a table; that of its curves has "-curves" added to its name.
    """
    parts = {}
    for name, group in groupby(results, attrgetter("part")):
        rows = [result.row for result in group]
        compared_rows = [
            row for row in rows if row.goal or row.peers or not _POINT.fullmatch(row.label)
        ]
        key = name.replace("_", "-")
        if compared_rows:
            parts[key] = _table(_HEADER, map(_cells, compared_rows))
        if curves := [*_curve_cells(rows)]:
            parts[f"{key}-curves"] = _table(_CURVE_HEADER, curves)
    return parts | {"measured": _measured_text(results)}


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (f"| {' | '.join(cells)} |" for cells in (header, *rows))
    first_line = next(lines)
    return "\n".join((first_line, "|---" + "|--:" * (len(header) - 1) + "|", *lines))


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.label,
        figure_text(statistics.median(row.before)) if row.before else "",
        f"{figure_text(row.figure)} {row.unit}",
        spread_text(row.times_better) if row.before else "",
        row.peers_text,
        row.goal,
    )


def _curve_cells(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    curves: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        peers = {name: statistics.median(samples) for name, samples in row.peers.items()}
        for label, figure in {**peers, row.label: row.figure}.items():
            if match := _POINT.fullmatch(label):
                curves[match["curve"], row.unit].append((int(match["size"]), figure))
    for (curve, unit), points in curves.items():
        figures = sorted(points)
        exponent = steepest_exponent(figures, unit)
        mark = " (more than linear)" if exponent > MORE_THAN_LINEAR else ""
        figures_text = ", ".join(f"{size:,}: {figure_text(figure)}" for size, figure in figures)
        yield curve, unit, figures_text, f"{exponent:.2f}{mark}"


def steepest_exponent(points: Sequence[tuple[int, float]], unit: str) -> float:
    """Returns the largest exponent between neighbouring sizes: 1 if the time grows as the size.

    A figure for each item, such as "ms/job", is multiplied by the size.
    """
    is_per_item = "/" in unit
    return max(
        math.log(after / before) / math.log(larger / smaller) + is_per_item
        for (smaller, before), (larger, after) in pairwise(points)
    )


def _measured_text(results: Sequence[Result]) -> str:
    parts_by_run: dict[str, dict[str, None]] = defaultdict(dict)
    for result in results:
        before = f", before: commit {result.before_commit}" if result.before_commit else ""
        run = f"{result.day}, commit {result.commit}{before}; {result.machine}"
        parts_by_run[run][f"`{result.part}`"] = None
    return "\n".join(f"- {', '.join(names)}: {run}" for run, names in parts_by_run.items())


def main() -> None:
    """Writes the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_parts(text, tables(load_results())), encoding="utf-8")


if __name__ == "__main__":
    main()
