"""Compares a month of the history with AWS's own lines: rows of both sides and of only one.

A difference is the history's figure minus AWS's; percentages are of AWS's figure. Every AWS line is
in exactly one row, so matched and only-in-AWS rows add up to AWS's total. Unknown figures are None;
totals add up known amounts only.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from itertools import chain

from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.reconcile.audited_lines import AuditedLine, AuditedMonth
from sageaudit.domain.reconcile.spend import AwsLine, AwsSpend
from sageaudit.domain.reconcile.usage_type import JOBS, parsed

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


@dataclass(slots=True)
class Side:
    """One side of a row. A sum with an unknown part is None; `known_usd` sums the known parts."""

    lines: int = 0
    unit: str = ""
    quantity: Decimal | None = None
    usd: Decimal | None = None
    known_usd: Decimal = _ZERO

    def add(self, line: AwsLine | AuditedLine) -> None:
        """Adds a line to the sums."""
        self.unit = self.unit or _UNITS.get(line.unit.lower(), line.unit)
        self.quantity = _plus(self.quantity if self.lines else _ZERO, line.quantity)
        self.usd = _plus(self.usd if self.lines else _ZERO, line.usd)
        self.known_usd += line.usd or _ZERO
        self.lines += 1


@dataclass(slots=True)
class UsageRow:
    """One usage type of one job, as each side reports it; of AWS's other usage without a job.

    `jobs` and `crossing`: the jobs of the history's lines, and those that ran past a month's end.
    `estimated`: the history's dollars contain lines at an estimated rate.
    """

    usage: str
    region: str | None
    job: str | None
    area: str
    comparable: bool = True
    aws: Side = field(default_factory=Side)
    history: Side = field(default_factory=Side)
    jobs: set[str] = field(default_factory=set)
    crossing: set[str] = field(default_factory=set)
    estimated: bool = False

    @property
    def presence(self) -> Presence:
        """Which of the sides has it."""
        if not self.comparable:
            return Presence.NOT_COMPARABLE
        if self.aws.lines and self.history.lines:
            return Presence.MATCHED
        return Presence.ONLY_IN_AWS if self.aws.lines else Presence.ONLY_IN_HISTORY

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


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """All rows, the largest first, and sums over them. `placed`: the rows by their presence."""

    rows: tuple[UsageRow, ...]
    placed: Mapping[Presence, tuple[UsageRow, ...]]
    spend: AwsSpend
    audited: AuditedMonth

    def with_presence(self, presence: Presence) -> tuple[UsageRow, ...]:
        """The rows with this presence."""
        return self.placed[presence]

    def aws_usd(self, *presences: Presence) -> Decimal:
        """AWS's dollars in rows with one of these presences; in all rows without an argument."""
        return sum((row.aws.known_usd for row in self._rows(presences)), _ZERO)

    def history_usd(self, *presences: Presence) -> Decimal:
        """The history's known dollars in rows with one of these presences, or in all rows."""
        return sum((row.history.known_usd for row in self._rows(presences)), _ZERO)

    def _rows(self, presences: tuple[Presence, ...]) -> Iterator[UsageRow]:
        return chain.from_iterable(self.placed[one] for one in presences or Presence)

    @property
    def unpriced_lines(self) -> int:
        """Number of history lines without a dollar amount; they are left out of every sum."""
        return sum(line.usd is None for line in self.audited.lines)

    @property
    def outside_usd(self) -> Decimal:
        """AWS's dollars outside jobs, which audits do not cover."""
        return sum((row.aws.known_usd for row in self.rows if row.area != JOBS), _ZERO)

    @property
    def jobs_only_in_aws_usd(self) -> Decimal:
        """AWS's dollars for usage of jobs that the history does not contain."""
        missing = self.with_presence(Presence.ONLY_IN_AWS)
        return sum((row.aws.known_usd for row in missing if row.area == JOBS), _ZERO)

    def jobs(self) -> dict[Presence, int]:
        """Number of jobs by presence."""
        ours = {line.job.lower() for line in self.audited.lines}
        theirs = {row.job for row in self.rows if row.aws.lines and row.job}
        return {
            Presence.MATCHED: len(ours & theirs),
            Presence.ONLY_IN_AWS: len(theirs - ours),
            Presence.ONLY_IN_HISTORY: len(ours - theirs),
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
            (job, None, at), UsageRow(usage, line.region, job, JOBS, comparable=comparable)
        )
        row.history.add(line)
        row.jobs.add(line.job)
        row.estimated |= line.estimated
        if line.crosses:
            row.crossing.add(line.job)
    ranked = sorted(
        [*rows.values(), *unmatched.values()],
        key=lambda row: (-_largest_usd(row), row.job or "", row.usage, row.region or ""),
    )
    placed: dict[Presence, list[UsageRow]] = {presence: [] for presence in Presence}
    for row in ranked:
        placed[row.presence].append(row)
    by_presence = {presence: tuple(of_one) for presence, of_one in placed.items()}
    return Reconciliation(tuple(ranked), by_presence, spend, audited)


def percent(part: Decimal | None, whole: Decimal | None) -> Decimal | None:
    """`part` in percent of `whole`; None where a figure is unknown or the whole is 0."""
    return None if part is None or not whole else part / whole * _HUNDRED


def _aws_rows(lines: Iterable[AwsLine]) -> dict[_Key, UsageRow]:
    rows: dict[_Key, UsageRow] = {}
    of = cache(_job)
    for line in lines:
        usage = parsed(line.usage_type)
        job = of(line.resource) if line.resource else None
        key = (job, None if job else line.region, usage.key)
        row = rows.setdefault(key, UsageRow(line.usage_type, line.region, job, usage.area))
        row.aws.add(line)
    return rows


def _job(resource: str) -> str | None:
    """The ARN of a job as jobs are compared; None for another resource."""
    arn = resource.lower()
    return None if JobRef.from_arn(arn) is None else arn


def _largest_usd(row: UsageRow) -> Decimal:
    return max(row.aws.known_usd, row.history.known_usd)


def _plus(total: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if total is None or part is None else total + part


def _minus(total: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if total is None or part is None else total - part
