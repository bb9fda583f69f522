"""The headline: what a job, or all jobs of an account, cost and how much of it was avoidable."""

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
from sageaudit.domain.money import CENT, format_usd
from sageaudit.output.text.amounts import (
    Amounts,
    document_amounts,
    spend_figure,
    sums_amounts,
    sums_doubts,
)
from sageaudit.output.text.finding import saving_figure
from sageaudit.output.text.money import Figure, percent_text
from sageaudit.output.text.words import count_text
from sageaudit.structs import replace

if TYPE_CHECKING:  # only commands that compare with the bill load it
    from sageaudit.domain.reconcile.coverage import Coverage

_ZERO = Decimal(0)
_MAX_PERCENT = Decimal(100)
_MAX_NAMES = 4
_FULL_COST = "the full cost"


def headline(document: AuditDocument) -> str:
    """Returns the headline of an audit: `$0.51 of $0.66 (77%) was avoidable`.

    An incomplete bill has no percentage. "Up to" marks a further loss that is not certain.
    """
    amounts = document_amounts(document)
    if is_running(document):
        return _running_headline(document, amounts.spend)
    avoidable_usd, lost_usd = document["avoidable_usd"], document["lost_usd"]
    wasted_usd = (avoidable_usd or _ZERO) + (lost_usd or _ZERO)
    possible_loss_usd = (document["lost_up_to_usd"] or _ZERO) - (lost_usd or _ZERO)
    if not wasted_usd and possible_loss_usd > 0:
        loss_text = _share_of_cost(document, amounts.spend, possible_loss_usd)
        if loss_text.startswith(_FULL_COST):
            return f"up to {amounts.spend}, {_FULL_COST}, may have been lost"
        return f"up to {loss_text} may have been lost"
    if not wasted_usd:
        return _no_waste_headline(document, amounts)
    waste_word = "lost" if lost_usd else "avoidable"
    waste_word = "avoidable or lost" if avoidable_usd and lost_usd else waste_word
    possible_loss = Figure(possible_loss_usd, estimated=bool(document["bill"]["estimated"]))
    more_text = (
        f", and up to {possible_loss} more may have been lost" if possible_loss_usd > 0 else ""
    )
    rest_text = "; the rest was not judged" if document["judged"] == Judged.NO else ""
    share = _share_of_cost(document, amounts.spend, wasted_usd)
    return f"{share} was {waste_word}{more_text}{rest_text}"


def _share_of_cost(document: AuditDocument, spend: Figure, amount_usd: Decimal) -> str:
    bill = document["bill"]
    amount = Figure(amount_usd, estimated=bool(bill["estimated"]))
    if not bill["total_usd"]:
        return str(amount)
    if amount_usd == bill["total_usd"] and not missing_parts(bill):
        return f"{_FULL_COST}, {spend},"
    percent = f" ({percent_text(amount_usd, bill['total_usd'])})" if bill["complete"] else ""
    return f"{amount} of {spend}{percent}"


def _no_waste_headline(document: AuditDocument, amounts: Amounts) -> str:
    bill, spend = document["bill"], amounts.spend
    is_prepaid, has_cost = bill["basis"] == "prepaid", bill["total_usd"] is not None
    if bill["total_usd"] == 0 and not is_prepaid:
        return "it cost nothing"
    cost_text = f"it cost {spend}" if has_cost else "its cost is not known"
    cost_text = "its capacity is prepaid" if is_prepaid else cost_text
    possible = _possible_figure(document, amounts.possible)
    trial_text = f"; a trial run may save {possible}" if possible else ""
    if document["judged"] == Judged.NO:
        return f"{cost_text}, and what was avoidable could not be judged{trial_text}"
    sums = {"avoidable": document["avoidable_usd"], "lost": document["lost_usd"]}
    if unknown_words := [word for word, amount_usd in sums.items() if amount_usd is None]:
        either_text = "" if has_cost or is_prepaid else " either"
        unknown_text = f"what was {' or '.join(unknown_words)} is not known{either_text}"
        return f"{cost_text}, and {unknown_text}{trial_text}"
    if is_prepaid:
        return f"{cost_text}, so no dollars were avoidable"
    spend_text = spend if has_cost else "the cost"
    text = f"no avoidable cost was found{f' in {spend}' if has_cost else ''}"
    if possible:
        text = f"{cost_text}, and a trial run may save {possible}"
    if exempt_text := _exempt_saving_text(document):
        text = f"{exempt_text} of {spend_text} was avoidable, and is exempt"
    is_partly_judged = document["judged"] == Judged.PARTLY
    return f"{text}, but not all of it could be judged" if is_partly_judged else text


def _possible_figure(document: AuditDocument, possible: Figure) -> Figure | None:
    candidates = [
        saving_figure(finding)
        for finding in document["findings"]
        if Bucket(finding["bucket"]) in {Bucket.AVOIDABLE, Bucket.POSSIBLE}
        and is_standing(finding)
        and finding["saving_usd"] == 0
    ]
    candidates.append(possible)
    largest = max(candidates, key=lambda figure: figure.upper_end or _ZERO)
    return largest if (largest.upper_end or _ZERO) >= CENT else None


def _exempt_saving_text(document: AuditDocument) -> str | None:
    savings_usd = [
        finding["saving_alone_usd"] or _ZERO
        for finding in document["findings"]
        if finding["exempt"] and Bucket(finding["bucket"]).is_counted
    ]
    largest_usd = max(savings_usd, default=_ZERO)
    return format_usd(largest_usd) if largest_usd else None


def _running_headline(document: AuditDocument, spend: Figure) -> str:
    bill = document["bill"]
    if bill["basis"] == "prepaid":
        return "it is still running on prepaid capacity"
    if bill["total_usd"] == 0 and document["job"]["started_at"] is None:
        return "it is still waiting for its instances and has cost nothing so far"
    if not bill["total_usd"]:
        return "it is still running"
    bound = "at least " if spend.at_least and not spend.at_most else ""
    return f"it is still running and has cost {bound}{replace(spend, at_least=False)} so far"


def is_running(document: AuditDocument) -> bool:
    """Returns True if the job was still running when it was audited, so that no rule judged it."""
    return any(unknown["code"] == JOB_NOT_FINISHED for unknown in document["unknown"])


def account_headline(total: Sums) -> str:
    """Returns `26 jobs cost $33.12 or more: $11.40 was avoidable and $0.16 was lost`."""
    if not total.jobs:
        return "No job was audited in this period"
    amounts = sums_amounts(total)
    waste_figures = ((amounts.avoidable, "avoidable"), (amounts.lost, "lost"))
    waste_text = " and ".join(
        f"{figure} was {word}" for figure, word in waste_figures if figure.upper_end
    )
    if not waste_text and amounts.avoidable.usd is None:
        waste_text = "it is not known how much of it was avoidable"
    if not waste_text and (amounts.possible.upper_end or _ZERO) >= CENT:
        waste_text = f"trial runs may save {amounts.possible}"
    if not waste_text and (finding_count := sum(rule.findings for rule in total.rules.values())):
        findings_text = count_text(finding_count, "finding")
        waste_text = f"{findings_text}, none of which saves anything for certain"
    cost_text = f"{count_text(total.jobs, 'job')} cost {amounts.spend}"
    return f"{cost_text}: {waste_text or 'no avoidable or lost cost was found'}"


def judged_text(total: Sums) -> str:
    """Returns `20 of 26 jobs, 3 more partly, were judged ($3,984.00 of $4,540.00)`."""
    is_all = total.jobs > 0 and judged_count(total) == total.jobs
    jobs_text = f"all {count_text(total.jobs, 'job')}" if total.jobs > 1 else "the job"
    verb = "was" if total.jobs == 1 else "were"
    jobs_text = jobs_text if is_all else judged_jobs(total)
    jobs_text = f"{jobs_text}{',' if total.partly_judged else ''} {verb} judged"
    if not total.total_usd:
        return jobs_text
    judged, spend = str(judged_figure(total)), str(sums_amounts(total).spend)
    return f"{jobs_text} ({spend if judged == spend else f'{judged} of {spend}'})"


def judged_count(total: Sums) -> int:
    """Returns how many jobs were judged completely."""
    return total.jobs - total.partly_judged - total.unauditable - total.not_judged


def judged_figure(total: Sums) -> Figure:
    """Returns the spend of the judged jobs. It is as exact as the total."""
    is_lower_bound = bool(total.incomplete)  # a job without a known total is in neither sum
    doubts = replace(sums_doubts(total), is_lower_bound=is_lower_bound)
    has_cost = total.known_total_usd is not None
    return spend_figure(total.judged_usd if has_cost else None, doubts)


def judged_jobs(total: Sums) -> str:
    """Returns `20 of 26 jobs, 3 more partly`."""
    partly_text = f", {total.partly_judged:,} more partly" if total.partly_judged else ""
    return f"{judged_count(total):,} of {count_text(total.jobs, 'job')}{partly_text}"


def part_of_judged(figure: Figure, total: Sums) -> str:
    """Returns `12% of the judged spend`, or "" if the amount or the spend is 0 or unknown."""
    if not figure.upper_end or not total.judged_usd:
        return ""
    return f"{percent_text(figure.upper_end, total.judged_usd)} of the judged spend"


def period_text(since: date, until: date) -> str:
    """Returns `2026-05-01 to 2026-05-31`, or one date if both are equal."""
    return f"{since}" if since == until else f"{since} to {until}"


def coverage_headline(coverage: Coverage) -> str:
    """Returns a sentence about how much of the bill was audited, without a full stop."""
    days_text = f"{coverage.since}..{coverage.until}"
    audited_text = format_usd(coverage.audited_usd)
    if coverage.percent is None:
        return f"AWS shows no SageMaker bill for {days_text}; {audited_text} was audited"
    share_text = percent_text(coverage.percent, _MAX_PERCENT)
    bill_text = f"{format_usd(coverage.bill_usd)} SageMaker bill for {days_text}"
    return f"{audited_text} of the {bill_text} was audited ({share_text})"


def outside_text(coverage: Coverage) -> str:
    """Returns `Not audited: endpoints $300.00, notebooks $20.00.`

    Returns "" if the bill has only jobs.
    """
    usages = [
        f"{usage.name} {format_usd(usage.usd)}" for usage in coverage.uncovered_usage[:_MAX_NAMES]
    ]
    if others := coverage.uncovered_usage[_MAX_NAMES:]:
        other_usd = sum((usage.usd for usage in others), Decimal(0))
        usages.append(f"other usage {format_usd(other_usd)}")
    return f"Not audited: {', '.join(usages)}." if usages else ""
