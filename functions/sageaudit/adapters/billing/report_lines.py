"""Reads SageMaker's lines of AWS cost reports (legacy CUR, CUR 2.0, FOCUS) into DuckDB.

It recognizes CSV, gzipped CSV and Parquet by their content, and the separator of CSV by its header.
Amounts stay text until they are summed. DuckDB converts binary numbers in Parquet to decimal text.
FOCUS 1.0 has the usage type in x_UsageType, FOCUS 1.2 in SkuMeter (see real exports in
DigitalPebble/spruce#250).
"""

from __future__ import annotations

import csv
import glob
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from sageaudit.adapters.billing.report_files import GZIP_MAGIC, ReportFile, find_report_files
from sageaudit.adapters.files.duckdb_engine import duckdb_connection, duckdb_errors
from sageaudit.domain.reconcile.lines import USAGE_TYPES
from sageaudit.errors import BadUsage

_COLUMNS = {
    "service": ("line_item_product_code", "x_service_code service_name"),
    "kind": ("line_item_line_item_type", "charge_category"),
    "usage_type": ("line_item_usage_type", "x_usage_type sku_meter"),
    "quantity": ("line_item_usage_amount", "pricing_quantity consumed_quantity"),
    "cost": ("line_item_unblended_cost", "billed_cost"),
    "start": ("line_item_usage_start_date bill_billing_period_start_date", "charge_period_start"),
    "plan_cost": (
        "savings_plan_net_savings_plan_effective_cost savings_plan_savings_plan_effective_cost",
        "effective_cost",
    ),
    "period": ("bill_billing_period_start_date line_item_usage_start_date", "charge_period_start"),
    "ended": ("line_item_usage_end_date", "charge_period_end"),
    "net_cost": ("line_item_net_unblended_cost", "billed_cost"),
    "resource": ("line_item_resource_id", "resource_id"),
    "account_id": ("line_item_usage_account_id", "sub_account_id"),
    "payer": ("bill_payer_account_id", "billing_account_id"),
    "currency": ("line_item_currency_code", "billing_currency"),
    "unit": ("pricing_unit", "pricing_unit consumed_unit"),
    "region_code": ("product_region_code product_region", "region_id"),
    "list_rate": ("pricing_public_on_demand_rate", "list_unit_price"),
    "charge_class": ("", "charge_class"),
    "commitment": ("", "commitment_discount_status"),
    "pricing": ("", "pricing_category"),
}
"""The fields to read, with their columns in a CUR and in FOCUS.

The first column that is not empty counts. A CUR has net costs only for accounts with a discount.
FOCUS's BilledCost is net, and 0 under a Savings Plan.
"""
_REQUIRED_COLUMNS = ("service", "kind", "usage_type", "quantity", "cost", "start")
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = (",", ";", "\t")
"""The separators of CSV. AWS writes commas; spreadsheets also write the others."""
_MAX_HEADER_LENGTH = 1_000_000
_SETUP = f"""
CREATE MACRO is_usage(kind) AS kind IN {USAGE_TYPES};
CREATE MACRO is_covered(kind) AS kind = 'SavingsPlanCoveredUsage';
CREATE MACRO amount(t) AS try_cast(t AS DECIMAL(38, 18));
CREATE MACRO short(sum) AS rtrim(rtrim(CAST(sum AS VARCHAR), '0'), '.');
CREATE MACRO is_time(t) AS regexp_matches(t, '^[0-9]{{4}}-');
CREATE MACRO first_day(t) AS CASE WHEN is_time(t) THEN try_cast(left(t, 10) AS DATE) END;
CREATE MACRO of_arn(t, part) AS
    CASE WHEN t LIKE 'arn:aws%:sagemaker:%' THEN nullif(split_part(t, ':', part), '') END;
"""
_SOURCE = """
CREATE VIEW source_{file} AS
SELECT * EXCLUDE (account_id), coalesce(account_id, of_arn(resource, 5), '') AS account
FROM (SELECT {file} AS file, number, {cells}
    FROM (SELECT *, row_number() OVER () + {above} AS number FROM rows_{file}))
"""
_LINES = """
SELECT
    * EXCLUDE (kind, region_code, service, charge_class, commitment, pricing),
    CASE
        WHEN kind = 'Usage' AND charge_class = 'Correction' THEN 'Correction'
        WHEN kind = 'Usage' AND commitment = 'Unused' THEN 'Unused commitment'
        WHEN kind = 'Usage' AND (commitment = 'Used' OR pricing = 'Committed')
            THEN 'SavingsPlanCoveredUsage'
        ELSE coalesce(kind, 'no kind of charge')
    END AS kind,
    coalesce(of_arn(resource, 4), region_code) AS region
FROM source_{file}
WHERE starts_with(replace(lower(service), ' ', ''), 'amazonsagemaker')
"""
_DISTINCT_LINES_SQL = """
CREATE TABLE once AS FROM line QUALIFY resource IS NULL OR NOT is_usage(kind) OR file = min(file)
    OVER (PARTITION BY account, payer, kind, usage_type, resource, start, quantity, cost, net_cost,
        currency);
DROP TABLE line;
ALTER TABLE once RENAME TO line;
"""
"""Drops a line with a resource if an earlier file has it too. Files may be versions of one report.

Equal lines in one file may be of two hosts. Lines without a resource may be of two jobs.
"""
_CHANGED = """
SELECT file, number, fault FROM (SELECT file, number, CASE
    WHEN NOT (is_time(period) AND is_time(start))
        THEN 'has the date ' || left(if(NOT is_time(period), period, start), 40)
            || ', but AWS writes 2026-10-31T00:00:00Z'
    WHEN regexp_matches(account, '^[0-9.,]+[eE][+]')
        THEN 'has the account ' || left(account, 40) || ', but AWS writes 12 digits'
    END AS fault FROM {table}) WHERE fault IS NOT NULL ORDER BY file, number LIMIT 1
"""
"""Selects the first line with a date or account that AWS does not write. No date is guessed."""
_FAULT = """
SELECT file, number, fault FROM (SELECT file, number, CASE
    WHEN currency <> 'USD' THEN 'is in ' || left(currency, 10) || ': only USD can be read'
    WHEN is_usage(kind) AND quantity IS NULL THEN 'is usage without a quantity'
    WHEN is_usage(kind) AND cost IS NULL THEN 'is usage without a cost'
    WHEN is_usage(kind) AND amount(quantity) IS NULL
        THEN 'has a quantity that is not a number: ' || left(quantity, 40)
    WHEN amount(coalesce(cost, '0')) IS NULL
        THEN 'has a cost that is not a number: ' || left(cost, 40)
    WHEN amount(coalesce(net_cost, '0')) IS NULL
        THEN 'has a net cost that is not a number: ' || left(net_cost, 40)
    WHEN amount(coalesce(plan_cost, '0')) IS NULL
        THEN 'has a Savings Plan cost that is not a number: ' || left(plan_cost, 40)
    WHEN first_day(start) IS NULL THEN 'has no valid start date: ' || coalesce(left(start, 40), '')
    WHEN {amortised} AND is_covered(kind) AND plan_cost IS NULL
        THEN 'is usage under a Savings Plan without the plan''s cost'
            || ' (savings_plan_savings_plan_effective_cost): export it with that column'
    END AS fault FROM line) WHERE fault IS NOT NULL ORDER BY file, number LIMIT 1
"""


class ReportLines(Struct, frozen=True):
    """A database whose table `line` has SageMaker's lines of `files`, which are names for people.

    Each line has the fields of `_COLUMNS` as text or NULL, its `file` (an index) and `number`. The
    database also has a view of each file's lines of all services.
    """

    connection: Any
    files: Sequence[str]

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Returns a statement's rows. Decimals have no trailing zeros."""
        rows = self.connection.execute(sql).fetchall()
        return [tuple(_trim_decimal(value) for value in row) for row in rows]

    def count(self) -> int:
        """Returns the number of lines."""
        [[count]] = self.query("SELECT count(*) FROM line")
        return int(count)

    def keep_only(self, account: str, month: str | None = None) -> None:
        """Drops the lines of other accounts, and of other months if `month` (YYYY-MM) is given."""
        self.connection.execute("DELETE FROM line WHERE account <> ?", [account])
        if month is not None:
            month_deletion_sql = "DELETE FROM line WHERE left(period, 7) IS DISTINCT FROM ?"
            self.connection.execute(month_deletion_sql, [month])

    def drop_duplicates(self) -> int:
        """Drops the lines that an earlier file also has. Returns how many it dropped."""
        count_before = self.count()
        if len(self.files) > 1:
            self.connection.execute(_DISTINCT_LINES_SQL)
        return count_before - self.count()

    def check_unchanged(self) -> None:
        """Raises BadUsage for the first line that a spreadsheet has changed.

        It reads SageMaker's lines, or those of all services if there are none.
        """
        sources = [f"source_{file}" for file in range(len(self.files))]
        for table in ["line"] if self.count() else sources:
            for file, number, fault in self.query(_CHANGED.format(table=table)):
                raise BadUsage(
                    f"{self.files[file]}: line {number} {fault}: give AWS's own file, not one that"
                    " a spreadsheet saved"
                )

    def check_readable(self, *, amortised: bool) -> None:
        """Raises BadUsage for the first unreadable line. Otherwise it would count as 0."""
        for file, number, fault in self.query(_FAULT.format(amortised=amortised)):
            raise BadUsage(f"{self.files[file]}: line {number} {fault}")

    def months(self) -> set[tuple[str | None, str]]:
        """Returns the (month, account) pairs that have lines of any service."""
        rows: set[tuple[str | None, str]] = set()
        for file in range(len(self.files)):
            rows.update(self.query(f"FROM source_{file} SELECT DISTINCT left(period, 7), account"))
        return rows


def _trim_decimal(value: object) -> object:
    if not isinstance(value, Decimal) or "." not in (text := f"{value:f}"):
        return value
    return Decimal(text.rstrip("0").rstrip("."))


@contextmanager
def open_report_lines(paths: Sequence[Path]) -> Iterator[ReportLines]:
    """Opens cost reports, or all reports in folders and ZIP files.

    Raises BadUsage that names the unreadable file or the missing column.
    """
    files: list[str] = []
    with (
        TemporaryDirectory(prefix="sageaudit-") as folder,
        duckdb_connection("reading a cost report") as connection,
    ):
        connection.execute(_SETUP)
        for path in paths:
            with _file_errors(str(path)):
                for file in find_report_files(path, Path(folder)):
                    with _file_errors(file.name):
                        _add_file(connection, file, len(files))
                    files.append(file.name)
        yield ReportLines(connection, files)


@contextmanager
def _file_errors(name: str) -> Iterator[None]:
    try:
        with duckdb_errors(f"{name}: is not a cost report that can be read"):
            yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadUsage(f"{name}: is a broken gzip file") from error
    except OSError as error:
        raise BadUsage(f"{name}: cannot be read ({error.strerror or error})") from error
    except (UnicodeError, csv.Error) as error:
        raise BadUsage(
            f"{name}: is not a cost report: it is not text in UTF-8, so save it as CSV in UTF-8"
        ) from error


def _add_file(connection: Any, file: ReportFile, index: int) -> None:
    """Creates a file's view with a column for each field, and adds SageMaker's lines to `line`."""
    with file.path.open("rb") as file_object:
        first_bytes = file_object.read(4)
    path, is_parquet = glob.escape(str(file.path)), first_bytes == b"PAR1"
    if is_parquet:
        rows = connection.read_parquet(path)
        cells = _cells(file.name, [(column, f'"{column}"') for column in rows.columns])
    else:
        is_gzipped = first_bytes.startswith(GZIP_MAGIC)
        header, separator = _header(file.path, is_gzipped=is_gzipped)
        columns = [f"c{number}" for number in range(len(header))]
        cells = _cells(file.name, zip(header, columns, strict=True))
        rows = connection.read_csv(
            path, columns=dict.fromkeys(columns, "VARCHAR"), header=True, auto_detect=False,
            delimiter=separator, quotechar='"', escapechar='"', strict_mode=True,
            compression="gzip" if is_gzipped else "none",
        )  # fmt: skip
    rows.create_view(f"rows_{index}")
    connection.execute(_SOURCE.format(file=index, cells=cells, above=0 if is_parquet else 1))
    statement = "INSERT INTO line" if index else "CREATE TABLE line AS"
    connection.execute(statement + _LINES.format(file=index))


def _header(path: Path, *, is_gzipped: bool) -> tuple[list[str], str]:
    """Returns the titles of the columns, and their separator."""
    with gzip.open(path) if is_gzipped else path.open("rb") as file:
        line = file.readline(_MAX_HEADER_LENGTH).decode("utf-8-sig")
    if "\0" in line:
        raise csv.Error("it has the character NUL")
    separator = max(
        _SEPARATORS, key=lambda candidate: len(next(csv.reader([line], delimiter=candidate), []))
    )
    return next(csv.reader([line], delimiter=separator, strict=True), []), separator


def _cells(name: str, columns: Iterable[tuple[str, str]]) -> str:
    """Returns the select list, with a cell for each field. `columns` are pairs of title and SQL
    name.

    `lineItem/UsageType` and `UsageType` are read like the names in CUR 2.0.
    """
    by_name: dict[str, str] = {}
    for column_title, column in columns:
        by_name.setdefault(
            _CAMEL_CASE_BOUNDARY.sub("_", column_title.strip().replace("/", "_")).lower(), column
        )
    is_focus = {"charge_category", "billed_cost"} <= by_name.keys()
    cells = []
    for field, formats in _COLUMNS.items():
        names = formats[is_focus].split()
        present_columns = [by_name[column] for column in names if column in by_name]
        if not present_columns and (
            field in _REQUIRED_COLUMNS or (is_focus and field == "plan_cost")
        ):
            kind = "FOCUS export" if is_focus else "cost report"
            raise BadUsage(f"{name}: is not a {kind}: the column {' or '.join(names)} is missing")
        texts = [f"nullif(trim(CAST({column} AS VARCHAR)), '')" for column in present_columns]
        cells.append(f"coalesce({', '.join([*texts, 'CAST(NULL AS VARCHAR)'])}) AS {field}")
    return ", ".join(cells)
