"""The bill of an audit, and its lines, as a document shows them."""

from __future__ import annotations

from decimal import Decimal
from typing import TypedDict

from sageaudit.domain.audit.finding_document import filled, rounded
from sageaudit.domain.bill.bill import Basis, Line
from sageaudit.domain.prices.market import PriceKind


class BillDocument(TypedDict):
    """`missing`: one sentence for each thing that keeps the bill from being complete.

    `estimated`: those of them that name an estimated rate: their dollars are in the total.
    `spot_saved_usd`: what the seconds that spot did not bill would have cost.
    `prepaid_value_usd`: what a training plan's capacity would have cost on demand.
    `notes`: what to know of the figure, such as what is not in it.
    """

    total_usd: Decimal | None
    complete: bool
    missing: list[str]
    estimated: list[str]
    basis: Basis
    lines: list[LineDocument]
    price_kind: PriceKind | None
    spot_saved_usd: Decimal | None
    prepaid_value_usd: Decimal | None
    notes: list[str]
    spend_qualifier: str
    """A SpendQualifier: how exactly the total is known."""


def gaps(bill: BillDocument) -> list[str]:
    """What the bill's total lacks: all that is missing but the estimates."""
    return [missing for missing in bill["missing"] if missing not in bill["estimated"]]


class LineDocument(TypedDict):
    """One line of the bill. `usd` is None when the rate or the quantity is not known."""

    item: str
    usage_type: str | None
    quantity: Decimal | None
    unit: str
    rate_usd: Decimal | None
    usd: Decimal | None
    price_as_of: str | None
    price_source: str | None
    price_kind: PriceKind | None
    note: str | None


def line_document(line: Line) -> LineDocument:
    """One line as documents show it."""
    rate = line.rate
    return filled(
        LineDocument,
        line,
        rate_usd=rounded(rate.usd) if rate else None,
        price_as_of=rate.as_of if rate else None,
        price_source=rate.source if rate else None,
        price_kind=rate.kind if rate else None,
    )
