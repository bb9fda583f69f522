"""How the total of a bill is to be read: exact, rounded by an estimate, or a bound."""

from __future__ import annotations

import enum

from sageaudit.domain.audit.document import BillDocument, gaps
from sageaudit.domain.bill.bill import UPPER_BOUND


class SpendQualifier(enum.StrEnum):
    """What stands before an amount that was spent."""

    EXACT = "exact"
    ABOUT = "about"
    """A rate is estimated, or the amount has bounds of both directions."""
    AT_LEAST = "at_least"
    UP_TO = "up_to"
    UNKNOWN = "unknown"


def qualifier_of_bill(bill: BillDocument) -> SpendQualifier:
    """Return the qualifier of a bill's total: by its basis, its rates, and what it lacks."""
    if bill["total_usd"] is None:
        return SpendQualifier.UNKNOWN
    # of a roll-up, a sentence about some of its jobs ends with that of their bills
    upper_bounds = [gap for gap in gaps(bill) if gap.endswith(UPPER_BOUND)]
    is_upper_bound = bill["basis"] == "upper_bound" or bool(upper_bounds)
    lacks_part = len(gaps(bill)) > len(upper_bounds)
    if bill["estimated"] or (is_upper_bound and lacks_part):
        return SpendQualifier.ABOUT
    if is_upper_bound:
        return SpendQualifier.UP_TO
    return SpendQualifier.AT_LEAST if lacks_part else SpendQualifier.EXACT
