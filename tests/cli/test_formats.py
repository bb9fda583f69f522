"""Each format is valid and safe, whatever text a history has."""

import csv
import io
import json
import re
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from rich.cells import cell_len
from rich.console import Console

from sageaudit.cli.views import lists
from sageaudit.cli.views.formats import (
    FORMATS,
    Field,
    ListLayout,
    csv_lines,
    jsonl_lines,
    markdown_lines,
    write_rows,
)
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import FittedColumn, fit_table
from sageaudit.queries.columns import GROUPABLE
from sageaudit.queries.question import SortOrder
from tests.fakes.hostile import ATTACKS, texts

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class Row(Struct, frozen=True):
    name: str | None
    usd: Decimal | None = Decimal("-1.5")
    count: int | None = 3
    flag: bool | None = True
    at: datetime | None = NOON


FIELDS = (
    Field("name", min_width=8),
    Field("usd", "usd"),
    Field("count", "count"),
    Field("flag", "flag"),
    Field("at", "time"),
)


def is_inert(text: str) -> bool:
    """Returns whether no character controls a terminal; a newline ends a line."""
    return not any(
        unicodedata.category(char) in {"Cc", "Cf"} for char in re.sub("[\r\n]", "", text)
    )


@settings(deadline=None)
@given(texts())
def test_csv_is_read_back_and_has_no_formula(name: str) -> None:
    """By RFC 4180, lines end in CR LF. A negative number is a number and not a formula."""
    text = "".join(csv_lines([Row(name)], FIELDS))
    header, row = csv.reader(io.StringIO(text, newline=""))
    assert header == ["name", "usd", "count", "flag", "at"]
    assert row[1:] == ["-1.500000", "3", "true", "2026-11-20T12:00:00Z"]
    assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r"))
    assert text.endswith("\r\n")
    assert is_inert(text)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " =", "＝", "\x1b[0m=", "\n@"])
def test_a_cell_that_begins_like_a_formula_gets_an_apostrophe(start: str) -> None:
    """So does one that begins with invisible characters before it; an unknown value is empty."""
    [_, line] = csv_lines([Row(f"{start}cmd|' /C calc'!A0")], FIELDS[:1])
    assert line.lstrip('"').startswith("'")
    _, first, second = csv_lines([Row('a,"b"'), Row(None, None, None, None, None)], FIELDS)
    assert first.startswith('"a,""b""",')
    assert second == ",,,,\r\n"


@settings(deadline=None)
@given(texts())
def test_json_lines_keep_the_text_and_are_inert(name: str) -> None:
    """Control characters are escapes, each line has the schema, and money keeps its digits."""
    [line] = jsonl_lines([Row(name)], FIELDS)
    assert line.count("\n") == 1
    assert is_inert(line)
    read = json.loads(line, parse_float=Decimal)
    assert read["name"] == name.encode("utf-8", "replace").decode()
    assert read["schema"] == 1
    assert (read["usd"], read["count"], read["flag"]) == (Decimal("-1.5"), 3, True)


@settings(deadline=None)
@given(texts())
def test_markdown_has_its_cells_and_no_markup(name: str) -> None:
    """It has no extra column, code, HTML, link or mention."""
    *_, line = markdown_lines([Row(name)], FIELDS)
    assert line.count("\n") == 1
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == len(FIELDS) + 1
    assert not re.search(r"(?<!\\)[`*_\[\]~]|<|(?<!\w)@\w|(?<!\w)https?://", line)
    assert is_inert(line)


@pytest.mark.parametrize("output", FORMATS)
@pytest.mark.parametrize("name", ATTACKS)
def test_stored_text_is_inert_in_every_format(
    capsys: pytest.CaptureFixture[str], output: str, name: str
) -> None:
    """The terminal and a file get the same."""
    listing = ListLayout(FIELDS, ("name", "usd"))
    console = Console(width=80)
    write_rows(
        [Row(name)], listing, listing.choose_fields(output, None), output, console, lambda: {"n": 1}
    )
    assert is_inert(capsys.readouterr().out)


@settings(deadline=None)
@given(
    st.lists(st.tuples(texts(), texts()), min_size=1, max_size=4),
    st.integers(min_value=30, max_value=200),
)
def test_a_table_fits_its_terminal(cells: list[tuple[str, str]], width: int) -> None:
    """Names are cut in the middle; wide characters count twice."""
    columns = [FittedColumn("name", "Name", False, 8), FittedColumn("other", "Other", False, 8)]
    printed_text = [["".join(filter(str.isprintable, text)) for text in row] for row in cells]
    table = fit_table(columns, printed_text, (), width)
    console = Console(width=1_000, color_system=None)
    with console.capture() as captured:
        console.print(table)
    assert max(map(cell_len, (line.rstrip() for line in captured.get().splitlines()))) <= width


def test_columns_are_dropped_in_the_order_of_the_list() -> None:
    """Names are shortened first, as far as possible."""
    columns = [
        FittedColumn(name, name.title(), name == "usd", 8 * (name == "job"))
        for name in ("job", "usd", "note")
    ]
    cells = [["a-job-with-a-long-name", "$1,234.56", "a note of some length"]]

    def titles(width: int) -> list[object]:
        return [
            column.header for column in fit_table(columns, cells, ("note", "usd"), width).columns
        ]

    assert titles(80) == ["Job", "Usd", "Note"]
    assert titles(42) == ["Job", "Usd", "Note"]
    assert titles(41) == ["Job", "Usd"]
    assert titles(18) == ["Job"]


def test_names_are_cut_before_a_main_amount_is_dropped() -> None:
    """They keep 20 characters; an amount that is not a main one is dropped before."""
    columns = [
        FittedColumn("job", "Job", False, 32),
        FittedColumn("idle", "Idle", True, 0),
        FittedColumn("usd", "Usd", True, 0, is_main_amount=True),
    ]
    name = "a-job-with-a-long-name-2026-11-29-14-21-35-895"
    cells = [[name, "$7.00", "$1,234.56"]]

    def shown(width: int) -> tuple[list[object], int]:
        table = fit_table(columns, cells, ("idle", "usd"), width)
        [job] = [str(cell) for cell in table.columns[0].cells]
        return [column.header for column in table.columns], len(job)

    assert shown(50) == (["Job", "Idle", "Usd"], 32)
    assert shown(49) == (["Job", "Usd"], 38)
    assert shown(31) == (["Job", "Usd"], 20)
    assert shown(30) == (["Job"], 30)


def test_a_family_is_cut_at_its_start() -> None:
    """Its last part is the one that people know, and enough for a filter."""
    columns = [FittedColumn("family", "Family", False, 8, "start")]
    table = fit_table(columns, [["training/pytorch-training/train.py/bert"]], (), 20)
    assert [str(cell) for cell in table.columns[0].cells] == ["…ining/train.py/bert"]


BY_FAMILY = lists.sums_layout([GROUPABLE["family"]], SortOrder.IDLE)


@pytest.mark.parametrize(
    "listing",
    [
        lists.AUDITS,
        lists.FINDINGS,
        lists.MOST_WASTEFUL,
        lists.CHANGES,
        lists.sums_layout([*GROUPABLE.values()][:1], SortOrder.IDLE),
    ],
)
def test_every_list_names_fields_that_it_has(listing: ListLayout) -> None:
    """This covers its table, its dropped fields and its exported fields."""
    names = {field.name for field in listing.fields}
    assert {*listing.table, *listing.dropped_first, *listing.exported_fields} <= names
    assert set(listing.dropped_first) < set(listing.table)
    assert len(names) == len(listing.fields)


def test_fields_are_chosen_by_name() -> None:
    """They keep the given order, once each; an unknown one lists all fields."""
    listing = ListLayout(FIELDS, ("name",))
    assert [field.name for field in listing.choose_fields("csv", "at, usd,at")] == ["at", "usd"]
    assert [field.name for field in listing.choose_fields("table", None)] == ["name"]
    assert len(listing.choose_fields("json", None)) == len(FIELDS)
    with pytest.raises(BadUsage, match="there is no field x: the fields are name, usd, count"):
        listing.choose_fields("json", "usd,x")
