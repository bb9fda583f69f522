"""The headline: what a job, or an account, cost and what of it was avoidable."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from sageaudit.domain.audit.audit import JOB_NOT_FINISHED, Judged
from sageaudit.domain.audit.bill_document import missing_parts
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import is_standing
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.amounts import (
    Amounts,
    document_amounts,
    spend_figure,
    sums_amounts,
    sums_doubts,
)
from sageaudit.output.text.finding import saving_figure
from sageaudit.output.text.money import Figure, format_usd, percent_text
from sageaudit.output.text.words import count_text
from sageaudit.structs import replace

if TYPE_CHECKING:  # only what compares with a bill has one
    from sageaudit.domain.reconcile.coverage import Coverage

_ZERO = Decimal(0)
_CENT = Decimal("0.01")
_WHOLE = Decimal(100)
_MAX_NAMES = 4


def headline(document: AuditDocument) -> str:
    """`$0.51 of $0.66 (77%) was avoidable`; an incomplete bill shows no percentage.

    A sum of 0 is "none was found" only where all was judged and nothing is worth a trial. What may
    be lost or avoidable beyond what is certain is "up to".
    """
    found = document_amounts(document)
    if is_running(document):
        return _running_headline(document, found.spend)
    avoidable, lost = document["avoidable_usd"], document["lost_usd"]
    certain = (avoidable or _ZERO) + (lost or _ZERO)
    perhaps = (document["lost_up_to_usd"] or _ZERO) - (lost or _ZERO)
    if not certain and perhaps > 0:
        part = _part(document, found.spend, perhaps)
        return f"{'' if part.startswith('all of ') else 'up to '}{part} may be lost"
    if not certain:
        return _no_cost_headline(document, found)
    word = "avoidable or lost" if avoidable and lost else "lost" if lost else "avoidable"
    upper = Figure(perhaps, estimated=bool(document["bill"]["estimated"]))
    more = f", and up to {upper} more was lost" if perhaps > 0 else ""
    rest = "; the rest was not judged" if document["judged"] == Judged.NO else ""
    return f"{_part(document, found.spend, certain)} was {word}{more}{rest}"


def _part(document: AuditDocument, spend: Figure, amount: Decimal) -> str:
    """`$0.51 of $0.66 (77%)`, `all of $0.66`, or the amount alone where the cost is not known."""
    bill = document["bill"]
    some = Figure(amount, estimated=bool(bill["estimated"]))
    if not bill["total_usd"]:
        return str(some)
    if amount == bill["total_usd"] and not missing_parts(bill):
        return f"all of {spend}"
    percent = f" ({percent_text(amount, bill['total_usd'])})" if bill["complete"] else ""
    return f"{some} of {spend}{percent}"


def _no_cost_headline(document: AuditDocument, found: Amounts) -> str:
    bill, spend = document["bill"], found.spend
    prepaid, known = bill["basis"] == "prepaid", bill["total_usd"] is not None
    if bill["total_usd"] == 0 and not prepaid:
        return "it cost nothing"
    cost = f"it cost {spend}" if known else "its cost is not known"
    cost = "its capacity is prepaid" if prepaid else cost
    trial = _possible_figure(document, found.possible)
    worth = f"; {trial} is worth a trial" if trial else ""
    if document["judged"] == Judged.NO:
        return f"{cost}, and what was avoidable could not be judged{worth}"
    sums = {"avoidable": document["avoidable_usd"], "lost": document["lost_usd"]}
    if unknown := [word for word, amount in sums.items() if amount is None]:
        either = "" if known or prepaid else " either"
        return f"{cost}, and what was {' or '.join(unknown)} is not known{either}{worth}"
    if prepaid:
        return f"{cost}, so no dollars were avoidable"
    whole = spend if known else "the cost"
    words = f"none of {whole} was found avoidable"
    if trial:
        words = f"{cost}{', of which' if known else ', and'} {trial} is worth a trial"
    if accepted := _exempt(document):
        words = f"{accepted} of {whole} was avoidable, and is exempt"
    partly = document["judged"] == Judged.PARTLY
    return f"{words}, but not all of it could be judged" if partly else words


def _possible_figure(document: AuditDocument, possible: Figure) -> Figure | None:
    """`about $160`, `up to $160.00`: the possible sum, or the largest range that counts nothing."""
    ends = [
        saving_figure(finding)
        for finding in document["findings"]
        if Bucket(finding["bucket"]) in {Bucket.AVOIDABLE, Bucket.POSSIBLE}
        and is_standing(finding)
        and finding["saving_usd"] == 0
    ]
    ends.append(possible)
    largest = max(ends, key=lambda end: end.upper_end or _ZERO)
    return largest if (largest.upper_end or _ZERO) >= _CENT else None


def _exempt(document: AuditDocument) -> str | None:
    """The largest exempt saving: these findings are accepted, and still true."""
    savings = [
        finding["saving_alone_usd"] or _ZERO
        for finding in document["findings"]
        if finding["exempt"] and Bucket(finding["bucket"]).is_counted
    ]
    largest = max(savings, default=_ZERO)
    return format_usd(largest) if largest else None


def _running_headline(document: AuditDocument, spend: Figure) -> str:
    bill = document["bill"]
    if bill["basis"] == "prepaid":
        return "it still runs, on prepaid capacity"
    if bill["total_usd"] == 0:
        return "it still waits for its instances, and cost nothing so far"
    if bill["total_usd"] is None:
        return "it still runs"
    return f"it still runs, and cost {spend} so far"


def is_running(document: AuditDocument) -> bool:
    """True for a job that still runs: no rule has judged it."""
    return any(unknown["code"] == JOB_NOT_FINISHED for unknown in document["unknown"])


def account_headline(total: Sums) -> str:
    """`26 jobs cost $33.12 or more: $11.40 was avoidable and $0.16 was lost`."""
    if not total.jobs:
        return "No job was audited in this period"
    found = sums_amounts(total)
    named = ((found.avoidable, "avoidable"), (found.lost, "lost"))
    found_words = " and ".join(f"{figure} was {word}" for figure, word in named if figure.upper_end)
    if not found_words and found.avoidable.usd is None:
        found_words = "how much of it was avoidable is not known"
    if not found_words and (found.possible.upper_end or _ZERO) >= _CENT:
        found_words = f"{found.possible} is worth a trial"
    if not found_words and (findings := sum(rule.findings for rule in total.rules.values())):
        found_words = f"{count_text(findings, 'finding')}, none of which saves anything for certain"
    cost = f"{count_text(total.jobs, 'job')} cost {found.spend}"
    return f"{cost}: {found_words or 'none of it was found avoidable or lost'}"


def judged_text(total: Sums) -> str:
    """`$3,984.00 of $4,540.00 judged: 20 of 26 jobs, 3 more in part`."""
    if not total.total_usd:
        return f"judged {judged_jobs(total)}"
    return f"{judged_figure(total)} of {sums_amounts(total).spend} judged: {judged_jobs(total)}"


def judged_figure(total: Sums) -> Figure:
    """The spend of the jobs that could be judged, with the doubts of the whole."""
    doubts = sums_doubts(total)
    priced = total.known_total_usd is not None
    lower = bool(total.incomplete)  # a job without a known total is in neither sum
    return spend_figure(total.judged_usd if priced else None, replace(doubts, is_lower_bound=lower))


def judged_jobs(total: Sums) -> str:
    """`20 of 26 jobs, 3 more in part`."""
    judged = total.jobs - total.partly_judged - total.unauditable - total.not_judged
    part = f", {total.partly_judged:,} more in part" if total.partly_judged else ""
    return f"{judged:,} of {count_text(total.jobs, 'job')}{part}"


def part_of_judged(figure: Figure, total: Sums) -> str:
    """`12% of the judged spend`; empty where nothing is known to be a part of it."""
    if not figure.upper_end or not total.judged_usd:
        return ""
    return f"{percent_text(figure.upper_end, total.judged_usd)} of the judged spend"


def period_text(since: date, until: date) -> str:
    """`2026-05-01 to 2026-05-31`; one day alone."""
    return f"{since}" if since == until else f"{since} to {until}"


def coverage_headline(coverage: Coverage) -> str:
    """One sentence: how much of the bill was audited."""
    days = f"{coverage.since}..{coverage.until}"
    if coverage.percent is None:
        return (
            f"AWS shows no SageMaker bill of {days}; {format_usd(coverage.audited_usd)} was audited"
        )
    bill = f"{format_usd(coverage.bill_usd)} SageMaker bill of {days}"
    return (
        f"{format_usd(coverage.audited_usd)} of the {bill} was audited"
        f" ({percent_text(coverage.percent, _WHOLE)})"
    )


def outside_text(coverage: Coverage) -> str:
    """`Not audited: endpoints $300.00, notebooks $20.00.`; empty where all of it are jobs."""
    named = [f"{one.name} {format_usd(one.usd)}" for one in coverage.uncovered_usage[:_MAX_NAMES]]
    if rest := coverage.uncovered_usage[_MAX_NAMES:]:
        named.append(f"other usage {format_usd(sum((one.usd for one in rest), Decimal(0)))}")
    return f"Not audited: {', '.join(named)}." if named else ""
