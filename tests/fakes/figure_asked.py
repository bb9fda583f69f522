"""A history to look at, and what its commands print."""

import json
from collections.abc import Callable, Iterable
from html import unescape
from pathlib import Path
from typing import Any

from msgspec import Struct

from sageaudit.ports import History
from tests.fakes.command_line import Run
from tests.fakes.figure_cells import (
    Cells,
)
from tests.fakes.figure_scenarios import Scenario

WEEK = ("--since", "2026-11-02", "--until", "2026-11-08")


class Asked(Struct, frozen=True):
    """A history to look at, and the scenario that it holds."""

    run: Run
    where: tuple[str, str]
    path: Path
    history: History
    scenario: Scenario

    def stdout(self, *words: str) -> str:
        """What a command prints of the history."""
        done = self.run(*words, *self.where)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """The rows that it prints as JSON."""
        rows: list[dict[str, Any]] = json.loads(self.stdout(*words, "--output", "json"))["rows"]
        return rows

    @property
    def alone(self) -> bool:
        """Whether it has one job: a list of jobs then has one row."""
        return len(self.scenario.jobs) == 1 and not self.scenario.before

    @property
    def job(self) -> str:
        """The name of the first job of the week."""
        return "ranker-11051200"


View = Callable[[Asked], Cells]


def markdown(asked: Asked, *words: str, fields: Iterable[str]) -> list[dict[str, str]]:
    """The rows of a list as people read it."""
    names = [*fields]
    text = asked.stdout(*words, "--fields", ",".join(names), "--output", "markdown")
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    cells = [[unescape(one.replace("\\", "")) for one in line[2:-2].split(" | ")] for line in lines]
    return [dict(zip(names, row, strict=True)) for row in cells]
