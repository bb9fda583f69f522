"""What one finding's fix saves, in words: the counted end of a range first, then the other end.

`whole_usd` is the job's bill, which no upper end is above when it is rounded.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial

from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.estimate import about
from sageaudit.output.text.money import between, cents, rough_low, up_to


def dollars(finding: FindingDocument, amount: Decimal | None) -> str:
    """`$42.50`, or `about $42.50` where the finding rests on an estimated rate."""
    return _marked(finding, cents(amount))


def _marked(finding: FindingDocument, shown: str) -> str:
    unknown = shown == cents(None)
    return about(shown, estimated=finding.get("estimated", False) and not unknown)


def counted_dollars(finding: FindingDocument, whole_usd: Decimal | None = None) -> str | None:
    """`$42.50 avoidable`, `up to $9.20 avoidable, not counted`; None without dollars of its own."""
    bucket, share, span = finding["bucket"], finding["saving_usd"], finding["saving_range_usd"]
    said = partial(dollars, finding)
    if Bucket(bucket) is Bucket.NONE:
        return None
    if share is None:
        return f"{bucket}, dollars unknown"
    if not share and span and span[-1]:
        return f"{_up_to(finding, span[-1], whole_usd)} {bucket}, not counted"
    if not share:
        alone = finding["saving_alone_usd"]
        return f"{said(alone)} {bucket}, counted by other findings" if alone else f"$0 {bucket}"
    if Bucket(bucket) is Bucket.POSSIBLE:
        return f"{possible_dollars(finding, whole_usd)} {bucket}"
    return f"{said(share)} {bucket}"


def possible_dollars(finding: FindingDocument, whole_usd: Decimal | None = None) -> str:
    """`$700 to $830`, or `about $500` where other fixes take a part of it."""
    share, span = finding["saving_usd"], finding["saving_range_usd"]
    if span and share == span[0]:
        return _marked(finding, between(span[0], span[-1], whole_usd))
    return rough_low(share)


def upper_end(finding: FindingDocument, whole_usd: Decimal | None = None) -> str | None:
    """`up to $9.20` for a range of which nothing is counted; None for any other finding."""
    span = finding["saving_range_usd"]
    if finding["saving_usd"] or not span or not span[-1]:
        return None
    return _up_to(finding, span[-1], whole_usd)


def _up_to(finding: FindingDocument, most: Decimal, whole_usd: Decimal | None) -> str:
    return f"up to {_marked(finding, up_to(most, whole_usd))}"


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
        return f"{upper or dollars(finding, alone)} was paid for nothing"
    if Bucket(finding["bucket"]) is Bucket.POSSIBLE and share:
        return f"may save {possible_dollars(finding, whole_usd)} per run"
    said, span = partial(dollars, finding), finding["saving_range_usd"]
    if not alone and span and span[-1]:
        return f"saves {_up_to(finding, span[-1], whole_usd)} per run"
    best = ""
    if span and span[-1] > alone:
        best = f", at best {_marked(finding, up_to(span[-1], whole_usd))}"
    if not alone:
        return None
    if share == 0:
        return f"saves nothing more with the other fixes applied; alone {said(alone)}{best}"
    if share is None or share == alone:
        return f"saves {said(alone)} per run{best}"
    return f"saves {said(share)} per run with the other fixes applied; alone {said(alone)}{best}"
