"""`sageaudit export`: writes audits or findings to a file for other tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from sageaudit.adapters.files.duckdb_engine import write_parquet
from sageaudit.adapters.files.exact_json import replace_surrogates
from sageaudit.adapters.files.local_files import atomic_write
from sageaudit.cli import clock, query_options, query_output
from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import AuditFilterOptions, HistoryChoice, filter_options
from sageaudit.cli.views import formats, lists
from sageaudit.cli.views.formats import Field
from sageaudit.domain.audit.sums import Scope
from sageaudit.errors import BadUsage
from sageaudit.output.text.words import count_text
from sageaudit.queries import answer
from sageaudit.queries.answer import ListRow
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.names import resolve_question
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
    "export_format",
    type=click.Choice(_FORMATS),
    show_default="the ending of FILE",
    help="parquet needs DuckDB.",
)
@click.option(
    "--findings", is_flag=True, help="Write findings instead of audits: of all rules, or of --rule."
)
@filter_options()
@query_options.fields_option("Fields to write; by default all.", lists.AUDITS, lists.FINDINGS)
@query_options.HISTORY_OPTIONS
def export(
    path: Path,
    export_format: str | None,
    findings: bool,
    filters: AuditFilterOptions,
    fields: str | None,
    history_choice: HistoryChoice,
) -> None:
    """Writes audits or findings to a file, for other tools.

    docs/queries.md has examples for DuckDB, Athena, pandas and spreadsheets. Rows are written as
    they are read, so memory use does not grow with their number. FILE is replaced after all rows
    are written.
    """
    export_format = export_format or _format_of_file(path)
    if export_format == "parquet" and path == _STDOUT:
        raise BadUsage("Parquet is not written to stdout: name a file with -o")
    question = filters.question(clock.utc_now())
    writes_findings = findings or question.rule is not None
    layout = lists.FINDINGS if writes_findings else lists.AUDITS
    chosen_fields = layout.choose_fields(export_format, fields)
    with_summaries = writes_findings and not {field.name for field in chosen_fields} <= {
        *lists.FINDINGS.exported_fields
    }
    with history_choice.open() as source:
        reader, question = resolve_question(source.history, question)
        all_rules = findings and question.rule is None
        questions = _questions_by_rule(reader, question) if all_rules else [question]
        rows: Iterable[ListRow] = (
            row
            for rule_question in questions
            for row in answer.iterate_rows(reader, rule_question, with_summaries=with_summaries)
        )
        rows, layout = formats.with_tags(rows, layout)
        chosen_fields = layout.choose_fields(export_format, fields)
        if path != _STDOUT:
            rows = query_output.with_progress(rows, "row", "writing")
        count = _write(rows, chosen_fields, export_format, path)
    print_message(f"{count_text(count, 'row')} written to {'stdout' if path == _STDOUT else path}")


def _format_of_file(path: Path) -> str:
    """Returns the format that the file name's extension means. Raises BadUsage for any other."""
    ending = path.suffix.lstrip(".").lower()
    if ending not in _FORMATS:
        raise BadUsage(f"{path} ends in none of {', '.join(_FORMATS)}: give --format")
    return ending


def _questions_by_rule(reader: HistoryLists, question: Question) -> Iterator[Question]:
    # Former rules, which older audits have, are included.
    current_rules = {rule.info.name for rule in catalogue.load()}
    for rule in sorted(
        current_rules.union(*(row.sums.rules for row in reader.daily_sums(Scope.ACCOUNT)))
    ):
        yield question.with_changed_filters(rule=rule)


def _write(
    rows: Iterable[ListRow], chosen_fields: Sequence[Field], export_format: str, path: Path
) -> int:
    if path == _STDOUT:
        return _write_text(
            rows, chosen_fields, export_format, lambda line: click.echo(line, nl=False)
        )
    with atomic_write(path) as temporary_file:
        if export_format == "parquet":
            columns = {field.name: field.column for field in chosen_fields}
            return write_parquet(
                temporary_file, columns, (_values(row, chosen_fields) for row in rows)
            )
        with temporary_file.open("w", encoding="utf-8", newline="") as file:
            return _write_text(rows, chosen_fields, export_format, file.write)


def _write_text(
    rows: Iterable[ListRow],
    chosen_fields: Sequence[Field],
    export_format: str,
    write: Callable[[str], object],
) -> int:
    lines = (
        formats.csv_lines(rows, chosen_fields)
        if export_format == "csv"
        else formats.jsonl_lines(rows, chosen_fields)
    )
    count = -1 if export_format == "csv" else 0
    for line in lines:
        write(line)
        count += 1
    return count


def _values(row: ListRow, chosen_fields: Sequence[Field]) -> dict[str, object]:
    # Parquet cannot store lone surrogates, so they are replaced.
    values = {field.name: field.getter(row) for field in chosen_fields}
    return {
        name: replace_surrogates(value) if isinstance(value, str) else value
        for name, value in values.items()
    }
