"""The order in which an audit's findings are shown, and why one of them is not counted."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.bill.finding import Bucket


def in_order(findings: Iterable[FindingDocument]) -> list[FindingDocument]:
    """Those counted in the totals first, by saving; those that another one covers last."""
    return sorted(findings, key=_order)


def set_aside(finding: FindingDocument) -> str | None:
    """Why a finding is not counted: it is exempt or covered by another; None if neither.

    What it says is then said by the other one, with the fix and one figure.
    """
    exempt = finding["exempt"]
    if exempt is not None:
        until = f" until {exempt['until']}" if exempt["until"] else ""
        return f"Exempt by {exempt['by']}{until}: {exempt['reason']}"
    other = finding["superseded_by"] or finding["subsumed_by"]
    return f"Not counted: {other} covers it" if other else None


def _order(finding: FindingDocument) -> tuple[bool, bool, Decimal, str]:
    saving = finding["saving_usd"] or Decimal(0)
    uncounted = not Bucket(finding["bucket"]).counted
    return set_aside(finding) is not None, uncounted, -saving, finding["rule"]
