"""The bill of an audit as a document shows it, and a word for how exactly its total is known.

The words, for programs:

| what is known | word |
|---|---|
| every part, at known rates | `exact` |
| a part has an estimated rate; or one part is a lower and one an upper bound | `about` |
| a part is not known, so the sum is a lower bound | `at_least` |
| a spot run without BillableTimeInSeconds: all its seconds are billed | `up_to` |
| nothing | `unknown` |
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, TypedDict

from sageaudit.domain.audit.finding_document import fill_document, round_usd
from sageaudit.domain.bill.bill import UPPER_BOUND, Basis, BillLine
from sageaudit.domain.prices.market import PriceKind


class BillDocument(TypedDict):
    """The bill of one job. `missing`: a sentence for each part that makes the bill incomplete.

    `estimated`: the sentences of `missing` about an estimated rate, whose dollars are in the total.
    `spot_saved_usd`: what the seconds that Spot did not bill would have cost. `prepaid_value_usd`:
    what a training plan's capacity would have cost on demand. `notes`: remarks on the total, such
    as what is not included.
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
    spend_qualifier: Annotated[str, SpendQualifier]
    """How exactly the total is known."""


def missing_parts(bill: BillDocument) -> list[str]:
    """Returns the sentences on what the total lacks: all of `missing` except estimates."""
    return [missing for missing in bill["missing"] if missing not in bill["estimated"]]


class LineDocument(TypedDict):
    """One line of the bill. `usd`: None if the rate or the quantity is not known."""

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


def line_document(line: BillLine) -> LineDocument:
    """Returns the document of a bill line."""
    rate = line.rate
    return fill_document(
        LineDocument,
        line,
        rate_usd=round_usd(rate.usd) if rate else None,
        price_as_of=rate.as_of if rate else None,
        price_source=rate.source if rate else None,
        price_kind=rate.kind if rate else None,
    )


class SpendQualifier(enum.StrEnum):
    """How exactly an amount is known."""

    EXACT = "exact"
    ABOUT = "about"
    AT_LEAST = "at_least"
    UP_TO = "up_to"
    UNKNOWN = "unknown"


def qualify_amount(
    *, is_known: bool, lower_bound: bool, upper_bound: bool, estimated: bool
) -> SpendQualifier:
    """Returns how exactly an amount is known. `is_known`: False if nothing of it is known."""
    if not is_known:
        return SpendQualifier.UNKNOWN
    if estimated or (lower_bound and upper_bound):
        return SpendQualifier.ABOUT
    if lower_bound:
        return SpendQualifier.AT_LEAST
    return SpendQualifier.UP_TO if upper_bound else SpendQualifier.EXACT


def qualify_bill(bill: BillDocument) -> SpendQualifier:
    """Returns how exactly a bill's total is known."""
    return qualify_amount(
        is_known=bill["total_usd"] is not None,
        lower_bound=bool(undercounted_parts(bill)),
        upper_bound=is_upper_bound(bill),
        estimated=bool(bill["estimated"]),
    )


def is_upper_bound(bill: BillDocument) -> bool:
    """Returns whether the total is an upper bound, because all seconds of a spot run are billed."""
    return bill["basis"] == "upper_bound" and bill["total_usd"] is not None


def undercounted_parts(bill: BillDocument) -> list[str]:
    """Returns the sentences on parts that would raise the total if they were known.

    Estimates and upper bounds are left out.
    """
    return [missing for missing in missing_parts(bill) if missing != UPPER_BOUND]


def qualify_sum(parts: Iterable[SpendQualifier]) -> SpendQualifier:
    """Returns how exactly a sum of amounts is known. An empty sum is exactly 0."""
    qualifiers = {*parts}
    return qualify_amount(
        is_known=qualifiers != {SpendQualifier.UNKNOWN},
        lower_bound=bool(qualifiers & {SpendQualifier.AT_LEAST, SpendQualifier.UNKNOWN}),
        upper_bound=SpendQualifier.UP_TO in qualifiers,
        estimated=SpendQualifier.ABOUT in qualifiers,
    )


def qualify_change(
    now: SpendQualifier, earlier_qualifier: SpendQualifier, *, has_fallen: bool
) -> SpendQualifier:
    """Returns how exactly the size of a change is known.

    `has_fallen`: the change is below 0. For -2.00, `at_least` means a fall of $2 or more.
    """
    if SpendQualifier.UNKNOWN in {now, earlier_qualifier}:
        return SpendQualifier.UNKNOWN
    larger, smaller = (earlier_qualifier, now) if has_fallen else (now, earlier_qualifier)
    return qualify_sum((larger, _OPPOSITE.get(smaller, smaller)))


_OPPOSITE = {
    SpendQualifier.AT_LEAST: SpendQualifier.UP_TO,
    SpendQualifier.UP_TO: SpendQualifier.AT_LEAST,
}
"""The qualifier of a subtracted amount: a lower bound becomes an upper bound, and the reverse."""
