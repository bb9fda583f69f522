"""Compares a month of the history with AWS's own lines: rows of both sides and of only one.

A difference is the history's figure minus AWS's; percentages are of AWS's figure. Every AWS line is
in exactly one row, so matched and only-in-AWS rows add up to AWS's total. Unknown figures are None;
totals add up known amounts only.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.reconcile.audited_lines import Audited, AuditedLine
from sageaudit.domain.reconcile.spend import AwsLine, AwsSpend
from sageaudit.domain.reconcile.usage_type import JOBS, parsed

_ZERO = Decimal(0)
_HUNDRED = Decimal(100)
_UNITS = {
    "hrs": "hours",
    "hours": "hours",
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
    """The history's line matches no AWS line: its usage type, or a region, is unknown."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a row. A sum with an unknown part is None; `known_usd` sums the known parts."""

    unit: str
    quantity: Decimal | None
    usd: Decimal | None
    known_usd: Decimal


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One usage type (of one job, where AWS names the job), as each side reports it."""

    usage: str
    region: str | None
    job: str | None
    area: str
    presence: Presence
    aws: Side | None
    history: Side | None
    jobs: int
    crossing: int
    estimated: bool = False
    """The history's dollars contain lines at an estimated rate."""

    @property
    def quantity_difference(self) -> Decimal | None:
        """History minus AWS; None where a side is missing, unknown or in another unit."""
        if not self.aws or not self.history or self._units_differ:
            return None
        return _minus(self.history.quantity, self.aws.quantity)

    @property
    def quantity_percent(self) -> Decimal | None:
        """The quantity difference in percent of AWS's quantity."""
        return percent(self.quantity_difference, self.aws.quantity if self.aws else None)

    @property
    def usd_difference(self) -> Decimal | None:
        """History minus AWS, in dollars."""
        return _minus(self.history.usd, self.aws.usd) if self.aws and self.history else None

    @property
    def usd_percent(self) -> Decimal | None:
        """The dollar difference in percent of AWS's dollars."""
        return percent(self.usd_difference, self.aws.usd if self.aws else None)

    @property
    def _units_differ(self) -> bool:
        units = {side.unit for side in (self.aws, self.history) if side and side.unit}
        return len(units) > 1


@dataclass(frozen=True, slots=True)
class Area:
    """The cost of one part of SageMaker; `percent` is of the total, None where the total is 0."""

    name: str
    usd: Decimal
    percent: Decimal | None


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """All rows, the largest first, and sums over them."""

    by_job: bool
    rows: tuple[UsageRow, ...]
    areas: tuple[Area, ...]
    spend: AwsSpend
    audited: Audited

    def with_presence(self, presence: Presence) -> tuple[UsageRow, ...]:
        """The rows with this presence."""
        return tuple(row for row in self.rows if row.presence is presence)

    def aws_usd(self, *presences: Presence) -> Decimal:
        """AWS's dollars in rows with one of these presences; in all rows without an argument."""
        return sum((r.aws.known_usd for r in self.rows if r.aws and _in(r, presences)), _ZERO)

    def history_usd(self, *presences: Presence) -> Decimal:
        """The history's known dollars in rows with one of these presences, or in all rows."""
        return sum(
            (r.history.known_usd for r in self.rows if r.history and _in(r, presences)), _ZERO
        )

    @property
    def unpriced_lines(self) -> int:
        """Number of history lines without a dollar amount; they are left out of every sum."""
        return sum(line.usd is None for line in self.audited.lines)

    @property
    def outside_usd(self) -> Decimal:
        """AWS's dollars outside jobs, which audits do not cover."""
        return sum((area.usd for area in self.areas if area.name != JOBS), _ZERO)

    @property
    def jobs_only_in_aws_usd(self) -> Decimal:
        """AWS's dollars for usage of jobs that the history does not contain."""
        missing = (
            row for row in self.with_presence(Presence.ONLY_IN_AWS) if row.area == JOBS and row.aws
        )
        return sum((row.aws.known_usd for row in missing if row.aws), _ZERO)

    def jobs(self) -> dict[Presence, int]:
        """Number of jobs by presence; meaningful only where AWS's lines name the resource."""
        ours = {line.job.lower() for line in self.audited.lines}
        theirs = {row.job for row in self.rows if row.aws and row.job}
        return {
            Presence.MATCHED: len(ours & theirs),
            Presence.ONLY_IN_AWS: len(theirs - ours),
            Presence.ONLY_IN_HISTORY: len(ours - theirs),
        }


@dataclass(slots=True)
class _Sum:
    """Running sums of one side of a row."""

    usage: str
    region: str | None
    job: str | None
    area: str
    unit: str = ""
    quantity: Decimal | None = _ZERO
    usd: Decimal | None = _ZERO
    known_usd: Decimal = _ZERO
    jobs: set[str] = field(default_factory=set)
    crossing: set[str] = field(default_factory=set)
    estimated: bool = False

    def add(self, unit: str, quantity: Decimal | None, usd: Decimal | None) -> None:
        self.unit = self.unit or _UNITS.get(unit.lower(), unit)
        self.quantity = _plus(self.quantity, quantity)
        self.usd = _plus(self.usd, usd)
        self.known_usd += usd or _ZERO

    def side(self) -> Side:
        return Side(self.unit, self.quantity, self.usd, self.known_usd)


_Key = tuple[str | None, str | None, str]
"""Job, region and usage. The region is None where there is a job: its ARN contains the region."""


def reconcile(spend: AwsSpend, audited: Audited, *, by_job: bool) -> Reconciliation:
    """Compares both sides by usage type and region, or by job and usage type."""
    aws = _aws_sums(spend.lines, by_job=by_job)
    history, unnamed = _history_sums(audited.lines, aws, by_job=by_job)
    rows = [_row(aws.get(key), history.get(key)) for key in aws.keys() | history.keys()]
    rows += [_row(None, total, Presence.NOT_COMPARABLE) for total in unnamed.values()]
    rows.sort(key=lambda row: (-_size(row), row.job or "", row.usage, row.region or ""))
    return Reconciliation(by_job, tuple(rows), _areas(spend.lines), spend, audited)


def percent(part: Decimal | None, whole: Decimal | None) -> Decimal | None:
    """`part` in percent of `whole`; None where a figure is unknown or the whole is 0."""
    return None if part is None or not whole else part / whole * _HUNDRED


def _aws_sums(lines: Iterable[AwsLine], *, by_job: bool) -> dict[_Key, _Sum]:
    sums: dict[_Key, _Sum] = {}
    for line in lines:
        usage = parsed(line.usage_type)
        job = line.resource.lower() if by_job and line.resource else None
        if job is not None and JobRef.from_arn(job) is None:
            job = None
        named = usage.key if line.region or job else line.usage_type.lower()
        key = (job, None if job else line.region, named)
        if key not in sums:
            sums[key] = _Sum(line.usage_type, line.region, job, usage.area)
        sums[key].add(line.unit, line.quantity, line.usd)
    return sums


def _history_sums(
    lines: Iterable[AuditedLine], aws: dict[_Key, _Sum], *, by_job: bool
) -> tuple[dict[_Key, _Sum], dict[_Key, _Sum]]:
    """Sums under AWS's keys, and sums of the lines that have no such key."""
    sums: dict[_Key, _Sum] = {}
    unnamed: dict[_Key, _Sum] = {}
    without_region = {
        parsed(total.usage).key for key, total in aws.items() if key[:2] == (None, None)
    }
    for line in lines:
        job = line.job.lower() if by_job else None
        key = _key(line, job, aws, without_region)
        usage = line.usage_type or (line.usage.text if line.usage else line.item)
        into, at = (unnamed, (job, line.region, usage)) if key is None else (sums, key)
        if at not in into:
            into[at] = _Sum(usage, line.region, job, JOBS)
        into[at].add(line.unit, line.quantity, line.usd)
        into[at].jobs.add(line.job)
        into[at].estimated |= line.estimated
        if line.crosses:
            into[at].crossing.add(line.job)
    return sums, unnamed


def _key(
    line: AuditedLine, job: str | None, aws: dict[_Key, _Sum], without_region: set[str]
) -> _Key | None:
    """The key under which AWS's side of this line is summed; None where it cannot be known."""
    if line.usage is None:
        return None
    if job is not None:
        return (job, None, line.usage.key)
    exact = (None, None, (line.usage_type or "").lower())
    if exact in aws:
        return exact
    in_region = (None, line.region, line.usage.key)
    maybe_without_region = line.usage_type is None and line.usage.key in without_region
    if line.region is None or (maybe_without_region and in_region not in aws):
        return None
    return in_region


def _row(aws: _Sum | None, history: _Sum | None, presence: Presence | None = None) -> UsageRow:
    side = aws or history
    assert side is not None  # noqa: S101 - a key comes from at least one side
    if presence is None:
        only = Presence.ONLY_IN_HISTORY if aws is None else Presence.ONLY_IN_AWS
        presence = Presence.MATCHED if aws and history else only
    return UsageRow(
        usage=side.usage,
        region=side.region,
        job=side.job,
        area=side.area,
        presence=presence,
        aws=aws.side() if aws else None,
        history=history.side() if history else None,
        jobs=len(history.jobs) if history else 0,
        crossing=len(history.crossing) if history else 0,
        estimated=history.estimated if history else False,
    )


def _areas(lines: Iterable[AwsLine]) -> tuple[Area, ...]:
    sums: dict[str, Decimal] = {}
    for line in lines:
        area = parsed(line.usage_type).area
        sums[area] = sums.get(area, _ZERO) + line.usd
    total = sum(sums.values(), _ZERO)
    ranked = sorted(sums.items(), key=lambda area: (-area[1], area[0]))
    return tuple(Area(name, usd, percent(usd, total)) for name, usd in ranked)


def _in(row: UsageRow, presences: tuple[Presence, ...]) -> bool:
    return not presences or row.presence in presences


def _size(row: UsageRow) -> Decimal:
    return max(side.known_usd for side in (row.aws, row.history) if side)


def _plus(total: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if total is None or part is None else total + part


def _minus(total: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if total is None or part is None else total - part
