"""Cost and usage reports: CUR 2.0 (Data Exports) and legacy, as CSV, gzipped CSV or Parquet.

A file is read once, row by row; memory holds one sum per resource, usage type, region and unit.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO, cast

from sageaudit.adapters.billing.parquet import ParquetReader, read_parquet
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.reconcile.spend import USAGE_TYPES, AwsLine, AwsSpend, Excluded
from sageaudit.errors import BadUsage

_NEEDED = {
    "line_item_product_code": "lineItem/ProductCode",
    "line_item_line_item_type": "lineItem/LineItemType",
    "line_item_usage_type": "lineItem/UsageType",
    "line_item_usage_amount": "lineItem/UsageAmount",
    "line_item_unblended_cost": "lineItem/UnblendedCost",
    "line_item_resource_id": "lineItem/ResourceId",
}
"""Columns of CUR 2.0, with their legacy names."""
_MONTH_COLUMNS = ("bill_billing_period_start_date", "line_item_usage_start_date")
_OPTIONAL = (
    *_MONTH_COLUMNS,
    "line_item_usage_account_id",
    "line_item_currency_code",
    "pricing_unit",
    "product_region_code",
    "product_region",
)
_COLUMNS = frozenset({*_NEEDED, *_OPTIONAL})
_PRODUCT = "amazonsagemaker"
_LONGEST_LINE = 4_000_000
_LARGEST_EXPONENT = 15
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read(
    path: Path, month: str, account: str, *, parquet: ParquetReader = read_parquet
) -> AwsSpend:
    """SageMaker's usage of `month` (YYYY-MM) and account. Raises BadUsage naming the file."""
    with _sentences(path):
        with path.open("rb") as file:
            start = file.read(4)
        if not start:
            raise BadUsage(f"{path}: is empty")
        if start[:2] == b"PK":
            raise BadUsage(f"{path}: is a ZIP archive: unpack it first")
        if start == b"PAR1":
            columns, rows = parquet(path, lambda name: _column(name) in _COLUMNS)
            return _of_rows(path, columns, rows, month, account)
        packed = start[:2] == b"\x1f\x8b"
        with closing(cast("IO[bytes]", gzip.open(path) if packed else path.open("rb"))) as binary:
            lines = csv.reader(_lines(path, binary), strict=True)
            return _of_rows(path, next(lines, []), lines, month, account)


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadUsage(f"{path}: is a broken gzip file") from error
    except OSError as error:
        raise BadUsage(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise BadUsage(f"{path}: is no cost report: it is not text in UTF-8") from error
    except csv.Error as error:
        raise BadUsage(f"{path}: is no cost report: it is not CSV ({error})") from error


def _lines(path: Path, binary: IO[bytes]) -> Iterator[str]:
    """Lines of limited length, so that a file without line breaks cannot fill the memory."""
    encoding = "utf-8-sig"
    while line := binary.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise BadUsage(
                f"{path}: is no cost report: it has a line of over {_LONGEST_LINE} bytes"
            )
        yield line.decode(encoding)
        encoding = "utf-8"


@dataclass(slots=True)
class _Tally:
    """Sums of the rows read so far, and of those left out."""

    rows: int = 0
    months: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    sums: dict[tuple[str, str, str, str], list[Decimal]] = field(default_factory=dict)
    excluded: dict[str, list[Decimal]] = field(default_factory=dict)

    def leave_out(self, kind: str, usd: Decimal) -> None:
        counted = self.excluded.setdefault(kind, [Decimal(0), Decimal(0)])
        counted[0] += 1
        counted[1] += usd

    def spend(self) -> AwsSpend:
        return AwsSpend(
            tuple(
                AwsLine(usage_type, region or None, unit, quantity, usd, resource or None)
                for (resource, usage_type, region, unit), (quantity, usd) in self.sums.items()
            ),
            tuple(Excluded(kind, int(lines), usd) for kind, (lines, usd) in self.excluded.items()),
        )


def _of_rows(
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    month: str,
    account: str,
) -> AwsSpend:
    cell = _cells(path, header)
    tally = _Tally()
    for row in rows:
        if not row:
            continue
        tally.rows += 1
        where = f"{path}: line {tally.rows + 1}"
        if len(row) < len(header):
            raise BadUsage(f"{where} is cut short: {len(row)} of {len(header)} columns")
        _count(row, cell, tally, where, month, account)
    if not tally.rows:
        raise BadUsage(f"{path}: has no lines below its header")
    if month not in tally.months:
        months = ", ".join(sorted(tally.months)[:6])
        raise BadUsage(f"{path}: is a report of {months}, not of {month}")
    if tally.accounts and account not in tally.accounts:
        raise BadUsage(f"{path}: has no line of account {account} in {month}")
    return tally.spend()


_Cell = Callable[[Sequence[object], str], str]


def _cells(path: Path, header: Sequence[str]) -> _Cell:
    """Returns a function from a row and a column's name to the cell's text, empty if absent."""
    positions: dict[str, int] = {}
    for position, name in enumerate(header):
        positions.setdefault(_column(name), position)
    for needed, legacy in _NEEDED.items():
        if needed not in positions:
            hint = " (export with resource ids)" if needed == "line_item_resource_id" else ""
            raise BadUsage(
                f"{path}: is no cost report: the column {needed} ({legacy}) is missing{hint}"
            )
    if not any(column in positions for column in _MONTH_COLUMNS):
        raise BadUsage(f"{path}: is no cost report: the column {_MONTH_COLUMNS[0]} is missing")

    def cell(row: Sequence[object], column: str) -> str:
        position = positions.get(column)
        value = None if position is None else row[position]
        return "" if value is None else str(value).strip()

    return cell


def _column(name: str) -> str:
    """The name in CUR 2.0 form: `lineItem/UsageType` becomes `line_item_usage_type`."""
    return _WORD.sub("_", name.strip().replace("/", "_")).lower()


def _count(
    row: Sequence[object], cell: _Cell, tally: _Tally, where: str, month: str, account: str
) -> None:
    """Adds one row to the tally if it is SageMaker's, of this month and account."""
    when = (cell(row, _MONTH_COLUMNS[0]) or cell(row, _MONTH_COLUMNS[1]))[:7]
    tally.months.add(when or "no month")
    if when != month:
        return
    resource = cell(row, "line_item_resource_id")
    job = JobRef.from_arn(resource)
    owner = cell(row, "line_item_usage_account_id") or (job.account if job else "")
    if owner:
        tally.accounts.add(owner)
    if owner not in {"", account} or cell(row, "line_item_product_code").lower() != _PRODUCT:
        return
    currency = cell(row, "line_item_currency_code")
    if currency not in {"", "USD"}:
        raise BadUsage(f"{where} is in {currency}: only USD can be compared")
    kind = cell(row, "line_item_line_item_type")
    usd = _amount(cell(row, "line_item_unblended_cost"), where, "line_item_unblended_cost")
    if kind not in USAGE_TYPES:
        tally.leave_out(kind or "no line item type", usd or Decimal(0))
        return
    quantity = _amount(cell(row, "line_item_usage_amount"), where, "line_item_usage_amount")
    if usd is None or quantity is None:
        column = "line_item_unblended_cost" if usd is None else "line_item_usage_amount"
        raise BadUsage(f"{where} is usage, and its {column} is empty")
    if usd < 0 or quantity < 0:
        tally.leave_out(f"{kind} below zero", usd)
        return
    region = job.region if job else ""
    region = region or cell(row, "product_region_code") or cell(row, "product_region")
    key = (resource, cell(row, "line_item_usage_type"), region, cell(row, "pricing_unit"))
    total = tally.sums.setdefault(key, [Decimal(0), Decimal(0)])
    total[0] += quantity
    total[1] += usd


def _amount(text: str, where: str, column: str) -> Decimal | None:
    if not text:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise BadUsage(f"{where}: {column} is not a number ({text[:40]})") from None
    if not amount.is_finite() or amount.adjusted() > _LARGEST_EXPONENT:
        raise BadUsage(f"{where}: {column} is not an amount ({text[:40]})")
    return amount
