"""The CPU time of processes, measured in turn."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
from collections.abc import Callable, Sequence


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
