"""The first line of every message: what a job cost, and what of it was avoidable or not judged."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, BillDocument, gaps
from sageaudit.domain.audit.finding_document import stands
from sageaudit.domain.audit.judgement import NOT_FINISHED, Judged
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.estimate import BY_ESTIMATE, about
from sageaudit.output.text.money import cents, share, usd
from sageaudit.output.text.saving import upper_end

_CENT = Decimal("0.01")


def headline(document: AuditDocument) -> str:
    """`$0.51 of $0.66 (77%) was avoidable`; an incomplete bill shows no percentage.

    A sum of 0 is "none was found" only where all was judged. What may be lost or avoidable beyond
    what is certain is "up to".
    """
    avoidable, lost = document["avoidable_usd"], document["lost_usd"]
    whole = whole_cost(document["bill"])
    if still_runs(document):
        return _so_far(document["bill"], whole)
    money = (avoidable or Decimal(0)) + (lost or Decimal(0))
    perhaps = (document["lost_up_to_usd"] or Decimal(0)) - (lost or Decimal(0))
    if not money and perhaps > 0:
        return f"up to {_whole_or_part(document['bill'], perhaps, whole)} was lost"
    if not money:
        return _no_money(document, whole)
    word = "was avoidable or lost" if avoidable and lost else "was avoidable"
    if lost and not avoidable:
        word = "was lost"
    rest = "; the rest was not judged" if document["judged"] == Judged.NO else ""
    upper = about(_sum(perhaps), estimated=bool(document["bill"]["estimated"]))
    more = f", and up to {upper} more was lost" if perhaps > 0 else ""
    return f"{_part(document['bill'], money, whole)} {word}{more}{rest}"


def _whole_or_part(bill: BillDocument, money: Decimal, whole: str | None) -> str:
    part = _part(bill, money, whole)
    return f"{whole}, its whole cost," if part == f"all of {whole}" else part


def _part(bill: BillDocument, money: Decimal, whole: str | None) -> str:
    total, estimated = bill["total_usd"], bool(bill["estimated"])
    some = about(_sum(money), estimated=estimated)
    if whole is None or not total:
        return f"{some} {BY_ESTIMATE}" if estimated else some
    if estimated and money == total and not gaps(bill):
        return f"all of {whole}"
    if not bill["complete"]:
        return f"{some} of {whole}"
    if total < _CENT:
        return f"{whole} ({share(money, total)} of the cost)"
    return f"all of {whole}" if money == total else f"{some} of {whole} ({share(money, total)})"


def _sum(amount: Decimal) -> str:
    """The dollars; in words below a cent, on which nobody acts."""
    return f"less than {usd(_CENT)}" if 0 < amount < _CENT else usd(amount)


def _no_money(document: AuditDocument, whole: str | None) -> str:
    bill = document["bill"]
    if bill["total_usd"] == 0 and bill["basis"] != "prepaid":
        return "it cost nothing"
    cost = f"it cost {whole}" if whole else "its cost is not known"
    if bill["basis"] == "prepaid":
        cost = "its capacity is prepaid"
    if document["judged"] == Judged.NO:
        return f"{cost}, and what was avoidable could not be judged"
    sums = {"avoidable": document["avoidable_usd"], "lost": document["lost_usd"]}
    if unknown := [word for word, amount in sums.items() if amount is None]:
        either = "" if whole or bill["basis"] == "prepaid" else " either"
        return f"{cost}, and what was {' or '.join(unknown)} is not known{either}"
    if bill["basis"] == "prepaid":
        return f"{cost}, so no dollars were avoidable"
    found = f"none of {whole or 'the cost'} was found avoidable"
    if perhaps := _perhaps_avoidable(document):
        found = (
            f"none of {whole or 'the cost'} was certainly avoidable, but {perhaps} may have been"
        )
    if accepted := _exempt(document):
        found = f"{accepted} of {whole or 'the cost'} was avoidable, and is exempt"
    if document["judged"] == Judged.PARTLY:
        return f"{found}, but not all of it could be judged"
    return found


def _perhaps_avoidable(document: AuditDocument) -> str | None:
    """`up to $160`: the largest upper end of which nothing is counted."""
    ends = [
        (finding["saving_range_usd"][-1], finding)
        for finding in document["findings"]
        if Bucket(finding["bucket"]) is Bucket.AVOIDABLE
        and stands(finding)
        and not finding["saving_usd"]
        and finding["saving_range_usd"]
    ]
    most, finding = max(ends, key=lambda end: end[0], default=(Decimal(0), None))
    if finding is None or most < _CENT:
        return None
    return upper_end(finding, document["bill"]["total_usd"])


def _exempt(document: AuditDocument) -> str | None:
    """The largest exempt saving: these findings are accepted, and still true."""
    savings = [
        finding["saving_alone_usd"] or Decimal(0)
        for finding in document["findings"]
        if finding["exempt"] and Bucket(finding["bucket"]).counted
    ]
    largest = max(savings, default=Decimal(0))
    return cents(largest) if largest else None


def _so_far(bill: BillDocument, whole: str | None) -> str:
    if bill["basis"] == "prepaid":
        return "it still runs, on prepaid capacity"
    if bill["total_usd"] == 0:
        return "it still waits for its instances, and cost nothing so far"
    return f"it still runs, and cost {whole} so far" if whole else "it still runs"


def still_runs(document: AuditDocument) -> bool:
    """True for a job that still runs: no rule has judged it."""
    return any(unknown["code"] == NOT_FINISHED for unknown in document["unknown"])


def whole_cost(bill: BillDocument) -> str | None:
    """The bill's total with its certainty: "about $2.00", "up to $2.00", "at least $2.00".

    "about $2.00 (estimated rate)" where a rate is an estimate. None where it is not known.
    """
    total, estimated = bill["total_usd"], bool(bill["estimated"])
    if total is None:
        return None
    whole = _whole(bill, total, estimated=estimated)
    return f"{whole} {BY_ESTIMATE}" if estimated else whole


def _whole(bill: BillDocument, total: Decimal, *, estimated: bool) -> str:
    missing = gaps(bill)
    complete = bill["complete"] or (estimated and not missing)
    if 0 < total < _CENT and (complete or bill["basis"] == "upper_bound"):
        return _sum(total)
    if bill["basis"] == "upper_bound":
        # Its own bound is one thing missing; any other keeps the figure from being a bound.
        if len(missing) > 1:
            return f"about {cents(total)}"
        return f"up to {about(cents(total), estimated=estimated)}"
    if not complete:
        return f"at least {about(cents(total), estimated=estimated)}"
    from_times = bill["basis"] == "estimated_from_times"
    return about(cents(total), estimated=estimated or from_times)
