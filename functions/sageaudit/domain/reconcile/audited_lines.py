"""The bill lines of audits that belong to one month, to be compared with AWS's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.audit.bill_document import LineDocument
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.domain.reconcile.lines import Usage, of_job, parsed

_TYPE = re.compile(r"\bml\.[a-z0-9-]+\.[a-z0-9-]+")
HOURS = "Hrs"
"""The unit of instance hours in bills and price lists."""
_MONTH = re.compile(r"\b\d{4}-\d{2}\b(?!-)")
"""A month that is not the start of a date: notes name the dates of prices too."""


class AuditedLine(Struct, frozen=True):
    """One line of one job's bill. `usage` is None where no usage type is known (warm pools)."""

    job: str
    name: str
    region: str | None
    item: str
    usage_type: str | None
    usage: Usage | None
    unit: str
    quantity: Decimal | None
    usd: Decimal | None
    paid: bool
    """False for training plan capacity and free Debugger rules: AWS meters those elsewhere."""
    crosses: bool
    """The job ran past the end of a month: AWS may have metered part of it in another month."""
    estimated: bool = False
    """Its rate is an estimate: the quantity can be compared with AWS's, the dollars only about."""


class AuditedMonth(Struct, frozen=True):
    """The audited lines of a month, and counts of what was left out of them."""

    lines: tuple[AuditedLine, ...]
    jobs: int = 0
    rollups: int = 0
    unauditable: int = 0
    running: int = 0
    unpaid_lines: int = 0

    @property
    def estimated_lines(self) -> int:
        """Number of lines at an estimated rate; they are in the history's sums."""
        return sum(line.estimated for line in self.lines)

    @property
    def estimated_usd(self) -> Decimal:
        """The dollars at an estimated rate."""
        known = (line.usd for line in self.lines if line.estimated and line.usd is not None)
        return sum(known, Decimal(0))


def lines_of(document: AuditDocument, month: str | None) -> Iterator[AuditedLine]:
    """Yields the bill lines that belong to `month` (YYYY-MM, UTC); all of them for None.

    A storage line belongs to the month in its note, any other line to the month of the job's end.
    Lines of quantity 0 (a job that never started) are left out: AWS does not bill them.
    """
    job = document["job"]
    ended = (job["ended_at"] or job["created_at"] or "")[:7]
    started = (job["started_at"] or ended)[:7]
    for line in document["bill"]["lines"]:
        if line["quantity"] == 0 or month not in {None, _month_of(line, ended)}:
            continue
        yield AuditedLine(
            job=job["arn"] or job["name"],
            name=job["name"],
            region=job["region"],
            item=line["item"],
            usage_type=line["usage_type"],
            usage=_usage(document, line),
            unit=line["unit"],
            quantity=line["quantity"],
            usd=line["usd"],
            paid=line["rate_usd"] is None or line["rate_usd"] != 0,
            crosses=started != ended,
            estimated=line["price_kind"] == "estimate",
        )


def usage_type_of(line: AuditedLine) -> str:
    """The usage type as Cost Explorer lists it, such as USE1-Train:ml.m5.large.

    Without the prefix of its region if that is not known. AWS documents none for warm pools.
    """
    if line.usage_type is not None:
        return line.usage_type
    return line.usage.text if line.usage else f"{line.item.replace('_', ' ')}, usage type unknown"


def unit_of(usage_type: str) -> str:
    """The unit of its quantity, as Cost Explorer writes it."""
    return "GB-Mo" if "VolumeUsage" in usage_type or "storage" in usage_type else HOURS


def _month_of(line: LineDocument, ended: str) -> str:
    if not line["item"].endswith("storage"):
        return ended
    named = _MONTH.search(line["note"] or "")
    return named[0] if named else ended


def _usage(document: AuditDocument, line: LineDocument) -> Usage | None:
    if line["usage_type"]:
        return parsed(line["usage_type"])
    kind = document["job"]["kind"]
    if line["item"] == "storage":
        return of_job(kind, STORAGE)
    if line["item"] != "compute":
        return None
    named = _TYPE.findall(line["note"] or "")
    types = named[:1] or list(dict.fromkeys(_TYPE.findall(document["job"]["instances"] or "")))
    return of_job(kind, types[0]) if len(types) == 1 else None
