"""What an account's jobs cost over a period, in words: the headline, how much of it was judged."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.sums import Sums
from sageaudit.text.estimate import about
from sageaudit.text.money import cents
from sageaudit.text.words import counted


def account_headline(total: Sums) -> str:
    """`26 jobs cost about $33.12: $11.40 was avoidable and $0.16 lost`."""
    if not total.jobs:
        return "No job was audited in this period"
    cost = about(cents(total.total_usd), estimated=bool(total.estimated and total.total_usd))
    least = "at least " if total.incomplete or total.unpriced else ""
    spent = f"{counted(total.jobs, 'job')} cost {least}{cost}"
    avoidable, lost = cents(total.avoidable_usd), cents(total.lost_usd)
    if total.avoidable_usd and total.lost_usd:
        return f"{spent}: {avoidable} was avoidable and {lost} was lost"
    if total.avoidable_usd:
        return f"{spent}: {avoidable} was avoidable"
    if total.lost_usd:
        return f"{spent}: {lost} was lost"
    return f"{spent}: none of it was found avoidable or lost"


def judged_words(total: Sums) -> str:
    """`judged 20 of 26 jobs, 3 more in part`."""
    whole = total.jobs - total.unauditable - total.not_judged - total.partly_judged
    part = f", {total.partly_judged:,} more in part" if total.partly_judged else ""
    return f"judged {whole:,} of {counted(total.jobs, 'job')}{part}"


def period_words(since: date, until: date) -> str:
    """`2026-05-01 to 2026-05-31`; one day alone."""
    return f"{since}" if since == until else f"{since} to {until}"


def price_dates(documents: Iterable[AuditDocument]) -> str | None:
    """`prices of 2026-05-20`, or of the first to the last date; None where none is known."""
    dates = {
        line["price_as_of"]
        for document in documents
        for line in document["bill"]["lines"]
        if line["price_as_of"]
    }
    if not dates:
        return None
    first, last = min(dates), max(dates)
    return f"prices of {first}" if first == last else f"prices of {first} to {last}"
