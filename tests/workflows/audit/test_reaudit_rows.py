"""Histories of second looks, each with its versions and its end: the rows of reaudits.jsonl."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sageaudit.domain.audit.record import Head, RunQuery
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import JobNotFound
from sageaudit.workflows.audit.attempt import AuditDependencies, Audited, Caller
from sageaudit.workflows.audit.run import audit_finished_job
from tests.fakes.dependencies import SaidJobs, dependencies, ended
from tests.fakes.due import due
from tests.fakes.jobs import training_answer
from tests.workflows.audit import test_families as families
from tests.workflows.audit.test_reaudit import (
    DAY,
    END,
    HOUR,
    MINUTE,
    NAME,
    CountedMetrics,
    pool,
)
from tests.workflows.audit.test_roll_up import house, sweep

ROWS: dict[str, dict[str, Any]] = {
    one["id"]: one
    for line in Path(__file__).with_name("reaudits.jsonl").read_text().splitlines()
    for one in [json.loads(line)]
}
NAMES: list[str] = sorted(ROWS)
NEW_RUN = training_answer(CreationTime="2026-05-20T12:00:00Z")
QUARTER = 15 * MINUTE


class World:
    """Jobs, a queue that is empty at once, and sweeps that send what is due."""

    def __init__(self, of: AuditDependencies) -> None:
        self.of = of
        self.looked_again = 0

    def event(self, name: str, at: datetime, kind: JobKind = JobKind.TRAINING, **more: Any) -> None:
        """One delivery; how often it waited comes with `waited`."""
        waited = more.pop("waited", {})
        told = ended(name, kind, **{"CreationTime": None, **more})
        outcome = audit_finished_job(told, self.of, now=at, caller=Caller.DELIVERY, waited=waited)
        looked = isinstance(outcome, Audited) and outcome.reaudited
        self.looked_again += looked

    def sweeps(self, since: datetime, days: int = 3) -> None:
        """Everything that is due, each quarter of an hour."""
        now = since
        while now < since + days * DAY:
            for head in due(self.of.history, now):
                created = int(head.key.created_at.timestamp() * 1000)
                self.event(head.name, now, JobKind(head.kind), CreationTime=created)
            now += QUARTER

    @property
    def heads(self) -> list[Head]:
        """Of all runs."""
        days = (END.date(), (END + DAY).date())
        return [head for day in days for head in self.of.history.runs(RunQuery.of_day(day))]


@dataclass
class OneJob:
    """A world of one job, with its answers in order."""

    answers: list[Any]
    minutes: int = 60

    def world(self) -> tuple[World, CountedMetrics]:
        """The world, and its metrics."""
        metrics = CountedMetrics(minutes=self.minutes)
        return World(dependencies(SaidJobs({NAME: self.answers}), metrics)), metrics


def _looked_at(*answers: Any, sweeps_after: Any = HOUR) -> World:
    """One event five minutes after the end, then sweeps."""
    world, _ = OneJob(list(answers)).world()
    world.event(NAME, END + 5 * MINUTE)
    world.sweeps(END + sweeps_after)
    return world


def _late_metrics() -> World:
    world, metrics = OneJob([training_answer()], minutes=10).world()
    world.event(NAME, END + 21 * MINUTE, waited={"late_metrics": 1})
    metrics.minutes = 60
    world.sweeps(END + 40 * MINUTE)
    return world


def _no_metrics() -> World:
    world, _ = OneJob([training_answer()], minutes=0).world()
    world.event(NAME, END + 21 * MINUTE, waited={"late_metrics": 1})
    world.sweeps(END + 40 * MINUTE, days=40)
    return world


def _created_again_after_late_metrics() -> World:
    world, _ = OneJob([training_answer(), NEW_RUN], minutes=10).world()
    world.event(NAME, END + 21 * MINUTE, waited={"late_metrics": 1})
    world.sweeps(END + 40 * MINUTE)
    return world


def _repeated(after: Any, sweeps: bool) -> World:
    world, _ = OneJob([pool("Available"), pool("Available"), pool("Terminated", 60)]).world()
    if not sweeps:
        world, _ = OneJob([pool("Available")]).world()
    world.event(NAME, END + 5 * MINUTE)
    if sweeps:
        world.of.jobs.describe(ended(NAME).ref)
    world.event(NAME, END + after)
    return world


def _roll_up(late: bool) -> World:
    world = World(house(sweep(Completed=2, NonRetryableError=1)))
    for name in ("trial-1", "trial-2"):
        world.event(name, END + 5 * MINUTE)
    world.event("sweep", END + HOUR, JobKind.TUNING, waited={"children": 3})
    if late:
        world.event("trial-3", END + HOUR + QUARTER)
    world.sweeps(END + 2 * HOUR)
    return world


def _no_children() -> World:
    world = World(house(sweep(Completed=0, NonRetryableError=0)))
    world.event("sweep", END + 5 * MINUTE, JobKind.TUNING)
    world.sweeps(END + HOUR)
    return world


def _late_run(times: int) -> World:
    """The third of five runs of a family comes an hour after the last one."""
    jobs = SaidJobs({f"train-{n}": [families.answer(n)] for n in range(5)})
    world = World(dependencies(jobs))
    for number in (0, 1, 3, 4, *[2] * times):
        at = END + (number if number != 2 else 6) * HOUR + 25 * MINUTE
        world.event(f"train-{number}", at)
    world.sweeps(END + 7 * HOUR)
    return world


STORIES: dict[str, Callable[[], World]] = {
    "A17": _late_metrics,
    "A20": _no_metrics,
    "A27": lambda: _roll_up(late=True),
    "A29": _no_children,
    "A30": lambda: _roll_up(late=False),
    "A48": _created_again_after_late_metrics,
    "A49": lambda: _looked_at(pool("Available"), NEW_RUN),
    "A54": lambda: _looked_at(pool("Available"), pool("Terminated", 3600)),
    "A55": lambda: _looked_at(pool("Available"), pool("Reused", 600)),
    "A56": lambda: _looked_at(pool("Available"), pool("Available"), pool("Terminated", 3600)),
    "A57": lambda: _looked_at(pool("Available"), JobNotFound("there is no training job")),
    "A58": lambda: _looked_at(pool("Available"), pool("Terminated", 3600), sweeps_after=3 * DAY),
    "A59": lambda: _repeated(30 * MINUTE, sweeps=False),
    "A60": lambda: _repeated(2 * HOUR, sweeps=True),
    "A61": lambda: _looked_at(pool("Available"), pool("Terminated", 0)),
    "A109": lambda: _late_run(1),
    "A110": lambda: _late_run(2),
}
SIZES = {"A27": (4, 5), "A30": (3, 4)}
"""Runs and versions at most, where a story has fewer training jobs than its row: three, not 12."""
DIFFERS = {"A61": "an audit that is settled without another figure is a version that says so"}


@pytest.mark.parametrize("name", NAMES)
def test_a_history_ends_as_its_row_says(name: str) -> None:
    """So many runs, at most so many versions, and nothing that is due for ever."""
    row, world = ROWS[name], STORIES[name]()
    heads = world.heads
    audits, versions = SIZES.get(name, (row["audits"], row["versions_max"]))
    assert len(heads) == audits
    assert sum(head.version for head in heads) <= versions + (name in DIFFERS)
    assert all(head.settled for head in heads) is (row["final"] != "no")
    assert all(head.unauditable is None for head in heads)
    for text in row["metrics"]:
        parsed = re.fullmatch(r"DueAudited(>=|<=|=)(\d+)(?:\.\.(\d+))?", text)
        if parsed is not None:
            sign, low = parsed[1], int(parsed[2])
            high = int(parsed[3] or low) if sign != ">=" else 99
            assert (0 if sign == "<=" else low) <= world.looked_again <= high
