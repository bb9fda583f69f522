"""What the example company runs: a workload, one run of it, and the phases of that run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.job.kinds import JobKind

_INTERRUPTED_SHARE = 1 / 3
"""Of the spot runs: our choice."""


class Work(Struct, frozen=True):
    """Some minutes of what the program on each host does; GPU figures are sums over the GPUs."""

    minutes: float
    cores: float
    gib: float
    gpus: float = 0
    gpu_gib: float = 0


class Place(Struct, frozen=True):
    """An account and a region of the company."""

    account: str
    region: str


class Team(Struct, frozen=True):
    """Who starts a workload, and for what: the values of the tags of its jobs."""

    owner: str
    project: str


class Workload(Struct, frozen=True, kw_only=True):
    """What runs again and again.

    `days` counts back from the last day, which is 0; each run begins in the `hour` (UTC).
    `changes`: fields with other values from one such day to another, both included. `numbered`:
    the names of its runs end in a number, not in a time. `objectives`: of each trial of a tuning
    job. `answer`: what its Describe* answer has beside the fields here.
    """

    name: str
    kind: JobKind
    image: str
    instance: str
    work: tuple[Work, ...]
    team: Team
    place: Place
    days: Sequence[int]
    hour: int
    hosts: int = 1
    numbered: bool = False
    script: str | None = "train.py"
    download_min: float = 3
    spot: bool = False
    status: str = "Completed"
    failure: str | None = None
    limit_h: int = 24
    objectives: Sequence[float] = ()
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[tuple[int, int, Mapping[str, Any]], ...] = ()

    @property
    def minutes(self) -> float:
        """How long its work takes."""
        return sum(work.minutes for work in self.work)


class Phase(Struct, frozen=True):
    """One phase of a run."""

    name: str
    begin: datetime
    end: datetime

    @property
    def seconds(self) -> int:
        """Whole seconds."""
        return round((self.end - self.begin).total_seconds())


class Run(Struct, frozen=True):
    """One run of a workload. The seed of its noise does not depend on the company's last day."""

    workload: Workload
    name: str
    begin: datetime
    seed: str

    @property
    def arn(self) -> str:
        """The job's ARN."""
        place, kind = self.workload.place, self.workload.kind
        return f"arn:aws:sagemaker:{place.region}:{place.account}:{kind.row.arn_word}/{self.name}"

    @property
    def dice(self) -> random.Random:
        """The source of its noise, from the beginning."""
        return random.Random(self.seed)

    @property
    def phases(self) -> list[Phase]:
        """Its phases; one spot run in three is interrupted once."""
        phases, moment = [], self.begin
        for name, seconds in self._spans(self.dice):
            phases.append(Phase(name, moment, moment + timedelta(seconds=seconds)))
            moment = phases[-1].end
        return phases

    def _spans(self, dice: random.Random) -> Iterator[tuple[str, int]]:
        def around(seconds: float) -> int:
            return round(seconds * dice.uniform(0.96, 1.04))

        workload = self.workload
        work_s = around(60 * workload.minutes)
        download_s = around(60 * workload.download_min)
        yield "Starting", around(120)
        yield "Downloading", download_s
        if workload.spot and dice.random() < _INTERRUPTED_SHARE:
            done_s = round(work_s * dice.uniform(0.3, 0.7))
            work_s -= done_s
            yield "Training", done_s
            yield "Interrupted", around(600)
            yield "Starting", around(150)
            yield "Downloading", download_s
        yield "Training", work_s
        if workload.status == "Completed":
            yield "Uploading", around(40)
