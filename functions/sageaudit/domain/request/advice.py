"""The advice that a family's last runs were given, and that a request still does not follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument
from sageaudit.domain.request.request import NotKnown, Request
from sageaudit.structs import replace

_UNSET = (None, False, "Off", 0, "")
"""Values that a request may as well leave out."""


class Ignored(Struct, frozen=True):
    """A finding of an earlier run, whose fix is not in the request. `runs`: in how many of the
    audits that were read the same was found.
    """

    finding: FindingDocument
    run: str
    runs: int = 1

    @property
    def usd(self) -> Decimal | None:
        """What the fix alone would have saved in that run; None without a figure."""
        return self.finding["saving_alone_usd"]


def ignored(request: Request, audits: Sequence[AuditDocument]) -> tuple[Ignored, ...]:
    """Each rule's finding in the first of these audits with it, if its old values still stand."""
    found: dict[str, Ignored | None] = {}
    for audit in audits:
        for finding in audit["findings"]:
            name = finding["rule"]
            if name not in found:
                stands = _stands(finding) and _unchanged(request, finding["fix"])
                found[name] = Ignored(finding, audit["job"]["name"]) if stands else None
            elif (newest := found[name]) is not None:
                found[name] = replace(newest, runs=newest.runs + 1)
    return tuple(one for one in found.values() if one is not None)


def _stands(finding: FindingDocument) -> bool:
    marks = (finding["exempt"], finding["superseded_by"], finding["subsumed_by"])
    return bool(finding["fix"]) and not any(marks)


def _unchanged(request: Request, fix: Iterable[FixDocument]) -> bool:
    """Whether each parameter of a fix has its old value in the request; not known is no answer."""
    for parameter in fix:
        value, old = request.value(parameter["parameter"]), parameter["old"]
        if isinstance(value, NotKnown):
            return False
        same = value is not None and old is not None and str(value) == str(old)
        if not (same or value == old or (value in _UNSET and old in _UNSET)):
            return False
    return True
