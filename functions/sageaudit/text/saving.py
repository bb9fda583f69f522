"""What one finding's fix saves, in words: the counted end of a range first, then the other end.

`whole_usd` is the job's bill, which no upper end is above when it is rounded.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.audit.document import FindingDocument
from sageaudit.domain.bill.finding import Bucket
from sageaudit.text.money import about, between, cents, up_to


def counted_dollars(finding: FindingDocument, whole_usd: Decimal | None = None) -> str | None:
    """`$42.50 avoidable`, `up to $9.20 avoidable, not counted`; None without dollars of its own."""
    bucket, share, span = finding["bucket"], finding["saving_usd"], finding["saving_range_usd"]
    if Bucket(bucket) is Bucket.NONE:
        return None
    if share is None:
        return f"{bucket}, dollars unknown"
    if not share and span and span[-1]:
        return f"up to {up_to(span[-1], whole_usd)} {bucket}, not counted"
    if not share:
        alone = finding["saving_alone_usd"]
        return f"{cents(alone)} {bucket}, counted by other findings" if alone else f"$0 {bucket}"
    if Bucket(bucket) is Bucket.POSSIBLE:
        return f"{possible_dollars(finding, whole_usd)} {bucket}"
    return f"{cents(share)} {bucket}"


def possible_dollars(finding: FindingDocument, whole_usd: Decimal | None = None) -> str:
    """`$700 to $830`, or `about $500` where other fixes take a part of it."""
    share, span = finding["saving_usd"], finding["saving_range_usd"]
    if span and share == span[0]:
        return between(span[0], span[-1], whole_usd)
    return about(share)


def upper_end(finding: FindingDocument, whole_usd: Decimal | None = None) -> str | None:
    """`up to $9.20` for a range of which nothing is counted; None for any other finding."""
    span = finding["saving_range_usd"]
    if finding["saving_usd"] or not span or not span[-1]:
        return None
    return f"up to {up_to(span[-1], whole_usd)}"


def effect(finding: FindingDocument, whole_usd: Decimal | None = None) -> str | None:
    """`saves $42.50 per run, at best $51`; None where no dollars are known.

    Where other fixes take a part of it, what is left with them applied comes first: the totals have
    that.
    """
    share, alone = finding["saving_usd"], finding["saving_alone_usd"]
    if alone is None:
        return None
    upper = upper_end(finding, whole_usd)
    if Bucket(finding["bucket"]) is Bucket.LOST:
        return f"{upper or cents(alone)} was paid for nothing"
    if Bucket(finding["bucket"]) is Bucket.POSSIBLE and share:
        return f"may save {possible_dollars(finding, whole_usd)} per run"
    span = finding["saving_range_usd"]
    best = f", at best {up_to(span[-1], whole_usd)}" if span and span[-1] > alone else ""
    if not alone and span and span[-1]:
        return f"saves up to {up_to(span[-1], whole_usd)} per run"
    if not alone:
        return None
    if share == 0:
        return f"saves nothing more with the other fixes applied; alone {cents(alone)}{best}"
    if share is None or share == alone:
        return f"saves {cents(alone)} per run{best}"
    return f"saves {cents(share)} per run with the other fixes applied; alone {cents(alone)}{best}"
