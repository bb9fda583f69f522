"""One line of the table that `make bench` prints, and the CPU time of processes."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

THREE_DIGITS = 100


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of ours, and the figure of a peer in the same run and unit."""

    label: str
    figure: float
    unit: str
    """Such as "CPU s", "ms", "kB" or "audits/CPU s"."""
    peer: str = ""
    """The name of what it is compared with; empty if there is no peer."""
    peer_figure: float | None = None
    goal: str = ""
    """The goal of the figure or the quotient, such as "at most 1.1 times"."""

    def __str__(self) -> str:
        peer_text = ""
        if self.peer_figure is not None:
            times = self.figure / self.peer_figure
            peer_text = f"{times:>8.2f} x {self.peer}, {_figure_text(self.peer_figure)}"
        goal = f" ({self.goal})" if self.goal else ""
        return f"{self.label:<52} {_figure_text(self.figure):>8} {self.unit:<8}{peer_text}{goal}"


def _figure_text(figure: float) -> str:
    """Returns the figure with at least three digits, without an exponent."""
    return f"{figure:,.0f}" if figure >= THREE_DIGITS else f"{figure:.3g}"


def measure_alternately(runs: int, *calls: Callable[[], object]) -> list[float]:
    """Returns the median CPU seconds of the processes that each call waits for.

    The calls run alternately, `runs` times.
    """
    taken = [[_cpu_s(call) for call in calls] for _ in range(runs)]
    return [statistics.median(call_times) for call_times in zip(*taken, strict=True)]


def _cpu_s(call: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def run(command: Sequence[str], code: int = 0) -> None:
    """Runs a command and drops its output. Python may write its byte code.

    Raises RuntimeError for another exit code.
    """
    env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    if process.returncode != code:
        raise RuntimeError(f"{command} ended with {process.returncode}: {process.stderr}")
