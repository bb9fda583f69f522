"""Compares a month of the history with AWS's own lines: rows of both sides and of only one.

A difference is the history's figure minus AWS's; percentages are of AWS's figure. Every AWS line is
in exactly one row, so matched and only-in-AWS rows add up to AWS's total. Unknown figures are None;
totals add up known amounts only.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.reconcile.lines import (
    JOBS,
    AuditedLine,
    AuditedMonth,
    AwsLine,
    AwsSpend,
    parse_usage_type,
)

_ZERO = Decimal(0)
_HUNDRED = Decimal(100)
_UNITS = {
    "hrs": "hours",
    "hour": "hours",
    "instance-hours": "hours",
    "gb-mo": "GB-months",
    "gb-month": "GB-months",
    "gb-months": "GB-months",
}


class Presence(enum.Enum):
    """Which of the two sides, AWS and the history, has a row; the values are JSON output."""

    MATCHED = "matched"
    ONLY_IN_AWS = "only_in_aws"
    ONLY_IN_HISTORY = "only_in_history"
    NOT_COMPARABLE = "not_comparable"
    """The history's line matches no AWS line: its usage type is unknown."""


class UsageTotals(NamedTuple):
    """One side of a row. A sum with an unknown part is None; `known_usd` sums the known parts."""

    line_count: int = 0
    unit: str = ""
    quantity: Decimal | None = None
    usd: Decimal | None = None
    known_usd: Decimal = _ZERO

    def with_line(self, line: AwsLine | AuditedLine) -> UsageTotals:
        """The sums with a line more."""
        usd = line.usd or _ZERO
        if not self.line_count:
            return UsageTotals(1, _unit(line.unit), line.quantity, line.usd, usd)
        return UsageTotals(
            self.line_count + 1,
            self.unit or _unit(line.unit),
            _plus(self.quantity, line.quantity),
            _plus(self.usd, line.usd),
            self.known_usd + usd,
        )


_NOTHING = UsageTotals()


class UsageRow(Struct):
    """One usage type of one job, as each side reports it; of AWS's other usage without a job.

    `crosses`: the job ran past a month's end. `estimated`: the history's dollars contain lines at
    an estimated rate.
    """

    usage: str
    region: str | None
    job: str | None
    area: str
    is_comparable: bool = True
    aws: UsageTotals = _NOTHING
    history: UsageTotals = _NOTHING
    crosses_month: bool = False
    is_estimated: bool = False

    @property
    def presence(self) -> Presence:
        """Which of the sides has it."""
        if not self.is_comparable:
            return Presence.NOT_COMPARABLE
        if self.aws.line_count and self.history.line_count:
            return Presence.MATCHED
        return Presence.ONLY_IN_AWS if self.aws.line_count else Presence.ONLY_IN_HISTORY

    @property
    def quantity_difference(self) -> Decimal | None:
        """History minus AWS; None where a side is missing, unknown or in another unit."""
        units_differ = self.aws.unit and self.history.unit and self.aws.unit != self.history.unit
        return None if units_differ else _minus(self.history.quantity, self.aws.quantity)

    @property
    def quantity_percent(self) -> Decimal | None:
        """The quantity difference in percent of AWS's quantity."""
        return percent(self.quantity_difference, self.aws.quantity)

    @property
    def usd_difference(self) -> Decimal | None:
        """History minus AWS, in dollars."""
        return _minus(self.history.usd, self.aws.usd)

    @property
    def usd_percent(self) -> Decimal | None:
        """The dollar difference in percent of AWS's dollars."""
        return percent(self.usd_difference, self.aws.usd)


class Reconciliation(Struct, frozen=True):
    """All rows, the largest first, and sums over them.

    `placed`: the rows by their presence. `sums`: AWS's and the history's dollars by presence and
    whether jobs made them.
    """

    rows: tuple[UsageRow, ...]
    rows_by_presence: Mapping[Presence, Sequence[UsageRow]]
    usd_by_presence: Mapping[tuple[Presence, bool], tuple[Decimal, Decimal]]
    spend: AwsSpend
    audited: AuditedMonth

    def aws_usd(self, *presences: Presence, jobs_only: bool | None = None) -> Decimal:
        """AWS's dollars in rows with one of these presences; in all rows without an argument.

        `of_jobs`: those that jobs made, or those of the rest, alone.
        """
        amounts = (
            usd
            for (presence, jobs), (usd, _) in self.usd_by_presence.items()
            if (not presences or presence in presences) and jobs_only in {None, jobs}
        )
        return sum(amounts, _ZERO)

    def history_usd(self, *presences: Presence) -> Decimal:
        """The history's known dollars in rows with one of these presences, or in all rows."""
        amounts = (
            usd
            for (presence, _), (_, usd) in self.usd_by_presence.items()
            if not presences or presence in presences
        )
        return sum(amounts, _ZERO)

    @property
    def unpriced_lines(self) -> int:
        """Number of history lines without a dollar amount; they are left out of every sum."""
        return sum(line.usd is None for line in self.audited.lines)

    def count_jobs(self) -> dict[Presence, int]:
        """Number of jobs by presence."""
        ours = {line.job.lower() for line in self.audited.lines}
        theirs = {row.job for row in self.rows if row.aws.line_count and row.job}
        both = len(ours & theirs)
        return {
            Presence.MATCHED: both,
            Presence.ONLY_IN_AWS: len(theirs) - both,
            Presence.ONLY_IN_HISTORY: len(ours) - both,
        }


_Key = tuple[str | None, str | None, str]
"""Job, region and usage. The region is None where there is a job: its ARN contains the region."""


def reconcile(spend: AwsSpend, audited: AuditedMonth) -> Reconciliation:
    """Compares both sides by job and usage type."""
    rows = _aws_rows(spend.lines)
    unmatched: dict[_Key, UsageRow] = {}
    for line in audited.lines:
        job, comparable = line.job.lower(), line.usage is not None
        usage = line.usage_type or (line.usage.text if line.usage else line.item)
        into, at = (rows, line.usage.key) if line.usage else (unmatched, usage)
        row = into.setdefault(
            (job, None, at), UsageRow(usage, line.region, job, JOBS, is_comparable=comparable)
        )
        row.history = row.history.with_line(line)
        row.crosses_month |= line.crosses_month
        row.is_estimated |= line.is_estimated
    ranked = [*rows.values(), *unmatched.values()]
    ranked.sort(key=lambda row: (row.job or "", row.usage, row.region or ""))
    ranked.sort(key=_largest_usd, reverse=True)
    placed: dict[Presence, list[UsageRow]] = {presence: [] for presence in Presence}
    sums: dict[tuple[Presence, bool], tuple[Decimal, Decimal]] = {}
    for row in ranked:
        placed[row.presence].append(row)
        part = row.presence, row.area == JOBS
        theirs, ours = sums.get(part, (_ZERO, _ZERO))
        sums[part] = theirs + row.aws.known_usd, ours + row.history.known_usd
    return Reconciliation(tuple(ranked), placed, sums, spend, audited)


def percent(part: Decimal | None, whole: Decimal | None) -> Decimal | None:
    """`part` in percent of `whole`; None where a figure is unknown or the whole is 0."""
    return None if part is None or not whole else part / whole * _HUNDRED


def _aws_rows(lines: Iterable[AwsLine]) -> dict[_Key, UsageRow]:
    rows: dict[_Key, UsageRow] = {}
    for line in lines:
        at, area = _usage(line.usage_type)
        job = _job(line.resource) if line.resource else None
        key = (job, None if job else line.region, at)
        row = rows.get(key)
        if row is None:
            rows[key] = UsageRow(
                line.usage_type, line.region, job, area, aws=_NOTHING.with_line(line)
            )
        else:
            row.aws = row.aws.with_line(line)
    return rows


@cache
def _usage(usage_type: str) -> tuple[str, str]:
    """What usage types are compared by, and the area of SageMaker."""
    usage = parse_usage_type(usage_type)
    return usage.key, usage.area


def _job(resource: str) -> str | None:
    """The ARN of a job as jobs are compared; None for another resource."""
    arn = resource.lower()
    return arn if _is_job_arn_prefix(arn.partition("/")[0]) else None


@cache
def _is_job_arn_prefix(before_name: str) -> bool:
    """Whether an ARN that begins like this is a job's: AWS names each region and kind so."""
    return JobRef.from_arn(f"{before_name}/name") is not None


@cache
def _unit(written: str) -> str:
    return _UNITS.get(written.lower(), written)


def _largest_usd(row: UsageRow) -> Decimal:
    return max(row.aws.known_usd, row.history.known_usd)


def _plus(total: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if total is None or part is None else total + part


def _minus(total: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if total is None or part is None else total - part
