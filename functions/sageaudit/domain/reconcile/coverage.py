"""How much of the SageMaker bill the audits of some days cover, and what they do not cover.

The audited dollars are list prices of the jobs that ended in these days. AWS's dollars are the
usage metered in these days, before credits, Savings Plans and taxes. So the two differ at both ends
of the period. AWS's data may also be late by up to a day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.reconcile.lines import (
    JOBS,
    OTHER,
    AuditedLine,
    AwsSpend,
    UsageType,
    parse_usage_type,
)
from sageaudit.domain.reconcile.reconcile import percent

OTHER_REGIONS = "jobs in regions that were not scanned"
UNKNOWN_USAGE_TYPE = "(usage type not known)"
"""The name of audited lines without a usage type, such as those of warm pools."""
_STORAGE = "volumeusage"
_ZERO = Decimal(0)


class CoveredUsage(Struct, frozen=True):
    """The billed and audited dollars of one usage type of jobs, in all scanned regions together.

    `usage_type` has no region prefix.
    """

    usage_type: str
    bill_usd: Decimal
    audited_usd: Decimal


class UncoveredUsage(Struct, frozen=True):
    """A part of the AWS bill that audits do not cover: an area, or a usage type of unknown area."""

    name: str
    usd: Decimal
    percent: Decimal | None
    """Percent of the whole AWS bill; None if the AWS bill is 0."""


class CoveredAccount(Struct, frozen=True):
    """The billed and audited dollars of one account. `bill_usd` is None if unknown."""

    account: str
    bill_usd: Decimal | None
    audited_usd: Decimal


class Coverage(Struct, frozen=True):
    """The audited dollars compared with the AWS bill, from `since` to `until` (UTC, both included).

    Rows are sorted by dollars, the largest first. Covered and uncovered usage sum to the AWS bill.
    """

    since: date
    until: date
    bill_usd: Decimal
    audited_usd: Decimal
    covered_usage: tuple[CoveredUsage, ...]
    uncovered_usage: tuple[UncoveredUsage, ...]
    accounts: tuple[CoveredAccount, ...]

    @property
    def percent(self) -> Decimal | None:
        """The audited dollars in percent of the AWS bill; None if the AWS bill is 0."""
        return percent(self.audited_usd, self.bill_usd)


def coverage(
    spend: AwsSpend,
    lines: Iterable[AuditedLine],
    *,
    days: tuple[date, date],
    audited_usd: Decimal,
    regions: Collection[str],
    accounts: Mapping[str, tuple[Decimal | None, Decimal]],
) -> Coverage:
    """Returns the comparison of AWS's usage with audited lines, by usage type.

    `days` are the first and last day. `audited_usd` is the sum of the audits. `regions` are the
    scanned regions. `accounts` has the AWS bill (None if unknown) and the audited dollars of
    each account.
    """
    bill = sum((line.usd for line in spend.lines), _ZERO)
    jobs: dict[str, CoveredUsage] = {}
    uncovered: dict[str, Decimal] = {}

    def add_usage(
        usage: UsageType | None, *, billed_usd: Decimal = _ZERO, audited: Decimal = _ZERO
    ) -> None:
        key, name = (usage.key, usage.text) if usage else (UNKNOWN_USAGE_TYPE, UNKNOWN_USAGE_TYPE)
        row = jobs.get(key, CoveredUsage(name, _ZERO, _ZERO))
        jobs[key] = CoveredUsage(
            row.usage_type, row.bill_usd + billed_usd, row.audited_usd + audited
        )

    for line in spend.lines:
        usage = parse_usage_type(line.usage_type)
        if usage.area == JOBS and line.region in {None, *regions}:
            add_usage(usage, billed_usd=line.usd)
        else:
            uncovered[_uncovered_name(usage)] = (
                uncovered.get(_uncovered_name(usage), _ZERO) + line.usd
            )
    for audited in lines:
        add_usage(audited.usage, audited=audited.usd or _ZERO)
    return Coverage(
        *days,
        bill_usd=bill,
        audited_usd=audited_usd,
        covered_usage=tuple(
            sorted(
                jobs.values(), key=lambda row: (-max(row.bill_usd, row.audited_usd), row.usage_type)
            )
        ),
        uncovered_usage=tuple(
            UncoveredUsage(name, usd, percent(usd, bill))
            for name, usd in sorted(uncovered.items(), key=lambda row: (-row[1], row[0]))
        ),
        accounts=tuple(CoveredAccount(name, *sums) for name, sums in accounts.items()),
    )


def _uncovered_name(usage: UsageType) -> str:
    if usage.area == JOBS:
        return OTHER_REGIONS
    if usage.area == OTHER:
        return usage.text
    return f"storage of {usage.area}" if usage.resource.lower().startswith(_STORAGE) else usage.area
