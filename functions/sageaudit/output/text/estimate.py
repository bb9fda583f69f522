"""How dollars that rest on an estimated rate are marked, in one form for every output."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, LineDocument
from sageaudit.domain.bill.bill_facts import VALUE_ESTIMATED
from sageaudit.output.text.money import usd

BY_ESTIMATE = "(estimated rate)"


def about(shown: str, *, estimated: bool) -> str:
    """`about $0.66`; the text itself at known rates, for a bound, and for what says it."""
    bound = shown.startswith(("<", "less than", "about "))
    return f"about {shown}" if estimated and not bound else shown


def about_usd(amount: Decimal | None, *, estimated: bool) -> str:
    """`about $2.00`; nothing estimated is said of an unknown amount, or of 0."""
    return about(usd(amount), estimated=estimated and bool(amount))


def is_estimate(line: LineDocument) -> bool:
    """Whether a line's rate is an estimate."""
    return line["price_kind"] == "estimate"


def value_is_estimate(document: AuditDocument) -> bool:
    """Whether what a job's hours are worth rests on an estimate, of prepaid ones too."""
    bill = document["bill"]
    return bool(bill["estimated"]) or any(
        note.startswith(VALUE_ESTIMATED) for note in bill["notes"]
    )
