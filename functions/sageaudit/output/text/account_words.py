"""What an account's jobs cost over a period, in words: the headline, how much of it was judged.

A sum has the same words in a scan, a list and a report: "about" where one of its jobs is billed at
an estimated rate, "or more" where a part of the spend is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Protocol

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.sums import Sums
from sageaudit.output.text.estimate import about
from sageaudit.output.text.money import cents
from sageaudit.output.text.words import counted


class Counts(Protocol):
    """How many jobs there are in sums, and of which kinds."""

    @property
    def jobs(self) -> int:
        """All of them."""

    @property
    def unauditable(self) -> int:
        """Those that could not be audited."""

    @property
    def not_judged(self) -> int:
        """Those of which no avoidable dollars are known."""

    @property
    def estimated(self) -> int:
        """Those that are billed at an estimated rate."""


def account_headline(total: Sums) -> str:
    """`26 jobs cost $33.12 or more: $11.40 was avoidable and $0.16 was lost`."""
    if not total.jobs:
        return "No job was audited in this period"
    spent = f"{counted(total.jobs, 'job')} cost {spend_of(total)}"
    avoidable, lost = avoidable_of(total), lost_of(total)
    if total.avoidable_usd and total.lost_usd:
        return f"{spent}: {avoidable} was avoidable and {lost} was lost"
    if total.avoidable_usd:
        return f"{spent}: {avoidable} was avoidable"
    if total.lost_usd:
        return f"{spent}: {lost} was lost"
    if total.known_avoidable_usd is None:
        return f"{spent}: how much of it was avoidable is not known"
    return f"{spent}: none of it was found avoidable or lost"


def summed(amount: Decimal | None, estimated: int) -> str:
    """An amount of jobs of which so many are billed at an estimated rate: `about $2.88`."""
    return about(cents(amount), estimated=bool(estimated and amount))


def spend_of(total: Sums) -> str:
    """The spend of these sums."""
    return summed_spend(total.known_total_usd, total.estimated, total.incomplete + total.unpriced)


def avoidable_of(total: Sums) -> str:
    """The avoidable dollars of these sums."""
    return judged_sum(total.known_avoidable_usd, total)


def lost_of(total: Sums) -> str:
    """The lost dollars of these sums."""
    return summed(total.known_lost_usd, total.estimated)


def judged_sum(amount: Decimal | None, of: Counts) -> str:
    """A sum of what could be judged: `not judged` where that is said of no job."""
    if amount is None and of.jobs and of.not_judged >= of.jobs - of.unauditable:
        return "not judged"
    return summed(amount, of.estimated)


def summed_spend(amount: Decimal | None, estimated: int, missing: int) -> str:
    """`about $59.29 or more`, where the bill of so many jobs is missing or lacks a part."""
    shown = summed(amount, estimated)
    return f"{shown} or more" if missing and amount is not None else shown


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
