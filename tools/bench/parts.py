"""The parts of the bench, and what each figure is compared with."""

from __future__ import annotations

from collections.abc import Mapping

from tools.bench.measure import Goal

PARTS: Mapping[str, Mapping[str, Goal]] = {
    "core": {},
    "command_line": {
        "sageaudit --version": Goal(("aws --version",), "at most 60 ms"),
        "sageaudit audit --recording": Goal(("aws --version",), "at most 300 ms"),
        "sageaudit history": Goal(("aws --version",), "at most 250 ms"),
    },
}
"""By the name of a module in `samples`, the goals by label. A label without a goal is missing."""
COUNTED = ("deployed", "sizes", "sweeps")
"""Modules that count or simulate, without times of two versions."""
