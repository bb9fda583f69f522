"""Cost and usage reports: CUR 2.0 (Data Exports) and legacy, as CSV, gzipped CSV or Parquet.

A file is read once, row by row; memory holds one sum per resource, usage type, region and unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from sageaudit.adapters.billing.parquet import ParquetReader, read_parquet
from sageaudit.adapters.billing.report_file import (
    Cell,
    amount,
    cells,
    column,
    opened,
    positions_of,
)
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


def read(
    path: Path, month: str, account: str, *, parquet: ParquetReader = read_parquet
) -> AwsSpend:
    """SageMaker's usage of `month` (YYYY-MM) and account. Raises BadUsage naming the file."""
    with opened(path, lambda name: column(name) in _COLUMNS, parquet) as (header, rows):
        return _of_rows(path, header, rows, month, account)


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


def _cells(path: Path, header: Sequence[str]) -> Cell:
    """Returns the cells of a row by column. Raises BadUsage for a missing column."""
    positions = positions_of(header)
    for needed, legacy in _NEEDED.items():
        if needed not in positions:
            hint = " (export with resource ids)" if needed == "line_item_resource_id" else ""
            raise BadUsage(
                f"{path}: is no cost report: the column {needed} ({legacy}) is missing{hint}"
            )
    if not any(name in positions for name in _MONTH_COLUMNS):
        raise BadUsage(f"{path}: is no cost report: the column {_MONTH_COLUMNS[0]} is missing")
    return cells(positions)


def _count(
    row: Sequence[object], cell: Cell, tally: _Tally, where: str, month: str, account: str
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
    usd = amount(cell(row, "line_item_unblended_cost"), where, "line_item_unblended_cost")
    if kind not in USAGE_TYPES:
        tally.leave_out(kind or "no line item type", usd or Decimal(0))
        return
    quantity = amount(cell(row, "line_item_usage_amount"), where, "line_item_usage_amount")
    if usd is None or quantity is None:
        missing = "line_item_unblended_cost" if usd is None else "line_item_usage_amount"
        raise BadUsage(f"{where} is usage, and its {missing} is empty")
    if usd < 0 or quantity < 0:
        tally.leave_out(f"{kind} below zero", usd)
        return
    region = job.region if job else ""
    region = region or cell(row, "product_region_code") or cell(row, "product_region")
    key = (resource, cell(row, "line_item_usage_type"), region, cell(row, "pricing_unit"))
    total = tally.sums.setdefault(key, [Decimal(0), Decimal(0)])
    total[0] += quantity
    total[1] += usd
