"""`sageaudit export`: writes audits or findings to a file for other tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from sageaudit.adapters.files.duckdb_engine import write_parquet
from sageaudit.adapters.files.exact_json import replace_surrogates
from sageaudit.adapters.files.local_files import atomic_write
from sageaudit.cli import asking
from sageaudit.cli.asking import AuditFilterOptions, HistoryChoice, filter_options
from sageaudit.cli.messages import print_message
from sageaudit.cli.views import formats, lists
from sageaudit.cli.views.formats import Field
from sageaudit.domain.audit.sums import Scope
from sageaudit.errors import BadUsage
from sageaudit.output.text.words import count_text
from sageaudit.queries import answer
from sageaudit.queries.answer import ListRow
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.names import resolve
from sageaudit.queries.question import Question
from sageaudit.rules import catalogue

_FORMATS = ("parquet", "jsonl", "csv")
_STDOUT = Path("-")
_EPILOG = """\b
Examples:
  sageaudit export -o audits.parquet
  sageaudit export --since 2026-01-01 --format csv -o audits.csv
  sageaudit export --findings -o findings.jsonl --table sageaudit-history"""


@click.command(epilog=_EPILOG)
@click.option(
    "-o",
    "--out",
    "path",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    required=True,
    metavar="FILE",
    help="File to write, or - for stdout.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    show_default="the ending of FILE",
    help="parquet needs DuckDB.",
)
@click.option(
    "--findings", is_flag=True, help="Write findings instead of audits: of all rules, or of --rule."
)
@filter_options()
@click.option("--fields", metavar="A,B,C", help="Fields to write; by default all.")
@asking.HISTORY_OPTIONS
def export(
    path: Path,
    form: str | None,
    findings: bool,
    filters: AuditFilterOptions,
    fields: str | None,
    where: HistoryChoice,
) -> None:
    """Writes audits or findings to a file, for other tools.

    Such as duckdb, Athena, pandas or a spreadsheet: docs/queries.md has examples. Rows are written
    as they are read, so the memory stays the same for any number. FILE is replaced once all rows
    are written.
    """
    form = form or _format_of(path)
    if form == "parquet" and path == _STDOUT:
        raise BadUsage("Parquet is not written to stdout: name a file with -o")
    question = filters.question(asking.utc_now())
    of_findings = findings or question.rule is not None
    listing = lists.FINDINGS if of_findings else lists.AUDITS
    chosen = listing.choose_fields(form, fields)
    heads = of_findings and not {field.name for field in chosen} <= {
        *lists.FINDINGS.exported_fields
    }
    with where.open() as opened:
        reader, question = resolve(opened.history, question)
        every = findings and question.rule is None
        questions = _questions_by_rule(reader, question) if every else [question]
        rows: Iterable[ListRow] = (
            row
            for asked in questions
            for row in answer.iterate_rows(reader, asked, with_summaries=heads)
        )
        rows, listing = formats.with_tags(rows, listing)
        chosen = listing.choose_fields(form, fields)
        if path != _STDOUT:
            rows = asking.with_progress(rows, "row", "writing")
        count = _write(rows, chosen, form, path)
    print_message(f"{count_text(count, 'row')} written to {'stdout' if path == _STDOUT else path}")


def _format_of(path: Path) -> str:
    """The format that a file's name ends in."""
    ending = path.suffix.lstrip(".").lower()
    if ending not in _FORMATS:
        raise BadUsage(f"which format? {path} ends in none of {', '.join(_FORMATS)}: give --format")
    return ending


def _questions_by_rule(reader: HistoryLists, question: Question) -> Iterator[Question]:
    """The question for each rule of today, and for those that only older audits have."""
    known = {rule.info.name for rule in catalogue.load()}
    for rule in sorted(known.union(*(row.sums.rules for row in reader.daily_sums(Scope.ACCOUNT)))):
        yield question.with_changed_filters(rule=rule)


def _write(rows: Iterable[ListRow], chosen: Sequence[Field], form: str, path: Path) -> int:
    if path == _STDOUT:
        return _write_text(rows, chosen, form, lambda line: click.echo(line, nl=False))
    with atomic_write(path) as part:
        if form == "parquet":
            columns = {field.name: field.column for field in chosen}
            return write_parquet(part, columns, (_values(row, chosen) for row in rows))
        with part.open("w", encoding="utf-8", newline="") as file:
            return _write_text(rows, chosen, form, file.write)


def _write_text(
    rows: Iterable[ListRow], chosen: Sequence[Field], form: str, write: Callable[[str], object]
) -> int:
    lines = formats.csv_lines(rows, chosen) if form == "csv" else formats.jsonl_lines(rows, chosen)
    count = -1 if form == "csv" else 0
    for line in lines:
        write(line)
        count += 1
    return count


def _values(row: ListRow, chosen: Sequence[Field]) -> dict[str, object]:
    """The values as Parquet has types for them: times stay times, and enumerated words are text."""
    values = {field.name: field.getter(row) for field in chosen}
    return {
        name: replace_surrogates(value) if isinstance(value, str) else value
        for name, value in values.items()
    }
