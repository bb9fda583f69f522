"""What a tuning job searches for, and how."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class Direction(enum.Enum):
    """Whether more or less of an objective is better, as HyperParameterTuningJobObjective.Type."""

    MAXIMIZE = "Maximize"
    MINIMIZE = "Minimize"


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric that training is judged by; `direction` is None when unknown."""

    metric: str
    direction: Direction | None


@dataclass(frozen=True, slots=True)
class Tuning:
    """The settings and counters of a tuning job."""

    strategy: str | None
    early_stopping: str | None
    counters: Mapping[str, int]
    objective: Objective | None = None
    max_jobs: int | None = None
    max_parallel: int | None = None

    @property
    def launched(self) -> int | None:
        """Number of training jobs that it launched; None when unknown."""
        return sum(self.counters.values()) if self.counters else None
