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
from sageaudit.cli.messages import print_message
from sageaudit.cli.views import formats
from sageaudit.cli.views.formats import Field, JsonTail, ListLayout
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.text.words import count_text
from sageaudit.queries.columns import FILTERS, Column, make_question
from sageaudit.queries.lists import HistoryLists, ReadCounts
from sageaudit.queries.names import why_no_match
from sageaudit.queries.question import AMOUNT_SORTS, Question, SortOrder
from sageaudit.queries.window import TIME_FORMATS, Window, parse_window

OUTPUT_OPTION = click.option(
    "--output",
    type=click.Choice(formats.FORMATS),
    default="table",
    show_default=True,
    help="Format: table for people, json or jsonl for scripts, csv for spreadsheets, markdown.",
)
UNTIL_OPTION = click.option(
    "--until",
    help="Jobs that ended until then; a day, week or month is included. Without it, a finished"
    " week or month in --since is looked at alone.",
)
ACCOUNT_OPTION = click.option("--account", help="Jobs of this account.")
REGION_OPTION = click.option("--region", help="Jobs of this AWS region.")
ALL_OPTION = click.option("--all", "every", is_flag=True, help="Print all rows.")
AMOUNT_SORT_OPTION = click.option(
    "--sort",
    type=options.EnumChoice(SortOrder, AMOUNT_SORTS),
    default=SortOrder.WASTE.value,
    show_default=True,
    help="Order by these dollars, the most first; waste is avoidable plus lost.",
)
_EVERY = 100
"""Rows after which the progress is shown again."""
T = TypeVar("T")
_REPEATABLE = "tag"
"""The filter that may be given several times: a job has several tags."""


class HistoryChoice(Struct, frozen=True):
    """The history to ask."""

    history: Path | None
    table: str | None
    table_region: str | None
    profile: str | None

    def open(self) -> histories.HistorySource:
        """Opens it; raises what `open_history` does."""
        return histories.open_history(
            self.history, self.table, self.profile, self.table_region, warn=print_message
        )


HISTORY_OPTIONS = options.option_group(
    "where",
    HistoryChoice,
    options.HISTORY_OPTION,
    options.TABLE_OPTION,
    click.option(
        "--table-region", help="AWS region of the table; by default that of your AWS settings."
    ),
    options.PROFILE,
)


class OutputOptions(Struct, frozen=True):
    """How rows are printed."""

    output: str
    fields: str | None
    no_color: bool

    def chosen_fields(self, listing: ListLayout) -> tuple[Field, ...]:
        """The fields to print. Raises BadUsage for one that does not exist."""
        return listing.choose_fields(self.output, self.fields)

    def write_rows(
        self, rows: Iterable[Any], listing: ListLayout, tail: JsonTail, header_line: str
    ) -> int:
        """Prints the rows, with a line `above` those that people read, and returns how many there
        were.
        """
        console = make_console(no_color=self.no_color)
        rows, listing = formats.with_tags(rows, listing)
        return formats.write_rows(
            rows, listing, self.chosen_fields(listing), self.output, console, tail, header_line
        )


OUTPUT_OPTIONS = options.option_group(
    "shown",
    OutputOptions,
    OUTPUT_OPTION,
    click.option(
        "--fields", metavar="A,B,C", help="Fields to print; a name that is not one lists them all."
    ),
    options.NO_COLOR,
)


def since_option(
    default: str | None = "30d", shown_default: str | None = None, forms: str = TIME_FORMATS
) -> options.Decorator:
    """--since, with its default; `shown` describes one that the command works out."""
    return click.option(
        "--since",
        default=default,
        show_default=shown_default or True,
        help=f"Jobs that ended since: {forms}.",
    )


def limit_option(default: int) -> options.Decorator:
    """--limit, with its default."""
    return click.option(
        "--limit",
        type=options.ROW_COUNT,
        default=default,
        show_default=True,
        help="Most rows to print.",
    )


def option_name(name: str) -> str:
    """The option of a filter."""
    return f"--{name.replace('_', '-')}"


def utc_now() -> datetime:
    """The time of this computer, in UTC."""
    return datetime.now(UTC)


def resolve_rule(text: str) -> str:
    """The name of a rule by its name or id; a name that no rule has is taken as it is."""
    from sageaudit.rules import catalogue  # noqa: PLC0415 - few questions are of a rule

    return catalogue.resolve_rule_name(text)


def json_tail(read_counts: ReadCounts, *, has_more: bool = False) -> JsonTail:
    """What follows the rows in JSON; `more`: there are others."""
    return lambda: {"more": has_more, "read": {"rows": read_counts.rows, "sums": read_counts.sums}}


def period_text(window: Window) -> str:
    """`ended 2026-11-01 to 2026-11-30 (UTC)`, the period of a list."""
    return f"ended {window.text} (UTC)"


def explain_empty_result(lists: HistoryLists, question: Question) -> None:
    """Says that no row fits, and which filter is the reason."""
    hint = _no_such_rule(question.rule) or why_no_match(lists, question, option_name)
    print_message(f"no audit of {question.window.text} fits; {hint}")


def _no_such_rule(name: str | None) -> str:
    """What to say of a name that no rule has; empty of a rule's, and of none."""
    if name is None:
        return ""
    from sageaudit.rules import catalogue  # noqa: PLC0415 - few questions are of a rule

    known = [rule.info.name for rule in catalogue.load()]
    perhaps = did_you_mean(name, known) or ":"
    hint = f"there is no rule {name}{perhaps} `sageaudit rules` lists them all"
    return "" if name in known else hint


def explain_rollups(kinds: Collection[str]) -> None:
    """Says what the amounts of roll-ups of these kinds are."""
    for row in (kind.spec for kind in JobKind if kind.value in kinds):
        children = row.rollup.children_label if row.rollup else "jobs"
        print_message(
            f"{row.label_with_article}'s amounts are what it adds to those of its {children}"
        )


def show_rows(
    rows: Sequence[Any],
    all_rows: Sequence[Any],
    listing: ListLayout,
    shown: OutputOptions,
    read: ReadCounts,
    header_line: str,
) -> None:
    """Prints these of the rows, and says how many there are."""
    more = len(rows) < len(all_rows)
    shown.write_rows(rows, listing, json_tail(read, has_more=more), header_line)
    if more:
        print_message(f"{len(rows):,} of {len(all_rows):,} rows: --all prints all of them")


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
                status.update(f"{doing}: {count_text(number, word)}")


class AuditFilterOptions(Struct, frozen=True):
    """Which audits to show. `since` None: the command has its own default."""

    since: str | None
    until: str | None
    filter_values: Mapping[str, Any]

    def question(
        self,
        now: datetime,
        sort: SortOrder = SortOrder.NEWEST,
        since: str = "30d",
        *,
        with_today: bool = True,
    ) -> Question:
        """The question that they ask; `since`, where they have none. Raises BadUsage."""
        asked = since if self.since is None else self.since
        span = parse_window(asked, self.until, now, with_today=with_today)
        return make_question(span, sort, self.filter_values, option_name)


def filter_options(
    default_since: str | None = "30d", shown: str | None = None
) -> options.Decorator:
    """The filters of a question about audits."""

    def make_filters(since: str | None, until: str | None, **given: Any) -> AuditFilterOptions:
        words = {name: _single_value(FILTERS[name], value) for name, value in given.items()}
        if words["rule"] is not None:
            words["rule"] = resolve_rule(words["rule"])
        return AuditFilterOptions(since, until, words)

    times = (since_option(default_since, shown), UNTIL_OPTION)
    names = ("since", "until", *FILTERS)
    return options.option_group(
        "filters", make_filters, *times, *map(_option, FILTERS.values()), names=names
    )


def _single_value(column: Column, given: Any) -> Any:
    """The value of an option that may be given once. Raises BadUsage where it was given twice."""
    if column.read is bool or column.name == _REPEATABLE:
        return given
    if len(given) > 1:
        raise BadUsage(
            f"{option_name(column.name)} was given {len(given)} times: a filter takes one value"
        )
    return given[0] if given else None


def _option(column: Column) -> options.Decorator:
    """The option of a filter; its value is read by the filter itself, so that all callers agree."""
    more: dict[str, Any] = {"multiple": True}
    if column.read is bool:
        more = {"is_flag": True}
    elif column.name == _REPEATABLE:
        more |= {"metavar": "KEY=VALUE"}
    elif column.words and column.name != "status":
        more |= {"type": click.Choice(column.words)}
    elif column.unit:
        more |= {"metavar": column.unit.upper()}
    return click.option(option_name(column.name), help=column.help, **more)
