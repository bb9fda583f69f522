"""What one finding's fix saves, in words: the counted end of a range first, then the other end."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

from sageaudit.domain.audit.document import FindingDocument
from sageaudit.domain.bill.finding import Bucket
from sageaudit.text.estimate import about
from sageaudit.text.money import cents


def dollars(finding: FindingDocument, amount: Decimal | None) -> str:
    """`$42.50`, or `about $42.50` where the finding rests on an estimated rate."""
    known = amount is not None
    return about(cents(amount), estimated=known and finding.get("estimated", False))


def counted_dollars(finding: FindingDocument) -> str | None:
    """`$42.50 avoidable`, `up to $9.20 avoidable, not counted`; None without dollars of its own."""
    bucket, share, span = finding["bucket"], finding["saving_usd"], finding["saving_range_usd"]
    said = partial(dollars, finding)
    if Bucket(bucket) is Bucket.NONE:
        return None
    if share is None:
        return f"{bucket}, dollars unknown"
    if not share and span and span[-1]:
        return f"up to {said(span[-1])} {bucket}, not counted"
    if not share:
        alone = finding["saving_alone_usd"]
        return f"{said(alone)} {bucket}, counted by other findings" if alone else f"$0 {bucket}"
    return f"{said(share)} {bucket}"


def effect(finding: FindingDocument) -> str | None:
    """`saves $42.50 per run, at best $50.69`; None where no dollars are known.

    Where other fixes take a part of it, what is left with them applied comes first: the totals have
    that.
    """
    share, alone = finding["saving_usd"], finding["saving_alone_usd"]
    if alone is None:
        return None
    if Bucket(finding["bucket"]) is Bucket.LOST:
        return f"{dollars(finding, alone)} was paid for nothing"
    said, span = partial(dollars, finding), finding["saving_range_usd"]
    best = f", at best {said(span[-1])}" if span and span[-1] > alone else ""
    if not alone and span and span[-1]:
        return f"saves up to {said(span[-1])} per run"
    if not alone:
        return None
    if share == 0:
        return f"saves nothing more with the other fixes applied; alone {said(alone)}{best}"
    if share is None or share == alone:
        return f"saves {said(alone)} per run{best}"
    return f"saves {said(share)} per run with the other fixes applied; alone {said(alone)}{best}"
