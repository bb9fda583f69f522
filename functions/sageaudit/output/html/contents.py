"""What a report is made of: audits, measurements, sums and rows, all read before it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.usage.measurements import Measurements, Metric

LISTED = 20_000
"""Jobs of an account's report that have a row: a browser sorts as many in a second."""
DETAILED = 200
"""Jobs with a section of their own in an account's report: those that come first in `by_rank`."""


@dataclass(frozen=True, slots=True)
class ChartLimit:
    """A threshold of a rule, as a line in the chart of its metric (0 to 100 percent)."""

    rule: str
    words: str
    percent: float


@dataclass(frozen=True, slots=True)
class JobReport:
    """One audit with the series it was judged by; None where they were not recorded or kept."""

    document: AuditDocument
    usage: Measurements | None
    limits: Mapping[Metric, Sequence[ChartLimit]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccountReport:
    """The audits of a period, `since` and `until` included, in days of UTC.

    `total`, `days`, `families`, `owners` and `types` are daily sums. `heads` are in the order of
    `by_rank`; `details` belong to the first of them, None where the audit is not kept. `left_out`:
    how many jobs come after these heads, and are in the sums alone.
    """

    scope: str
    since: date
    until: date
    total: Sums
    days: Mapping[date, Sums]
    families: Mapping[str | None, Sums]
    owners: Mapping[str | None, Sums]
    types: Mapping[str | None, Sums]
    heads: Sequence[Head]
    details: Sequence[JobReport | None]
    left_out: int = 0


def by_rank(head: Head) -> tuple[Decimal, Decimal, str, str]:
    """Sort key: avoidable and lost dollars first, then the cost, then the name."""
    wasted = (head.avoidable_usd or Decimal(0)) + (head.lost_usd or Decimal(0))
    return -wasted, -(head.total_usd or Decimal(0)), head.name, head.key.arn
