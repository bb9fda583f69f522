"""The filters of the commands that list audits, and the question that they ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from sageaudit.cli import options
from sageaudit.cli.support.history import asking
from sageaudit.queries.columns import FILTERS, Column, question_of
from sageaudit.queries.question import Question, Sort
from sageaudit.queries.window import window


@dataclass(frozen=True, slots=True)
class Filters:
    """Which audits to show. `since` None: the command has its own default."""

    since: str | None
    until: str | None
    words: Mapping[str, Any]

    def question(self, now: datetime, sort: Sort = Sort.NEWEST, since: str = "30d") -> Question:
        """The question that they ask; `since`, where they have none. Raises BadUsage."""
        span = window(since if self.since is None else self.since, self.until, now)
        return question_of(span, sort, self.words, asking.option)


def filters(default_since: str | None = "30d", shown: str | None = None) -> options.Decorator:
    """The filters of a question about audits."""

    def made(since: str | None, until: str | None, **words: Any) -> Filters:
        if words["rule"] is not None:
            words["rule"] = asking.rule_named(words["rule"])
        return Filters(since, until, words)

    times = (asking.since(default_since, shown), asking.UNTIL)
    names = ("since", "until", *FILTERS)
    return options.together("filters", made, *times, *map(_option, FILTERS.values()), names=names)


def _option(column: Column) -> options.Decorator:
    """The option of a filter; its value is read by the filter itself, so that all callers agree."""
    more: dict[str, Any] = {}
    if column.read is bool:
        more = {"is_flag": True}
    elif column.name == "tag":
        more = {"multiple": True, "metavar": "KEY=VALUE"}
    elif column.words and column.name != "status":
        more = {"type": click.Choice(column.words)}
    elif column.name.startswith("min_"):
        more = {"metavar": "USD"}
    return click.option(f"--{column.name.replace('_', '-')}", help=column.help, **more)
