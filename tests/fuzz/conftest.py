"""Counts the inputs of a test run over all its processes."""

from typing import Any

INPUTS = "mutated inputs"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints how many inputs were run."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
    ]
    inputs = sum(
        number
        for report in reports
        for name, number in getattr(report, "user_properties", ())
        if name == INPUTS
    )
    if inputs:
        terminalreporter.write_line(f"{inputs} mutated inputs")
