"""Notes on the money of an audit: whose prices, how certain the bill is, what it lacks."""

from __future__ import annotations

from functools import partial

from sageaudit.domain.audit.document import AuditDocument, LineDocument, gaps
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.domain.bill.bill_facts import NOT_IN_IT
from sageaudit.domain.prices.market import PriceKind
from sageaudit.domain.prices.own_rates import LEARNT
from sageaudit.output.text.estimate import about, value_is_estimate
from sageaudit.output.text.money import usd
from sageaudit.output.text.words import BASIS


def price_note(document: AuditDocument) -> str | None:
    """Whether prices are list prices, own ones or estimates, and their dates; None without any."""
    audits = (document, *(document["children"] or ()))
    lines = [line for audit in audits for line in audit["bill"]["lines"]]
    own = document["bill"]["price_kind"] == "own" or any(
        line["price_kind"] == "own" for line in lines
    )
    parts = []
    if dates := _dates(lines, "estimate"):
        parts.append(f"estimated rate of {dates}")
    if own:
        parts.append(_own_note(lines))
    elif dates := _dates(lines, "list"):
        parts.append(f"on-demand list price of {dates}, before discounts")
    return "; ".join(parts) or None


def _own_note(lines: list[LineDocument]) -> str:
    """Own prices: learnt from a cost report, with its days, or set in the policy."""
    learnt = {
        (line["price_as_of"] or "").replace("/", " to ")
        for line in lines
        if (line["price_source"] or "").startswith(LEARNT)
    }
    if not learnt:
        return "your own prices, as set in policy.toml"
    listed = any(line["price_kind"] == "list" for line in lines)
    rest = "; the rest at list price" if listed else ""
    return f"your own rates of {' and '.join(sorted(learnt))}, learnt from a cost report{rest}"


def _dates(lines: list[LineDocument], kind: PriceKind) -> str:
    """The dates of the prices of one kind; a line that was stored without a kind is listed."""
    dates = {line["price_as_of"] for line in lines if (line["price_kind"] or "list") == kind}
    return " and ".join(sorted(filter(None, dates)))


PROVISIONAL = "provisional: metrics or costs were incomplete when it was audited"


def money_notes(document: AuditDocument) -> list[str]:
    """Notes on how certain the bill is: prices, missing parts, basis, and whether it may grow.

    What is missing comes early: a channel cuts a long list.
    """
    bill, audit = document["bill"], document["audit"]
    missing = [what for what in gaps(bill) if what != UPPER_BOUND]
    notes = [price_note(document), *(f"bill incomplete: {what}" for what in missing)]
    notes += [*bill["estimated"], BASIS[bill["basis"]]]
    said = partial(about, estimated=value_is_estimate(document))
    if bill["spot_saved_usd"]:
        notes.append(f"spot saved {said(usd(bill['spot_saved_usd']))} compared with on demand")
    if bill["prepaid_value_usd"] is not None:
        value = said(usd(bill["prepaid_value_usd"]))
        notes.append(f"prepaid capacity; on demand it would cost {value}")
    notes += [note for note in bill["notes"] if note != NOT_IN_IT]
    if not audit["settled"]:
        notes.append(PROVISIONAL)
    return [note for note in notes if note]
