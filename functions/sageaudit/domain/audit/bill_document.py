"""The bill of an audit as a document shows it, and the word for how exactly it is known.

The word is for programs:

| what is known | word |
|---|---|
| every part, at known rates | `exact` |
| a part has an estimated rate; or one part is a lower and one an upper bound | `about` |
| a part is not known, so the sum is a lower bound | `at_least` |
| a spot run without BillableTimeInSeconds: all its seconds are billed | `up_to` |
| nothing | `unknown` |

For people, `output/text/money.py` writes the same in words.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from decimal import Decimal
from typing import TypedDict

from sageaudit.domain.audit.finding_document import fill_document, round_usd
from sageaudit.domain.bill.bill import UPPER_BOUND, Basis, BillLine
from sageaudit.domain.prices.market import PriceKind


class BillDocument(TypedDict):
    """`missing`: one sentence for each thing that keeps the bill from being complete.

    `estimated`: the sentences of `missing` about an estimated rate, whose dollars are in the total.
    `spot_saved_usd`: what the seconds that Spot did not bill would have cost. `prepaid_value_usd`:
    what a training plan's capacity would have cost on demand. `notes`: remarks on the total, such
    as what it does not include.
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


def missing_parts(bill: BillDocument) -> list[str]:
    """Returns what the bill's total lacks: all of `missing` except estimates."""
    return [missing for missing in bill["missing"] if missing not in bill["estimated"]]


class LineDocument(TypedDict):
    """One line of the bill. `usd` is None if the rate or the quantity is not known."""

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
    """Returns a line as documents show it."""
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
    *, known: bool, lower_bound: bool, upper_bound: bool, estimated: bool
) -> SpendQualifier:
    """Returns the qualifier of an amount."""
    if not known:
        return SpendQualifier.UNKNOWN
    if estimated or (lower_bound and upper_bound):
        return SpendQualifier.ABOUT
    if lower_bound:
        return SpendQualifier.AT_LEAST
    return SpendQualifier.UP_TO if upper_bound else SpendQualifier.EXACT


def qualify_bill(bill: BillDocument) -> SpendQualifier:
    """Returns the qualifier of a bill's total."""
    return qualify_amount(
        known=bill["total_usd"] is not None,
        lower_bound=bool(undercounted_parts(bill)),
        upper_bound=is_upper_bound(bill),
        estimated=bool(bill["estimated"]),
    )


def is_upper_bound(bill: BillDocument) -> bool:
    """Returns whether the total is an upper bound: all seconds of a spot run are billed."""
    return bill["basis"] == "upper_bound" and bill["total_usd"] is not None


def undercounted_parts(bill: BillDocument) -> list[str]:
    """Returns what would add to the total if it were known, without estimates and upper bounds."""
    return [missing for missing in missing_parts(bill) if missing != UPPER_BOUND]


def qualify_sum(parts: Iterable[SpendQualifier]) -> SpendQualifier:
    """Returns the qualifier of a sum of amounts. An empty sum is exactly 0."""
    qualifiers = {*parts}
    return qualify_amount(
        known=qualifiers != {SpendQualifier.UNKNOWN},
        lower_bound=bool(qualifiers & {SpendQualifier.AT_LEAST, SpendQualifier.UNKNOWN}),
        upper_bound=SpendQualifier.UP_TO in qualifiers,
        estimated=SpendQualifier.ABOUT in qualifiers,
    )


def qualify_change(
    now: SpendQualifier, before: SpendQualifier, *, has_fallen: bool
) -> SpendQualifier:
    """Returns the qualifier of the size of a difference.

    `has_fallen`: the difference is below 0. So -2.00 and `at_least` mean a fall of $2 or more.
    """
    if SpendQualifier.UNKNOWN in {now, before}:
        return SpendQualifier.UNKNOWN
    larger, smaller = (before, now) if has_fallen else (now, before)
    return qualify_sum((larger, _OPPOSITE.get(smaller, smaller)))


_OPPOSITE = {
    SpendQualifier.AT_LEAST: SpendQualifier.UP_TO,
    SpendQualifier.UP_TO: SpendQualifier.AT_LEAST,
}
