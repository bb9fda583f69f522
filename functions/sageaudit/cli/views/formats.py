"""Prints the rows of every list as a table, JSON, JSON lines, CSV or Markdown.

| format | for | unknown | money | times |
|---|---|---|---|---|
| table | people, 80 columns | a word | to the cent | minutes, UTC |
| json, jsonl | scripts: has `schema` | null | exact | ISO 8601, UTC |
| csv | spreadsheets (RFC 4180) | empty | exact | ISO 8601, UTC |
| markdown | pull requests and wikis | as in the table | to the cent | minutes, UTC |

Text from a history is inert in each of them: no terminal escape, formula, markup or HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import chain, islice
from operator import attrgetter
from types import NoneType
from typing import Any, Literal

import click
from msgspec import Struct
from rich.console import Console

from sageaudit.adapters.files.duckdb_engine import ColumnType
from sageaudit.cli.messages import json_line
from sageaudit.domain.job.job import duration_text
from sageaudit.domain.money import format_usd
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import Cut, FittedColumn, fit_table, print_line
from sageaudit.output.text.untrusted import for_markdown, for_terminal
from sageaudit.queries.columns import TAG_PREFIX
from sageaudit.structs import replace

SCHEMA = 1
"""The version of the JSON of lists, whose keys are never removed."""
FORMATS = ("table", "json", "jsonl", "csv", "markdown")
FieldKind = Literal["text", "usd", "count", "percent", "time", "day", "flag", "seconds", "hours"]
_PARQUET: Mapping[FieldKind, ColumnType] = {
    "text": "text",
    "count": "count",
    "seconds": "count",
    "flag": "flag",
    "usd": "usd",
    "percent": "usd",
    "hours": "usd",
    "time": "time",
    "day": "day",
}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_PERCENT = Decimal("0.1")
_MIN_WORD_WIDTH = 12
_MAIN_AMOUNTS = frozenset({"total_usd", "avoidable_usd", "lost_usd", "waste_usd"})
"""The amounts for which names are cut."""
JsonTail = Callable[[], Mapping[str, object]]
"""Makes the JSON keys that follow the rows. It is called after the last row."""


class Field(Struct, frozen=True):
    """A field of a row: the value of `get_value`, by default the attribute with its name.

    `format_cell` makes its text for people. A text may be cut to `min_width` terminal columns; 0
    means never. `cut` says where: a sentence at its end, a name in its middle, and a family, whose
    last part is enough for a filter, at its start.
    """

    name: str
    kind: FieldKind = "text"
    heading: str = ""
    format_cell: Callable[[Any], object] | None = None
    min_width: int = 0
    cut: Cut = "middle"
    get_value: Callable[[Any], object] | None = None

    @property
    def getter(self) -> Callable[[Any], object]:
        """The function that reads the field's value from a row."""
        return self.get_value or attrgetter(self.name)

    @property
    def column(self) -> ColumnType:
        """The type of the field's column in Parquet."""
        return _PARQUET[self.kind]

    @property
    def title(self) -> str:
        """The heading of the field's column."""
        return self.heading or self.name.removesuffix("_usd").replace("_", " ").capitalize()

    @property
    def right(self) -> bool:
        """True if the field's column is aligned to the right."""
        return self.column in {"usd", "count"}


class ListLayout(Struct, frozen=True):
    """The fields of a list. `table` names the fields in the table.

    A narrow terminal leaves out the fields in `dropped_first`, in this order. Formats for programs
    have `exported_fields`, by default all. `has_tags` means that rows have the cost tags that the
    policy shows, each a field.
    """

    fields: tuple[Field, ...]
    table: tuple[str, ...]
    dropped_first: tuple[str, ...] = ()
    exported_fields: tuple[str, ...] = ()
    has_tags: bool = False

    def choose_fields(self, output: str, names_text: str | None) -> tuple[Field, ...]:
        """Returns the fields named in `names_text` (`a,b,c`), by default the format's fields.

        Raises BadUsage.
        """
        names = [*self.exported_fields] or [field.name for field in self.fields]
        if names_text is not None:
            names = list(
                dict.fromkeys(filter(None, (part.strip() for part in names_text.split(","))))
            )
        elif output in {"table", "markdown"}:
            names = list(self.table)
        by_name = {name: tag_field(name) for name in names if name.startswith(TAG_PREFIX)}
        by_name |= {field.name: field for field in self.fields}
        unknown = [name for name in names if name not in by_name]
        if unknown or not names:
            problem = f"there is no field {unknown[0]}" if unknown else "--fields names no field"
            raise BadUsage(f"{problem}: the fields are {', '.join(by_name)}")
        return tuple(by_name[name] for name in names)


def tag_field(name: str) -> Field:
    """Returns the field of a cost tag, such as `tag_team`."""
    tag = name.removeprefix(TAG_PREFIX)
    return Field(
        name,
        heading=tag.capitalize(),
        min_width=_MIN_WORD_WIDTH,
        get_value=lambda row: row.tags.get(tag),
    )


def with_tags(rows: Iterable[Any], layout: ListLayout) -> tuple[Iterable[Any], ListLayout]:
    """Returns the rows, and the layout with a field for each of their cost tags.

    If the rows are an iterator, only the first row is read ahead. It must have the tags of all
    rows.
    """
    if not layout.has_tags:
        return rows, layout
    if not isinstance(rows, Sequence):
        row_iterator = iter(rows)
        first_rows = [*islice(row_iterator, 1)]
        rows = chain(first_rows, row_iterator)
    else:
        first_rows = [*rows]
    names = [
        f"{TAG_PREFIX}{tag}" for tag in dict.fromkeys(tag for row in first_rows for tag in row.tags)
    ]
    tagged_layout = replace(
        layout,
        fields=(*layout.fields, *map(tag_field, names)),
        table=(*layout.table, *names),
        dropped_first=(*reversed(names), *layout.dropped_first),
        exported_fields=(*layout.exported_fields, *names) if layout.exported_fields else (),
    )
    return rows, tagged_layout


def write_rows(
    rows: Iterable[Any],
    layout: ListLayout,
    fields: Sequence[Field],
    output: str,
    console: Console,
    json_tail: JsonTail,
    header: str = "",
) -> int:
    """Prints the rows to stdout and returns their number.

    All formats but a table print rows as they are read. `header` has lines for people, above the
    rows.
    """
    count = 0

    def counted_rows() -> Iterator[Any]:
        nonlocal count
        for row in rows:
            count += 1
            yield row

    if output == "table":
        _table(counted_rows(), layout, fields, console, header)
        return count
    for text in header.splitlines() if output == "markdown" else ():
        click.echo(f"{for_markdown(text)}\n")
    lines = (
        _json(counted_rows(), fields, json_tail)
        if output == "json"
        else _LINES[output](counted_rows(), fields)
    )
    for text in lines:
        click.echo(text, nl=False)
    return count


def jsonl_lines(rows: Iterable[Any], fields: Sequence[Field]) -> Iterator[str]:
    """Yields one JSON object for each row, with `schema`."""
    for row in rows:
        yield json_line({"schema": SCHEMA} | exact_values(row, fields)) + "\n"


def csv_lines(rows: Iterable[Any], fields: Sequence[Field]) -> Iterator[str]:
    """Yields a CSV header and a line for each row (RFC 4180). No cell is a formula."""
    yield _csv_line(_csv_text(field.name) for field in fields)
    getters = [field.getter for field in fields]
    for row in rows:
        values = [getter(row) for getter in getters]
        yield _csv_line([_CSV.get(type(value), _csv_cell)(value) for value in values])


def markdown_lines(rows: Iterable[Any], fields: Sequence[Field]) -> Iterator[str]:
    """Yields the lines of a GitHub Markdown table."""
    yield _markdown_row(field.title for field in fields)
    yield _markdown_row("--:" if field.right else "---" for field in fields)
    for row in rows:
        yield _markdown_row(for_markdown(cell_text(row, field)) for field in fields)


_LINES = {"jsonl": jsonl_lines, "csv": csv_lines, "markdown": markdown_lines}


def exact_values(row: Any, fields: Sequence[Field]) -> dict[str, object]:
    """Returns a row's values for programs: exact money, None if unknown, times in UTC."""
    return {field.name: _to_exact_value(field.getter(row)) for field in fields}


def cell_text(row: Any, field: Field) -> str:
    """Returns a value for people, in one line without control characters."""
    value = field.getter(row) if field.format_cell is None else field.format_cell(row)
    return for_terminal(_value_text(value, field.kind))


def format_moment(value: datetime) -> str:
    """Returns `2026-11-20 12:00`, in UTC."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"


def _table(
    rows: Iterable[Any], layout: ListLayout, fields: Sequence[Field], console: Console, header: str
) -> None:
    cells = [[cell_text(row, field) for field in fields] for row in rows]
    columns = [
        FittedColumn(
            field.name,
            field.title,
            field.right,
            field.min_width,
            field.cut,
            is_main_amount=field.name in _MAIN_AMOUNTS,
        )
        for field in fields
    ]
    if cells:
        for text in header.splitlines():
            print_line(console, text, "dim")
        is_custom = [field.name for field in fields] != [*layout.table]
        dropped_names = None if is_custom else layout.dropped_first
        console.print(fit_table(columns, cells, dropped_names, console.width), crop=False)


def _json(rows: Iterable[Any], fields: Sequence[Field], tail: JsonTail) -> Iterator[str]:
    yield f'{{"schema":{SCHEMA},"rows":['
    comma = ""
    for row in rows:
        yield comma + json_line(exact_values(row, fields))
        comma = ","
    tail_text = "".join(f",{json_line(name)}:{json_line(value)}" for name, value in tail().items())
    yield f"]{tail_text}}}\n"


def _value_text(value: object, kind: FieldKind) -> str:
    if value is None:
        return "-" if kind == "text" else "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if kind == "seconds" and isinstance(value, int):
        return duration_text(Decimal(value))
    if kind == "hours" and isinstance(value, Decimal):
        return f"{value:,.2f}"
    if isinstance(value, Decimal):
        percent = kind == "percent"
        return f"{value.quantize(_PERCENT, ROUND_HALF_UP):,f}%" if percent else format_usd(value)
    if isinstance(value, datetime):
        return format_moment(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _to_exact_value(value: object) -> object:
    # Decimals are rounded to 6 places, as money is stored.
    if isinstance(value, Decimal):
        return round(value, 6) if value.is_finite() else value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()[: -len("+00:00")] + "Z"
    return value.isoformat() if isinstance(value, date) else value


def _csv_line(cells: Iterable[str]) -> str:
    # A single empty cell is written as `""`.
    return (",".join(cells) or '""') + "\r\n"


def _csv_cell(value: object) -> str:
    exact = _to_exact_value(value)
    return f"{exact:f}" if isinstance(exact, Decimal) else _csv_text(str(exact))


@lru_cache(1_000)
def _csv_text(text: str) -> str:
    # Cached, since most rows repeat the same words.
    safe_text = for_terminal(text)
    if text.startswith(_FORMULA_STARTS) or safe_text.startswith(_FORMULA_STARTS):
        safe_text = f"'{safe_text}"
    needs_quotes = '"' in safe_text or "," in safe_text
    return '"' + safe_text.replace('"', '""') + '"' if needs_quotes else safe_text


_CSV: Mapping[type, Callable[[Any], str]] = {
    NoneType: lambda _: "",
    bool: lambda value: "true" if value else "false",
    int: str,
    str: _csv_text,
}
"""The functions that write values of the most frequent types."""


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
