"""The options of commands that read a history: which history, filters, sorting and output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from sageaudit.adapters.history import opened as histories
from sageaudit.cli import options
from sageaudit.cli.completion import (
    Completer,
    complete_list,
    complete_names,
    complete_regions,
    complete_rules,
    complete_tags,
    complete_types,
    complete_words,
    tag_names,
)
from sageaudit.cli.messages import print_message
from sageaudit.cli.views import formats
from sageaudit.cli.views.formats import Field, JsonTail, ListLayout
from sageaudit.domain.job.failure_words import CLASSES
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import make_console
from sageaudit.queries.columns import FILTERS, GROUPABLE, Column, make_question
from sageaudit.queries.question import AMOUNT_SORTS, Question, SortOrder
from sageaudit.queries.window import TIME_FORMATS, parse_window

OUTPUT_OPTION = click.option(
    "--output",
    type=click.Choice(formats.FORMATS),
    default="table",
    show_default=True,
    help="Format: table for people, json or jsonl for scripts, csv for spreadsheets, markdown.",
)
UNTIL_OPTION = click.option(
    "--until",
    help="Jobs that ended by then; a day, week or month is included. Without --until, only"
    " that week or month if --since names a finished one.",
)
ACCOUNT_OPTION = click.option(
    "--account", help="Jobs of this account.", shell_complete=complete_names("account")
)
REGION_OPTION = options.region_option("Jobs of this AWS region.")
ALL_OPTION = click.option("--all", "print_all", is_flag=True, help="Print all rows.")
AMOUNT_SORT_OPTION = click.option(
    "--sort",
    type=options.EnumChoice(SortOrder, AMOUNT_SORTS),
    default=SortOrder.WASTE.value,
    show_default=True,
    help="Sort by this amount, largest first; waste is avoidable plus lost.",
)
_COMPLETERS: Mapping[str, Completer] = {
    "rule": complete_rules,
    "family": complete_names("family"),
    "owner": complete_names("owner"),
    "account": complete_names("account"),
    "region": complete_regions,
    "type": complete_types,
    "status": complete_words(FILTERS["status"].choices),
    "reason": complete_words(sorted(CLASSES)),
    "tag": complete_tags,
}
"""The completers of filters without fixed choices, by column."""
_REPEATABLE = "tag"
"""The only filter that may be repeated, since a job has several tags."""


class HistoryChoice(Struct, frozen=True):
    """The options that select the history to read."""

    history: Path | None
    table: str | None
    table_region: str | None
    profile: str | None

    def open(self, warn: Callable[[str], None] = print_message) -> histories.HistorySource:
        """Opens the history. Raises BadUsage, HistoryFileError or AwsError."""
        return histories.open_history(
            self.history, self.table, self.profile, self.table_region, warn=warn
        )


HISTORY_OPTIONS = options.option_group(
    "history_choice",
    HistoryChoice,
    options.HISTORY_OPTION,
    options.TABLE_OPTION,
    options.region_option(
        "AWS region of the table; by default that of your AWS settings.", "--table-region"
    ),
    options.PROFILE_OPTION,
)


class OutputOptions(Struct, frozen=True):
    """The options for the output of rows."""

    output: str
    fields: str | None
    no_color: bool

    def chosen_fields(self, layout: ListLayout) -> tuple[Field, ...]:
        """Returns the fields to print. Raises BadUsage for a field that does not exist."""
        return layout.choose_fields(self.output, self.fields)

    def write_rows(
        self, rows: Iterable[Any], layout: ListLayout, tail: JsonTail, header_line: str
    ) -> int:
        """Prints the rows and returns their number. Formats for people have `header_line` above.

        `tail` makes the JSON keys after the rows.
        """
        console = make_console(no_color=self.no_color)
        rows, layout = formats.with_tags(rows, layout)
        return formats.write_rows(
            rows, layout, self.chosen_fields(layout), self.output, console, tail, header_line
        )


def output_options(*layouts: ListLayout) -> options.Decorator:
    """Returns the options for the output of rows. `layouts` have the fields to choose from."""
    return options.option_group(
        "output_options",
        OutputOptions,
        OUTPUT_OPTION,
        fields_option("Fields to print; an unknown name lists all fields.", *layouts),
        options.NO_COLOR_OPTION,
    )


def fields_option(text: str, *layouts: ListLayout) -> options.Decorator:
    """Returns the option --fields with this help text."""
    names = [field.name for layout in layouts for field in layout.fields]
    completer = complete_list(lambda _: dict.fromkeys(names))
    return click.option("--fields", metavar="A,B,C", help=text, shell_complete=completer)


def since_option(
    default: str | None = "30d", shown_default: str | None = None, formats_text: str = TIME_FORMATS
) -> options.Decorator:
    """Returns the option --since. `shown_default` describes a default that the command computes."""
    return click.option(
        "--since",
        default=default,
        show_default=shown_default or True,
        help=f"Jobs that ended since this time: {formats_text}.",
    )


def limit_option(default: int) -> options.Decorator:
    """Returns the option --limit with this default."""
    return click.option(
        "--limit",
        type=options.ROW_COUNT,
        default=default,
        show_default=True,
        help="Maximum number of rows to print.",
    )


def complete_columns(length: int) -> Completer:
    """Returns a completer of up to `length` columns of `by`, with the history's cost tags."""
    return complete_list(lambda ctx: dict.fromkeys((*GROUPABLE, *tag_names(ctx))), length)


def option_name(name: str) -> str:
    """Returns the name of a filter's option."""
    return f"--{name.replace('_', '-')}"


def resolve_rule(text: str) -> str:
    """Returns a rule's name from its name or id. An unknown name is returned unchanged."""
    from sageaudit.rules import catalogue  # noqa: PLC0415 - few questions name a rule

    return catalogue.resolve_rule_name(text)


class AuditFilterOptions(Struct, frozen=True):
    """The options of a question's filters. `since` is None if the command has its own default."""

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
        """Returns the question with these filters. Raises BadUsage.

        `since` is the default of --since. `with_today` includes today if --until is missing.
        """
        since_text = since if self.since is None else self.since
        window = parse_window(since_text, self.until, now, with_today=with_today)
        return make_question(window, sort, self.filter_values, option_name)


def filter_options(
    default_since: str | None = "30d", shown_default: str | None = None
) -> options.Decorator:
    """Returns the options of all filters of a question about audits."""

    def make_filters(since: str | None, until: str | None, **values: Any) -> AuditFilterOptions:
        filter_values = {
            name: _single_value(FILTERS[name], value) for name, value in values.items()
        }
        if filter_values["rule"] is not None:
            filter_values["rule"] = resolve_rule(filter_values["rule"])
        return AuditFilterOptions(since, until, filter_values)

    time_options = (since_option(default_since, shown_default), UNTIL_OPTION)
    names = ("since", "until", *FILTERS)
    return options.option_group(
        "filters", make_filters, *time_options, *map(_option, FILTERS.values()), names=names
    )


def _single_value(column: Column, values: Any) -> Any:
    """Returns the filter's value. Raises BadUsage if a filter with one value was given twice."""
    if column.parse is bool or column.name == _REPEATABLE:
        return values
    if len(values) > 1:
        raise BadUsage(
            f"{option_name(column.name)} was given {len(values)} times: a filter takes one value"
        )
    return values[0] if values else None


def _option(column: Column) -> options.Decorator:
    # The filter parses the value itself, as in Python.
    settings: dict[str, Any] = {"multiple": True, "shell_complete": _COMPLETERS.get(column.name)}
    if column.parse is bool:
        settings = {"is_flag": True}
    elif column.name == _REPEATABLE:
        settings |= {"metavar": "KEY=VALUE"}
    elif column.choices and column.name != "status":
        settings |= {"type": click.Choice(column.choices)}
    elif column.unit:
        settings |= {"metavar": column.unit.upper()}
    return click.option(option_name(column.name), help=column.help, **settings)
