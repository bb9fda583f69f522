"""Counts the cells of a test run over all its processes."""

from typing import Any

CELLS, EMPTY = "cells", "cells without a fault"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints how many cells were run, and in how many the fault never occurred."""
    counted = {CELLS: 0, EMPTY: 0}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, number in getattr(report, "user_properties", ()):
                counted[name] = counted.get(name, 0) + number
    if counted[CELLS]:
        terminalreporter.write_line(f"{counted[CELLS]} cells ({counted[EMPTY]} without a fault)")
