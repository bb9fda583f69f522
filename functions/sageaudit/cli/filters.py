"""The filters of the commands that list audits, and the question that they ask."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click
from msgspec import Struct

from sageaudit.cli import asking, options
from sageaudit.errors import BadUsage
from sageaudit.queries.columns import FILTERS, Column, question_of
from sageaudit.queries.question import Question, Sort
from sageaudit.queries.window import window

_REPEATED = "tag"
"""The filter that may be given several times: a job has several tags."""


class Filters(Struct, frozen=True):
    """Which audits to show. `since` None: the command has its own default."""

    since: str | None
    until: str | None
    words: Mapping[str, Any]

    def question(
        self,
        now: datetime,
        sort: Sort = Sort.NEWEST,
        since: str = "30d",
        *,
        with_today: bool = True,
    ) -> Question:
        """The question that they ask; `since`, where they have none. Raises BadUsage."""
        asked = since if self.since is None else self.since
        span = window(asked, self.until, now, with_today=with_today)
        return question_of(span, sort, self.words, asking.option)


def filters(default_since: str | None = "30d", shown: str | None = None) -> options.Decorator:
    """The filters of a question about audits."""

    def made(since: str | None, until: str | None, **given: Any) -> Filters:
        words = {name: _once(FILTERS[name], value) for name, value in given.items()}
        if words["rule"] is not None:
            words["rule"] = asking.rule_named(words["rule"])
        return Filters(since, until, words)

    times = (asking.since(default_since, shown), asking.UNTIL)
    names = ("since", "until", *FILTERS)
    return options.together("filters", made, *times, *map(_option, FILTERS.values()), names=names)


def _once(column: Column, given: Any) -> Any:
    """The value of an option that may be given once. Raises BadUsage where it was given twice."""
    if column.read is bool or column.name == _REPEATED:
        return given
    if len(given) > 1:
        raise BadUsage(
            f"{asking.option(column.name)} was given {len(given)} times: a filter takes one value"
        )
    return given[0] if given else None


def _option(column: Column) -> options.Decorator:
    """The option of a filter; its value is read by the filter itself, so that all callers agree."""
    more: dict[str, Any] = {"multiple": True}
    if column.read is bool:
        more = {"is_flag": True}
    elif column.name == _REPEATED:
        more |= {"metavar": "KEY=VALUE"}
    elif column.words and column.name != "status":
        more |= {"type": click.Choice(column.words)}
    elif column.unit:
        more |= {"metavar": column.unit.upper()}
    return click.option(asking.option(column.name), help=column.help, **more)
