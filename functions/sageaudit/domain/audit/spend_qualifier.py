"""The word that says how exactly an amount of dollars is known, for programs.

| what is known | word |
|---|---|
| every part, at known rates | `exact` |
| something rests on an estimated rate; or one part is a lower and one an upper bound | `about` |
| a part is not known, so the rest would add to it | `at_least` |
| a spot run without BillableTimeInSeconds: all its seconds are billed | `up_to` |
| nothing | `unknown` |

An unknown part of a sum makes it a lower bound. People read the same in words, which
`output/text/money.py` writes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from sageaudit.domain.audit.bill_document import BillDocument, gaps
from sageaudit.domain.bill.bill import UPPER_BOUND


class SpendQualifier(enum.StrEnum):
    """How exactly an amount is known."""

    EXACT = "exact"
    ABOUT = "about"
    AT_LEAST = "at_least"
    UP_TO = "up_to"
    UNKNOWN = "unknown"


def qualifier_of(*, known: bool, lower: bool, upper: bool, estimated: bool) -> SpendQualifier:
    """The word for an amount: whether it is a lower bound, an upper one, or an estimate."""
    if not known:
        return SpendQualifier.UNKNOWN
    if estimated or (lower and upper):
        return SpendQualifier.ABOUT
    if lower:
        return SpendQualifier.AT_LEAST
    return SpendQualifier.UP_TO if upper else SpendQualifier.EXACT


def qualifier_of_bill(bill: BillDocument) -> SpendQualifier:
    """That of a bill's total."""
    return qualifier_of(
        known=bill["total_usd"] is not None,
        lower=bool(lower_gaps(bill)),
        upper=is_upper_bound(bill),
        estimated=bool(bill["estimated"]),
    )


def is_upper_bound(bill: BillDocument) -> bool:
    """Whether all seconds of a spot run, or of one of a tuning job's, are billed."""
    return bill["basis"] == "upper_bound" and bill["total_usd"] is not None


def lower_gaps(bill: BillDocument) -> list[str]:
    """What would add to the total if it were known: neither estimates nor bounds."""
    return [missing for missing in gaps(bill) if missing != UPPER_BOUND]


def qualifier_of_sum(parts: Iterable[SpendQualifier]) -> SpendQualifier:
    """That of the sum of amounts; a sum of nothing is exactly 0."""
    words = {*parts}
    return qualifier_of(
        known=words != {SpendQualifier.UNKNOWN},
        lower=bool(words & {SpendQualifier.AT_LEAST, SpendQualifier.UNKNOWN}),
        upper=SpendQualifier.UP_TO in words,
        estimated=SpendQualifier.ABOUT in words,
    )


def qualifier_of_change(
    now: SpendQualifier, before: SpendQualifier, *, fell: bool
) -> SpendQualifier:
    """That of the size of a difference, whatever its sign: -2.00 and `at_least` fell by $2 or more.

    `fell`: the difference is below 0.
    """
    if SpendQualifier.UNKNOWN in {now, before}:
        return SpendQualifier.UNKNOWN
    larger, smaller = (before, now) if fell else (now, before)
    return qualifier_of_sum((larger, _OPPOSITE.get(smaller, smaller)))


_OPPOSITE = {
    SpendQualifier.AT_LEAST: SpendQualifier.UP_TO,
    SpendQualifier.UP_TO: SpendQualifier.AT_LEAST,
}
