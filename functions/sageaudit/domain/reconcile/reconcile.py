"""Compares a month of the history with AWS's own lines.

A difference is the history's figure minus AWS's figure; percentages are of AWS's figure. Every AWS
line is in exactly one row, so AWS's amounts in all rows add up to AWS's total. Unknown figures are
None; totals add up known amounts only.
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
    """Which sides have a row: AWS, the history or both. The values are written to JSON output."""

    MATCHED = "matched"
    ONLY_IN_AWS = "only_in_aws"
    ONLY_IN_HISTORY = "only_in_history"
    NOT_COMPARABLE = "not_comparable"
    """No AWS line matches the history's line, because its usage type is unknown."""


class UsageTotals(NamedTuple):
    """The sums of one side of a row.

    A sum with an unknown part is None. `known_usd` sums the known parts.
    """

    line_count: int = 0
    unit: str = ""
    quantity: Decimal | None = None
    usd: Decimal | None = None
    known_usd: Decimal = _ZERO

    def with_line(self, line: AwsLine | AuditedLine) -> UsageTotals:
        """Returns the sums with `line` added."""
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
    """One usage type of one job, as AWS and the history report it.

    `job` is None for other usage of AWS. `crosses_month` means that the job ran past a month's end.
    `is_estimated` means that the history's dollars contain lines at an estimated rate.
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
        """The sides that have the row."""
        if not self.is_comparable:
            return Presence.NOT_COMPARABLE
        if self.aws.line_count and self.history.line_count:
            return Presence.MATCHED
        return Presence.ONLY_IN_AWS if self.aws.line_count else Presence.ONLY_IN_HISTORY

    @property
    def quantity_difference(self) -> Decimal | None:
        """The history's quantity minus AWS's; None if one is unknown or the units differ."""
        units_differ = self.aws.unit and self.history.unit and self.aws.unit != self.history.unit
        return None if units_differ else _minus(self.history.quantity, self.aws.quantity)

    @property
    def quantity_percent(self) -> Decimal | None:
        """The quantity difference in percent of AWS's quantity."""
        return percent(self.quantity_difference, self.aws.quantity)

    @property
    def usd_difference(self) -> Decimal | None:
        """The history's dollars minus AWS's; None if one is unknown."""
        return _minus(self.history.usd, self.aws.usd)

    @property
    def usd_percent(self) -> Decimal | None:
        """The dollar difference in percent of AWS's dollars."""
        return percent(self.usd_difference, self.aws.usd)


class Reconciliation(Struct, frozen=True):
    """All rows, the largest first, and sums over them.

    `usd_by_presence`: (AWS's dollars, the history's dollars) by (presence, whether the rows are of
    jobs). A presence says whether rows are in AWS's lines, in the history, or in both.
    """

    rows: tuple[UsageRow, ...]
    rows_by_presence: Mapping[Presence, Sequence[UsageRow]]
    usd_by_presence: Mapping[tuple[Presence, bool], tuple[Decimal, Decimal]]
    spend: AwsSpend
    audited: AuditedMonth

    def aws_usd(self, *presences: Presence, jobs_only: bool | None = None) -> Decimal:
        """Returns AWS's dollars in rows with one of these presences.

        Without a presence, returns those in all rows. `jobs_only`: True for rows of jobs only,
        False for other rows only, None for both.
        """
        amounts = (
            usd
            for (presence, jobs), (usd, _) in self.usd_by_presence.items()
            if (not presences or presence in presences) and jobs_only in {None, jobs}
        )
        return sum(amounts, _ZERO)

    def history_usd(self, *presences: Presence) -> Decimal:
        """Returns the history's known dollars in rows with one of these presences.

        Without a presence, returns those in all rows.
        """
        amounts = (
            usd
            for (presence, _), (_, usd) in self.usd_by_presence.items()
            if not presences or presence in presences
        )
        return sum(amounts, _ZERO)

    @property
    def unpriced_lines(self) -> int:
        """The number of history lines without dollars. They are in no sum."""
        return sum(line.usd is None for line in self.audited.lines)

    @property
    def unnamed_usd(self) -> Decimal:
        """AWS's dollars of usage of jobs whose lines name no job."""
        unnamed = (row for row in self.rows if row.area == JOBS and row.job is None)
        return sum((row.aws.known_usd for row in unnamed), _ZERO)

    def count_jobs(self) -> dict[Presence, int]:
        """Returns how many jobs are in both AWS's lines and the history, or in only one of them."""
        history_jobs = {line.job.lower() for line in self.audited.lines}
        aws_jobs = {row.job for row in self.rows if row.aws.line_count and row.job}
        shared_count = len(history_jobs & aws_jobs)
        return {
            Presence.MATCHED: shared_count,
            Presence.ONLY_IN_AWS: len(aws_jobs) - shared_count + self.spend.unlisted.jobs,
            Presence.ONLY_IN_HISTORY: len(history_jobs) - shared_count,
        }


_Key = tuple[str | None, str | None, str]
"""The key of a row: job, region and usage. A row with a job has no region, since the ARN contains
it."""


def reconcile(spend: AwsSpend, audited: AuditedMonth) -> Reconciliation:
    """Returns the comparison of both sides, by job and usage type."""
    rows = _aws_rows(spend.lines)
    unmatched: dict[_Key, UsageRow] = {}
    for line in audited.lines:
        job, is_comparable = line.job.lower(), line.usage is not None
        usage = line.usage_type or (line.usage.text if line.usage else line.item)
        side_rows, usage_key = (rows, line.usage.key) if line.usage else (unmatched, usage)
        row = side_rows.setdefault(
            (job, None, usage_key),
            UsageRow(usage, line.region, job, JOBS, is_comparable=is_comparable),
        )
        row.history = row.history.with_line(line)
        row.crosses_month |= line.crosses_month
        row.is_estimated |= line.is_estimated
    ranked = [*rows.values(), *unmatched.values()]
    ranked.sort(key=lambda row: (row.job or "", row.usage, row.region or ""))
    ranked.sort(key=_largest_usd, reverse=True)
    rows_by_presence: dict[Presence, list[UsageRow]] = {presence: [] for presence in Presence}
    sums = {(Presence.ONLY_IN_AWS, True): (spend.unlisted.usd, _ZERO)}
    for row in ranked:
        rows_by_presence[row.presence].append(row)
        group = row.presence, row.area == JOBS
        aws_usd, history_usd = sums.get(group, (_ZERO, _ZERO))
        sums[group] = aws_usd + row.aws.known_usd, history_usd + row.history.known_usd
    return Reconciliation(tuple(ranked), rows_by_presence, sums, spend, audited)


def percent(part: Decimal | None, whole: Decimal | None) -> Decimal | None:
    """Returns `part` in percent of `whole`; None if a figure is unknown or `whole` is 0."""
    return None if part is None or not whole else part / whole * _HUNDRED


def _aws_rows(lines: Iterable[AwsLine]) -> dict[_Key, UsageRow]:
    rows: dict[_Key, UsageRow] = {}
    for line in lines:
        usage_key, area = _usage(line.usage_type)
        job = _job(line.resource) if line.resource else None
        key = (job, None if job else line.region, usage_key)
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
    usage = parse_usage_type(usage_type)
    return usage.key, usage.area


def _job(resource: str) -> str | None:
    arn = resource.lower()
    return arn if _is_job_arn_prefix(arn.partition("/")[0]) else None


@cache
def _is_job_arn_prefix(before_name: str) -> bool:
    return JobRef.from_arn(f"{before_name}/name") is not None


@cache
def _unit(unit: str) -> str:
    return _UNITS.get(unit.lower(), unit)


def _largest_usd(row: UsageRow) -> Decimal:
    return max(row.aws.known_usd, row.history.known_usd)


def _plus(total: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if total is None or part is None else total + part


def _minus(total: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if total is None or part is None else total - part
