"""Histories of second looks, each with its versions and its end: the rows of reaudits.jsonl."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sageaudit.errors import JobNotFound
from tests.fakes.dependencies import END, NAME, House, SaidMetrics, ended
from tests.fakes.jobs import training_answer
from tests.workflows.audit import test_families as families
from tests.workflows.audit.test_reaudit import DAY, HOUR, MINUTE, pool
from tests.workflows.audit.test_roll_up import house, sweep, tuned

ROWS: dict[str, dict[str, Any]] = {
    one["id"]: one
    for line in Path(__file__).with_name("reaudits.jsonl").read_text().splitlines()
    for one in [json.loads(line)]
}
NEW_RUN = training_answer(CreationTime="2026-05-20T12:00:00Z")


def _looked_at(*answers: Any, since: Any = HOUR, minutes: int = 60) -> House:
    """One event five minutes after the end, or when it cannot wait any more, then sweeps."""
    world = House([*answers], SaidMetrics(minutes=minutes))
    if minutes == 60:
        world.event(END + 5 * MINUTE, CreationTime=None)
        world.sweeps(END + since)
    else:
        world.event(END + 21 * MINUTE, waited={"late_metrics": 1}, CreationTime=None)
    return world


def _late_metrics(*answers: Any, come: bool = False, minutes: int = 10) -> House:
    world = _looked_at(*answers, minutes=minutes)
    if come:
        world.metrics.minutes = 60
    world.sweeps(END + 40 * MINUTE)
    return world


def _repeated(after: Any, *answers: Any) -> House:
    """A second event; the first of the further answers is taken by somebody else."""
    world = House([pool("Available"), *answers])
    world.event(END + 5 * MINUTE, CreationTime=None)
    if answers:
        world.jobs.describe(ended(NAME).ref)
    world.event(END + after, CreationTime=None)
    return world


def _roll_up(*, late: bool) -> House:
    world = house(sweep(Completed=2, NonRetryableError=1))
    for name in ("trial-1", "trial-2"):
        world.event(END + 5 * MINUTE, name, CreationTime=None)
    tuned(world, 3, END + HOUR)
    if late:
        world.event(END + 75 * MINUTE, "trial-3", CreationTime=None)
    world.sweeps(END + 2 * HOUR)
    return world


def _no_children() -> House:
    world = house(sweep(Completed=0, NonRetryableError=0))
    tuned(world, now=END + 5 * MINUTE)
    world.sweeps(END + HOUR)
    return world


def _late_run(times: int) -> House:
    """The third of five runs of a family comes an hour after the last one."""
    world = House({f"train-{n}": families.answer(n) for n in range(5)})
    for number in (0, 1, 3, 4, *[2] * times):
        at = END + (number if number != 2 else 6) * HOUR + 25 * MINUTE
        world.event(at, f"train-{number}", CreationTime=None)
    world.sweeps(END + 7 * HOUR)
    return world


KEPT = pool("Available")
STORIES: dict[str, Callable[[], House]] = {
    "A17": lambda: _late_metrics(training_answer(), come=True),
    "A20": lambda: _late_metrics(training_answer(), minutes=0),
    "A27": lambda: _roll_up(late=True),
    "A29": _no_children,
    "A30": lambda: _roll_up(late=False),
    "A48": lambda: _late_metrics(training_answer(), NEW_RUN),
    "A49": lambda: _looked_at(KEPT, NEW_RUN),
    "A54": lambda: _looked_at(KEPT, pool("Terminated", 3600)),
    "A55": lambda: _looked_at(KEPT, pool("Reused", 600)),
    "A56": lambda: _looked_at(KEPT, KEPT, pool("Terminated", 3600)),
    "A57": lambda: _looked_at(KEPT, JobNotFound("there is no training job")),
    "A58": lambda: _looked_at(KEPT, pool("Terminated", 3600), since=3 * DAY),
    "A59": lambda: _repeated(30 * MINUTE),
    "A60": lambda: _repeated(2 * HOUR, KEPT, pool("Terminated", 60)),
    "A61": lambda: _looked_at(KEPT, pool("Terminated", 0)),
    "A109": lambda: _late_run(1),
    "A110": lambda: _late_run(2),
}
SIZES = {"A27": (4, 5), "A30": (3, 4)}
"""Runs and versions at most, where a story has fewer training jobs than its row: three, not 12."""
DIFFERS = {"A61": "an audit that is settled without another figure is a version that says so"}


@pytest.mark.parametrize("name", sorted(ROWS))
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
            assert (0 if sign == "<=" else low) <= world.reaudits <= high
