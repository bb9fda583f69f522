"""What the commands that ask a history share: its place, filters, formats, and how to go on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct
from rich.console import Console

from sageaudit.adapters.history import opened as histories
from sageaudit.cli import options
from sageaudit.cli.messages import say
from sageaudit.cli.views import formats
from sageaudit.cli.views.formats import Field, ListLayout, Tail
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.text.words import counted
from sageaudit.queries.columns import FILTERS, Column, question_of
from sageaudit.queries.lists import Lists, ReadCounts
from sageaudit.queries.names import unmatched
from sageaudit.queries.question import AMOUNTS, Question, Sort
from sageaudit.queries.window import FORMS, Window, window

OUTPUT = click.option(
    "--output",
    type=click.Choice(formats.FORMATS),
    default="table",
    show_default=True,
    help="Format: table for people, json or jsonl for scripts, csv for spreadsheets, markdown.",
)
UNTIL = click.option(
    "--until",
    help="Jobs that ended until then; a day, week or month is included. Without it, a finished"
    " week or month in --since is looked at alone.",
)
ACCOUNT = click.option("--account", help="Jobs of this account.")
REGION = click.option("--region", help="Jobs of this AWS region.")
ALL = click.option("--all", "every", is_flag=True, help="Print all rows.")
SORT_AMOUNTS = click.option(
    "--sort",
    type=options.EnumChoice(Sort, AMOUNTS),
    default=Sort.WASTE.value,
    show_default=True,
    help="Order by these dollars, the most first; waste is avoidable plus lost.",
)
_EVERY = 100
"""Rows after which the progress is shown again."""
T = TypeVar("T")
_REPEATED = "tag"
"""The filter that may be given several times: a job has several tags."""


class HistoryOptions(Struct, frozen=True):
    """The history to ask."""

    history: Path | None
    table: str | None
    table_region: str | None
    profile: str | None

    def open(self) -> histories.HistorySource:
        """Opens it; raises what `open_history` does."""
        return histories.open_history(
            self.history, self.table, self.profile, self.table_region, warn=say
        )


WHERE = options.together(
    "where",
    HistoryOptions,
    options.HISTORY,
    options.TABLE,
    click.option(
        "--table-region", help="AWS region of the table; by default that of your AWS settings."
    ),
    options.PROFILE,
)


class Shown(Struct, frozen=True):
    """How rows are printed."""

    output: str
    fields: str | None
    no_color: bool

    def of(self, listing: ListLayout) -> tuple[Field, ...]:
        """The fields to print. Raises BadUsage for one that does not exist."""
        return listing.chosen(self.output, self.fields)

    def write(self, rows: Iterable[Any], listing: ListLayout, tail: Tail, above: str) -> int:
        """Prints the rows, with a line `above` those that people read, and returns how many there
        were.
        """
        console = console_for(no_color=self.no_color)
        rows, listing = formats.with_tags(rows, listing)
        return formats.write(rows, listing, self.of(listing), self.output, console, tail, above)


SHOWN = options.together(
    "shown",
    Shown,
    OUTPUT,
    click.option(
        "--fields", metavar="A,B,C", help="Fields to print; a name that is not one lists them all."
    ),
    options.NO_COLOR,
)


def since(
    default: str | None = "30d", shown: str | None = None, forms: str = FORMS
) -> options.Decorator:
    """--since, with its default; `shown` describes one that the command works out."""
    return click.option(
        "--since",
        default=default,
        show_default=shown or True,
        help=f"Jobs that ended since: {forms}.",
    )


def limit(default: int) -> options.Decorator:
    """--limit, with its default."""
    return click.option(
        "--limit", type=options.ROWS, default=default, show_default=True, help="Most rows to print."
    )


def option(name: str) -> str:
    """The option of a filter."""
    return f"--{name.replace('_', '-')}"


def now() -> datetime:
    """The time of this computer, in UTC."""
    return datetime.now(UTC)


def rule_named(text: str) -> str:
    """The name of a rule by its name or id; a name that no rule has is taken as it is."""
    from sageaudit.rules import catalogue  # noqa: PLC0415 - few questions are of a rule

    return catalogue.name_of(text)


def tail(read: ReadCounts, *, more: bool = False) -> Tail:
    """What follows the rows in JSON; `more`: there are others."""
    return lambda: {"more": more, "read": {"rows": read.rows, "sums": read.sums}}


def days_of(window: Window) -> str:
    """`ended 2026-11-01 to 2026-11-30 (UTC)`, the period of a list."""
    return f"ended {window.words} (UTC)"


def say_nothing_found(lists: Lists, question: Question) -> None:
    """Says that no row fits, and which filter is the reason."""
    hint = _no_such_rule(question.rule) or unmatched(lists, question, option)
    say(f"no audit of {question.window.words} fits; {hint}")


def _no_such_rule(name: str | None) -> str:
    """What to say of a name that no rule has; empty of a rule's, and of none."""
    if name is None:
        return ""
    from sageaudit.rules import catalogue  # noqa: PLC0415 - few questions are of a rule

    known = [rule.name.name for rule in catalogue.load()]
    perhaps = did_you_mean(name, known) or ":"
    hint = f"there is no rule {name}{perhaps} `sageaudit rules` lists them all"
    return "" if name in known else hint


def say_rollups(kinds: Collection[str]) -> None:
    """Says what the amounts of roll-ups of these kinds are."""
    for row in (kind.row for kind in JobKind if kind.value in kinds):
        children = row.rollup.children if row.rollup else "jobs"
        say(f"{row.with_article}'s amounts are what it adds to those of its {children}")


def show_some(
    rows: Sequence[Any],
    every: Sequence[Any],
    listing: ListLayout,
    shown: Shown,
    read: ReadCounts,
    above: str,
) -> None:
    """Prints these of the rows, and says how many there are."""
    more = len(rows) < len(every)
    shown.write(rows, listing, tail(read, more=more), above)
    if more:
        say(f"{len(rows):,} of {len(every):,} rows: --all prints all of them")


def with_progress(rows: Iterable[T], word: str, doing: str) -> Iterator[T]:
    """The rows; stderr shows how many of them came so far, as `reading: 1,200 audits`."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from rows
        return
    with console.status(f"{doing} ...") as status:
        for number, row in enumerate(rows, 1):
            yield row
            if number % _EVERY == 0:
                status.update(f"{doing}: {counted(number, word)}")


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
        return question_of(span, sort, self.words, option)


def filters(default_since: str | None = "30d", shown: str | None = None) -> options.Decorator:
    """The filters of a question about audits."""

    def made(since: str | None, until: str | None, **given: Any) -> Filters:
        words = {name: _once(FILTERS[name], value) for name, value in given.items()}
        if words["rule"] is not None:
            words["rule"] = rule_named(words["rule"])
        return Filters(since, until, words)

    times = (since(default_since, shown), UNTIL)
    names = ("since", "until", *FILTERS)
    return options.together("filters", made, *times, *map(_option, FILTERS.values()), names=names)


def _once(column: Column, given: Any) -> Any:
    """The value of an option that may be given once. Raises BadUsage where it was given twice."""
    if column.read is bool or column.name == _REPEATED:
        return given
    if len(given) > 1:
        raise BadUsage(
            f"{option(column.name)} was given {len(given)} times: a filter takes one value"
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
    return click.option(option(column.name), help=column.help, **more)
