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
    """A figure of ours, and of what stands beside it in the same run, in the same unit."""

    what: str
    ours: float
    unit: str
    """Such as "CPU s", "ms", "kB" or "audits/CPU s"."""
    peer: str = ""
    """What is measured beside it; empty for what has nothing beside it."""
    theirs: float | None = None
    goal: str = ""
    """As the figure or the quotient shall be, such as "at most 1.1 times"."""

    def __str__(self) -> str:
        beside = ""
        if self.theirs is not None:
            times = self.ours / self.theirs
            beside = f"{times:>8.2f} x {self.peer}, {_shown(self.theirs)}"
        goal = f" ({self.goal})" if self.goal else ""
        return f"{self.what:<52} {_shown(self.ours):>8} {self.unit:<8}{beside}{goal}"


def _shown(figure: float) -> str:
    """With at least three digits, without an exponent."""
    return f"{figure:,.0f}" if figure >= THREE_DIGITS else f"{figure:.3g}"


def in_turn(runs: int, *calls: Callable[[], object]) -> list[float]:
    """The CPU seconds of the processes that each call waits for: medians of runs in turn."""
    taken = [[_cpu_s(call) for call in calls] for _ in range(runs)]
    return [statistics.median(of_one) for of_one in zip(*taken, strict=True)]


def _cpu_s(call: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def run(command: Sequence[str], code: int = 0) -> None:
    """Runs a command and drops what it prints; Python may keep its byte code.

    Raises RuntimeError for another exit code.
    """
    env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    if done.returncode != code:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
