"""Parts of a job besides its run: inputs, warm pool, outputs, batches, tuning."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct


class DataSource(enum.Enum):
    """Where a channel's data is stored."""

    S3 = "S3"
    EFS = "EFS"
    FSX = "FSxLustre"
    OTHER = "other"


class InputChannel(Struct, frozen=True):
    """One input of a job.

    `mode` is File, Pipe or FastFile. None means that neither the channel nor the job sets it.
    """

    name: str
    source: DataSource
    mode: str | None
    distribution: str | None

    @property
    def is_copied(self) -> bool:
        """Whether the data is copied to the volume.

        A channel without a mode is copied, because AWS's default is File.
        """
        return self.source is DataSource.S3 and self.mode not in {"Pipe", "FastFile"}


class WarmPool(Struct, frozen=True):
    """A training job's warm pool.

    `retained_s` is the seconds per instance. It grows until the pool is final.
    """

    status: str | None
    keep_alive_s: int | None
    retained_s: Decimal | None

    @property
    def is_final(self) -> bool:
        """Whether the retained seconds can no longer grow."""
        return self.status in {"Terminated", "Reused"} or (
            self.status is None and not self.keep_alive_s
        )


class ProcessingOutput(Struct, frozen=True):
    """One output of a processing job. `mode` is EndOfJob or Continuous; None if unknown."""

    name: str
    mode: str | None


class TransformBatching(Struct, frozen=True):
    """How a transform job sends requests to its container."""

    strategy: str | None = None
    max_concurrent: int | None = None
    max_payload_mb: int | None = None


class Direction(enum.Enum):
    """Whether a higher or a lower objective is better (HyperParameterTuningJobObjective.Type)."""

    MAXIMIZE = "Maximize"
    MINIMIZE = "Minimize"


class Objective(Struct, frozen=True):
    """The metric by which training is judged. `direction` is None if unknown."""

    metric: str
    direction: Direction | None


class TuningSettings(Struct, frozen=True):
    """The settings of a tuning job. `counters` has the number of its training jobs by status."""

    strategy: str | None
    early_stopping: str | None
    counters: Mapping[str, int]
    objective: Objective | None = None
    max_jobs: int | None = None
    max_parallel: int | None = None

    @property
    def launched_count(self) -> int | None:
        """The number of training jobs that were launched; None if unknown."""
        return sum(self.counters.values()) if self.counters else None
