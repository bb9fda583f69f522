"""What was paid for each line of usage: cost and usage reports (legacy, CUR 2.0) and FOCUS exports.

Costs after discounts are line_item_net_unblended_cost (AWS has net columns only in accounts with a
discount; else line_item_unblended_cost) and, in FOCUS, BilledCost, which is 0 for usage under a
Savings Plan. What the plan costs: savings_plan_(net_)savings_plan_effective_cost, EffectiveCost.
Source: the data dictionaries of AWS Data Exports.

A FOCUS 1.0 export has the usage type in x_UsageType, one of 1.2 in SkuMeter (as real exports showed
in DigitalPebble/spruce#250). Files are read once, row by row. A line that an earlier file
has too is counted once, because two versions of a report repeat each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
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
from sageaudit.domain.reconcile.paid_line import DiscountLine, LeftOut, PaidLine, ReportLine
from sageaudit.errors import BadUsage

MOST_REMEMBERED = 2_000_000
"""Rows of SageMaker jobs that are compared for repeats: about 200 MB of memory."""
_CUR = (
    ("line_item_product_code",),
    ("line_item_line_item_type",),
    ("line_item_usage_type",),
    ("line_item_usage_amount",),
    ("line_item_unblended_cost",),
    ("line_item_usage_start_date", "bill_billing_period_start_date"),
)
_FOCUS = (
    ("x_service_code", "service_name"),
    ("charge_category",),
    ("x_usage_type", "sku_meter"),
    ("pricing_quantity", "consumed_quantity"),
    ("billed_cost",),
    ("effective_cost",),
    ("charge_period_start",),
)
"""Needed columns; of each group, the first that the report has."""
_OTHERS = (
    "bill_payer_account_id", "line_item_usage_account_id", "line_item_currency_code",
    "line_item_usage_end_date", "line_item_net_unblended_cost", "line_item_resource_id",
    "savings_plan_savings_plan_effective_cost", "savings_plan_net_savings_plan_effective_cost",
    "pricing_public_on_demand_rate", "pricing_unit", "product_region_code", "product_region",
    "billing_account_id", "sub_account_id", "billing_currency", "charge_period_end",
    "charge_class", "pricing_category", "commitment_discount_status", "list_unit_price",
    "consumed_unit", "region_id", "resource_id",
)  # fmt: skip
_COLUMNS = frozenset({*_OTHERS, *(name for names in (*_CUR, *_FOCUS) for name in names)})
_DISCOUNTS = frozenset(
    {
        "BundledDiscount", "Discount", "EdpDiscount", "PrivateRateDiscount", "RiVolumeDiscount",
        "SppDiscount",
    }
)  # fmt: skip
"""Line item types of discounts, which usage lines with a net cost already count."""
_COVERED = "SavingsPlanCoveredUsage"
_PLAN = (
    "savings_plan_savings_plan_effective_cost",
    "savings_plan_net_savings_plan_effective_cost",
)
_ZERO = Decimal(0)


@dataclass(slots=True)
class PaidLines:
    """Reads reports, and counts their SageMaker lines and the repeats among them.

    `account` (12 digits): only its lines; None for all accounts.
    """

    account: str | None = None
    parquet: ParquetReader = read_parquet
    read_lines: int = 0
    repeats: int = 0
    _files: int = 0
    _remembered: dict[int, int] = field(default_factory=dict)
    """Lines by their hash, and the file that had them first."""

    @property
    def forgets(self) -> bool:
        """Whether there were more lines than are compared for repeats."""
        return len(self._remembered) >= MOST_REMEMBERED

    def read(self, path: Path) -> Iterator[ReportLine]:
        """SageMaker's lines of one report. Raises BadUsage naming the file."""
        with opened(path, lambda name: column(name) in _COLUMNS, self.parquet) as (header, rows):
            self._files += 1
            positions = positions_of(header)
            read = _reader(path, positions)
            cell, here = cells(positions), 0
            for row in rows:
                if not row:
                    continue
                here += 1
                if len(row) < len(header):
                    count = f"{len(row)} of {len(header)} columns"
                    raise BadUsage(f"{path}: line {here + 1} is cut short: {count}")
                line = read(row, cell, f"{path}: line {here + 1}")
                if line is not None and self._counts(line, row, cell):
                    self.read_lines += 1
                    yield line
            if not here:
                raise BadUsage(f"{path}: has no lines below its header")

    def _counts(self, line: ReportLine, row: Sequence[object], cell: Cell) -> bool:
        """Whether the line is of the wanted account and was not read before."""
        owner = cell(row, "line_item_usage_account_id") or cell(row, "sub_account_id")
        if self.account is not None and owner != self.account:
            return False
        resource = cell(row, "line_item_resource_id") or cell(row, "resource_id")
        # Without a job's name, or within one file, equal lines may be of two jobs or hosts.
        if isinstance(line, PaidLine) and resource and not self.forgets:
            start = cell(row, "line_item_usage_start_date") or cell(row, "charge_period_start")
            first = self._remembered.setdefault(hash((line, resource, start)), self._files)
            if first != self._files:
                self.repeats += 1
                return False
        return True


_Read = Callable[[Sequence[object], Cell, str], ReportLine | None]


def _reader(path: Path, positions: dict[str, int]) -> _Read:
    """How to read this report's rows. Raises BadUsage for a missing column."""
    focus = "charge_category" in positions and "billed_cost" in positions
    for names in _FOCUS if focus else _CUR:
        if not any(name in positions for name in names):
            kind = "FOCUS export" if focus else "cost report"
            raise BadUsage(
                f"{path}: is no {kind} that shows rates: the column {' or '.join(names)} is missing"
            )
    if focus:
        return _of_focus
    return _of_cur


def _of_cur(row: Sequence[object], cell: Cell, where: str) -> ReportLine | None:
    if cell(row, "line_item_product_code").lower() != "amazonsagemaker":
        return None
    _in_usd(cell(row, "line_item_currency_code"), where)
    kind = cell(row, "line_item_line_item_type")
    gross, net = _cost(row, cell, where, "line_item_unblended_cost", "line_item_net_unblended_cost")
    paid = gross if net is None else net
    usage_type = cell(row, "line_item_usage_type")
    job = JobRef.from_arn(cell(row, "line_item_resource_id"))
    region = job.region if job else ""
    region = region or cell(row, "product_region_code") or cell(row, "product_region")
    start = cell(row, "line_item_usage_start_date") or cell(row, "bill_billing_period_start_date")
    if kind in _DISCOUNTS:
        day, payer = _day(start, where), cell(row, "bill_payer_account_id")
        return DiscountLine(kind, usage_type, region or None, day, gross or _ZERO, payer)
    if kind not in {"Usage", _COVERED}:
        return LeftOut(kind or "no line item type", paid or _ZERO)
    quantity = amount(cell(row, "line_item_usage_amount"), where, "line_item_usage_amount")
    if paid is None or quantity is None:
        missing = "line_item_unblended_cost" if paid is None else "line_item_usage_amount"
        raise BadUsage(f"{where} is usage, and its {missing} is empty")
    plan, net_plan = _cost(row, cell, where, *_PLAN)
    first = _day(start, where)
    return PaidLine(
        account=cell(row, "line_item_usage_account_id"),
        payer=cell(row, "bill_payer_account_id"),
        usage_type=usage_type,
        region=region or None,
        first=first,
        last=_last_day(cell(row, "line_item_usage_end_date"), first, where),
        quantity=quantity,
        unit=cell(row, "pricing_unit"),
        usd=paid,
        net=net is not None,
        amortised_usd=plan if net_plan is None else net_plan,
        covered=kind == _COVERED,
        list_rate=_rate(cell(row, "pricing_public_on_demand_rate")),
    )


def _cost(
    row: Sequence[object], cell: Cell, where: str, gross: str, net: str
) -> tuple[Decimal | None, Decimal | None]:
    """A cost before and after discounts; None where the report has none."""
    return amount(cell(row, gross), where, gross), amount(cell(row, net), where, net)


def _of_focus(row: Sequence[object], cell: Cell, where: str) -> ReportLine | None:
    service = cell(row, "x_service_code") or cell(row, "service_name")
    if not service.lower().replace(" ", "").startswith("amazonsagemaker"):
        return None
    _in_usd(cell(row, "billing_currency"), where)
    billed = amount(cell(row, "billed_cost"), where, "BilledCost") or _ZERO
    kind, status = cell(row, "charge_category"), cell(row, "commitment_discount_status")
    if kind != "Usage":
        return LeftOut(kind or "no charge category", billed)
    if cell(row, "charge_class") == "Correction":
        return LeftOut("Correction", billed)
    if status == "Unused":
        return LeftOut("Unused commitment", billed)
    quantity = amount(cell(row, "pricing_quantity"), where, "PricingQuantity")
    unit = cell(row, "pricing_unit")
    if quantity is None:
        quantity = amount(cell(row, "consumed_quantity"), where, "ConsumedQuantity")
        unit = cell(row, "consumed_unit")
    if quantity is None:
        raise BadUsage(f"{where} is usage, and its PricingQuantity is empty")
    first = _day(cell(row, "charge_period_start"), where)
    return PaidLine(
        account=cell(row, "sub_account_id"),
        payer=cell(row, "billing_account_id"),
        usage_type=cell(row, "x_usage_type") or cell(row, "sku_meter"),
        region=cell(row, "region_id") or None,
        first=first,
        last=_last_day(cell(row, "charge_period_end"), first, where),
        quantity=quantity,
        unit=unit,
        usd=billed,
        net=True,
        amortised_usd=amount(cell(row, "effective_cost"), where, "EffectiveCost"),
        covered=status == "Used" or cell(row, "pricing_category") == "Committed",
        list_rate=_rate(cell(row, "list_unit_price")),
    )


def _in_usd(currency: str, where: str) -> None:
    if currency not in {"", "USD"}:
        raise BadUsage(f"{where} is in {currency[:10]}: only rates in USD can be learnt")


def _day(text: str, where: str) -> date:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        raise BadUsage(f"{where}: its start is no day ({text[:40]})") from None


def _last_day(text: str, first: date, where: str) -> date:
    """The last day of usage that ends at `text`: midnight ends the day before."""
    if not text:
        return first
    end = _day(text, where)
    if end > first and not any(digit in "123456789" for digit in text[10:19]):
        end -= timedelta(days=1)
    return max(first, end)


def _rate(text: str) -> Decimal | None:
    """A public price; None where the report has none, or something else."""
    try:
        rate = Decimal(text)
    except ArithmeticError:
        return None
    return rate if rate.is_finite() and rate > 0 else None
