"""Measures the start of each Lambda function beside its peers: `python -m tools.bench start`.

`tools/bench/samples/starts.py` says what is measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tools.bench.measure import Row
from tools.bench.samples.starts import (
    FUNCTIONS,
    MEASURED,
    floor_ms,
    ready_ms,
    short_floor_ms,
)

RUNS = 9


def rows() -> Iterator[Row]:
    """Yields the size of the asset, then each start with the quotients of neighbouring samples."""
    unit, size = MEASURED["asset, all files"]
    yield Row("asset, all files", size(), unit, goal="at most 20 MB")
    for name in FUNCTIONS:
        samples = [(ready_ms(name), floor_ms(name), short_floor_ms(name)) for _ in range(RUNS)]
        ready, floor, _ = (statistics.median(column) for column in zip(*samples, strict=True))
        yield Row(
            f"{name} ready", ready, "CPU ms", "boto3 with its clients", floor, "at most 1.15 times"
        )
        yield Row(*_quotients("whole wheels", [ours / whole for ours, whole, _ in samples]))
        yield Row(*_quotients("the asset's wheels", [ours / short for ours, _, short in samples]))


def _quotients(peer: str, quotients: list[float]) -> tuple[str, float, str]:
    """Returns the cells of the median quotient, with the range of the middle half."""
    low, median, high = statistics.quantiles(quotients)
    return f"  times boto3 from {peer} ({low:.2f} to {high:.2f})", median, "times"
